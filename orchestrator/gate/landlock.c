/* The numbers are the kernel's; older headers of the C library's packages lack them. */
#include "orchestrator/gate/landlock.h"

#include <errno.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "orchestrator/gate/say.h"

enum { CREATE_RULESET_VERSION = 1, RULE_NET_PORT = 2 };
#define ACCESS_NET_CONNECT_TCP ((uint64_t)2)
#define SCOPE_ABSTRACT_UNIX_SOCKET ((uint64_t)1)
#define SCOPE_SIGNAL ((uint64_t)2)

struct ruleset {
	uint64_t handled_fs;
	uint64_t handled_net;
	uint64_t scoped;
};

struct port_rule {
	uint64_t allowed;
	uint64_t port;
};

int landlock_abi(void)
{
	long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);
	return abi < 0 ? 0 : (int)abi;
}

/* There are only rules that allow, so all other ports are named. */
static int allow_other_ports(int fd, const unsigned *ports, size_t n)
{
	static bool is_closed[65536];
	for (size_t i = 0; i < n; i++)
		is_closed[ports[i] & 0xffff] = true;
	for (unsigned port = 1; port < 65536; port++) {
		struct port_rule rule = {ACCESS_NET_CONNECT_TCP, port};
		if (!is_closed[port] && syscall(SYS_landlock_add_rule, fd, RULE_NET_PORT, &rule, 0) < 0)
			return -1;
	}
	return 0;
}

int landlock_prepare(const unsigned *ports, size_t n_ports, bool is_rehearsal)
{
	const int abi = landlock_abi();
	struct ruleset ruleset = {0, n_ports ? ACCESS_NET_CONNECT_TCP : 0, 0};
	if (n_ports && abi < LANDLOCK_ABI_TCP) {
		say("this kernel can't keep the agent from port %u of this machine", ports[0]);
		return -1;
	}
	if (abi >= LANDLOCK_ABI_SCOPE)
		ruleset.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL;
	if (!ruleset.handled_net && !ruleset.scoped)
		return LANDLOCK_NOTHING;
	int fd = (int)syscall(SYS_landlock_create_ruleset, &ruleset, sizeof(ruleset), 0);
	if (fd < 0)
		return say_errno("Landlock");
	if (is_rehearsal || n_ports == 0 || allow_other_ports(fd, ports, n_ports) == 0)
		return fd;
	say_errno("Landlock");
	close(fd);
	return -1;
}

int landlock_restrict(int ruleset)
{
	if (ruleset == LANDLOCK_NOTHING)
		return 0;
	return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? say_errno("Landlock") : 0;
}
