/* cage workflow: several sandboxes, one after the other. */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "orchestrator/client/api.h"
#include "orchestrator/client/copy.h"
#include "orchestrator/client/format.h"
#include "orchestrator/client/shown.h"
#include "orchestrator/client/table.h"
#include "orchestrator/client/workflow_file.h"

static const char help_text[] =
	"usage: cage workflow run [options] FILE\n"
	"       cage workflow list [options]\n"
	"       cage workflow show ID\n"
	"       cage workflow artifact [-o FILE] ID STEP PATH\n"
	"       cage workflow cancel ID\n"
	"       cage workflow rm ID\n"
	"\n"
	"Runs sandboxes one after the other, as FILE (YAML or JSON, - reads stdin) says: steps, what\n"
	"each of them needs, and the files that they hand on. docs/workflows.md has it all.\n"
	"\n"
	"run says the id on stderr, waits for the end, says on a terminal how each step goes, and shows\n"
	"a table at last; its\n"
	"exit code is 0 only if all steps succeeded. cancel ends the steps and keeps the record; rm\n"
	"removes it, with what its steps have handed on.\n"
	"\n"
	"  -d, --detach         run: do not wait; print the id\n"
	"  -f, --follow         run: say how each step goes, also where there is no terminal\n"
	"  -o FILE              artifact: write it there (default: stdout)\n"
	"  --label NAME=VALUE   list: only those with that label\n"
	"  --state STATE        list: only those: running, succeeded, failed, cancelled\n"
	"  --json               for programs\n" CLIENT_HELP;

enum { OPT_LABEL = 1, OPT_STATE };

static const struct option long_options[] = {{"detach", no_argument, NULL, 'd'},
					     {"follow", no_argument, NULL, 'f'},
					     {"label", required_argument, NULL, OPT_LABEL},
					     {"state", required_argument, NULL, OPT_STATE},
					     CLIENT_OPTION_JSON,
					     CLIENT_OPTIONS};

struct workflow {
	bool detach, follow;
	const char *out, *label, *state;
};

static bool take_option(void *own, int opt, const char *value)
{
	struct workflow *w = own;
	switch (opt) {
	case 'd':
		return w->detach = true;
	case 'f':
		return w->follow = true;
	case 'o':
		w->out = value;
		return true;
	case OPT_LABEL:
		w->label = value;
		return true;
	case OPT_STATE:
		w->state = value;
		return true;
	default:
		return false;
	}
}

static const struct command_line command_line = {
	.name = "workflow",
	.help = help_text,
	.options = long_options,
	.letters = "hdfo:",
	.take = take_option,
	.least = 1,
	.most = 4,
	.wanted = "run FILE, list, show ID, artifact ID STEP PATH, cancel ID or rm ID"};

/* ---- asking ---- */

static void target_workflow(struct target *t, const char *id, const char *rest)
{
	target_begin(t, "/api/v1/workflows");
	if (id) {
		text_put_char(&t->text, '/');
		target_file(t, id);
	}
	if (rest)
		text_put(&t->text, slice_str(rest));
}

static json_t *ask(struct client *c, const char *method, const char *id, const char *rest)
{
	struct target t;
	target_workflow(&t, id, rest);
	struct http_request r = api_request(method, &t);
	return api_json(c, &r);
}

/* ---- shown ---- */

static const json_t *steps_of(const json_t *workflow)
{
	return json_object_get(workflow, "steps");
}

static void add_artifacts(struct table *table, const json_t *step)
{
	char room[LIMIT_CLIENT_CELL], size[FORMAT_TEXT];
	struct text t = text_in(room, sizeof(room) - 1);
	size_t i;
	const json_t *artifact;
	json_array_foreach(json_object_get(step, "artifacts"), i, artifact)
	{
		if (i > 0)
			text_put(&t, SLICE(", "));
		text_put(&t, slice_str(json_text(artifact, "path")));
		text_put(&t, SLICE(" ("));
		text_put(&t, slice_str(format_size(json_number_value(json_object_get(artifact, "size")), size)));
		text_put_char(&t, ')');
	}
	room[t.len] = '\0';
	table_cell(table, room);
}

