/* cage-proxy is asked about the policy of a change: whether it is good, and which placeholders it has. */
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/gateway/boxes.h"
#include "orchestrator/gateway/change_private.h"

#define PROXY_SAYS_WRONG 2 /* exit code of cage-proxy --check */

static void add_said(struct change *c, struct slice said)
{
	while (said.len > 0 && c->errors.n < LIMIT_GATEWAY_ERRORS) {
		struct slice line = slice_cut(&said, '\n');
		const char *at = memmem(line.ptr, line.len, "policy.yaml:", 12);
		if (at) /* where it lies aside is nobody's business */
			line = slice_from(line, (size_t)(at - line.ptr));
		if (line.len > 0)
			words_add(&c->errors, "%.*s", SLICE_FMT(line));
	}
}

/* True: it took too much computing, and is refused. */
static bool is_too_slow(struct change *c, int status)
{
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGXCPU)
		return false;
	words_add(&c->errors, "policy.yaml: it takes more than %d s to compile: give it fewer or simpler patterns",
		  LIMIT_GATEWAY_CHECK_S);
	change_end(c, 422, "the policy is no good");
	return true;
}

static void on_checked(void *arg, int status, struct slice said)
{
	struct change *c = arg;
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
		change_enter(c, CHANGE_PRINTS);
		return;
	}
	if (is_too_slow(c, status))
		return;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != PROXY_SAYS_WRONG) {
		change_end(c, 503, "the policy could not be checked");
		return;
	}
	add_said(c, said);
	change_end(c, 422, "the policy is no good");
}

static void on_printed(void *arg, int status, struct slice said)
{
	struct change *c = arg;
	if (is_too_slow(c, status))
		return;
	c->env = json_object();
	while (said.len > 0 && c->env) {
		struct slice value = slice_cut(&said, '\n'), name = slice_cut(&value, '=');
		json_object_setn_new(c->env, name.ptr, name.len, json_stringn(value.ptr, value.len));
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && c->env)
		change_enter(c, CHANGE_RELOADS);
	else
		change_end(c, 503, "the placeholders of the policy can't be told");
}

static bool ask_proxy(struct change *c, const char *what, child_done *done)
{
	struct gateway *g = c->gateway;
	char path[LIMIT_GATEWAY_PATH];
	struct words argv = {0};
	box_staged_policy(g, path);
	words_add(&argv, "cage-proxy");
	proxy_add_given(g, &argv);
	words_add(&argv, "--policy");
	words_add(&argv, "%s", c->policy ? path : g->options->policy);
	words_add(&argv, "--sandbox");
	words_add(&argv, "%s", c->id);
	words_add(&argv, "%s", what);
	const struct child_spec spec = {.program = "cage-proxy",
					.argv = argv.list,
					.envp = environ,
					.hears_errors = done == on_checked,
					.most_ms = LIMIT_GATEWAY_CHECK_MS,
					.most_cpu_s = LIMIT_GATEWAY_CHECK_S,
					.done = done,
					.arg = c};
	const bool ok = !argv.failed && child_run(g->children, &spec);
	words_free(&argv);
	return ok;
}

bool change_check(struct change *c)
{
	return ask_proxy(c, "--check", on_checked);
}

bool change_print(struct change *c)
{
	return ask_proxy(c, "--print-env", on_printed);
}
