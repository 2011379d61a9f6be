/* The filter of system calls of an agent: what no program of an agent needs, and by which containers were left before. What is not
 * named is allowed; without any capability the kernel itself refuses most of what this refuses once more. */
#include <errno.h>
#include <linux/sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/pod/pod.h"

static const char refused[] =
	"\"unshare\",\"setns\",\"mount\",\"umount\",\"umount2\",\"pivot_root\",\"chroot\",\"open_tree\",\"move_mount\","
	"\"fsopen\","
	"\"fsmount\",\"fsconfig\",\"fspick\",\"mount_setattr\",\"bpf\",\"perf_event_open\",\"keyctl\",\"add_key\","
	"\"request_key\",\"userfaultfd\",\"pidfd_getfd\",\"kcmp\",\"init_module\",\"finit_module\",\"delete_module\","
	"\"kexec_load\",\"kexec_file_load\",\"reboot\",\"swapon\",\"swapoff\",\"acct\",\"quotactl\",\"quotactl_fd\","
	"\"name_to_handle_at\",\"open_by_handle_at\",\"fanotify_init\",\"lookup_dcookie\",\"syslog\",\"iopl\","
	"\"ioperm\","
	"\"settimeofday\",\"clock_settime\",\"clock_adjtime\",\"adjtimex\",\"sethostname\",\"setdomainname\","
	"\"vhangup\","
	"\"process_vm_readv\",\"process_vm_writev\",\"ptrace\",\"process_madvise\",\"move_pages\","
	"\"migrate_pages\",\"nfsservctl\",\"uselib\",\"ustat\",\"sysfs\",\"personality\","
	"\"modify_ldt\",\"vm86\",\"vm86old\"";

/* As if this kernel did not know them: who uses them has another way. */
static const char unknown[] = "\"io_uring_setup\",\"io_uring_enter\",\"io_uring_register\"";

static void print_calls(FILE *f, const char *names, int error)
{
	fprintf(f, "{\"names\":[%s],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":%d}", names, error);
}

/* Of gVisor's answer nothing but EPERM can be had, with which nobody makes threads in the other way; it says itself that it does
 * not know the call, or counts namespaces as its own. */
static void print_clone3(FILE *f, enum seccomp_of of)
{
	if (of == SECCOMP_OF_GVISOR)
		fputs("{\"names\":[\"clone3\"],\"action\":\"SCMP_ACT_ALLOW\"}", f);
	else
		print_calls(f, "\"clone3\"", ENOSYS);
}

/* One for each bit: a rule compares a mask with one value. */
static void print_namespaces(FILE *f)
{
	static const unsigned flags[] = {CLONE_NEWNS,   CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
					 CLONE_NEWUSER, CLONE_NEWPID,    CLONE_NEWNET};
	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		fprintf(f,
			",\n{\"names\":[\"clone\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":%d,\"args\":[{\"index\":"
			"0,"
			"\"value\":%u,\"valueTwo\":%u,\"op\":\"SCMP_CMP_MASKED_EQ\"}]}",
			EPERM, flags[i], flags[i]);
}

/* Of sockets there are those of the machine itself, of IP, and those that tell of addresses. */
static void print_families(FILE *f)
{
	for (int family = 0; family < 64; family++)
		if (family != AF_UNIX && family != AF_INET && family != AF_INET6 && family != AF_NETLINK)
			fprintf(f,
				",\n{\"names\":[\"socket\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":%d,\"args\":[{"
				"\"index\":0,"
				"\"value\":%d,\"op\":\"SCMP_CMP_EQ\"}]}",
				EAFNOSUPPORT, family);
	fprintf(f,
		",\n{\"names\":[\"socket\"],\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":%d,\"args\":[{\"index\":0,"
		"\"value\":63,\"op\":\"SCMP_CMP_GT\"}]}",
		EAFNOSUPPORT);
}

/* Programs of another architecture, such as those of 32 bits, are killed: there, sockets are made by calls that can't be looked
 * into. */
bool seccomp_write(const char *path, enum seccomp_of of)
{
	FILE *f = fopen(path, "wxe");
	if (f) {
		fputs("{\"defaultAction\":\"SCMP_ACT_ALLOW\",\"architectures\":["
#if defined(__x86_64__)
		      "\"SCMP_ARCH_X86_64\""
#elif defined(__aarch64__)
		      "\"SCMP_ARCH_AARCH64\""
#endif
		      "],\"syscalls\":[\n",
		      f);
		print_calls(f, refused, EPERM);
		fputs(",\n", f);
		print_calls(f, unknown, ENOSYS);
		fputs(",\n", f);
		print_clone3(f, of);
		print_namespaces(f);
		print_families(f);
		fputs("\n]}\n", f);
	}
	bool ok = f && !ferror(f);
	if (f)
		ok = fclose(f) == 0 && ok;
	if (!ok)
		say("%s: %s", path, strerror(errno));
	return ok;
}
