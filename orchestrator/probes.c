/* The table of probes. Addresses are those of documentation, of metadata services and of well-known resolvers: were a room
 * open, nothing would be done to anybody. Since nobody answers there anyway, what counts is how a probe fails: in a network of
 * the room's own every address is local, and refuses at once. */
#include "orchestrator/probes.h"

#include <string.h>
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TEST_V4 "203.0.113.1"
#define TEST_V6 "2001:db8::1"
#define AZURE 0xa83f8110L /* 168.63.129.16 */
#define REFUSED .own = ECONNREFUSED
#define FILTERED .own = ENOSYS, .shared = ENOSYS
#define NO_FAMILY .own = EAFNOSUPPORT, .shared = EAFNOSUPPORT
#define NO_RIGHT .own = EPERM, .shared = EPERM

#define ROW(what, title, function, words, n, ...)                                                                   \
	{                                                                                                           \
		.expected = (what), .name = (title), .run = (function), .text = (words), .number = (n), __VA_ARGS__ \
	}
#define FAILS(...) ROW(MUST_FAIL, __VA_ARGS__, )
#define WORKS(...) ROW(MUST_WORK, __VA_ARGS__, )

struct probes_room probes_room;

const struct probe probes[] = {
	FAILS("TCP to a listener on this machine", probe_bait, NULL, BAIT_TCP, REFUSED, .shared = EACCES),
	FAILS("TCP to a listener on its address", probe_bait, NULL, BAIT_TCP_OTHER, REFUSED, .shared = EACCES),
	FAILS("UDP to a socket of this machine", probe_bait, NULL, BAIT_UDP, REFUSED, .shared = EPIPE),
	FAILS("UDP to a socket on its address", probe_bait, NULL, BAIT_UDP_OTHER, REFUSED, .shared = EPIPE),
	FAILS("a service by its path", probe_bait, NULL, BAIT_PATH, .own = ENOENT),
	FAILS("a service by an abstract name", probe_bait, NULL, BAIT_ABSTRACT, REFUSED, .shared = EPERM),
	FAILS("a file of this machine", probe_bait, NULL, BAIT_FILE, .own = ENOENT, .shared = EACCES),
	FAILS("TCP to a port that nobody captures", probe_tcp, TEST_V4, 22, REFUSED),
	FAILS("TCP over IPv6", probe_tcp, TEST_V6, 22, REFUSED, .shared = EAFNOSUPPORT),
	FAILS("TCP to a mapped address", probe_tcp, "::ffff:" TEST_V4, 22, REFUSED, .shared = EAFNOSUPPORT),
	FAILS("TCP to a private address", probe_tcp, "10.0.0.1", 22, REFUSED),
	FAILS("TCP to a Docker service", probe_tcp, "172.17.0.1", 2375, REFUSED),
	FAILS("TCP to a link-local address", probe_tcp, "169.254.1.1", 22, REFUSED),
	FAILS("DNS over TLS, another resolver", probe_tcp, "1.1.1.1", 853, REFUSED),
	FAILS("mail", probe_tcp, TEST_V4, 25, REFUSED),
	FAILS("UDP", probe_udp, TEST_V4, 123, REFUSED, .shared = EPIPE),
	FAILS("UDP over IPv6", probe_udp, TEST_V6, 123, REFUSED, .shared = EAFNOSUPPORT),
	FAILS("QUIC", probe_udp, TEST_V4, 443, REFUSED, .shared = EPIPE),
	FAILS("multicast", probe_udp, "224.0.0.251", 5353, .own = EINVAL, .shared = EPIPE),
	FAILS("ICMP", probe_ping, TEST_V4, 0, .own = EACCES, .shared = EPROTONOSUPPORT),
	FAILS("metadata, Azure and AWS", probe_http, "169.254.169.254", 80),
	FAILS("metadata, Azure's wire server", probe_http, "168.63.129.16", 80),
	FAILS("metadata, Alibaba", probe_http, "100.100.100.200", 80),
	FAILS("metadata, AWS over IPv6", probe_http, "fd00:ec2::254", 80),
	FAILS("an address on port 80", probe_http, TEST_V4, 80),
	FAILS("another protocol on port 443", probe_speak, TEST_V4, 443),
	FAILS("another protocol on port 80", probe_speak, TEST_V4, 80),
	FAILS("a name that no rule allows", probe_dns, "cage-verify.example.com", SOCK_DGRAM),
	FAILS("the same, of Azure's resolver", probe_dns, "cage-verify.example.com", SOCK_DGRAM, .more = AZURE),
	FAILS("the same, over TCP", probe_dns, "cage-verify.example.com", SOCK_STREAM, .more = AZURE),
	FAILS("the proxy, to itself", probe_proxy, "CONNECT 127.0.0.1:8080", 0),
	FAILS("the proxy, to an admin port", probe_proxy, "GET http://127.0.0.1:8081/metrics", 0),
	FAILS("the proxy, to this machine", probe_proxy, "CONNECT localhost:22", 0),
	FAILS("the proxy, to metadata", probe_proxy, "GET http://169.254.169.254/metadata/instance", 0),
	FAILS("the proxy, to an address in octal", probe_proxy, "GET http://0251.0376.0251.0376/", 0),
	FAILS("the proxy, to another host", probe_proxy, "GET http://cage-verify.example.com/", 0),
	FAILS("the proxy, to port 22", probe_proxy, "CONNECT cage-verify.example.com:22", 0),
	FAILS("raw IPv4 socket", probe_socket, NULL, AF_INET, .more = SOCK_RAW, .own = EPERM,
	      .shared = ESOCKTNOSUPPORT),
	FAILS("raw IPv6 socket", probe_socket, NULL, AF_INET6, .more = SOCK_RAW, .own = EPERM, .shared = EAFNOSUPPORT),
	FAILS("packet socket", probe_socket, NULL, AF_PACKET, .more = SOCK_RAW, NO_FAMILY),
	FAILS("vsock", probe_socket, NULL, 40, .more = SOCK_STREAM, NO_FAMILY),
	FAILS("vsock with high bits", probe_socket, NULL, (1L << 32) | 40, .more = SOCK_STREAM, NO_FAMILY),
	FAILS("crypto socket", probe_socket, NULL, 38, .more = SOCK_SEQPACKET, NO_FAMILY),
	FAILS("Bluetooth socket", probe_socket, NULL, 31, .more = SOCK_RAW, NO_FAMILY),
	FAILS("io_uring", probe_syscall, NULL, SYS_io_uring_setup, FILTERED),
	FAILS("bpf", probe_syscall, NULL, SYS_bpf, FILTERED),
	FAILS("kernel keyrings", probe_syscall, NULL, SYS_keyctl, FILTERED),
	FAILS("names, resolved by the kernel", probe_syscall, NULL, SYS_request_key, FILTERED),
	FAILS("a descriptor of another process", probe_syscall, NULL, SYS_pidfd_getfd, FILTERED),
	FAILS("mount", probe_syscall, NULL, SYS_mount, NO_RIGHT),
	FAILS("devices, to be made", probe_device, "/tmp", 0, NO_RIGHT),
	FAILS("namespaces, to be entered", probe_syscall, NULL, SYS_setns, NO_RIGHT),
	FAILS("the gate, to be traced", probe_syscall, NULL, SYS_ptrace, NO_RIGHT),
	FAILS("memory of the gate", probe_syscall, NULL, SYS_process_vm_readv, NO_RIGHT),
	FAILS("namespaces of process 1", probe_namespace, "/proc/1/ns/net", 0),
	FAILS("memory of process 1", probe_open, "/proc/1/mem", 1),
	FAILS("variables of process 1", probe_open, "/proc/1/environ", 0),
	FAILS("other processes", probe_others, NULL, 0),
	FAILS("capabilities", probe_rights, NULL, 0),
	FAILS("kernel memory", probe_bytes, "/proc/kcore", 0),
	FAILS("locks, of everybody", probe_locks, "/proc/locks", 0),
	FAILS("kernel's core pattern", probe_open, "/proc/sys/kernel/core_pattern", 1),
	FAILS("kernel's emergency keys", probe_open, "/proc/sysrq-trigger", 1),
	FAILS("disks", probe_disks, NULL, 0),
	FAILS("memory device", probe_open, "/dev/mem", 0),
	FAILS("password hashes", probe_open, "/etc/shadow", 0),
	FAILS("Docker's socket", probe_path, "/var/run/docker.sock", 0),
	FAILS("programs, to be changed", probe_open, "/usr/bin/env", 1),
	FAILS("settings, to be changed", probe_open, "/etc/hosts", 1),
	WORKS("the page, by the proxy", probe_page, "/", 8080),
	WORKS("the page, straight", probe_page, "/", 80),
	WORKS("the CA", probe_page, "/ca.pem", 8080),
	WORKS("the variables", probe_page, "/env.sh", 8080),
	WORKS("a server of one's own", probe_own, NULL, 0),
	WORKS("a process of one's own", probe_child, NULL, 0),
	WORKS("a file at home", probe_make, "HOME", 0),
	WORKS("a file in /tmp", probe_make, "/tmp", 0),
	WORKS("certificates", probe_open, "/etc/ssl/certs/ca-certificates.crt", 0),
	WORKS("random numbers", probe_open, "/dev/urandom", 0),
	WORKS("a null device", probe_open, "/dev/null", 1),
	WORKS("programs", probe_open, "/bin/sh", 0),
};

