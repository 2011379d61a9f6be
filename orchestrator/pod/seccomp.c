/* The filter of system calls of a container: what programs need, and no more (seccomp_calls.h), with rules for those calls by
 * which one could come to namespaces and to other kinds of sockets. */
#include <errno.h>
#include <linux/netlink.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/pod/pod.h"
#include "orchestrator/pod/seccomp_calls.h"

#if defined(__x86_64__)
#define ARCHITECTURE "SCMP_ARCH_X86_64"
#elif defined(__aarch64__)
#define ARCHITECTURE "SCMP_ARCH_AARCH64"
#endif

#define FAMILIES 64 /* above all that there are */
#define OPTIONS 128 /* the same, of sockets */
#define NAMESPACES \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET)

/* ---- rules ---- */

/* error 0: allowed */
static void print_action(FILE *f, int error)
{
	if (error == 0)
		fputs(",\"action\":\"SCMP_ACT_ALLOW\"", f);
	else
		fprintf(f, ",\"action\":\"SCMP_ACT_ERRNO\",\"errnoRet\":%d", error);
}

static void print_calls(FILE *f, const char *const *names, int error)
{
	fputs("{\"names\":[", f);
	for (size_t i = 0; names[i]; i++)
		fprintf(f, "%s\"%s\"", i > 0 ? "," : "", names[i]);
	fputs("]", f);
	print_action(f, error);
	fputs("}", f);
}

/* Of a call's first argument: op compares it with value, and a mask is what counts of it. Rules of one call are never both true. */
static void print_rule(FILE *f, const char *name, int error, const char *op, unsigned value, unsigned masked)
{
	fprintf(f, ",\n{\"names\":[\"%s\"]", name);
	print_action(f, error);
	fprintf(f, ",\"args\":[{\"index\":0,\"value\":%u,\"valueTwo\":%u,\"op\":\"SCMP_CMP_%s\"}]}", value, masked, op);
}

/* One for each bit: a rule compares a mask with one value. */
static void print_namespaces(FILE *f)
{
	print_rule(f, "clone", 0, "MASKED_EQ", NAMESPACES, 0);
	for (unsigned bit = 1; bit != 0; bit <<= 1)
		if (bit & NAMESPACES)
			print_rule(f, "clone", EPERM, "MASKED_EQ", bit, bit);
}

/* Of netlink, which is looked at in the third argument too, there is what tells of addresses and routes. */
static void print_netlink(FILE *f, int error, const char *op)
{
	fputs(",\n{\"names\":[\"socket\"]", f);
	print_action(f, error);
	fprintf(f,
		",\"args\":[{\"index\":0,\"value\":%d,\"op\":\"SCMP_CMP_EQ\"},{\"index\":2,\"value\":%d,\"op\":\"SCMP_"
		"CMP_%s\"}]}",
		AF_NETLINK, NETLINK_ROUTE, op);
}

/* Of sockets there are those of the machine itself, of IP, and of netlink; of pairs, which some other families have too, the first. */
static void print_families(FILE *f)
{
	print_netlink(f, 0, "EQ");
	print_netlink(f, EPROTONOSUPPORT, "NE");
	print_rule(f, "socketpair", 0, "EQ", AF_UNIX, 0);
	print_rule(f, "socketpair", EAFNOSUPPORT, "NE", AF_UNIX, 0);
	for (unsigned family = 0; family < FAMILIES; family++) {
		const bool is_good = family == AF_UNIX || family == AF_INET || family == AF_INET6;
		if (family != AF_NETLINK)
			print_rule(f, "socket", is_good ? 0 : EAFNOSUPPORT, "EQ", family, 0);
	}
	print_rule(f, "socket", EAFNOSUPPORT, "GE", FAMILIES, 0);
}

static void print_option(FILE *f, unsigned option, int error, const char *op)
{
	fputs(",\n{\"names\":[\"setsockopt\"]", f);
	print_action(f, error);
	fprintf(f,
		",\"args\":[{\"index\":1,\"value\":%d,\"op\":\"SCMP_CMP_EQ\"},{\"index\":2,\"value\":%u,\"op\":\"SCMP_"
		"CMP_%s\"}]}",
		SOL_SOCKET, option, op);
}

static bool is_program(unsigned option)
{
	return option == SO_ATTACH_FILTER || option == SO_ATTACH_BPF || option == SO_ATTACH_REUSEPORT_CBPF ||
	       option == SO_ATTACH_REUSEPORT_EBPF;
}

/* Options of sockets but for programs: these take of the memory for compiled ones, of which the machine has one for all
 * (net.core.bpf_jit_limit). All that is good is named, since a rule compares 64 bits and the kernel looks at 32. */
static void print_options(FILE *f)
{
	static const int levels[] = {IPPROTO_IP,      IPPROTO_TCP, IPPROTO_UDP, IPPROTO_IPV6, IPPROTO_ICMPV6,
				     IPPROTO_UDPLITE, IPPROTO_RAW, SOL_NETLINK, SOL_TLS,      SOL_MPTCP};
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		fprintf(f, ",\n{\"names\":[\"setsockopt\"]");
		print_action(f, 0);
		fprintf(f, ",\"args\":[{\"index\":1,\"value\":%d,\"op\":\"SCMP_CMP_EQ\"}]}", levels[i]);
	}
	for (unsigned option = 0; option < OPTIONS; option++)
		print_option(f, option, is_program(option) ? EPERM : 0, "EQ");
	print_option(f, OPTIONS, ENOPROTOOPT, "GE");
}

/* What it is now, and the two that change no more than the name of the machine. */
static void print_personalities(FILE *f)
{
	static const unsigned good[] = {PER_LINUX, PER_LINUX32, 0xffffffff};
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		print_rule(f, "personality", 0, "EQ", good[i], 0);
}

/* ---- all of it ---- */

/* Programs of another architecture, such as those of 32 bits, are killed: there, sockets are made by calls that can't be looked
 * into. clone3 is a call that nobody knows, since its flags can't be looked at. Of gVisor's answers nothing but EPERM can be had, with
 * which nobody makes threads in the other way: it says itself that it does not know the call, or counts namespaces as its own. */
static void print_all(FILE *f, enum seccomp_of of)
{
	static const char *const clone3[] = {"clone3", NULL}, *const options[] = {"setsockopt", NULL};
	fprintf(f,
		"{\"defaultAction\":\"SCMP_ACT_ERRNO\",\"defaultErrnoRet\":%d,\"architectures\":[\"" ARCHITECTURE
		"\"],\"syscalls\":[\n",
		ENOSYS);
	print_calls(f, seccomp_allowed, 0);
	fputs(",\n", f);
	print_calls(f, seccomp_refused, EPERM);
	if (of == SECCOMP_OF_GVISOR) {
		fputs(",\n", f);
		print_calls(f, clone3, 0);
		fputs(",\n", f);
		print_calls(f, options, 0); /* its programs are its own */
	} else {
		print_options(f);
	}
	print_namespaces(f);
	print_families(f);
	print_personalities(f);
	fputs("\n]}\n", f);
}

bool seccomp_write(const char *path, enum seccomp_of of)
{
	FILE *f = fopen(path, "wxe");
	if (f)
		print_all(f, of);
	bool ok = f && !ferror(f);
	if (f)
		ok = fclose(f) == 0 && ok;
	if (!ok)
		say("%s: %s", path, strerror(errno));
	return ok;
}
