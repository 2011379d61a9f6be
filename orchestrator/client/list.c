/* cage list: the sandboxes that there are, newest first. */
#include <stdio.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "orchestrator/client/api.h"
#include "orchestrator/client/format.h"
#include "orchestrator/client/table.h"

static const char help_text[] =
	"usage: cage list [options]\n"
	"\n"
	"Lists sandboxes, newest first: those that have ended too, until the service forgets them.\n"
	"\n"
	"  --state STATE        only those in that state: queued, creating, running, succeeded,\n"
	"                       failed, timed_out, killed, deleted\n"
	"  --label NAME=VALUE   only those with that label\n"
	"  --limit N            the newest N (default 100)\n"
	"  --all                all of them\n"
	"  --json               one JSON object a line\n" CLIENT_HELP;

enum { OPT_STATE = 1, OPT_LABEL, OPT_LIMIT, OPT_ALL };

static const struct option long_options[] = {{"state", required_argument, NULL, OPT_STATE},
					     {"label", required_argument, NULL, OPT_LABEL},
					     {"limit", required_argument, NULL, OPT_LIMIT},
					     {"all", no_argument, NULL, OPT_ALL},
					     CLIENT_OPTION_JSON,
					     CLIENT_OPTIONS};

struct list {
	const char *state, *label;
	uint64_t left; /* of those that are to be shown */
	bool is_cut;   /* there are more */
	int64_t now_s;
	struct table table;
};

static bool take_option(void *own, int opt, const char *value)
{
	struct list *l = own;
	switch (opt) {
	case OPT_STATE:
		l->state = value;
		return true;
	case OPT_LABEL:
		l->label = value;
		return true;
	case OPT_ALL:
		l->left = UINT64_MAX;
		return true;
	case OPT_LIMIT:
		if (slice_to_u64(slice_str(value), INT32_MAX, &l->left) && l->left > 0)
			return true;
		say("--limit %s: expected a number from 1 on", value);
		return false;
	default:
		return false;
	}
}

static const struct command_line command_line = {
	.name = "list", .help = help_text, .options = long_options, .letters = "h", .take = take_option};

/* "team=a user=b" */
static void add_labels(struct table *table, json_t *labels)
{
	char room[LIMIT_CLIENT_CELL];
	struct text t = text_in(room, sizeof(room) - 1);
	const char *name;
	json_t *value;
	json_object_foreach(labels, name, value)
	{
		if (t.len > 0)
			text_put_char(&t, ' ');
		text_put(&t, slice_str(name));
		text_put_char(&t, '=');
		text_put(&t, slice_str(json_is_string(value) ? json_string_value(value) : ""));
	}
	room[t.len] = '\0';
	table_cell(table, room);
}

static void add_row(struct list *l, const json_t *row)
{
	char text[FORMAT_TEXT] = "";
	const json_t *code = json_object_get(row, "exit_code");
	table_cell(&l->table, json_text(row, "id"));
	table_cell(&l->table, json_text(row, "state"));
	table_cell(&l->table, json_text(row, "reason"));
	table_cell(&l->table, format_age(json_text(row, "created_at"), l->now_s, text));
	table_cell(&l->table, json_text(row, "profile"));
	add_labels(&l->table, json_object_get(row, "labels"));
	if (json_is_integer(code))
		snprintf(text, sizeof(text), "%lld", (long long)json_integer_value(code));
	table_cell(&l->table, json_is_integer(code) ? text : "");
}

static bool take_rows(struct client *c, struct list *l, const json_t *items)
{
	size_t i;
	const json_t *row;
	json_array_foreach(items, i, row)
	{
		if (l->left == 0) {
			l->is_cut = true;
			return true;
		}
		l->left--;
		if (!c->json)
			add_row(l, row);
		else if (!json_print(row))
			return false;
	}
	return true;
}

static json_t *ask_page(struct client *c, const struct list *l, const char *after)
{
	struct target t;
	char limit[FORMAT_TEXT];
	uint64_t wanted = l->left < LIMIT_CLIENT_PAGE ? l->left : LIMIT_CLIENT_PAGE;
	snprintf(limit, sizeof(limit), "%llu", (unsigned long long)wanted);
	target_sandbox(&t, NULL, NULL);
	target_query(&t, "limit", limit);
	target_query(&t, "after", after);
	target_query(&t, "state", l->state);
	target_query(&t, "label", l->label);
	struct http_request r = api_request("GET", &t);
	return api_json(c, &r);
}

/* Page by page. Each must bring something, so that it comes to an end. */
static bool list_all(struct client *c, struct list *l)
{
	json_t *page = ask_page(c, l, NULL);
	bool ok = page != NULL;
	while (ok) {
		const json_t *items = json_object_get(page, "items"), *next = json_object_get(page, "next");
		bool has_more = json_is_string(next) && json_array_size(items) > 0;
		ok = take_rows(c, l, items);
		l->is_cut |= has_more && l->left == 0;
		if (!ok || !has_more || l->left == 0)
			break;
		json_t *following = ask_page(c, l, json_string_value(next));
		json_decref(page);
		page = following;
		ok = page != NULL;
	}
	json_decref(page);
	return ok;
}

int cmd_list(int argc, char **argv)
{
	static const char *const names[] = {"ID", "STATE", "REASON", "AGE", "PROFILE", "LABELS", "EXIT", NULL};
	struct client c = {0};
	struct list l = {.left = 100, .now_s = clock_wall_s()};
	enum command_read r = read_command(argc, argv, &command_line, &c, &l);
	if (r != COMMAND_RUN)
		return command_exit(r);
	table_begin(&l.table, names);
	bool ok = list_all(&c, &l);
	client_close(&c);
	if (c.json || !ok)
		words_free(&l.table.cells);
	else
		ok = table_end(&l.table);
	if (ok && l.is_cut)
		say("there are more: --all lists them");
	return ok ? 0 : 1;
}
