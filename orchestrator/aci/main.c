/* cage-aci: one sandbox as a container group of Azure. aci.h says how it goes. */
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "core/base/option_table.h"
#include "core/base/say.h"
#include "core/base/wipe.h"
#include "core/proc/process.h"
#include "orchestrator/aci/aci.h"
#include "orchestrator/aci/bench.h"
#include "orchestrator/aci/standby.h"
#include "orchestrator/env_kit.h"
#include "orchestrator/image/admit.h"
#include "orchestrator/inside/enter.h"
#include "orchestrator/secrets.h"

bool aci_open_signals(struct aci *a)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	signal(SIGPIPE, SIG_IGN);
	a->signals = sigprocmask(SIG_BLOCK, &set, NULL) == 0 ? signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK) : -1;
	return a->signals >= 0;
}

/* "/workspace:BYTES", of which a room would have so much memory: here no file is larger. */
static bool read_workspace(struct aci *a, const char *text)
{
	const char *colon = strrchr(text, ':');
	return !colon || room_limits_size(colon + 1, strlen(colon + 1), &a->limits.fsize) == 0;
}

/* What the room of `cage run` would be limited to. */
static bool read_limits(struct aci *a)
{
	const struct words *room = &a->options->run.room;
	bool ok = true;
	for (size_t i = 0; i + 1 < room->n && ok; i += 2) {
		if (strcmp(room->list[i], "--limit") == 0)
			ok = room_limits_parse(&a->limits, room->list[i + 1]) == 0;
		else if (strcmp(room->list[i], "--tmpfs") == 0)
			ok = read_workspace(a, room->list[i + 1]);
	}
	return ok;
}

/* Variables of the agent: the way to the proxy, and those that were asked for. */
bool aci_read_variables(struct aci *a)
{
	char proxy[LIMIT_SANDBOX + SPLIT_TOKEN + 40] = "http://127.0.0.1:8080";
	const struct kit_way way = {.proxy = proxy, .direct = "localhost,127.0.0.1,::1"};
	const struct run_options *run = &a->options->run;
	if (aci_is_split(a->options))
		snprintf(proxy, sizeof(proxy), "http://%s:%s@127.0.0.1:8080", run->sandbox, a->split.token);
	words_add(&a->agent_env, "HOME=/workspace");
	kit_shell_variables(ENTER_KIT, &way, &a->agent_env);
	kit_java_variable(ENTER_KIT, "http://127.0.0.1:8080", NULL, &a->agent_env);
	explicit_bzero(proxy, sizeof(proxy));
	for (size_t i = 0; i < run->env.n; i++)
		if (strchr(run->env.list[i], '='))
			words_add(&a->agent_env, "%s", run->env.list[i]);
	return !a->agent_env.failed;
}

/* Values are the proxy's; placeholders, which come last and so count, the agent's. A gateway has its own, and tells the latter. */
bool aci_read_secrets(struct aci *a)
{
	struct own_files own = {0};
	const struct run_options *run = &a->options->run;
	if (aci_is_split(a->options)) {
		if (run->secrets.n > 0)
			say("a gateway takes no values of secrets: its own policy has to name them");
		return run->secrets.n == 0;
	}
	const int code = secrets_share(run, run->policy, run->ca_dir, &a->proxy_env, &a->agent_env, &own);
	own_files_free(&own);
	if (code)
		a->code = code;
	return code == 0 && !a->agent_env.failed && !a->proxy_env.failed;
}

/* As when it was asked for; the registry gives it by its digest, or not. */
static bool admit(const struct aci *a)
{
	static struct image_verdict v;
	const struct aci_options *o = a->options;
	if (!o->admit || image_admit_file(o->run.policy, slice_str(o->admit), o->signatures, &v))
		return true;
	say("%s: %s", image_reason_code(v.reason), v.why);
	return false;
}

static bool prepare(struct aci *a)
{
	const struct run_options *run = &a->options->run;
	if (!run->policy || !run->ca_dir || !run->sandbox) {
		say("run: --policy, --ca-dir and --sandbox are needed");
		a->code = EXIT_WRONG;
		return false;
	}
	if (run->control && !control_open(&a->control, run->control)) {
		say("--control: expected fd:N, a socket");
		return false;
	}
	if (!aci_open_signals(a) || !read_limits(a) || !admit(a) || !registry_read(a) ||
	    (aci_is_split(a->options) && !split_open(a)) || !aci_read_variables(a) || !aci_read_secrets(a) ||
	    !vault_read(a) || !logs_open(a) || !arm_open(&a->arm, &a->options->azure))
		return false;
	aci_group_path(&a->arm, run->sandbox, "", a->path);
	return true;
}

static int run(const struct aci_options *o)
{
	static struct aci a;
	a = (struct aci){.options = o, .state = ACI_WAITS, .code = EXIT_FAILED, .signals = -1};
	a.control.fd = -1;
	if (prepare(&a)) {
		keeper_say(FRAME_READY, 0, SLICE_NONE);
		aci_loop(&a);
		split_close(&a);
		watch_close(&a);
		logs_close(&a);
		arm_close(&a.arm);
	}
	words_wipe(&a.proxy_env);
	words_wipe(&a.agent_env);
	registry_free(&a);
	words_free(&a.vault_urls);
	files_free(&a);
	words_free(&a.command);
	free(a.held);
	control_close(&a.control);
	return a.code;
}

static int obey(const struct aci_options *o, const char *what, int argc, char **argv)
{
	if (strcmp(what, "run") == 0)
		return run(o);
	if (strcmp(what, "list") == 0)
		return aci_list(o);
	if (strcmp(what, "check") == 0)
		return aci_check(o);
	if (strcmp(what, "remove") == 0 && optind + 1 < argc)
		return aci_remove(o, argv[optind + 1]);
	if (strcmp(what, "pools") == 0)
		return standby_make(o, argv + optind + 1);
	if (strcmp(what, "pool-show") == 0)
		return standby_show(o);
	if (strcmp(what, "bench") == 0)
		return aci_bench(o, argc - optind, argv + optind);
	say("%s: expected run, remove ID, list, check, bench, pools or pool-show", what);
	return EXIT_WRONG;
}

int main(int argc, char **argv)
{
	struct aci_options options;
	const char *what = NULL;
	say_as("cage-aci");
	process_harden();
	json_set_alloc_funcs(malloc, wipe_free); /* bodies of groups have secrets */
	int code = aci_options_parse(argc, argv, &options, &what);
	if (code == OPTIONS_GO_ON)
		code = obey(&options, what, argc, argv);
	aci_options_free(&options);
	return code;
}
