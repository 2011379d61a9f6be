/* One probe after the other, each in a process of its own, and a line about each. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "orchestrator/probes.h"

/* Killed by the filter is as good as failed. Without an answer for long is what a network that is shared looks like where it
 * ends at loopback, and a surprise where everything is refused at once. */
static enum probe_result try(const struct probe *p)
{
	int status = -1;
	pid_t pid = fork();
	if (pid == 0) {
		alarm(LIMIT_PROBE_MS / 1000 + 1);
		_exit((int)p->run(p));
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (pid < 0)
		return PROBE_UNCLEAR;
	if (WIFEXITED(status) && WEXITSTATUS(status) <= PROBE_UNCLEAR)
		return (enum probe_result)WEXITSTATUS(status);
	bool hangs = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
	bool filtered = WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS;
	return filtered || (hangs && probes_room.network == PROBES_SHARED) ? PROBE_FAILS : PROBE_UNCLEAR;
}

/* For people; for cage serve the same with tabs. */
static void print_line(const char *verdict, const char *result, const char *name, const char *reason)
{
	if (probes_room.is_sandbox)
		printf("%s\t%s\t%s\t%s\n", verdict, result, name, reason ? reason : "");
	else
		printf("%-9s %-9s %s%s%s\n", verdict, result, name, reason ? ": " : "", reason ? reason : "");
}

static bool run_probe(const struct probe *p)
{
	static const char *const words[] = {"works", "fails", "unclear"};
	enum probe_result result = try(p);
	bool as_expected = result == (p->expected == MUST_WORK ? PROBE_WORKS : PROBE_FAILS);
	print_line(as_expected ? "ok" : "SURPRISE", words[result], p->name, NULL);
	return as_expected;
}

/* What was found so far. */
struct tally {
	unsigned long tried, surprises, left_out;
	char names[PROBES_LEFT_OUT]; /* ": a; b" of those left out */
};

static void leave_out(struct tally *t, const struct probe *p, const char *reason)
{
	size_t len = strlen(t->names);
	print_line("left out", "-", p->name, reason);
	snprintf(t->names + len, sizeof(t->names) - len, "%s%s", t->left_out++ ? "; " : ": ", p->name);
}

static void print_tally(const struct tally *t)
{
	char left_out[PROBES_LEFT_OUT + 64] = "";
	if (t->left_out > 0)
		snprintf(left_out, sizeof(left_out), ", %lu left out%s", t->left_out, t->names);
	printf(PROBES_RESULT "\n", t->tried, t->surprises, left_out);
}

bool probes_run(void)
{
	struct tally tally = {0};
	for (size_t i = 0; i < n_probes; i++) {
		const char *reason = probe_left_out(&probes[i]);
		tally.tried += !reason;
		if (reason)
			leave_out(&tally, &probes[i], reason);
		else
			tally.surprises += !run_probe(&probes[i]);
		fflush(stdout);
	}
	print_tally(&tally);
	return fflush(stdout) == 0 && tally.surprises == 0;
}
