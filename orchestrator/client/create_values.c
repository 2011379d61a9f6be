/* Values of the options of cage create. What the service checks anyway is left to it; here is only what has another form on a
 * command line than in the API. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/say.h"
#include "core/base/units.h"
#include "orchestrator/client/create.h"
#include "orchestrator/client/file_text.h"

static bool refuse(const char *option, const char *value, const char *expected)
{
	say("%s %s: expected %s", option, value, expected);
	return false;
}

json_t *create_member(json_t *body, const char *key, json_t *made)
{
	json_t *there = json_object_get(body, key);
	if (there) {
		json_decref(made);
		return there;
	}
	return json_object_set_new(body, key, made) == 0 ? made : NULL;
}

/* false: no memory, or text that is no UTF-8. */
static bool put(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value) == 0;
}

bool create_put_word(json_t *body, const char *key, const char *word)
{
	json_t *list = create_member(body, key, json_array());
	if (json_array_append_new(list, json_string(word)) == 0)
		return true;
	say("%s: expected text (UTF-8)", key);
	return false;
}

/* NAME=VALUE into the object KEY. */
static bool put_pair(json_t *body, const char *key, struct slice name, const char *value)
{
	char copy[512];
	if (name.len >= sizeof(copy))
		return false;
	memcpy(copy, name.ptr, name.len);
	copy[name.len] = '\0';
	return put(create_member(body, key, json_object()), copy, json_string(value));
}

/* ---- limits ---- */

enum unit { UNIT_NUMBER, UNIT_COUNT, UNIT_SIZE, UNIT_TIME };

static const struct {
	struct slice name;
	const char *key;
	enum unit unit;
} limits[] = {{WORD("cpu"), "cpu", UNIT_NUMBER},          {WORD("memory"), "memory", UNIT_SIZE},
	      {WORD("pids"), "pids", UNIT_COUNT},         {WORD("disk"), "disk", UNIT_SIZE},
	      {WORD("wall"), "wall_seconds", UNIT_TIME},  {WORD("egress"), "egress_bytes", UNIT_SIZE},
	      {WORD("output"), "output_bytes", UNIT_SIZE}};

/* Processors: "2" or "0.5". */
static json_t *read_number(struct slice text)
{
	char digits[32], *end;
	struct slice rest = text, whole = slice_cut(&rest, '.');
	uint64_t n;
	if (text.len >= sizeof(digits) || !slice_to_u64(whole, 1000000, &n) ||
	    (rest.len > 0 && !slice_to_u64(rest, 1000000000, &n)))
		return NULL;
	snprintf(digits, sizeof(digits), "%.*s", SLICE_FMT(text));
	double value = strtod(digits, &end);
	return *end ? NULL : json_real(value);
}

static json_t *read_limit(struct slice text, enum unit unit)
{
	uint64_t n = 0;
	switch (unit) {
	case UNIT_NUMBER:
		return read_number(text);
	case UNIT_COUNT:
		return slice_to_u64(text, INT64_MAX, &n) ? json_integer((json_int_t)n) : NULL;
	case UNIT_SIZE:
		return units_size(text, &n) && n <= INT64_MAX ? json_integer((json_int_t)n) : NULL;
	case UNIT_TIME:
		return units_duration(text, LIMIT_CLIENT_LIFE_S, &n) ? json_integer((json_int_t)n) : NULL;
	}
	return NULL;
}

/* What was written without one is said at once, not among all that there is. */
static const char *missing_unit(struct slice pair)
{
	struct slice name = slice_cut(&pair, '=');
	uint64_t n;
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
		if (slice_eq(name, limits[i].name) && limits[i].unit == UNIT_TIME && slice_to_u64(pair, UINT64_MAX, &n))
			return "a time with its unit, such as 10s or 10m";
	return NULL;
}

static bool put_limit(json_t *body, struct slice pair)
{
	struct slice name = slice_cut(&pair, '=');
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		json_t *value = slice_eq(name, limits[i].name) ? read_limit(pair, limits[i].unit) : NULL;
		if (value)
			return put(create_member(body, "limits", json_object()), limits[i].key, value);
	}
	return false;
}