const size_t n_probes = sizeof(probes) / sizeof(probes[0]);

const char *probe_left_out(const struct probe *p)
{
	if (p->run == probe_bait && probes_room.baits[p->number][0] == BAIT_NONE)
		return probes_room.baits[p->number] + 1;
	if (p->run == probe_others && probes_room.is_sandbox)
		return "they are the sandbox's own";
	if (p->run == probe_locks && probes_room.network == PROBES_SHARED)
		return "there is no room, and /proc is the machine's, or the container's";
	if (p->run == probe_open && p->expected == MUST_WORK && probes_room.is_sandbox && access(p->text, F_OK) != 0)
		return "this image has none";
	if (p->run == probe_page && p->number == 80 && probes_room.network != PROBES_OWN)
		return "nothing is captured in a network that is shared, or a container's";
	if (p->run == probe_page && probes_room.is_entering && strcmp(p->text, "/env.sh") == 0)
		return "the proxy of another container has no kit";
	return NULL;
}

/* What the kernel says where there is no way to an address, or none of its kind. */
static bool is_no_way(int error)
{
	return error == ENETUNREACH || error == EHOSTUNREACH || error == EADDRNOTAVAIL || error == EAFNOSUPPORT;
}

/* Of a container the filter is another one, which says EPERM of what exists. */
enum probe_result probe_refused(const struct probe *p)
{
	const int error = probes_room.network == PROBES_SHARED ? p->shared : p->own;
	const bool is_apart =
		probes_room.network == PROBES_APART && (is_no_way(errno) || errno == EPERM || errno == ENOSYS);
	return error == 0 || errno == error || is_apart ? PROBE_FAILS : PROBE_UNCLEAR;
}

enum probe_result probe_unanswered(void)
{
	switch (probes_room.network) {
	case PROBES_SHARED:
		return PROBE_FAILS;
	case PROBES_APART:
		return is_no_way(errno) ? PROBE_FAILS : PROBE_UNCLEAR;
	case PROBES_OWN:
		break;
	}
	return PROBE_UNCLEAR;
}