static bool print_table(const json_t *workflow)
{
	static const char *const names[] = {"STEP", "STATE", "REASON", "SANDBOX", "ARTIFACTS", "MESSAGE", NULL};
	struct table table;
	size_t i;
	const json_t *step;
	table_begin(&table, names);
	json_array_foreach(steps_of(workflow), i, step)
	{
		table_cell(&table, json_text(step, "id"));
		table_cell(&table, json_text(step, "state"));
		table_cell(&table, json_text(step, "reason"));
		table_cell(&table, json_text(step, "sandbox"));
		add_artifacts(&table, step);
		table_cell(&table, json_text(step, "message"));
	}
	return table_end(&table);
}

static bool print_whole(const struct client *c, const json_t *workflow)
{
	char id[LIMIT_CLIENT_CELL], name[LIMIT_CLIENT_CELL], state[LIMIT_CLIENT_CELL], reason[LIMIT_CLIENT_CELL];
	if (c->json)
		return json_print(workflow);
	shown(json_text(workflow, "id"), id, sizeof(id));
	shown(json_text(workflow, "name"), name, sizeof(name));
	shown(json_text(workflow, "state"), state, sizeof(state));
	shown(json_text(workflow, "reason"), reason, sizeof(reason));
	printf("%s %s (%s)%s%s\n", id, state, reason, name[0] ? " " : "", name);
	return print_table(workflow);
}

/* ---- run ---- */

static json_t *post(struct client *c, const json_t *body)
{
	struct target t;
	target_workflow(&t, NULL, NULL);
	return api_make(c, &t, body);
}

/* One line for each step whose state is another than before. */
static void say_changes(const json_t *before, const json_t *now)
{
	char id[LIMIT_CLIENT_CELL], state[LIMIT_CLIENT_CELL], reason[LIMIT_CLIENT_CELL];
	size_t i;
	const json_t *step;
	json_array_foreach(steps_of(now), i, step)
	{
		const json_t *old = json_array_get(steps_of(before), i);
		if (strcmp(json_text(old, "state"), json_text(step, "state")) == 0)
			continue;
		shown(json_text(step, "id"), id, sizeof(id));
		shown(json_text(step, "state"), state, sizeof(state));
		shown(json_text(step, "reason"), reason, sizeof(reason));
		say("step %s: %s (%s)", id, state, reason);
	}
}

/* NULL: it was said. workflow is taken over. */
static json_t *wait_for_end(struct client *c, json_t *workflow, bool says)
{
	int ms = LIMIT_CLIENT_POLL_MS;
	while (workflow && strcmp(json_text(workflow, "state"), "running") == 0) {
		poll(NULL, 0, ms);
		ms = ms * 3 / 2 < LIMIT_CLIENT_POLL_MOST_MS ? ms * 3 / 2 : LIMIT_CLIENT_POLL_MOST_MS;
		json_t *now = ask(c, "GET", json_text(workflow, "id"), NULL);
		if (now && says)
			say_changes(workflow, now);
		json_decref(workflow);
		workflow = now;
	}
	return workflow;
}

static bool print_id(const struct client *c, const json_t *workflow)
{
	if (c->json)
		return json_print(workflow);
	if (puts(json_text(workflow, "id")) >= 0 && fflush(stdout) == 0)
		return true;
	say_stdout();
	return false;
}

static int run(struct client *c, const struct workflow *own, char **words)
{
	json_t *body = workflow_file_read(words[0]);
	json_t *workflow = body ? post(c, body) : NULL;
	bool ok = workflow != NULL;
	if (ok && own->detach) {
		ok = print_id(c, workflow);
	} else if (ok) {
		const bool says = own->follow || isatty(STDERR_FILENO);
		say("%s", json_text(workflow, "id"));
		workflow = wait_for_end(c, workflow, says);
		ok = workflow && print_whole(c, workflow) && strcmp(json_text(workflow, "state"), "succeeded") == 0;
	}
	json_decref(body);
	json_decref(workflow);
	return ok ? 0 : body ? 1 : 2;
}

