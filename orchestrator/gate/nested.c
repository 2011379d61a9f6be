/* A room's filter has no openat2 and no packet sockets, each with an answer that a kernel or a container would not give together. */
#include "orchestrator/gate/nested.h"

#include <errno.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <stdio.h>
#include <unistd.h>

#include "orchestrator/gate/plain.h"
#include "orchestrator/gate/say.h"

/* 0, or -1 with errno. */
static int try_open(void)
{
	int fd = plain_open("/");
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

/* A kernel asks for rights before it says which protocols it has. */
static bool has_no_packets(void)
{
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		close(fd);
	return fd < 0 && errno == EAFNOSUPPORT;
}

/* Of this process, as /proc says it: prctl could be refused by another filter. */
static bool is_filtered(void)
{
	char line[128];
	bool found = false;
	FILE *status = fopen("/proc/self/status", "re");
	while (status && !found && fgets(line, sizeof(line), status))
		found = strncmp(line, "Seccomp:", 8) == 0 && strtol(line + 8, NULL, 10) == SECCOMP_MODE_FILTER;
	if (status)
		fclose(status);
	return found;
}

bool nested_is_in_room(void)
{
	return try_open() < 0 && errno == ENOSYS && has_no_packets() && is_filtered() &&
	       prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
}

int nested_refuse(void)
{
	if (!nested_is_in_room())
		return 0;
	say("already inside a room of cage, where no other can be made");
	return -1;
}

int nested_check(void)
{
	if (nested_refuse() < 0)
		return -1;
	return try_open() < 0 ? say_errno("openat2") : 0;
}
