/* Mode netns. The gate's child is the first process of the room: it makes the network and the listeners, keeps them
 * while the room lives, and is the parent of CMD. */
#include <sched.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "orchestrator/gate/agent.h"
#include "orchestrator/gate/filter.h"
#include "orchestrator/gate/landlock.h"
#include "orchestrator/gate/listeners.h"
#include "orchestrator/gate/lock.h"
#include "orchestrator/gate/nested.h"
#include "orchestrator/gate/netns.h"
#include "orchestrator/gate/privileges.h"
#include "orchestrator/gate/say.h"
#include "orchestrator/gate/supervise.h"
#include "orchestrator/gate/users.h"

static _Noreturn void become_agent(const struct options *options, const struct room_supplies *supplies)
{
	privileges_die_with_parent();
	int rules = landlock_prepare(NULL, 0, false);
	if (rules == -1 || landlock_restrict(rules) < 0)
		_exit(EXIT_UNLOCKED);
	if (filter_load_own() < 0) {
		say_errno("filter of system calls");
		_exit(EXIT_UNLOCKED);
	}
	agent_run(options, supplies, MODE_NETNS, 0);
}

/* The parent's go says that the users are mapped; ours that we shall die with it. */
static int meet_parent(int control)
{
	if (handoff_await_go(control) < 0)
		return -1;
	if (netns_join() < 0)
		return say_errno("root of the new namespace");
	privileges_hide();
	privileges_die_with_parent();
	return handoff_send(control, HANDOFF_END, -1);
}

static int make_network(const struct options *options, struct listeners *listeners)
{
	bool has_ipv6 = false;
	if (netns_set_up(&has_ipv6) < 0)
		return -1;
	if (options->handoff < 0 && options->command)
		return 0; /* nobody would serve them: everything is refused */
	if (listeners_make(listeners, has_ipv6) < 0)
		return -1;
	return options->handoff < 0 ? 0 : listeners_hand_over(listeners, options->handoff); /* not of a rehearsal */
}

/* The launcher starts the programs on our sockets while we furnish the room. */
static _Noreturn void run_room(const struct options *options, struct room_supplies *supplies, int control,
			       unsigned namespaces)
{
	struct listeners listeners = {.n = 0};
	if (meet_parent(control) < 0 || make_network(options, &listeners) < 0)
		_exit(EXIT_UNLOCKED);
	int code = options->command ? room_enter(&options->room, supplies, namespaces) : 0;
	if (code != 0)
		_exit(code);
	if ((options->handoff >= 0 && listeners_await_go(options->handoff) < 0) || room_fill(supplies) < 0 ||
	    users_become(options->room.uid) < 0 || privileges_drop() < 0)
		_exit(EXIT_UNLOCKED);
	if (handoff_send(control, HANDOFF_END, -1) < 0)
		_exit(EXIT_UNLOCKED); /* the parent died while another uid was taken */
	pid_t child = fork();
	if (child == 0)
		become_agent(options, supplies);
	if (child < 0) {
		say_errno("fork");
		_exit(EXIT_UNLOCKED);
	}
	_exit(supervise(child, -1, options->handoff));
}

static int run_locked(const struct options *options, struct room_supplies *supplies)
{
	int control[2];
	unsigned namespaces = 0;
	const char go = HANDOFF_GO;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0) {
		say_errno("socketpair");
		return EXIT_UNLOCKED;
	}
	pid_t child = netns_fork(&namespaces);
	if (child == 0) {
		close(control[0]);
		run_room(options, supplies, control[1], namespaces);
	}
	close(control[1]);
	if (child < 0) {
		say_errno("namespaces");
		return EXIT_UNLOCKED;
	}
	if (netns_map(child, options->room.uid) < 0) {
		say_errno("users of the new namespace");
		kill(child, SIGKILL);
	} else if (room_admit(&options->room, supplies, child) == 0) {
		send(control[0], &go, 1, MSG_NOSIGNAL);
	}
	shutdown(control[0], SHUT_WR); /* a child that waits for the go that it did not get, ends */
	privileges_hide();             /* not earlier: the files of an undumpable child in /proc are root's */
	int code = supervise_room(child);
	close(control[0]);
	return supervise_end(code);
}

int lock_netns(const struct options *options)
{
	static struct room_supplies supplies;
	if (nested_check() < 0)
		return EXIT_UNLOCKED;
	supervise_outlive_parent(); /* what is prepared has to be cleared again */
	const bool ok = !options->command || (room_prepare(&options->room, &supplies) == 0 &&
					      path_sockets_find(&options->room, &supplies.sockets) == 0);
	int code = ok ? run_locked(options, &supplies) : EXIT_UNLOCKED;
	room_clear(&supplies, options->handoff);
	return code;
}