/* ---- others ---- */

static int list(struct client *c, const struct workflow *own, char **words)
{
	static const char *const names[] = {"ID", "NAME", "STATE", "REASON", "AGE", NULL};
	struct target t;
	struct table table;
	char age[FORMAT_TEXT];
	size_t i;
	const json_t *row;
	(void)words;
	target_workflow(&t, NULL, NULL);
	target_query(&t, "limit", "1000");
	target_query(&t, "state", own->state);
	target_query(&t, "label", own->label);
	struct http_request r = api_request("GET", &t);
	json_t *page = api_json(c, &r);
	bool ok = page != NULL;
	table_begin(&table, names);
	json_array_foreach(json_object_get(page, "items"), i, row)
	{
		if (c->json) {
			ok = ok && json_print(row);
			continue;
		}
		table_cell(&table, json_text(row, "id"));
		table_cell(&table, json_text(row, "name"));
		table_cell(&table, json_text(row, "state"));
		table_cell(&table, json_text(row, "reason"));
		table_cell(&table, format_age(json_text(row, "created_at"), clock_wall_s(), age));
	}
	if (c->json || !ok)
		words_free(&table.cells);
	else
		ok = table_end(&table);
	if (ok && json_is_string(json_object_get(page, "next")))
		say("there are more: --label and --state choose");
	json_decref(page);
	return ok ? 0 : 1;
}

static int show(struct client *c, const struct workflow *own, char **words)
{
	json_t *workflow = ask(c, "GET", words[0], NULL);
	bool ok = workflow && print_whole(c, workflow);
	(void)own;
	json_decref(workflow);
	return ok ? 0 : 1;
}

static int cancel(struct client *c, const struct workflow *own, char **words)
{
	json_t *workflow = ask(c, "POST", words[0], "/cancel");
	(void)own;
	json_decref(workflow);
	return workflow ? 0 : 1;
}

static int rm(struct client *c, const struct workflow *own, char **words)
{
	json_t *workflow = ask(c, "DELETE", words[0], NULL);
	(void)own;
	json_decref(workflow);
	return workflow ? 0 : 1;
}

static int artifact(struct client *c, const struct workflow *own, char **words)
{
	struct target t;
	target_workflow(&t, words[0], "/artifacts/");
	target_file(&t, words[1]);
	text_put_char(&t.text, '/');
	target_file(&t, words[2]);
	struct http_request r = api_request("GET", &t);
	return copy_to(c, &r, words[2], own->out ? own->out : "-") ? 0 : 1;
}

/* ---- which ---- */

static const struct action {
	const char *name;
	int (*act)(struct client *c, const struct workflow *own, char **words);
	int n; /* operands behind its name */
	bool has_id;
} actions[] = {{"run", run, 1, false},          {"list", list, 0, false},    {"show", show, 1, true},
	       {"artifact", artifact, 3, true}, {"cancel", cancel, 1, true}, {"rm", rm, 1, true}};

static int act(struct client *c, const struct workflow *own)
{
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		const struct action *a = &actions[i];
		if (strcmp(c->operands[0], a->name) != 0)
			continue;
		if (c->n_operands != a->n + 1) {
			usage_error(&command_line, a->name, "has other operands");
			return 2;
		}
		return a->has_id && !id_is_good(c->operands[1]) ? 2 : a->act(c, own, c->operands + 1);
	}
	usage_error(&command_line, c->operands[0], "expected run, list, show, artifact, cancel or rm");
	return 2;
}

int cmd_workflow(int argc, char **argv)
{
	struct client c = {0};
	struct workflow own = {.out = NULL};
	enum command_read r = read_command(argc, argv, &command_line, &c, &own);
	if (r != COMMAND_RUN)
		return command_exit(r);
	int code = act(&c, &own);
	client_close(&c);
	return code;
}
