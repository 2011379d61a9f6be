/* Other families, other ways to call the kernel, other processes. */
#include "tests/gate/attack.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FAMILIES = 64, VSOCK = 40, TIPC = 30, TO_IFINDEX = 62, THREADS = 16, SOCKETS = 200 };
enum { FAST_OPEN_CONNECT = 30, NEIGHBOUR_SECONDS = 15 };

static enum verdict open_if(long fd)
{
	return fd >= 0 ? OPEN : SHUT;
}

static enum verdict vsock(const struct target *t)
{
	(void)t;
	return open_if(socket(VSOCK, SOCK_STREAM, 0));
}

static enum verdict upper_bits(const struct target *t)
{
	(void)t;
	return open_if(syscall(SYS_socket, ((long)1 << 32) | AF_PACKET, SOCK_RAW, 0));
}

static enum verdict packet(const struct target *t)
{
	(void)t;
	return open_if(socket(AF_PACKET, SOCK_DGRAM, 0));
}

static bool may_be_had(int family, int type, int protocol)
{
	if (family == AF_UNIX)
		return true;
	if (family == AF_NETLINK)
		return protocol == NETLINK_ROUTE;
	if (family != AF_INET && family != AF_INET6)
		return false;
	return (type == SOCK_STREAM && (protocol == 0 || protocol == IPPROTO_TCP)) ||
	       (type == SOCK_DGRAM && (protocol == 0 || protocol == IPPROTO_UDP));
}

/* Of IP in a network of its own, other protocols are confined as all others are. */
static enum verdict every_family(const struct target *t)
{
	(void)t;
	for (int family = 0; family < FAMILIES; family++)
		for (int type = 0; type < 11; type++)
			for (int protocol = 0; protocol < 32; protocol++) {
				int fd = socket(family, type, protocol);
				bool is_ip = family == AF_INET || family == AF_INET6;
				if (fd >= 0 && !is_ip && !may_be_had(family, type, protocol))
					return OPEN;
				close(fd);
			}
	return SHUT;
}

static bool is_tied(int fd)
{
	int device = 0;
	socklen_t len = sizeof(device);
	return getsockopt(fd, SOL_SOCKET, TO_IFINDEX, &device, &len) == 0 && device == 1;
}

/* For mode seccomp: whatever can be had of IPv4 is TCP on loopback, or UDP that can't send. */
static enum verdict every_protocol(const struct target *t)
{
	(void)t;
	for (int type = 0; type < 11; type++)
		for (int protocol = 0; protocol < 300; protocol++) {
			int fd = socket(AF_INET, type, protocol);
			if (fd >= 0 && (!may_be_had(AF_INET, type, protocol) || !is_tied(fd)))
				return OPEN;
			close(fd);
		}
	return SHUT;
}

static void *make_many(void *failed)
{
	for (int i = 0; i < SOCKETS; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | (i & 1 ? SOCK_NONBLOCK : 0), 0);
		bool right = fd >= 0 && is_tied(fd) && fcntl(fd, F_GETFD) == FD_CLOEXEC &&
			     !!(fcntl(fd, F_GETFL) & O_NONBLOCK) == (i & 1);
		if (!right)
			*(bool *)failed = true;
		close(fd);
	}
	return NULL;
}

static enum verdict many_threads(const struct target *t)
{
	pthread_t threads[THREADS];
	bool failed[THREADS] = {false};
	bool any = false;
	(void)t;
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, make_many, &failed[i]) != 0)
			return OPEN;
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		any |= failed[i];
	}
	return any ? OPEN : SHUT;
}

static enum verdict io_uring(const struct target *t)
{
	char parameters[256] = {0};
	(void)t;
	return open_if(syscall(SYS_io_uring_setup, 4, parameters));
}

static enum verdict pair_of_other_family(const struct target *t)
{
	int pair[2];
	(void)t;
	return socketpair(AF_INET, SOCK_STREAM, 0, pair) == 0 || socketpair(TIPC, SOCK_DGRAM, 0, pair) == 0 ? OPEN
													    : SHUT;
}

static enum verdict keyring(const struct target *t)
{
	(void)t;
	return open_if(syscall(SYS_add_key, "user", "x", "y", 1, -2));
}

