/* Written as plain BPF, since what it lets pass is all there is to it. All arguments that are compared are ints to the
 * kernel, which ignores their upper halves: so only the lower 32 bits are looked at. */
#include "orchestrator/gate/filter.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define THIS_ARCH AUDIT_ARCH_X86_64
#define X32_BIT 0x40000000u
#elif defined(__aarch64__)
#define THIS_ARCH AUDIT_ARCH_AARCH64
#else
#error "the gate knows the system calls of x86-64 and arm64 only"
#endif

enum { PROGRAM_MAX = 256 };

#define CALL_FCHMODAT2 452 /* Linux 6.6; not yet in the headers of all systems */

struct program {
	struct sock_filter code[PROGRAM_MAX];
	unsigned short n;
};

static unsigned short emit(struct program *p, unsigned code, uint32_t value)
{
	if (p->n == PROGRAM_MAX)
		__builtin_trap();
	p->code[p->n] = (struct sock_filter){(unsigned short)code, 0, 0, value};
	return p->n++;
}

static void load(struct program *p, size_t offset)
{
	emit(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset);
}

/* Both architectures are little-endian: the lower half comes first. */
static void load_argument(struct program *p, size_t index)
{
	load(p, offsetof(struct seccomp_data, args) + index * sizeof(uint64_t));
}

static void answer(struct program *p, uint32_t action)
{
	emit(p, BPF_RET | BPF_K, action);
}

static void refuse(struct program *p, int error)
{
	answer(p, SECCOMP_RET_ERRNO | ((uint32_t)error & SECCOMP_RET_DATA));
}

/* What follows, up to end_when, is for this value only. */
static unsigned short when(struct program *p, uint32_t value)
{
	return emit(p, BPF_JMP | BPF_JEQ | BPF_K, value);
}

/* What follows, up to end_when, is for values that have one of these bits. */
static unsigned short when_any(struct program *p, uint32_t bits)
{
	return emit(p, BPF_JMP | BPF_JSET | BPF_K, bits);
}

static void end_when(struct program *p, unsigned short test)
{
	unsigned over = (unsigned)(p->n - test - 1);
	if (over > UINT8_MAX)
		__builtin_trap();
	p->code[test].jf = (unsigned char)over;
}

static void answer_when(struct program *p, uint32_t value, uint32_t action)
{
	unsigned short test = when(p, value);
	answer(p, action);
	end_when(p, test);
}

static void refuse_when(struct program *p, uint32_t value, int error)
{
	unsigned short test = when(p, value);
	refuse(p, error);
	end_when(p, test);
}

static void only_this_architecture(struct program *p)
{
	load(p, offsetof(struct seccomp_data, arch));
	unsigned short other = emit(p, BPF_JMP | BPF_JEQ | BPF_K, THIS_ARCH);
	p->code[other].jt = 1;
	answer(p, SECCOMP_RET_KILL_PROCESS);
	load(p, offsetof(struct seccomp_data, nr));
#ifdef X32_BIT
	unsigned short x32 = emit(p, BPF_JMP | BPF_JGE | BPF_K, X32_BIT);
	p->code[x32].jf = 1;
	refuse(p, ENOSYS);
#endif
}

/* Other ways to get a socket, to have names resolved outside, or to make a file with a mode that can't be looked at: that
 * of openat2 is behind a pointer. Who uses it has another way for kernels that do not know it. */
static void no_side_doors(struct program *p)
{
	static const uint32_t doors[] = {
		SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register, SYS_pidfd_getfd, SYS_bpf, SYS_add_key,
		SYS_request_key,    SYS_keyctl,         SYS_openat2,
	};
	for (size_t i = 0; i < sizeof(doors) / sizeof(doors[0]); i++)
		refuse_when(p, doors[i], ENOSYS);
}