bool create_put_limits(json_t *body, const char *text)
{
	struct slice rest = slice_str(text);
	bool ends_so = slice_ends(rest, SLICE(","));
	do {
		struct slice pair = slice_cut(&rest, ',');
		const char *unit = missing_unit(pair);
		if (ends_so || !put_limit(body, pair))
			return refuse(
				"--limit", text,
				unit ? unit
				     : "cpu=N, memory=SIZE, pids=N, disk=SIZE, wall=TIME, egress=SIZE, output=SIZE, "
				       "with commas "
				       "between them; a SIZE is such as 512MiB, a TIME such as 10m");
	} while (rest.len > 0);
	return true;
}

bool create_put_lifetime(json_t *body, const char *text)
{
	uint64_t n;
	if (!units_duration(slice_str(text), LIMIT_CLIENT_LIFE_S, &n))
		return refuse("--lifetime", text, "a time with its unit, such as 30s, 10m, 24h or 7d, at most 30d");
	return put(body, "lifetime_seconds", json_integer((json_int_t)n));
}

/* ---- names and values ---- */

/* NAME alone is a variable of ours. */
bool create_put_env(json_t *body, const char *text)
{
	const char *eq = strchr(text, '='), *given = eq ? eq + 1 : getenv(text);
	struct slice name = slice_of(text, eq ? (size_t)(eq - text) : strlen(text));
	if (!given || name.len == 0)
		return refuse("--env", text, "NAME=VALUE, or the NAME of a variable that is set");
	return put_pair(body, "env", name, given) || refuse("--env", text, "text (UTF-8)");
}

bool create_put_label(json_t *body, const char *text)
{
	const char *eq = strchr(text, '=');
	if (!eq || eq == text || !put_pair(body, "labels", slice_of(text, (size_t)(eq - text)), eq + 1))
		return refuse("--label", text, "NAME=VALUE");
	return true;
}

bool create_put_publish(json_t *body, const char *text)
{
	struct slice rest = slice_str(text), inside = slice_cut(&rest, ':');
	uint64_t port, host = 0;
	if (!slice_to_u64(inside, UINT16_MAX, &port) || port == 0 ||
	    (strchr(text, ':') && !slice_to_u64(rest, UINT16_MAX, &host)))
		return refuse("--publish", text, "PORT, or PORT:PORT of this machine");
	json_t *one = json_pack("{s:I, s:I}", "port", (json_int_t)port, "host_port", (json_int_t)host);
	return json_array_append_new(create_member(body, "publish", json_array()), one) == 0;
}

/* ---- files ---- */

bool create_put_file(json_t *body, const char *text)
{
	const char *eq = strchr(text, '=');
	size_t len;
	if (!eq || eq == text || eq[1] == '\0')
		return refuse("--file", text,
			      "PATH=FILE: a path in the workspace, and a file of this machine or - for stdin");
	char *bytes = file_text("--file", eq + 1, &len);
	if (!bytes)
		return false;
	json_t *value = json_stringn(bytes, len);
	free(bytes);
	if (!value)
		return refuse("--file", eq + 1, "text (UTF-8); cage cp copies any other file into a sandbox that runs");
	char *path = strndup(text, (size_t)(eq - text));
	bool ok = path && put(create_member(body, "files", json_object()), path, value);
	free(path);
	return ok || refuse("--file", text, "a path in text (UTF-8)");
}

static bool is_file_name(const char *text)
{
	struct slice s = slice_str(text);
	return strchr(text, '/') || slice_ends(s, SLICE(".yaml")) || slice_ends(s, SLICE(".yml")) ||
	       strcmp(text, "-") == 0;
}

bool create_put_policy(json_t *body, const char *text)
{
	size_t len;
	if (!is_file_name(text))
		return put(body, "policy", json_pack("{s:s}", "name", text)) ||
		       refuse("--policy", text, "FILE or NAME");
	char *bytes = file_text("--policy", text, &len);
	if (!bytes)
		return false;
	json_t *inline_text = json_stringn(bytes, len);
	free(bytes);
	if (!inline_text)
		return refuse("--policy", text, "text (UTF-8)");
	return put(body, "policy", json_pack("{s:o}", "inline", inline_text));
}