#ifdef __x86_64__
static enum verdict x32(const struct target *t)
{
	(void)t;
	return open_if(syscall(0x40000000L | SYS_socket, AF_INET6, SOCK_STREAM, 0));
}

/* socket() of the 32-bit table: whoever gets here alive with a descriptor is out. */
static enum verdict old_gate(const struct target *t)
{
	long result = 359;
	(void)t;
	__asm__ volatile("int $0x80" : "+a"(result) : "b"((long)AF_UNIX), "c"((long)SOCK_STREAM), "d"(0L) : "memory");
	return open_if(result);
}

/* The child's harmless call becomes another one under the tracer's hands. */
static long rewrite_call(pid_t child)
{
	struct user_regs_struct registers;
	int status = 0;
	waitpid(child, &status, 0);
	for (int stops = 0; stops < 64; stops++) {
		if (ptrace(PTRACE_SYSCALL, child, 0, 0) < 0 || waitpid(child, &status, 0) != child ||
		    !WIFSTOPPED(status))
			return -1;
		ptrace(PTRACE_GETREGS, child, 0, &registers);
		if (registers.orig_rax != SYS_getppid)
			continue;
		registers.orig_rax = SYS_socket;
		registers.rdi = AF_PACKET;
		registers.rsi = SOCK_DGRAM;
		registers.rdx = 0;
		ptrace(PTRACE_SETREGS, child, 0, &registers);
		ptrace(PTRACE_SYSCALL, child, 0, 0);
		waitpid(child, &status, 0);
		ptrace(PTRACE_GETREGS, child, 0, &registers);
		return (long)registers.rax;
	}
	return -1;
}

static enum verdict traced_call(const struct target *t)
{
	(void)t;
	pid_t child = fork();
	if (child == 0) {
		ptrace(PTRACE_TRACEME, 0, 0, 0);
		raise(SIGSTOP);
		syscall(SYS_getppid);
		_exit(0);
	}
	long result = rewrite_call(child);
	kill(child, SIGKILL);
	return open_if(result);
}
#endif

/* A filter of its own that allows everything changes nothing. */
static enum verdict allowing_filter(const struct target *t)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog program = {1, &allow};
	(void)t;
	syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
	return open_if(socket(AF_PACKET, SOCK_DGRAM, 0));
}

/* The room's first process, or the supervisor: parent of this program, whose attacks are its children. */
static pid_t gate_pid(void)
{
	char line[128];
	int parent = 0;
	snprintf(line, sizeof(line), "/proc/%d/stat", (int)getppid());
	FILE *f = fopen(line, "re");
	if (!f)
		return 1;
	if (fscanf(f, "%*d (%*[^)]) %*c %d", &parent) != 1) // NOLINT(cert-err34-c)
		parent = 1;
	fclose(f);
	return parent;
}

static enum verdict trace_gate(const struct target *t)
{
	(void)t;
	return ptrace(PTRACE_SEIZE, gate_pid(), 0, 0) == 0 ? OPEN : SHUT;
}

static enum verdict read_gate(const struct target *t)
{
	char byte, path[64];
	struct iovec here = {&byte, 1}, there = {(void *)(uintptr_t)0x400000, 1};
	(void)t;
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)gate_pid());
	if (open(path, O_RDWR | O_CLOEXEC) >= 0)
		return OPEN;
	errno = 0;
	return process_vm_readv(gate_pid(), &here, 1, &there, 1, 0) >= 0 || errno == EFAULT ? OPEN : SHUT;
}

static enum verdict take_fd_of_gate(const struct target *t)
{
	(void)t;
	long process = syscall(SYS_pidfd_open, gate_pid(), 0);
	for (int fd = 0; fd < 64; fd++)
		if (syscall(SYS_pidfd_getfd, process, fd, 0) >= 0)
			return OPEN;
	return SHUT;
}

static enum verdict join_gate(const struct target *t)
{
	char path[64];
	(void)t;
	snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)gate_pid());
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && setns(fd, CLONE_NEWNET) == 0 ? OPEN : SHUT;
}

