/* One probe after the other, each in a process of its own, and a line about each. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "orchestrator/probes.h"

static pid_t begin(const struct probe *p)
{
	pid_t pid = fork();
	if (pid == 0) {
		alarm(LIMIT_PROBE_MS / 1000 + 1);
		_exit((int)p->run(p));
	}
	return pid;
}

/* Killed by the filter is as good as failed. Without an answer for long is what a network that is shared looks like where it
 * ends at loopback, and a surprise where everything is refused at once. */
static enum probe_result result_of(pid_t pid)
{
	int status = -1;
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
	if (probes_room.is_entering && strcmp(verdict, "SURPRISE") != 0)
		return;
	if (probes_room.is_entering)
		fprintf(stderr, "cage-inside: %s: %s\n", name, result);
	else if (probes_room.is_sandbox)
		printf("%s\t%s\t%s\t%s\n", verdict, result, name, reason ? reason : "");
	else
		printf("%-9s %-9s %s%s%s\n", verdict, result, name, reason ? ": " : "", reason ? reason : "");
}

static bool end_probe(const struct probe *p, pid_t pid)
{
	static const char *const words[] = {"works", "fails", "unclear"};
	enum probe_result result = result_of(pid);
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
	if (probes_room.is_entering)
		return;
	if (t->left_out > 0)
		snprintf(left_out, sizeof(left_out), ", %lu left out%s", t->left_out, t->names);
	printf(PROBES_RESULT "\n", t->tried, t->surprises, left_out);
}

/* Somebody waits for an agent that is not let in yet: those that are refused by silence wait together. */
static void begin_all(pid_t pids[LIMIT_PROBES])
{
	for (size_t i = 0; i < n_probes && probes_room.is_entering; i++)
		if (!probe_left_out(&probes[i]))
			pids[i] = begin(&probes[i]);
}

bool probes_run(void)
{
	struct tally tally = {0};
	pid_t pids[LIMIT_PROBES] = {0};
	if (n_probes > LIMIT_PROBES)
		return false;
	begin_all(pids);
	for (size_t i = 0; i < n_probes; i++) {
		const char *reason = probe_left_out(&probes[i]);
		tally.tried += !reason;
		if (reason)
			leave_out(&tally, &probes[i], reason);
		else
			tally.surprises += !end_probe(&probes[i], pids[i] ? pids[i] : begin(&probes[i]));
		fflush(stdout);
	}
	print_tally(&tally);
	return fflush(stdout) == 0 && tally.surprises == 0;
}
