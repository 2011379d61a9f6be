/* A child asks for a socket, and is answered as an agent is. */
#include "orchestrator/gate/probe_notifier.h"

#include <poll.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/gate/filter.h"
#include "orchestrator/gate/handoff.h"
#include "orchestrator/gate/notify.h"
#include "orchestrator/gate/privileges.h"

enum { QUESTION_MS = 5000 };

static _Noreturn void ask(int control)
{
	int notifier = privileges_drop() < 0 ? -1 : filter_load_supervised();
	if (notifier < 0 || handoff_send(control, HANDOFF_END, notifier) < 0)
		_exit(1);
	close(notifier);
	_exit(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) < 0 ? 1 : 0);
}

/* The child's question is refused by the kernel when nobody has its notifier any more. */
static bool answer(int notifier, pid_t child)
{
	struct pollfd asked = {notifier, POLLIN, 0};
	int status = 0;
	if (poll(&asked, 1, QUESTION_MS) == 1 && asked.revents & POLLIN)
		notify_serve(notifier);
	close(notifier);
	return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

enum notifier_help probe_notifier(void)
{
	int control[2], notifier = -1;
	enum handoff_kind kind;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) < 0)
		return NOTIFIER_NONE;
	pid_t child = fork();
	if (child == 0) {
		close(control[0]);
		ask(control[1]);
	}
	close(control[1]);
	bool hears = child > 0 && handoff_receive(control[0], &kind, &notifier) == 0 && notifier >= 0;
	close(control[0]);
	if (hears)
		return answer(notifier, child) ? NOTIFIER_GIVES : NOTIFIER_HEARS;
	if (child > 0)
		waitpid(child, NULL, 0);
	return NOTIFIER_NONE;
}
