/* cage show: all that is known of one sandbox. */
#include <stdio.h>

#include "core/base/say.h"
#include "orchestrator/client/api.h"
#include "orchestrator/client/format.h"
#include "orchestrator/client/shown.h"
#include "orchestrator/client/watch.h"

static const char help_text[] =
	"usage: cage show [options] ID\n"
	"\n"
	"Says all that is known of a sandbox: its state and how it came to it, its limits, and what\n"
	"it used.\n"
	"\n"
	"  --json               as the service says it, on one line\n" CLIENT_HELP;

static const struct option long_options[] = {CLIENT_OPTION_JSON, CLIENT_OPTIONS};

static const struct command_line command_line = {.name = "show",
						 .help = help_text,
						 .options = long_options,
						 .letters = "h",
						 .least = 1,
						 .most = 1,
						 .wanted = "ID"};

static void line(const char *name, const char *value)
{
	char safe[4 * LIMIT_CLIENT_CELL];
	if (value[0])
		printf("%-10s %s\n", name, shown(value, safe, sizeof(safe)));
}

/* ---- lists on one line ---- */

static struct text begin(char *room, size_t size)
{
	return text_in(room, size - 1);
}

static void end(const char *name, struct text *t)
{
	t->ptr[t->len] = '\0';
	line(name, t->ptr);
}

static void add_part(struct text *t, struct slice name, const char *sign, const char *value)
{
	if (t->len > 0)
		text_put_char(t, ' ');
	text_put(t, name);
	text_put(t, slice_str(sign));
	text_put(t, slice_str(value));
}

static void add(struct text *t, const char *name, const char *sign, const char *value)
{
	add_part(t, slice_str(name), sign, value);
}

static void show_words(const char *name, const json_t *list)
{
	char room[4 * LIMIT_CLIENT_CELL];
	struct text t = begin(room, sizeof(room));
	size_t i;
	const json_t *word;
	json_array_foreach(list, i, word) add(&t, json_is_string(word) ? json_string_value(word) : "?", "", "");
	end(name, &t);
}

static bool drop_end(struct slice *name, struct slice end)
{
	bool is_there = slice_ends(*name, end);
	if (is_there)
		*name = slice_head(*name, name->len - end.len);
	return is_there;
}

/* A name says its unit in the API; here the value says it. */
static struct slice plain_name(const char *key)
{
	struct slice name = slice_str(key);
	if (!drop_end(&name, SLICE("_bytes")))
		drop_end(&name, SLICE("_seconds"));
	return name;
}

static const char *number(const char *key, const json_t *value, char out[FORMAT_TEXT])
{
	struct slice name = slice_str(key);
	double n = json_number_value(value);
	if (slice_ends(name, SLICE("bytes")) || slice_eq(name, SLICE("memory")) || slice_eq(name, SLICE("disk")))
		return format_size(n, out);
	if (slice_ends(name, SLICE("seconds")))
		return format_seconds(n, out);
	snprintf(out, FORMAT_TEXT, "%g", n);
	return out;
}

/* NAME=VALUE of each member, numbers with their unit. */
static void show_members(const char *name, json_t *object)
{
	char room[4 * LIMIT_CLIENT_CELL], digits[FORMAT_TEXT];
	struct text t = begin(room, sizeof(room));
	const char *key;
	json_t *value;
	json_object_foreach(object, key, value)
	{
		if (json_is_number(value))
			add_part(&t, plain_name(key), "=", number(key, value, digits));
		else if (json_is_string(value))
			add(&t, key, "=", json_string_value(value));
	}
	end(name, &t);
}

/* ---- parts ---- */

static void show_state(const json_t *s)
{
	char room[2 * LIMIT_CLIENT_CELL], digits[FORMAT_TEXT];
	struct text t = begin(room, sizeof(room));
	const json_t *code = json_object_get(s, "exit_code");
	add(&t, json_text(s, "state"), ", ", json_text(s, "reason"));
	if (json_is_integer(code)) {
		snprintf(digits, sizeof(digits), "%lld", (long long)json_integer_value(code));
		add(&t, "(exit code", " ", digits);
		text_put_char(&t, ')');
	}
	end("state", &t);
	line("message", json_text(s, "message"));
}

static void show_published(const json_t *list)
{
	char digits[FORMAT_TEXT], room[LIMIT_CLIENT_CELL];
	size_t i;
	const json_t *one;
	json_array_foreach(list, i, one)
	{
		struct text t = begin(room, sizeof(room));
		snprintf(digits, sizeof(digits), "%lld", (long long)json_integer_value(json_object_get(one, "port")));
		add(&t, digits, " at ", json_text(one, "address"));
		end("port", &t);
	}
}

static void show_history(const json_t *list)
{
	char room[LIMIT_CLIENT_CELL];
	size_t i;
	const json_t *change;
	json_array_foreach(list, i, change)
	{
		struct text t = begin(room, sizeof(room));
		add(&t, json_text(change, "at"), "  ", json_text(change, "state"));
		add(&t, "", "(", json_text(change, "reason"));
		text_put_char(&t, ')');
		end(i == 0 ? "history" : "", &t);
	}
}

static void show(json_t *s)
{
	line("id", json_text(s, "id"));
	show_state(s);
	line("profile", json_text(s, "profile"));
	line("backend", json_text(s, "backend"));
	line("image", json_text(s, "image"));
	show_words("command", json_object_get(s, "command"));
	show_words("tools", json_object_get(s, "tools"));
	show_words("secrets", json_object_get(s, "secrets"));
	show_members("labels", json_object_get(s, "labels"));
	show_members("limits", json_object_get(s, "limits"));
	line("enforced", strcmp(json_text(s, "limits_enforced_by"), "rlimits") == 0
				 ? "by rlimits of each process, since no cgroup can be made here (docs/service.md)"
				 : "");
	show_members("policy", json_object_get(s, "policy"));
	show_published(json_object_get(s, "published"));
	line("keep", json_is_true(json_object_get(s, "keep")) ? "yes" : "");
	line("deadline", json_text(s, "deadline_at"));
	show_members("usage", json_object_get(s, "usage"));
	show_words("estimated", json_object_get(json_object_get(s, "usage"), "estimated"));
	show_words("unknown", json_object_get(json_object_get(s, "usage"), "unknown"));
	show_members("decisions", json_object_get(json_object_get(s, "usage"), "decisions"));
	show_members("cost", json_object_get(json_object_get(s, "usage"), "cost"));
	show_members("cleanup", json_object_get(s, "cleanup"));
	show_history(json_object_get(s, "history"));
}

int cmd_show(int argc, char **argv)
{
	struct client c = {0};
	enum command_read r = read_command(argc, argv, &command_line, &c, NULL);
	if (r != COMMAND_RUN)
		return command_exit(r);
	if (!id_is_good(c.operands[0]))
		return 2;
	json_t *sandbox = sandbox_get(&c, c.operands[0]);
	client_close(&c);
	if (!sandbox)
		return 1;
	bool ok = true;
	if (c.json)
		ok = json_print(sandbox);
	else
		show(sandbox);
	json_decref(sandbox);
	if (ok && fflush(stdout) != 0) {
		say_stdout();
		ok = false;
	}
	return ok ? 0 : 1;
}