static void rule_socket(struct program *p, uint32_t ipv4, bool has_ipv6)
{
	unsigned short call = when(p, SYS_socket);
	load_argument(p, 0);
	answer_when(p, AF_UNIX, SECCOMP_RET_ALLOW);
	answer_when(p, AF_INET, ipv4);
	if (has_ipv6)
		answer_when(p, AF_INET6, SECCOMP_RET_ALLOW);
	unsigned short netlink = when(p, AF_NETLINK);
	load_argument(p, 2);
	answer_when(p, NETLINK_ROUTE, SECCOMP_RET_ALLOW);
	refuse(p, EPROTONOSUPPORT);
	end_when(p, netlink);
	refuse(p, EAFNOSUPPORT);
	end_when(p, call);
}

/* A pair of a family that can reach others (TIPC) would be two sockets that nobody vetted. */
static void rule_socketpair(struct program *p)
{
	unsigned short call = when(p, SYS_socketpair);
	load_argument(p, 0);
	answer_when(p, AF_UNIX, SECCOMP_RET_ALLOW);
	refuse(p, EAFNOSUPPORT);
	end_when(p, call);
}

/* Keystrokes that a program puts into the terminal it shares with others are read by the shell behind it. */
static void rule_ioctl(struct program *p)
{
	unsigned short call = when(p, SYS_ioctl);
	load_argument(p, 1);
	refuse_when(p, TIOCSTI, EPERM);
	refuse_when(p, TIOCLINUX, EPERM);
	answer(p, SECCOMP_RET_ALLOW);
	end_when(p, call);
}

#define ROWS(table) (sizeof(table) / sizeof((table)[0]))

struct forbidden_option {
	uint32_t level;
	uint32_t first, last; /* option names, both inclusive */
};

/* Options that choose another device or route. With muted UDP the memberships are what counts: joining a group sends a
 * report on any device. The rest is depth behind the kernel's own checks. Sorted by level. */
static const struct forbidden_option forbidden[] = {
	{0 /* SOL_IP */, 4, 4},       /* IP_OPTIONS */
	{0, 15, 17},                  /* IP_FREEBIND, IP_IPSEC_POLICY, IP_XFRM_POLICY */
	{0, 19, 19},                  /* IP_TRANSPARENT */
	{0, 32, 32},                  /* IP_MULTICAST_IF */
	{0, 35, 48},                  /* memberships of groups, MCAST_* */
	{0, 50, 50},                  /* IP_UNICAST_IF */
	{0, 64, 64},                  /* tables of the packet filter */
	{1 /* SOL_SOCKET */, 25, 25}, /* SO_BINDTODEVICE */
	{1, 26, 26},                  /* see programs */
	{1, 36, 36},                  /* SO_MARK */
	{1, 50, 52},                  /* see programs */
	{1, 62, 62},                  /* SO_BINDTOIFINDEX */
	{6 /* SOL_TCP */, 19, 19},    /* TCP_REPAIR */
	{6, 30, 30},                  /* TCP_FASTOPEN_CONNECT */
	{6, 34, 34},                  /* TCP_FASTOPEN_NO_COOKIE */
};

/* Programs for sockets take of the memory for compiled ones, of which the machine has one for all (net.core.bpf_jit_limit). */
static const struct forbidden_option programs[] = {
	{1 /* SOL_SOCKET */, 26, 26}, /* SO_ATTACH_FILTER */
	{1, 50, 52},                  /* SO_ATTACH_BPF, SO_ATTACH_REUSEPORT_CBPF and _EBPF */
};

static void refuse_range(struct program *p, uint32_t first, uint32_t last, int error)
{
	unsigned short from = emit(p, BPF_JMP | BPF_JGE | BPF_K, first);
	unsigned short to = emit(p, BPF_JMP | BPF_JGT | BPF_K, last);
	refuse(p, error);
	p->code[from].jf = 2;
	p->code[to].jt = 1;
}

static void rule_setsockopt(struct program *p, const struct forbidden_option *options, size_t rows)
{
	unsigned short call = when(p, SYS_setsockopt);
	for (size_t i = 0; i < rows;) {
		const uint32_t level = options[i].level;
		load_argument(p, 1);
		unsigned short same = when(p, level);
		load_argument(p, 2);
		for (; i < rows && options[i].level == level; i++)
			refuse_range(p, options[i].first, options[i].last, EPERM);
		end_when(p, same);
	}
	answer(p, SECCOMP_RET_ALLOW);
	end_when(p, call);
}

