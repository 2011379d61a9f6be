/* A bench: what is left of others is removed, groups are described, made and removed, and times are told. */
#include "orchestrator/aci/bench.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/option_table.h"
#include "core/base/say.h"
#include "core/base/write_all.h"
#include "orchestrator/tree_whole.h"

/* ---- what was left ---- */

static void keep_id(void *arg, const char *id)
{
	words_add(arg, "%s", id);
}

static bool remove_left(struct bench *b)
{
	struct words ids = {0};
	bool ok = aci_list_each(&b->aci.arm, &b->own, keep_id, &ids) && !ids.failed;
	for (size_t i = 0; i < ids.n; i++) {
		say("bench: cage-%s was left by a bench before, and is removed", ids.list[i]);
		ok = aci_remove_one(&b->aci.arm, ids.list[i]) && ok;
	}
	words_free(&ids);
	return ok;
}

/* ---- what is made ---- */

/* Nothing is let out: a group that is measured has nobody to speak to. */
static bool write_policy(const char *path)
{
	static const char text[] = "version: 1\nname: bench\n";
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	const bool ok = fd >= 0 && write_all(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		close(fd);
	return ok;
}

static bool describe_all(struct bench *b)
{
	const uint64_t now = (uint64_t)clock_wall_s();
	bool ok = true;
	for (size_t i = 0; ok && i < b->options->runs; i++) {
		struct bench_run *r = &b->runs[i];
		snprintf(r->id, sizeof(r->id), "bench-%llx-%d-%zu", (unsigned long long)now, (int)getpid(), i);
		b->own.run.sandbox = r->id;
		aci_group_path(&b->aci.arm, r->id, "", r->path);
		r->body = group_body(&b->aci, b->own.regions.list[0]);
		ok = r->body != NULL;
	}
	return ok;
}

/* The keys and the policy of groups that are gone in a minute lie on the disk no longer than until they are in their bodies. */
static bool describe(struct bench *b)
{
	char dir[] = "/tmp/cage-bench.XXXXXX", policy[64];
	if (!mkdtemp(dir)) {
		say("bench: no directory can be made in /tmp");
		return false;
	}
	snprintf(policy, sizeof(policy), "%s/policy.yaml", dir);
	b->own.run.policy = policy;
	b->own.run.ca_dir = dir;
	for (size_t i = 0; i < b->options->n_command; i++)
		words_add(&b->aci.command, "%s", b->options->command[i]);
	const bool ok = write_policy(policy) && registry_read(&b->aci) && aci_read_variables(&b->aci) &&
			aci_read_secrets(&b->aci) && !b->aci.command.failed && describe_all(b);
	b->own.run.policy = b->own.run.ca_dir = b->own.run.sandbox = NULL;
	tree_remove(dir);
	return ok;
}

/* ---- all of them ---- */

static void stop(struct bench *b)
{
	if (!b->is_stopped)
		say("bench: it is stopped, and removes what it has made");
	b->is_stopped = true;
	for (size_t i = 0; i < b->options->runs; i++)
		bench_stop(b, &b->runs[i]);
}

static void take_signals(struct bench *b)
{
	struct signalfd_siginfo info;
	while (read(b->aci.signals, &info, sizeof(info)) == (ssize_t)sizeof(info))
		stop(b);
}

/* How many are under way; those whose turn it is begin. */
static size_t pass(struct bench *b)
{
	size_t n = 0;
	for (size_t i = 0; i < b->options->runs; i++) {
		struct bench_run *r = &b->runs[i];
		if (r->state == BENCH_WAITS && !b->is_stopped && n < b->options->parallel)
			bench_begin(b, r);
		bench_look(b, r);
		n += r->state != BENCH_WAITS && r->state != BENCH_DONE;
	}
	return n;
}

static bool is_over(const struct bench *b)
{
	for (size_t i = 0; i < b->options->runs; i++)
		if (b->runs[i].state != BENCH_DONE && !(b->runs[i].state == BENCH_WAITS && b->is_stopped))
			return false;
	return true;
}

static void measure(struct bench *b)
{
	while (!is_over(b)) {
		struct pollfd at = {.fd = b->aci.signals, .events = POLLIN};
		pass(b);
		web_wait(&b->aci.arm.web, &at, 1, LIMIT_ACI_PASS_MS);
		if (at.revents)
			take_signals(b);
	}
}

static bool is_good(const struct bench *b)
{
	bool ok = !b->is_stopped;
	for (size_t i = 0; i < b->options->runs; i++)
		ok = ok && !b->runs[i].why[0] && !b->runs[i].is_left;
	return ok;
}

/* ---- from outside ---- */

static int run(struct bench *b)
{
	struct instance_share share;
	if (!remove_left(b))
		return EXIT_FAILED;
	if (b->options->runs == 0)
		return 0;
	if (!describe(b) || !instance_share(b->runs[0].body, &share))
		return EXIT_FAILED;
	if (!bench_confirm(b, &share))
		return EXIT_WRONG;
	if (!aci_open_signals(&b->aci))
		return EXIT_FAILED;
	measure(b);
	const bool ok = is_good(b);
	return bench_print(b) && ok ? 0 : EXIT_FAILED;
}

static void end(struct bench *b)
{
	for (size_t i = 0; i < b->options->runs; i++)
		bench_free(b, &b->runs[i]);
	registry_free(&b->aci);
	words_wipe(&b->aci.proxy_env);
	words_free(&b->aci.agent_env);
	words_free(&b->aci.command);
	free(b->runs);
	if (b->aci.signals >= 0)
		close(b->aci.signals);
	arm_close(&b->aci.arm);
}

int aci_bench(const struct aci_options *o, int argc, char **argv)
{
	static struct bench b;
	struct bench_options options;
	const int wrong = bench_options_parse(argc, argv, &options);
	if (wrong != OPTIONS_GO_ON)
		return wrong;
	if (aci_is_split(o)) {
		say("bench: groups of the topology split are not measured, since each has to be told to the gateway");
		return EXIT_WRONG;
	}
	b = (struct bench){.options = &options, .own = *o, .aci = {.options = &b.own, .signals = -1}};
	snprintf(b.tag, sizeof(b.tag), "%s.bench", o->state);
	b.own.state = b.tag;
	b.runs = calloc(options.runs + 1, sizeof(b.runs[0]));
	if (!b.runs || !arm_open(&b.aci.arm, &b.own.azure)) {
		free(b.runs);
		return EXIT_FAILED;
	}
	const int code = run(&b);
	end(&b);
	return code;
}
