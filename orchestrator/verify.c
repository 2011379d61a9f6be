/* cage verify starts cage run with a policy that allows nothing, and itself in the room as the command. */
#include "orchestrator/verify.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "core/base/say.h"
#include "orchestrator/launch.h"
#include "orchestrator/probes.h"
#include "orchestrator/run.h"
#include "orchestrator/words.h"

#define INSIDE "--inside" /* not for users */

static const char help_text[] =
	"usage: cage verify [options of cage run]\n"
	"\n"
	"Tries, from inside a room, all known ways out of it, each of which must fail, and what\n"
	"must work. Prints a table. The options are those that decide what the room is, such as\n"
	"--mode and --bind.\n"
	"\n"
	"Exit codes: 0 all is as it should be, 1 there was a surprise, 2 wrong usage, 78 nothing\n"
	"can be locked in here.\n";

static const char policy_text[] = "version: 1\nname: verify\n";

/* ---- inside ---- */

/* Killed is as good as failed. */
static bool works(const struct probe *p)
{
	int status = -1;
	pid_t pid = fork();
	if (pid == 0) {
		alarm(LIMIT_PROBE_MS / 1000 + 1);
		_exit(p->run(p) ? 0 : 1);
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static size_t run_table(const struct probe *table, size_t n, bool expected, size_t *tried)
{
	size_t surprises = 0;
	for (size_t i = 0; i < n; i++) {
		if (!probe_applies(&table[i]))
			continue;
		++*tried;
		bool as_expected = works(&table[i]) == expected;
		surprises += !as_expected;
		printf("%-9s %-9s %s\n", as_expected ? "ok" : "SURPRISE", expected == as_expected ? "works" : "fails",
		       table[i].name);
	}
	return surprises;
}

/* Only where no probe can do harm if it works. */
static int run_inside(void)
{
	if (!probes_are_confined()) {
		say("verify: this is not a room: nothing is tried here");
		return 1;
	}
	size_t tried = 0;
	size_t surprises = run_table(probes_denied, n_probes_denied, false, &tried);
	surprises += run_table(probes_allowed, n_probes_allowed, true, &tried);
	printf("%zu probes, %zu surprise%s\n", tried, surprises, surprises == 1 ? "" : "s");
	return fflush(stdout) == 0 && surprises == 0 ? 0 : 1;
}

/* ---- outside ---- */

static bool write_policy(char path[])
{
	int fd = mkstemp(path);
	if (fd < 0)
		return false;
	bool ok = write(fd, policy_text, sizeof(policy_text) - 1) == (ssize_t)sizeof(policy_text) - 1;
	return close(fd) == 0 && ok;
}

static int run_outside(int argc, char **argv)
{
	char policy[] = "/tmp/cage-verify.XXXXXX", program[4096];
	struct words words = {0};
	if (!write_policy(policy) || !launch_path("cage", program, sizeof(program))) {
		say("verify: %s", strerror(errno));
		return 1;
	}
	words_add(&words, "run");
	words_add(&words, "--quiet");
	words_add(&words, "--bind-ro");
	words_add(&words, "%s", program);
	words_add(&words, "--policy");
	words_add(&words, "%s", policy);
	for (int i = 1; i < argc; i++)
		words_add(&words, "%s", argv[i]);
	words_add(&words, "--");
	words_add(&words, "%s", program);
	words_add(&words, "verify");
	words_add(&words, INSIDE);
	int code = words.failed ? 1 : cmd_run((int)words.n, words.list);
	unlink(policy);
	words_free(&words);
	return code;
}

int cmd_verify(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], INSIDE) == 0)
		return run_inside();
	if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
		return fputs(help_text, stdout) >= 0 ? 0 : 1;
	return run_outside(argc, argv);
}
