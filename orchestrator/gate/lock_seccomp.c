/* Mode seccomp, for a network that is shared with others: the agent's sockets come from the gate and stay on loopback.
 * Loopback itself is shared too, so that whoever else listens there is shut off by Landlock, or the agent is not run. */
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "orchestrator/gate/agent.h"
#include "orchestrator/gate/filter.h"
#include "orchestrator/gate/landlock.h"
#include "orchestrator/gate/listeners.h"
#include "orchestrator/gate/listening.h"
#include "orchestrator/gate/lock.h"
#include "orchestrator/gate/names.h"
#include "orchestrator/gate/nested.h"
#include "orchestrator/gate/notify.h"
#include "orchestrator/gate/privileges.h"
#include "orchestrator/gate/say.h"
#include "orchestrator/gate/supervise.h"

#define DOCKER_RESOLVER 0x7f00000bu /* 127.0.0.11 */

/* The ports that the agent is to be kept from. */
struct closed_ports {
	unsigned all[LISTENING_MAX];
	size_t n;
};

/* Landlock knows ports and no addresses, and it looks before the packet filter changes them: a neighbour on a port of ours
 * can't be closed, and neither can Docker's resolver, which is led to from port 53. */
static int close_port(struct closed_ports *closed, const struct listeners *own, uint32_t address, unsigned port)
{
	const bool is_ours = listeners_own_port(own, port);
	if (is_ours && address == INADDR_LOOPBACK)
		return 0;
	if (is_ours || address == DOCKER_RESOLVER) {
		say("somebody listens on port %u of this network, and the agent can't be kept from it", port);
		return -1;
	}
	closed->all[closed->n++] = port;
	return 0;
}

/* The loopback that we share: all who listen there, but us. */
static int find_others(const struct listeners *own, struct closed_ports *closed)
{
	static struct listening listening;
	if (listening_read(&listening) < 0)
		return -1;
	for (size_t i = 0; i < listening.n; i++)
		if (close_port(closed, own, listening.all[i].address, listening.all[i].port) < 0)
			return -1;
	if (landlock_abi() >= LANDLOCK_ABI_SCOPE || !listening_abstract())
		return 0;
	say("this kernel can't keep the agent from the abstract sockets that others have here");
	return -1;
}

/* The notifier goes to the parent; the copy here is closed before anything else runs. */
static int give_notifier(int control)
{
	int notifier = filter_load_supervised();
	if (notifier < 0)
		return say_errno("supervised filter of system calls");
	int result = handoff_send(control, HANDOFF_END, notifier);
	close(notifier);
	return result < 0 ? -1 : handoff_await_go(control);
}

static _Noreturn void become_agent(const struct options *options, struct room_supplies *supplies, int control,
				   int rules)
{
	const unsigned loopback = if_nametoindex("lo");
	if (privileges_become(options->room.uid) < 0)
		_exit(EXIT_UNLOCKED);
	privileges_hide();
	privileges_die_with_parent();
	int code = options->command ? room_enter(&options->room, supplies, 0) : 0;
	if (code != 0)
		_exit(code);
	if (privileges_drop() < 0 || landlock_restrict(rules) < 0 || give_notifier(control) < 0)
		_exit(EXIT_UNLOCKED);
	agent_run(options, supplies, MODE_SECCOMP, loopback);
}

/* The child waits for go with the filter loaded; without it, it ends. */
static int attend(const struct options *options, struct room_supplies *supplies, pid_t child, int control)
{
	enum handoff_kind kind;
	int notifier = -1;
	const char go = HANDOFF_GO;
	if (room_admit(&options->room, supplies, child) == 0 && handoff_receive(control, &kind, &notifier) == 0 &&
	    notifier >= 0 && notify_prepare(notifier, options->room.uid) == 0)
		send(control, &go, 1, MSG_NOSIGNAL);
	shutdown(control, SHUT_RDWR); /* a child that waits for the go that it did not get, ends */
	int code = supervise(child, notifier, options->handoff);
	close(notifier);
	notify_end();
	return supervise_end(code);
}

static int run_supervised(const struct options *options, struct room_supplies *supplies, int rules)
{
	int control[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0) {
		say_errno("socketpair");
		return EXIT_UNLOCKED;
	}
	pid_t child = fork();
	if (child == 0) {
		close(control[0]);
		become_agent(options, supplies, control[1], rules);
	}
	close(control[1]);
	if (child < 0) {
		say_errno("fork");
		return EXIT_UNLOCKED;
	}
	int code = attend(options, supplies, child, control[0]);
	close(control[0]);
	return code;
}

int lock_seccomp(const struct options *options)
{
	struct listeners own = {.n = 0};
	static struct closed_ports closed;
	static struct room_supplies supplies;
	privileges_hide();
	if (nested_refuse() < 0)
		return EXIT_UNLOCKED;
	if (options->handoff >= 0 && listeners_make_shared(&own) < 0)
		return EXIT_UNLOCKED;
	if (find_others(&own, &closed) < 0)
		return EXIT_UNLOCKED;
	if (options->handoff >= 0 && listeners_hand_over(&own, options->handoff) < 0)
		return EXIT_UNLOCKED;
	int rules = landlock_prepare(closed.all, closed.n, !options->command); /* while the launcher does its part */
	if (rules == -1 || (options->handoff >= 0 && listeners_await_go(options->handoff) < 0))
		return EXIT_UNLOCKED;
	supervise_outlive_parent(); /* what is prepared has to be cleared again */
	if (options->names)
		names_write();
	if (options->command)
		room_prepare_shared(&options->room, &supplies);
	int code = run_supervised(options, &supplies, rules);
	room_clear(&supplies, options->handoff);
	return code;
}
