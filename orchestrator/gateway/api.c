/* What is asked for, and what of it is answered at once. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/gateway/boxes.h"
#include "orchestrator/gateway/intake.h"

#define SANDBOXES "/v1/sandboxes"

/* ---- what a PUT says ---- */

/* What stands in a URL as it is. */
static bool is_plain(const char *text, size_t least, size_t most)
{
	const size_t n = text ? strlen(text) : 0;
	return n >= least && n <= most &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == n;
}

static const char *member(const json_t *body, const char *name, bool *is_good)
{
	const json_t *value = json_object_get(body, name);
	const char *text = json_string_value(value);
	*is_good = *is_good && (!value || (text && strlen(text) == json_string_length(value)));
	return text;
}

/* NULL: all is good, and the change has it. */
static const char *take_members(struct change *c, const json_t *body)
{
	bool is_good = json_is_object(body);
	const char *token = member(body, "token", &is_good), *policy = member(body, "policy", &is_good),
		   *owner = member(body, "owner", &is_good);
	const size_t known = (token ? 1u : 0u) + (policy ? 1u : 0u) + (owner ? 1u : 0u);
	if (!is_good || json_object_size(body) != known)
		return "expected an object with token, and maybe policy and owner, which are text";
	if (!is_plain(token, LIMIT_SANDBOX_TOKEN_MIN, LIMIT_SANDBOX_TOKEN))
		return "token: expected 16 to 256 of letters, digits, '-', '_' and '.'";
	if (owner && !is_plain(owner, 1, LIMIT_SANDBOX))
		return "owner: expected 1 to 64 of letters, digits, '-', '_' and '.'";
	if (policy && strlen(policy) > LIMIT_GATEWAY_POLICY)
		return "policy: it is too long";
	c->token = strdup(token);
	c->policy = policy ? strdup(policy) : NULL;
	snprintf(c->owner, sizeof(c->owner), "%s", owner ? owner : "");
	return c->token && (c->policy || !policy) ? NULL : "no memory";
}

static void put(struct conn *c, struct slice id)
{
	json_t *body = c->len > 0 ? json_loadb(c->body, c->len, JSON_REJECT_DUPLICATES, NULL) : NULL;
	struct change *change = change_new(conn_gateway(c), CHANGE_PUT, id);
	const char *why = change ? take_members(change, body) : "no memory";
	json_decref(body);
	if (!why) {
		conn_await(c, change);
		return;
	}
	if (change)
		change_free(change);
	conn_problem(c, 400, why);
}

/* "owner=NAME", or "" for nobody's. False after it was answered. */
static bool read_owner(struct conn *c, struct slice query, char out[LIMIT_SANDBOX + 1])
{
	struct slice value = query, key = slice_cut(&value, '=');
	const bool is_good = query.len == 0 || (slice_eq(key, SLICE("owner")) && box_id_is_good(value));
	if (is_good)
		snprintf(out, LIMIT_SANDBOX + 1, "%.*s", SLICE_FMT(value));
	else
		conn_problem(c, 400, "expected owner=NAME, or nothing");
	return is_good;
}

static void delete (struct conn *c, struct slice id, struct slice query)
{
	char owner[LIMIT_SANDBOX + 1];
	if (!read_owner(c, query, owner))
		return;
	struct change *change = change_new(conn_gateway(c), CHANGE_DELETE, id);
	if (!change) {
		conn_problem(c, 503, "no memory");
		return;
	}
	snprintf(change->owner, sizeof(change->owner), "%s", owner);
	conn_await(c, change);
}

/* ---- what is told ---- */

static void list(struct conn *c, struct slice query)
{
	char owner[LIMIT_SANDBOX + 1];
	if (!read_owner(c, query, owner))
		return;
	json_t *all = boxes_list(conn_gateway(c), query.len > 0 ? owner : NULL);
	if (all)
		conn_answer_json(c, 200, "application/json", json_pack("{s:o}", "sandboxes", all));
	else
		conn_problem(c, 503, "the sandboxes can't be listed now");
}

/* "INSTANCE-PLACE"; a place of another instance is none of ours: all that is there is told. */
static bool read_cursor(const struct gateway_log *l, struct slice query, uint64_t *at)
{
	struct slice value = query, key = slice_cut(&value, '=');
	*at = 0;
	if (query.len == 0)
		return true;
	struct slice place = value, instance = slice_cut(&place, '-');
	if (!slice_eq(key, SLICE("from")) || instance.len != LOG_INSTANCE || !slice_to_u64(place, UINT64_MAX, at))
		return false;
	if (!slice_eq(instance, slice_str(l->instance)))
		*at = 0;
	return true;
}

static void tell_log(struct conn *c, struct slice id, struct slice query)
{
	struct gateway_log *l = &conn_gateway(c)->log;
	char name[LIMIT_SANDBOX + 1] = "", fields[128], next[LOG_CURSOR];
	uint64_t at;
	memcpy(name, id.ptr, id.len);
	if (!box_is_there(conn_gateway(c), name)) {
		conn_problem(c, 404, "there is no such sandbox");
		return;
	}
	char *room = malloc(LIMIT_GATEWAY_LOG_ANSWER);
	if (!room || !read_cursor(l, query, &at)) {
		free(room);
		conn_problem(c, 400, "expected from=CURSOR, or nothing");
		return;
	}
	struct text lines = text_in(room, LIMIT_GATEWAY_LOG_ANSWER);
	const struct log_told told = log_lines(l, id, &at, &lines);
	log_cursor(l, at, next);
	snprintf(fields, sizeof(fields), "Cage-Log-Next: %s\r\n%s%s", next,
		 told.is_lost && query.len > 0 ? "Cage-Log-Lost: yes\r\n" : "",
		 told.has_more ? "Cage-Log-More: yes\r\n" : "");
	conn_answer(c, 200, "application/x-ndjson", fields, text_slice(&lines));
	free(room);
}

/* ---- routes ---- */

static bool is_method(const struct conn *c, const char *method)
{
	return slice_eq(c->head.method, slice_str(method));
}

static void handle_one(struct conn *c, struct slice rest, struct slice query)
{
	struct slice below = rest, id = slice_cut(&below, '/');
	const bool is_log = slice_eq(below, SLICE("log")), is_whole = id.len == rest.len;
	if (!box_id_is_good(id) || !(is_log || is_whole))
		conn_problem(c, 404, "there is nothing of that name");
	else if (is_log && is_method(c, "GET"))
		tell_log(c, id, query);
	else if (is_whole && is_method(c, "PUT"))
		put(c, id);
	else if (is_whole && is_method(c, "DELETE"))
		delete (c, id, query);
	else
		conn_problem(c, 405, "that can't be done with it");
}

void api_handle(struct conn *c)
{
	struct slice query = c->head.target, path = slice_cut(&query, '?');
	if (!c->is_known || slice_eq(path, SLICE("/v1/healthz")))
		conn_answer_json(c, 200, "application/json", json_pack("{s:s}", "status", "ok"));
	else if (slice_eq(path, SLICE(SANDBOXES)) && is_method(c, "GET"))
		list(c, query);
	else if (slice_starts(path, SLICE(SANDBOXES "/")))
		handle_one(c, slice_from(path, sizeof(SANDBOXES)), query);
	else
		conn_problem(c, 404, "there is nothing of that name");
}