static enum verdict inherited(const struct target *t)
{
	(void)t;
	for (int fd = 3; fd < 1024; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return OPEN;
	return SHUT;
}

/* Both are made by the test, beside the room. */
static enum verdict abstract_socket(const struct target *t)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "\0cage-attack"};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);
	(void)t;
	return connect(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 12)) == 0
		       ? OPEN
		       : SHUT;
}

/* Ways to begin a connection: plainly, with data in the first packet (which Landlock does not see), with the filter taken
 * off, and once more. */
static void begin(int fd, int way, const struct sockaddr_in *to)
{
	const int one = 1;
	switch (way) {
	case 0:
		sendto(fd, "leak", 4, MSG_FASTOPEN | MSG_NOSIGNAL, (const struct sockaddr *)to, sizeof(*to));
		return;
	case 1:
		setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &one, sizeof(one));
		break;
	case 2:
		setsockopt(fd, IPPROTO_TCP, FAST_OPEN_CONNECT, &one, sizeof(one));
		break;
	case 3:
		(void)connect(fd, (const struct sockaddr *)to, sizeof(*to));
		disconnect(fd);
		break;
	default:
		break;
	}
	(void)connect(fd, (const struct sockaddr *)to, sizeof(*to));
	send(fd, "leak", 4, MSG_NOSIGNAL);
}

static bool gets_there(int fd)
{
	struct pollfd watched = {fd, POLLIN | POLLOUT, 0};
	struct sockaddr_in peer;
	socklen_t len = sizeof(peer);
	poll(&watched, 1, 1000 * NEIGHBOUR_SECONDS);
	return getpeername(fd, (struct sockaddr *)&peer, &len) == 0;
}

static enum verdict neighbour(const struct target *t)
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(9090)};
	int fds[5];
	bool any = false;
	(void)t;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	for (int way = 0; way < 5; way++) {
		fds[way] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		begin(fds[way], way, &address);
	}
	for (int way = 0; way < 5; way++)
		any |= gets_there(fds[way]);
	return any ? OPEN : SHUT;
}

/* An own server is nobody's neighbour: without it the room would be of little use. */
static enum verdict no_own_server(const struct target *t)
{
	struct sockaddr_in address = {.sin_family = AF_INET};
	socklen_t len = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);
	char bytes[4];
	(void)t;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(listener, (struct sockaddr *)&address, sizeof(address)) < 0 || listen(listener, 5) < 0 ||
	    getsockname(listener, (struct sockaddr *)&address, &len) < 0 ||
	    connect(client, (struct sockaddr *)&address, sizeof(address)) < 0)
		return OPEN;
	int fd = accept(listener, NULL, NULL);
	return send(client, "here", 4, MSG_NOSIGNAL) == 4 && recv(fd, bytes, 4, 0) == 4 ? SHUT : OPEN;
}

/* Whoever stops the one that answers, stops the answers; whoever ends it, ends the room. */
static enum verdict signal_gate(const struct target *t)
{
	(void)t;
	return kill(gate_pid(), SIGSTOP) == 0 || kill(gate_pid(), SIGKILL) == 0 ? OPEN : SHUT;
}

/* A port of ours that nobody serves any more is not to be had. */
static enum verdict squat(const struct target *t)
{
	const int one = 1;
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(8080)};
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	(void)t;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
	return bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 && listen(fd, 5) == 0 ? OPEN : SHUT;
}

const struct attack other_attacks[] = {
	{"vsock", vsock},
	{"upper_bits", upper_bits},
	{"packet", packet},
	{"every_family", every_family},
	{"every_protocol", every_protocol},
	{"many_threads", many_threads},
	{"io_uring", io_uring},
	{"pair_of_other_family", pair_of_other_family},
	{"keyring", keyring},
#ifdef __x86_64__
	{"x32", x32},
	{"old_gate", old_gate},
	{"traced_call", traced_call},
#endif
	{"allowing_filter", allowing_filter},
	{"trace_gate", trace_gate},
	{"read_gate", read_gate},
	{"take_fd_of_gate", take_fd_of_gate},
	{"join_gate", join_gate},
	{"inherited", inherited},
	{"abstract_socket", abstract_socket},
	{"neighbour", neighbour},
	{"no_own_server", no_own_server},
	{"signal_gate", signal_gate},
	{"squat", squat},
	{NULL, NULL},
};
