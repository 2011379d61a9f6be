/* Each line of the tables is something that must not work any more, and how it must fail. */
#include "orchestrator/gate/selftest.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/gate/netns.h"
#include "orchestrator/gate/privileges.h"
#include "orchestrator/gate/say.h"

enum { FAMILY_VSOCK = 40, FAMILY_ALG = 38, FAMILY_TIPC = 30 };
#define UPPER_BITS ((long)1 << 32)

struct attempt {
	const char *what;
	long call;
	long arguments[3];
	int error; /* what it must fail with */
};

static const struct attempt in_both[] = {
	{"vsock", SYS_socket, {FAMILY_VSOCK, SOCK_STREAM, 0}, EAFNOSUPPORT},
	{"vsock with upper bits", SYS_socket, {UPPER_BITS | FAMILY_VSOCK, SOCK_STREAM, 0}, EAFNOSUPPORT},
	{"packet socket", SYS_socket, {AF_PACKET, SOCK_RAW, 0}, EAFNOSUPPORT},
	{"kernel crypto socket", SYS_socket, {FAMILY_ALG, SOCK_SEQPACKET, 0}, EAFNOSUPPORT},
	{"tipc pair", SYS_socketpair, {FAMILY_TIPC, SOCK_DGRAM, 0}, EAFNOSUPPORT},
	{"netlink of another kind", SYS_socket, {AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER}, EPROTONOSUPPORT},
	{"io_uring", SYS_io_uring_setup, {1, 0, 0}, ENOSYS},
	{"bpf", SYS_bpf, {0, 0, 0}, ENOSYS},
	{"keyring", SYS_keyctl, {0, 0, 0}, ENOSYS},
	{"request_key", SYS_request_key, {0, 0, 0}, ENOSYS},
	{"pidfd_getfd", SYS_pidfd_getfd, {-1, 0, 0}, ENOSYS},
	{"openat2", SYS_openat2, {-1, 0, 0}, ENOSYS},
	{"set-user-id bit", SYS_fchmod, {-1, UPPER_BITS | S_ISUID, 0}, EPERM},
	{"set-group-id bit of a new file", SYS_mknodat, {-1, 0, S_IFREG | S_ISGID}, EPERM},
	{"input to a terminal", SYS_ioctl, {-1, UPPER_BITS | TIOCSTI, 0}, EPERM},
};

#ifdef __x86_64__
static const struct attempt x32 = {"x32", 0x40000000L | SYS_socket, {AF_INET, SOCK_STREAM, 0}, ENOSYS};
#endif

static const struct attempt in_shared[] = {
	{"send that connects", SYS_sendmsg, {-1, 0, UPPER_BITS | MSG_FASTOPEN}, EOPNOTSUPP},
	{"IPv6", SYS_socket, {AF_INET6, SOCK_STREAM, 0}, EAFNOSUPPORT},
	{"raw socket", SYS_socket, {AF_INET, SOCK_RAW, IPPROTO_UDP}, ESOCKTNOSUPPORT},
	{"ping socket", SYS_socket, {AF_INET, SOCK_DGRAM, IPPROTO_ICMP}, EPROTONOSUPPORT},
	{"multipath TCP", SYS_socket, {AF_INET, SOCK_STREAM, 262}, EPROTONOSUPPORT},
};

/* Room for the fourth argument, which socketpair writes to. */
static bool fails_as_it_must(const struct attempt *a)
{
	int pair[2];
	long result = syscall(a->call, a->arguments[0], a->arguments[1], a->arguments[2], pair);
	if (result < 0 && errno == a->error)
		return true;
	say("self-test: %s is not refused as it must be", a->what);
	return false;
}

static bool all_fail(const struct attempt *table, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!fails_as_it_must(&table[i]))
			return false;
	return true;
}

/* By a process of its own, since a platform may have a filter below ours that kills for it: systemd's for native programs
 * does, and that is a refusal too. */
static bool no_other_table(void)
{
#ifdef __x86_64__
	int status = 0;
	pid_t child = fork();
	if (child == 0)
		_exit(fails_as_it_must(&x32) ? 0 : 1);
	if (child < 0 || waitpid(child, &status, 0) != child)
		return false;
	return WIFSIGNALED(status) ? WTERMSIG(status) == SIGSYS : WEXITSTATUS(status) == 0;
#else
	return true;
#endif
}

static bool check(bool holds, const char *what)
{
	if (!holds)
		say("self-test: %s", what);
	return holds;
}

static bool tcp_is_on_loopback(unsigned loopback)
{
	int device = 0;
	socklen_t len = sizeof(device);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	bool bound = getsockopt(fd, SOL_SOCKET, SO_BINDTOIFINDEX, &device, &len) == 0 && device == (int)loopback;
	close(fd);
	return bound && loopback != 0;
}

static bool udp_is_mute(void)
{
	struct sockaddr_in nowhere = {.sin_family = AF_INET, .sin_port = htons(9)};
	nowhere.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return false;
	bool mute = sendto(fd, "", 1, MSG_NOSIGNAL, (struct sockaddr *)&nowhere, sizeof(nowhere)) < 0 && errno == EPIPE;
	close(fd);
	return mute;
}

/* A chain of filters has one notifier; ours is there, so that another is refused. */
static bool is_supervised(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = {1, &allow};
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program) < 0 &&
	       errno == EBUSY;
}

static bool shared_holds(unsigned loopback)
{
	return all_fail(in_shared, sizeof(in_shared) / sizeof(in_shared[0])) &&
	       check(is_supervised(), "sockets are not supervised") &&
	       check(tcp_is_on_loopback(loopback), "TCP is not bound to loopback") &&
	       check(udp_is_mute(), "UDP can send");
}

int selftest_run(enum gate_mode mode, unsigned loopback)
{
	bool holds = check(privileges_are_none(), "privileges are left") &&
		     check(prctl(PR_GET_SECCOMP) == SECCOMP_MODE_FILTER, "no filter of system calls") &&
		     all_fail(in_both, sizeof(in_both) / sizeof(in_both[0])) &&
		     check(no_other_table(), "another table of system calls");
	if (holds && mode == MODE_NETNS)
		holds = check(netns_is_closed(), "the network has a way out");
	else if (holds)
		holds = shared_holds(loopback);
	return holds ? 0 : -1;
}
