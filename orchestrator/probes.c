/* The table of probes. Addresses are those of documentation, of metadata services and of well-known resolvers: were a room
 * open, nothing would be done to anybody. */
#include "orchestrator/probes.h"

#include <sys/socket.h>
#include <sys/syscall.h>

#define TEST_V4 "203.0.113.1"
#define TEST_V6 "2001:db8::1"

const struct probe probes_denied[] = {
	{"TCP to a port that nobody captures", probe_tcp, TEST_V4, 22, 0},
	{"TCP over IPv6", probe_tcp, TEST_V6, 22, 0},
	{"TCP to a mapped address", probe_tcp, "::ffff:" TEST_V4, 22, 0},
	{"TCP to a private address", probe_tcp, "10.0.0.1", 22, 0},
	{"TCP to a Docker service", probe_tcp, "172.17.0.1", 2375, 0},
	{"TCP to a link-local address", probe_tcp, "fe80::1", 22, 0},
	{"DNS over TLS, another resolver", probe_tcp, "1.1.1.1", 853, 0},
	{"mail", probe_tcp, TEST_V4, 25, 0},
	{"UDP", probe_udp, TEST_V4, 123, 0},
	{"UDP over IPv6", probe_udp, TEST_V6, 123, 0},
	{"QUIC", probe_udp, TEST_V4, 443, 0},
	{"multicast", probe_udp, "224.0.0.251", 5353, 0},
	{"ICMP", probe_ping, TEST_V4, 0, 0},
	{"metadata, Azure and AWS", probe_http, "169.254.169.254", 80, 0},
	{"metadata, Azure's wire server", probe_http, "168.63.129.16", 80, 0},
	{"metadata, Alibaba", probe_http, "100.100.100.200", 80, 0},
	{"metadata, AWS over IPv6", probe_http, "fd00:ec2::254", 80, 0},
	{"an address on port 80", probe_http, TEST_V4, 80, 0},
	{"another protocol on port 443", probe_speak, TEST_V4, 443, 0},
	{"another protocol on port 80", probe_speak, TEST_V4, 80, 0},
	{"a name that no rule allows", probe_dns, "cage-verify.example.com", 0, 0},
	{"the proxy, to itself", probe_proxy, "CONNECT 127.0.0.1:8080", 0, 0},
	{"the proxy, to an admin port", probe_proxy, "GET http://127.0.0.1:8081/metrics", 0, 0},
	{"the proxy, to this machine", probe_proxy, "CONNECT localhost:22", 0, 0},
	{"the proxy, to metadata", probe_proxy, "GET http://169.254.169.254/metadata/instance", 0, 0},
	{"the proxy, to an address in octal", probe_proxy, "GET http://0251.0376.0251.0376/", 0, 0},
	{"the proxy, to another host", probe_proxy, "GET http://cage-verify.example.com/", 0, 0},
	{"the proxy, to port 22", probe_proxy, "CONNECT cage-verify.example.com:22", 0, 0},
	{"raw IPv4 socket", probe_socket, NULL, AF_INET, SOCK_RAW},
	{"raw IPv6 socket", probe_socket, NULL, AF_INET6, SOCK_RAW},
	{"packet socket", probe_socket, NULL, AF_PACKET, SOCK_RAW},
	{"vsock", probe_socket, NULL, 40, SOCK_STREAM},
	{"vsock with high bits", probe_socket, NULL, (1L << 32) | 40, SOCK_STREAM},
	{"crypto socket", probe_socket, NULL, 38, SOCK_SEQPACKET},
	{"Bluetooth socket", probe_socket, NULL, 31, SOCK_RAW},
	{"abstract socket of a desktop", probe_abstract, "/tmp/.X11-unix/X0", 0, 0},
	{"io_uring", probe_syscall, NULL, SYS_io_uring_setup, 0},
	{"bpf", probe_syscall, NULL, SYS_bpf, 0},
	{"kernel keyrings", probe_syscall, NULL, SYS_keyctl, 0},
	{"a descriptor of another process", probe_syscall, NULL, SYS_pidfd_getfd, 0},
	{"mount", probe_syscall, NULL, SYS_mount, 1},
	{"namespaces of process 1", probe_open, "/proc/1/ns/net", 0, 0},
	{"memory of process 1", probe_open, "/proc/1/mem", 1, 0},
	{"variables of process 1", probe_open, "/proc/1/environ", 0, 0},
	{"other processes", probe_others, NULL, 0, 0},
	{"capabilities", probe_rights, NULL, 0, 0},
	{"kernel memory", probe_open, "/proc/kcore", 0, 0},
	{"kernel's core pattern", probe_open, "/proc/sys/kernel/core_pattern", 1, 0},
	{"kernel's emergency keys", probe_open, "/proc/sysrq-trigger", 1, 0},
	{"disks", probe_open, "/dev/sda", 0, 0},
	{"memory device", probe_open, "/dev/mem", 0, 0},
	{"password hashes", probe_open, "/etc/shadow", 0, 0},
	{"Docker's socket", probe_open, "/var/run/docker.sock", 0, 0},
	{"programs, to be changed", probe_open, "/usr/bin/env", 1, 0},
	{"settings, to be changed", probe_open, "/etc/hosts", 1, 0},
};

const size_t n_probes_denied = sizeof(probes_denied) / sizeof(probes_denied[0]);

const struct probe probes_allowed[] = {
	{"the page, by the proxy", probe_page, "/", 8080, 0},
	{"the page, straight", probe_page, "/", 80, 0},
	{"the CA", probe_page, "/ca.pem", 8080, 0},
	{"the variables", probe_page, "/env.sh", 8080, 0},
	{"a server of one's own", probe_own, NULL, 0, 0},
	{"a process of one's own", probe_child, NULL, 0, 0},
	{"a file at home", probe_make, "HOME", 0, 0},
	{"a file in /tmp", probe_make, "/tmp", 0, 0},
	{"certificates", probe_open, "/etc/ssl/certs/ca-certificates.crt", 0, 0},
	{"random numbers", probe_open, "/dev/urandom", 0, 0},
	{"a null device", probe_open, "/dev/null", 1, 0},
	{"programs", probe_open, "/bin/sh", 0, 0},
};

const size_t n_probes_allowed = sizeof(probes_allowed) / sizeof(probes_allowed[0]);
