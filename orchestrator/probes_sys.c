/* Probes of everything but the network. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/probes.h"

/* Arguments with which the call would do no harm, and would not fail for another reason than that it is refused. */
bool probe_syscall(const struct probe *p)
{
	static struct io_uring_params ring;
	static char attributes[128];
	int self = (int)syscall(SYS_pidfd_open, getpid(), 0);
	switch (p->number) {
	case SYS_io_uring_setup:
		return syscall(SYS_io_uring_setup, 1, &ring) >= 0;
	case SYS_bpf:
		return syscall(SYS_bpf, 0, attributes, sizeof(attributes)) >= 0;
	case SYS_keyctl:
		return syscall(SYS_keyctl, 0, -3, 1) >= 0; /* the session's keyring, made if need be */
	case SYS_pidfd_getfd:
		return syscall(SYS_pidfd_getfd, self, 0, 0) >= 0;
	case SYS_mount:
		/* Of a kind that there is not: who may mount is told that, and nobody gets one. */
		return syscall(SYS_mount, "none", "/proc/self", "cage-none", 0, NULL) >= 0 || errno != EPERM;
	default:
		return true; /* a probe that nobody wrote is a surprise */
	}
}

bool probe_open(const struct probe *p)
{
	return open(p->text, (p->number == 1 ? O_WRONLY : O_RDONLY) | O_CLOEXEC) >= 0;
}

bool probe_make(const struct probe *p)
{
	char path[4096];
	const char *dir = p->text[0] == '/' ? p->text : getenv(p->text);
	if (!dir || snprintf(path, sizeof(path), "%s/cage-verify", dir) >= (int)sizeof(path))
		return false;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return fd >= 0 && write(fd, "x", 1) == 1 && unlink(path) == 0;
}

/* The lines of /proc/self/status that begin with Cap, but for the bounding set, which no_new_privs makes worthless. */
static bool has_capability(void)
{
	char line[256];
	FILE *f = fopen("/proc/self/status", "re");
	bool any = !f;
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "Cap", 3) == 0 && strncmp(line, "CapBnd", 6) != 0)
			any = any || strspn(line + 7, "\t 0\n") != strlen(line + 7);
	if (f)
		fclose(f);
	return any;
}

bool probes_are_confined(void)
{
	return !has_capability() && prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1;
}

bool probe_rights(const struct probe *p)
{
	(void)p;
	return !probes_are_confined() || setuid(0) == 0;
}

/* All that can be seen but ourselves and who has started us. */
bool probe_others(const struct probe *p)
{
	(void)p;
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	bool any = !proc;
	while (proc && (entry = readdir(proc)) != NULL) {
		pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
		if (pid <= 0 || pid == getpid() || pid == getppid())
			continue;
		any = any || ptrace(PTRACE_SEIZE, pid, 0, 0) == 0;
	}
	if (proc)
		closedir(proc);
	return any;
}

bool probe_child(const struct probe *p)
{
	int status = -1;
	(void)p;
	pid_t pid = fork();
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", "exit 42", (char *)NULL);
		_exit(1);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 42;
}
