/* cage verify lays baits, starts cage run with a policy that allows nothing and itself in the room as the command, and says in the
 * end what both have seen: the probes inside, and the baits outside. */
#include "orchestrator/verify.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "core/base/say.h"
#include "core/base/usage.h"
#include "orchestrator/baits.h"
#include "orchestrator/launch.h"
#include "orchestrator/options.h"
#include "orchestrator/probes.h"
#include "orchestrator/room_kind.h"
#include "orchestrator/run.h"

#define INSIDE "--inside" /* not for users: MODE BAIT... */

#define EXIT_SURPRISE 1
#define EXIT_USAGE 2
#define EXIT_UNLOCKED 78

static const char help_text[] =
	"usage: cage verify [options of cage run]\n"
	"       cage verify [options] ID\n"
	"\n"
	"Tries, from inside a room, all known ways out of it, each of which must fail in the way\n"
	"that the room makes it fail, and what must work. Prints a table. The options are those\n"
	"that decide what the room is, such as --mode and --bind; no command is expected.\n"
	"What can't be tried here is listed as left out, with the reason, and named in the end.\n"
	"\n"
	"With ID, it is tried inside a sandbox of cage serve that runs (--json, --socket, --url and\n"
	"--token-file as cage exec has them).\n"
	"\n"
	"  -h, --help       print this and exit; cage run --help lists the options\n"
	"\n"
	"Exit codes: 0 all that was tried is as it should be, 1 there was a surprise or no result,\n"
	"2 wrong usage, 78 nothing can be locked in here.\n";

static const char policy_text[] = "version: 1\nname: verify\n";

/* ---- inside ---- */

/* args: MODE and the names of the baits. */
static int run_inside(char **args)
{
	if (!probes_are_confined()) {
		say("verify: this is not a room: nothing is tried here");
		return EXIT_SURPRISE;
	}
	probes_room = (struct probes_room){.network = strcmp(args[0], "seccomp") == 0 ? PROBES_SHARED : PROBES_OWN,
					   .helpers = PROBES_LOOPBACK,
					   .parent = getppid(),
					   .baits = (const char *const *)(args + 1)};
	return probes_run() ? 0 : EXIT_SURPRISE;
}

/* ---- outside ---- */

struct verification {
	char dir[32], policy[64], program[4096];
	struct room_kind kind;
	struct baits baits;
	bool has_result; /* of the probes, which comes last */
	unsigned long tried, surprises;
	char left_out[PROBES_LEFT_OUT + 64]; /* what the result says of that */
	char line[1024];                     /* what is being said inside */
	size_t len;
};

