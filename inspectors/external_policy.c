/* The section `inspectors.external`: which program or socket, and how long to wait for it. */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "inspectors/external_private.h"

const struct external_conf external_defaults = {.timeout_us = LIMIT_EXTERNAL_MS * 1000, .body = true};

/* With a NUL behind it, for as long as the policy. */
static char *keep_string(struct loader *l, struct slice s)
{
	char *copy = load_keep(l, s.len + 1, 1);
	if (copy && s.len > 0)
		memcpy(copy, s.ptr, s.len);
	return copy;
}

/* A program that can't be run is better told of now than by refusing everything. */
static void check_program(struct loader *l, const struct node *item)
{
	const char *path = file_beside_policy(l, item->text);
	struct stat st;
	if (!path)
		return;
	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		node_error(l->errs, item, "can't run %s: it is not a file", quote(item->text).text);
	else if (access(path, X_OK) != 0)
		node_error(l->errs, item, "can't run %s: %s", quote(item->text).text, strerror(errno));
}

/* Can there be a socket at that path, now or later? NULL, or what is in the way. */
static const char *socket_fault(struct loader *l, const char *path)
{
	struct stat st;
	if (stat(path, &st) == 0)
		return S_ISSOCK(st.st_mode) ? NULL : "it is not a socket";
	if (errno != ENOENT)
		return strerror(errno);
	struct slice whole = slice_str(path);
	size_t slash = slice_rfind(whole, '/');
	size_t n = slash == whole.len ? 0 : slash + 1;
	char *directory = load_scratch(l, n + 2, 1);
	if (!directory)
		return NULL;
	memcpy(directory, path, n);
	directory[n] = '.';
	return stat(directory, &st) == 0 ? NULL : strerror(errno);
}

static void read_command(struct loader *l, const struct node *value, void *out)
{
	struct external_conf *conf = out;
	struct slice policy = slice_str(l->path);
	size_t slash = slice_rfind(policy, '/');
	if (!list_check(l, value, "a program and its arguments"))
		return;
	char **command = load_keep(l, value->count + 1, sizeof(*command));
	for (const struct node *item = value->first; item && command; item = item->next) {
		if (!text_check(l, item, "a program or an argument"))
			continue;
		command[item->index] = keep_string(l, item->text);
		if (item->index == 0)
			check_program(l, item);
	}
	conf->command = command;
	conf->directory = keep_string(l, slash == policy.len ? SLICE(".") : slice_head(policy, slash + 1));
}

static void read_socket(struct loader *l, const struct node *value, void *out)
{
	struct external_conf *conf = out;
	if (!text_check(l, value, "the path of a socket"))
		return;
	const char *path = file_beside_policy(l, value->text);
	if (!path)
		return;
	const char *fault = socket_fault(l, path);
	if (strlen(path) > LIMIT_EXTERNAL_SOCKET)
		node_error(l->errs, value, "expected a path of at most %d bytes, got %zu", LIMIT_EXTERNAL_SOCKET,
			   strlen(path));
	else if (fault)
		node_error(l->errs, value, "can't connect to %s: %s", quote(value->text).text, fault);
	conf->socket = keep_string(l, slice_str(path));
}

static bool timeout_parse(struct slice text, uint64_t *us)
{
	bool is_ms = slice_ends(text, SLICE("ms"));
	struct slice digits = slice_head(text, text.len - (is_ms ? 2 : 1));
	uint64_t unit = is_ms ? 1000 : 1000000, n;
	if (!slice_ends(text, SLICE("s")) || !slice_to_u64(digits, LIMIT_EXTERNAL_MAX_MS * 1000 / unit, &n) || n == 0)
		return false;
	*us = n * unit;
	return true;
}

static void read_timeout(struct loader *l, const struct node *value, void *out)
{
	struct external_conf *conf = out;
	if (value->kind != NODE_TEXT || !timeout_parse(value->text, &conf->timeout_us))
		node_error(l->errs, value, "expected a time such as 500ms or 2s, at most %d s, got %s",
			   LIMIT_EXTERNAL_MAX_MS / 1000, node_describe(value).text);
}

static void read_body(struct loader *l, const struct node *value, void *out)
{
	static const struct slice words[] = {WORD("false"), WORD("true")};
	struct external_conf *conf = out;
	size_t i;
	if (choice_read(l, value, words, 2, &i))
		conf->body = i == 1;
}

const struct key external_keys[N_EXTERNAL_KEYS] = {
	{WORD("command"), read_command, KEY_OPTIONAL},
	{WORD("socket"), read_socket, KEY_OPTIONAL},
	{WORD("timeout"), read_timeout, KEY_OPTIONAL},
	{WORD("body"), read_body, KEY_OPTIONAL},
};

void external_check(struct loader *l, const struct node *section, void *out)
{
	(void)out;
	const struct node *action = node_get(section, SLICE("action"));
	bool has_command = node_get(section, SLICE("command")), has_socket = node_get(section, SLICE("socket"));
	bool is_off = action && slice_eq(action->text, SLICE("off"));
	if (has_command && has_socket)
		node_error(l->errs, section, "expected command or socket, got both");
	else if (!has_command && !has_socket && !is_off)
		node_error(l->errs, section, "expected command or socket, got neither");
}
