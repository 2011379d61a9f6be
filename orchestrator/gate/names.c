/* The platform appends its own resolver to resolv.conf, and mounts that file, so that it can't be renamed over, but be written to. It
 * may be the same one in all containers of the group: who else reads it has to be told of a resolver in another way. */
#include "orchestrator/gate/names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/gate/say.h"

#define RESOLV "/etc/resolv.conf"
#define HOSTS "/etc/hosts"

void names_hosts(const char *hostname, char out[NAMES_HOSTS])
{
	snprintf(out, NAMES_HOSTS, "127.0.0.1\tlocalhost %s\n::1\tlocalhost ip6-localhost ip6-loopback\n", hostname);
}

/* A link is the image's, and may lead where the agent can't read. */
static int open_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0644);
	if (fd >= 0 || errno != ELOOP || unlink(path) < 0)
		return fd;
	return open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
}

static int put(const char *path, const char *text)
{
	const size_t len = strlen(text);
	int fd = open_file(path);
	if (fd < 0)
		return say_errno(path);
	const bool is_written = write(fd, text, len) == (ssize_t)len && ftruncate(fd, (off_t)len) == 0;
	int result = is_written && fchmod(fd, 0644) == 0 ? 0 : say_errno(path);
	close(fd);
	return result;
}

void names_write(void)
{
	char hosts[NAMES_HOSTS], name[256] = "";
	gethostname(name, sizeof(name) - 1);
	names_hosts(name, hosts);
	if (put(RESOLV, "nameserver 127.0.0.1\noptions use-vc\n") < 0)
		say("names are found by the proxy alone");
	if (put(HOSTS, hosts) < 0)
		say("the name of this container leads to an address that the agent can't reach");
}