static bool write_policy(struct verification *v)
{
	snprintf(v->policy, sizeof(v->policy), "%s/policy.yaml", v->dir);
	int fd = open(v->policy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	bool ok = write(fd, policy_text, sizeof(policy_text) - 1) == (ssize_t)sizeof(policy_text) - 1;
	return close(fd) == 0 && ok;
}

static bool prepare(struct verification *v)
{
	snprintf(v->dir, sizeof(v->dir), "/tmp/cage-verify.XXXXXX");
	if (mkdtemp(v->dir) && chmod(v->dir, 0711) == 0 && write_policy(v) &&
	    launch_path("cage", v->program, sizeof(v->program)))
		return baits_lay(&v->baits, v->dir, &v->kind);
	say("verify: %s: %s", v->dir, strerror(errno));
	return false;
}

/* The one who runs the room; its end is that of the process. */
static _Noreturn void run_room(struct verification *v, struct run_options *o, int output)
{
	static char *command[3 + 1 + BAITS + 1];
	char *words[] = {v->program, "verify", INSIDE, v->kind.mode};
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (null < 0 || dup2(null, 0) < 0 || dup2(output, 1) < 0)
		_exit(EXIT_SURPRISE);
	memcpy(command, words, sizeof(words));
	for (int i = 0; i < BAITS; i++)
		command[4 + i] = v->baits.names[i];
	o->command = command;
	o->mode = v->kind.mode;
	o->quiet = true;
	if (!o->policy)
		o->policy = v->policy;
	run_options_to_room(o, "--bind-ro", v->program);
	_exit(run_command(o));
}

/* As PROBES_RESULT has it. */
static bool read_result(struct verification *v)
{
	static const char between[] = " probes, ", behind[] = " surprises";
	char *end = v->line;
	v->tried = strtoul(v->line, &end, 10);
	if (end == v->line || strncmp(end, between, sizeof(between) - 1) != 0)
		return false;
	const char *second = end + sizeof(between) - 1;
	v->surprises = strtoul(second, &end, 10);
	if (end == second || strncmp(end, behind, sizeof(behind) - 1) != 0)
		return false;
	const char *rest = end + sizeof(behind) - 1;
	return snprintf(v->left_out, sizeof(v->left_out), "%s", rest) < (int)sizeof(v->left_out) &&
	       (rest[0] == '\0' || rest[0] == ',');
}

static void take_line(struct verification *v)
{
	v->line[v->len] = '\0';
	v->len = 0;
	if (read_result(v))
		v->has_result = true;
	else
		puts(v->line);
	fflush(stdout);
}

/* False: that was all. */
static bool take_output(struct verification *v, int output)
{
	char buf[1024];
	ssize_t n = read(output, buf, sizeof(buf));
	if (n < 0 && errno == EINTR)
		return true;
	for (ssize_t i = 0; i < n; i++) {
		if (buf[i] == '\n' || v->len == sizeof(v->line) - 1)
			take_line(v);
		if (buf[i] != '\n')
			v->line[v->len++] = buf[i];
	}
	return n > 0;
}

static void attend(struct verification *v, int output)
{
	struct pollfd p[BAITS + 1];
	bool goes_on = true;
	while (goes_on) {
		baits_watch(&v->baits, p);
		p[BAITS] = (struct pollfd){.fd = output, .events = POLLIN};
		if (poll(p, BAITS + 1, -1) < 0 && errno != EINTR)
			return;
		baits_look(&v->baits, p);
		if (p[BAITS].revents)
			goes_on = take_output(v, output);
	}
}

/* What was sent last may still be on its way to us. */
static void attend_late(struct verification *v)
{
	struct pollfd p[BAITS];
	baits_watch(&v->baits, p);
	if (poll(p, BAITS, 0) > 0)
		baits_look(&v->baits, p);
}

static int conclude(struct verification *v, int code)
{
	for (int i = 0; i < BAITS; i++)
		if (v->baits.is_bitten[i]) {
			v->surprises++;
			printf("%-9s %-9s %s\n", "SURPRISE", "arrived", bait_describe((enum bait)i));
		}
	if (v->has_result) {
		printf(PROBES_RESULT "\n", v->tried, v->surprises, v->left_out);
		return usage_printed() == 0 && code == 0 && v->surprises == 0 ? 0 : EXIT_SURPRISE;
	}
	say("verify: not all was tried: there is no result");
	return code == EXIT_USAGE || code == EXIT_UNLOCKED ? code : EXIT_SURPRISE;
}

/* Ctrl-C is for the one who runs the room: it ends, and so do we. */
static int watch_room(struct verification *v, struct run_options *o)
{
	int ends[2], status = -1;
	fflush(NULL);
	if (pipe2(ends, O_CLOEXEC) != 0) {
		say("pipe: %s", strerror(errno));
		return EXIT_SURPRISE;
	}
	pid_t pid = fork();
	if (pid == 0)
		run_room(v, o, ends[1]);
	signal(SIGINT, SIG_IGN);
	close(ends[1]);
	if (pid > 0)
		attend(v, ends[0]);
	attend_late(v);
	close(ends[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return conclude(v, pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_SURPRISE);
}

static int run_outside(struct run_options *o)
{
	static struct verification v;
	for (int i = 0; i < BAITS; i++)
		v.baits.fds[i] = -1;
	int code = room_kind_ask(o->mode, NULL, &v.kind);
	if (code != 0)
		return code;
	code = prepare(&v) ? watch_room(&v, o) : EXIT_SURPRISE;
	baits_remove(&v.baits);
	unlink(v.policy);
	rmdir(v.dir);
	return code;
}

static bool asks_for_help(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
			return true;
	return false;
}

static int print_help(void)
{
	fputs(help_text, stdout);
	return usage_printed();
}

int cmd_verify(int argc, char **argv)
{
	struct run_options options;
	if (argc == 3 + BAITS && strcmp(argv[1], INSIDE) == 0)
		return run_inside(argv + 2);
	if (asks_for_help(argc, argv))
		return print_help();
	int code = run_options_only(argc, argv, &options) == OPTIONS_RUN ? run_outside(&options) : EXIT_USAGE;
	run_options_free(&options);
	return code;
}