/* A send that connects is no connect to Landlock: with it the agent would reach every neighbour on loopback. */
static void rule_fast_open(struct program *p)
{
	static const struct {
		uint32_t call;
		size_t flags; /* index of the argument */
	} rows[] = {{SYS_sendto, 3}, {SYS_sendmsg, 2}, {SYS_sendmmsg, 3}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned short call = when(p, rows[i].call);
		load_argument(p, rows[i].flags);
		unsigned short fast = when_any(p, MSG_FASTOPEN);
		refuse(p, EOPNOTSUPP);
		end_when(p, fast);
		answer(p, SECCOMP_RET_ALLOW);
		end_when(p, call);
	}
}

static void refuse_set_id(struct program *p, size_t mode)
{
	load_argument(p, mode);
	unsigned short set = when_any(p, S_ISUID | S_ISGID);
	refuse(p, EPERM);
	end_when(p, set);
	answer(p, SECCOMP_RET_ALLOW);
}

/* In a directory that is bound, a program that changes its user or group would do so outside of the room too. mkdir needs no
 * rule, as the kernel takes these bits from what it is given. chmod does not say what it changes, so that of a directory is
 * refused with them too. */
static void rule_modes(struct program *p)
{
	static const struct {
		uint32_t call;
		size_t mode; /* index of the argument */
	} rows[] = {
#ifdef __x86_64__
		{SYS_chmod, 1},  {SYS_creat, 1},    {SYS_mknod, 1},
#endif
		{SYS_fchmod, 1}, {SYS_fchmodat, 2}, {CALL_FCHMODAT2, 2}, {SYS_mknodat, 2},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned short call = when(p, rows[i].call);
		refuse_set_id(p, rows[i].mode);
		end_when(p, call);
	}
}

/* The mode of one that makes no file is whatever stood there. */
static void rule_open(struct program *p)
{
	static const struct {
		uint32_t call;
		size_t flags; /* index of the argument; the mode is the next one */
	} rows[] = {
#ifdef __x86_64__
		{SYS_open, 1},
#endif
		{SYS_openat, 2},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		unsigned short call = when(p, rows[i].call);
		load_argument(p, rows[i].flags);
		unsigned short makes = when_any(p, O_CREAT | (O_TMPFILE & ~O_DIRECTORY));
		refuse_set_id(p, rows[i].flags + 1);
		end_when(p, makes);
		answer(p, SECCOMP_RET_ALLOW);
		end_when(p, call);
	}
}

static long install(struct program *p, unsigned flags)
{
	struct sock_fprog program = {p->n, p->code};
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

int filter_load_own(void)
{
	struct program p = {.n = 0};
	only_this_architecture(&p);
	no_side_doors(&p);
	rule_socket(&p, SECCOMP_RET_ALLOW, true);
	rule_socketpair(&p);
	rule_ioctl(&p);
	rule_modes(&p);
	rule_open(&p);
	rule_setsockopt(&p, programs, ROWS(programs));
	answer(&p, SECCOMP_RET_ALLOW);
	return install(&p, 0) == 0 ? 0 : -1;
}

/* The second flag lets only a fatal signal end a call that the supervisor has taken up; kernels before 5.19 do without. */
int filter_load_supervised(void)
{
	struct program p = {.n = 0};
	only_this_architecture(&p);
	no_side_doors(&p);
	rule_socket(&p, SECCOMP_RET_USER_NOTIF, false);
	rule_socketpair(&p);
	rule_ioctl(&p);
	rule_modes(&p);
	rule_open(&p);
	rule_setsockopt(&p, forbidden, ROWS(forbidden));
	rule_fast_open(&p);
	answer(&p, SECCOMP_RET_ALLOW);
	long fd = install(&p, SECCOMP_FILTER_FLAG_NEW_LISTENER | SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV);
	if (fd < 0 && errno == EINVAL)
		fd = install(&p, SECCOMP_FILTER_FLAG_NEW_LISTENER);
	return (int)fd;
}
