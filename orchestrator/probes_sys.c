/* Probes of everything but the network. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/probes.h"

/* Arguments with which the call would do no harm, and would not fail for another reason than that it is refused. */
static long call(long number)
{
	static struct io_uring_params ring;
	static char attributes[128];
	char byte;
	struct iovec here = {&byte, 1}, there = {&byte, 1};
	switch (number) {
	case SYS_io_uring_setup:
		return syscall(number, 1, &ring);
	case SYS_bpf:
		return syscall(number, 0, attributes, sizeof(attributes));
	case SYS_keyctl:
		return syscall(number, 0, -3, 1); /* the session's keyring, made if need be */
	case SYS_request_key:
		return syscall(number, "user", "cage", NULL, 0);
	case SYS_pidfd_getfd:
		return syscall(number, syscall(SYS_pidfd_open, getpid(), 0), 0, 0);
	case SYS_mount:
		return syscall(number, "none", "/tmp", "tmpfs", 0, NULL);
	case SYS_setns:
		return syscall(number, open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), 0);
	case SYS_ptrace:
		return syscall(number, PTRACE_SEIZE, probes_room.parent, 0, 0);
	case SYS_process_vm_readv:
		return syscall(number, probes_room.parent, &here, 1, &there, 1, 0);
	default:
		return 0; /* a probe that nobody wrote is a surprise */
	}
}

enum probe_result probe_syscall(const struct probe *p)
{
	return call(p->number) >= 0 ? PROBE_WORKS : probe_refused(p);
}

/* gVisor lets everybody make one, and nobody open it. Linux wants a capability for it, which we do not have: probes_are_confined(). */
enum probe_result probe_device(const struct probe *p)
{
	char path[64];
	snprintf(path, sizeof(path), "%s/cage-verify.%d", p->text, (int)getpid());
	if (mknod(path, S_IFBLK | 0600, makedev(7, 0)) != 0)
		return probe_refused(p);
	int fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	unlink(path);
	return fd >= 0 || probes_room.network != PROBES_APART ? PROBE_WORKS : PROBE_FAILS;
}

/* In a container process 1 is one of the agent's own, whose namespaces gVisor shows it: what counts is whether it can enter them. */
enum probe_result probe_namespace(const struct probe *p)
{
	int fd = open(p->text, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return probe_refused(p);
	return probes_room.network != PROBES_APART || setns(fd, 0) == 0 ? PROBE_WORKS : PROBE_FAILS;
}

enum probe_result probe_open(const struct probe *p)
{
	return open(p->text, (p->number == 1 ? O_WRONLY : O_RDONLY) | O_CLOEXEC) >= 0 ? PROBE_WORKS : probe_refused(p);
}

/* A room covers it with a null device, which can be opened and has nothing in it. */
enum probe_result probe_bytes(const struct probe *p)
{
	char byte;
	int fd = open(p->text, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return probe_refused(p);
	return read(fd, &byte, 1) == 1 ? PROBE_WORKS : PROBE_FAILS;
}

/* Where nobody holds one the kernel's own has nothing in it either. */
enum probe_result probe_locks(const struct probe *p)
{
	int fd = memfd_create("cage-verify", MFD_CLOEXEC);
	if (fd < 0 || flock(fd, LOCK_SH | LOCK_NB) != 0)
		return PROBE_UNCLEAR;
	return probe_bytes(p);
}

/* Whatever they are called on this machine. */
enum probe_result probe_disks(const struct probe *p)
{
	struct stat st;
	DIR *dev = opendir("/dev");
	enum probe_result result = dev ? PROBE_FAILS : PROBE_UNCLEAR;
	(void)p;
	for (struct dirent *e = dev ? readdir(dev) : NULL; e; e = readdir(dev))
		if (fstatat(dirfd(dev), e->d_name, &st, 0) == 0 && S_ISBLK(st.st_mode) &&
		    openat(dirfd(dev), e->d_name, O_RDONLY | O_NONBLOCK | O_CLOEXEC) >= 0)
			result = PROBE_WORKS;
	if (dev)
		closedir(dev);
	return result;
}

enum probe_result probe_make(const struct probe *p)
{
	char path[4096];
	const char *dir = p->text[0] == '/' ? p->text : getenv(p->text);
	if (!dir || snprintf(path, sizeof(path), "%s/cage-verify.%d", dir, (int)getpid()) >= (int)sizeof(path))
		return PROBE_FAILS;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return fd >= 0 && write(fd, "x", 1) == 1 && unlink(path) == 0 ? PROBE_WORKS : PROBE_FAILS;
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

enum probe_result probe_rights(const struct probe *p)
{
	(void)p;
	return !probes_are_confined() || setuid(0) == 0 ? PROBE_WORKS : PROBE_FAILS;
}

/* All that can be seen but ourselves and who has started us. */
enum probe_result probe_others(const struct probe *p)
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
	return any ? PROBE_WORKS : PROBE_FAILS;
}

enum probe_result probe_child(const struct probe *p)
{
	int status = -1;
	(void)p;
	pid_t pid = fork();
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", "exit 42", (char *)NULL);
		_exit(1);
	}
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 42
		       ? PROBE_WORKS
		       : PROBE_FAILS;
}
