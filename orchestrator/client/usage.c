/* cage usage: what was used, and what it cost. */
#include <stdio.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/base/units.h"
#include "orchestrator/client/api.h"
#include "orchestrator/client/format.h"
#include "orchestrator/client/table.h"

static const char help_text[] =
	"usage: cage usage [options]\n"
	"\n"
	"Says what all sandboxes used, and what it cost by the prices of the service.\n"
	"\n"
	"  --by LABEL           a row for each value of that label\n"
	"  --since TIME         only of those created since then: such as 24h or 7d, or a time such\n"
	"                       as 2026-12-31T00:00:00Z\n"
	"  --json               as the service says it, one JSON object a row\n" CLIENT_HELP;

enum { OPT_BY = 1, OPT_SINCE };

static const struct option long_options[] = {{"by", required_argument, NULL, OPT_BY},
					     {"since", required_argument, NULL, OPT_SINCE},
					     CLIENT_OPTION_JSON,
					     CLIENT_OPTIONS};

struct usage {
	const char *by;
	char since[FORMAT_TEXT]; /* "": from the beginning */
};

#define LONGEST_S (100ull * 365 * 86400)

static bool take_since(struct usage *u, const char *value)
{
	uint64_t ago_s;
	int64_t then_s;
	if (units_duration(slice_str(value), LONGEST_S, &ago_s))
		then_s = clock_wall_s() - (int64_t)ago_s;
	else if (!parse_time(value, &then_s)) {
		say("--since %s: expected a time such as 24h, 7d or 2026-12-31T00:00:00Z", value);
		return false;
	}
	format_time(then_s, u->since);
	return true;
}

static bool take_option(void *own, int opt, const char *value)
{
	struct usage *u = own;
	if (opt == OPT_SINCE)
		return take_since(u, value);
	u->by = value;
	return true;
}

static const struct command_line command_line = {
	.name = "usage", .help = help_text, .options = long_options, .letters = "h", .take = take_option};

static void add_row(struct table *t, const struct usage *u, const json_t *row)
{
	char room[FORMAT_TEXT];
	const json_t *decisions = json_object_get(row, "decisions"), *cost = json_object_get(row, "cost");
	char price[2 * FORMAT_TEXT];
	if (u->by)
		table_cell(t, json_text(row, "value"));
	table_number(t, "%.0f", json_number_value(json_object_get(row, "sandboxes")));
	table_cell(t, format_seconds(json_number_value(json_object_get(row, "wall_seconds")), room));
	table_cell(t, format_seconds(json_number_value(json_object_get(row, "cpu_seconds")), room));
	table_number(t, "%.2f", json_number_value(json_object_get(row, "gb_seconds")));
	table_cell(t, format_size(json_number_value(json_object_get(row, "egress_bytes")), room));
	table_number(t, "%.0f", json_number_value(json_object_get(decisions, "allow")));
	table_number(t, "%.0f", json_number_value(json_object_get(decisions, "flag")));
	table_number(t, "%.0f", json_number_value(json_object_get(decisions, "block")));
	table_number(t, "%.0f", json_number_value(json_object_get(decisions, "error")));
	snprintf(price, sizeof(price), "%.4f %.16s", json_number_value(json_object_get(cost, "amount")),
		 json_text(cost, "currency"));
	table_cell(t, price);
}

static bool print_table(const struct usage *u, const json_t *items)
{
	static const char *const names[] = {"SANDBOXES", "WALL",    "CPU",    "GB-SECONDS", "EGRESS", "ALLOWED",
					    "FLAGGED",   "BLOCKED", "ERRORS", "COST",       NULL};
	const char *all[LIMIT_CLIENT_COLUMNS] = {u->by};
	struct table t;
	size_t i;
	const json_t *row;
	memcpy(all + (u->by ? 1 : 0), names, sizeof(names));
	table_begin(&t, all);
	json_array_foreach(items, i, row) add_row(&t, u, row);
	return table_end(&t);
}

static bool print_rows(const json_t *items)
{
	size_t i;
	const json_t *row;
	json_array_foreach(items, i, row) if (!json_print(row)) return false;
	return true;
}

int cmd_usage(int argc, char **argv)
{
	struct client c = {0};
	struct usage u = {0};
	struct target t;
	enum command_read read = read_command(argc, argv, &command_line, &c, &u);
	if (read != COMMAND_RUN)
		return command_exit(read);
	target_begin(&t, "/api/v1/usage");
	target_query(&t, "by", u.by);
	target_query(&t, "since", u.since[0] ? u.since : NULL);
	struct http_request r = api_request("GET", &t);
	json_t *answer = api_json(&c, &r);
	client_close(&c);
	const json_t *items = json_object_get(answer, "items");
	bool ok = answer && (c.json ? print_rows(items) : print_table(&u, items));
	json_decref(answer);
	return ok ? 0 : 1;
}
