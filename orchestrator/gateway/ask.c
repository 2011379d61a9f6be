/* Path, query and body are taken apart. */
#include "orchestrator/gateway/ask.h"

#include <stdio.h>
#include <string.h>

#include "core/proc/sandbox_id.h"
#include "orchestrator/gateway/log.h"

#define SANDBOXES "/v1/sandboxes"

static const struct ask_fault fine = {0, NULL};

static struct ask_fault fault(int status, const char *why)
{
	return (struct ask_fault){status, why};
}

bool box_id_is_good(struct slice id)
{
	return sandbox_id_is_good(id) && id.ptr[0] != '.';
}

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

static struct ask_fault read_put(const struct request *r, struct ask *a)
{
	a->body = r->len > 0 ? json_loadb(r->body, r->len, JSON_REJECT_DUPLICATES, NULL) : NULL;
	bool is_good = json_is_object(a->body);
	const char *owner = member(a->body, "owner", &is_good);
	a->token = member(a->body, "token", &is_good);
	a->policy = member(a->body, "policy", &is_good);
	const size_t known = (a->token ? 1u : 0u) + (a->policy ? 1u : 0u) + (owner ? 1u : 0u);
	if (!is_good || json_object_size(a->body) != known)
		return fault(400, "expected an object with token, and maybe policy and owner, which are text");
	if (!is_plain(a->token, LIMIT_SANDBOX_TOKEN_MIN, LIMIT_SANDBOX_TOKEN))
		return fault(400, "token: expected 16 to 256 of letters, digits, '-', '_' and '.'");
	if (owner && !box_id_is_good(slice_str(owner)))
		return fault(400,
			     "owner: expected 1 to 64 of letters, digits, '-', '_' and '.', which is not the first");
	if (a->policy && strlen(a->policy) > LIMIT_GATEWAY_POLICY)
		return fault(400, "policy: it is too long");
	snprintf(a->owner, sizeof(a->owner), "%s", owner ? owner : "");
	return fine;
}

/* ---- queries ---- */

/* "owner=NAME", or nothing. */
static struct ask_fault read_owner(struct slice query, struct ask *a)
{
	struct slice value = query, key = slice_cut(&value, '=');
	if (query.len > 0 && !(slice_eq(key, SLICE("owner")) && box_id_is_good(value)))
		return fault(400, "expected owner=NAME, or nothing");
	snprintf(a->owner, sizeof(a->owner), "%.*s", SLICE_FMT(value));
	return fine;
}

/* "from=INSTANCE-PLACE", or nothing. */
static struct ask_fault read_cursor(struct slice query, struct ask *a)
{
	struct slice place = query, key = slice_cut(&place, '=');
	if (query.len == 0)
		return fine;
	a->instance = slice_cut(&place, '-');
	if (!slice_eq(key, SLICE("from")) || a->instance.len != LOG_INSTANCE ||
	    !slice_to_u64(place, UINT64_MAX, &a->at))
		return fault(400, "expected from=CURSOR, or nothing");
	return fine;
}

/* ---- routes ---- */

static bool is_method(const struct request *r, const char *method)
{
	return slice_eq(r->head.method, slice_str(method));
}

static struct ask_fault read_one(const struct request *r, struct slice rest, struct slice query, struct ask *a)
{
	struct slice below = rest, id = slice_cut(&below, '/');
	const bool is_log = slice_eq(below, SLICE("log")), is_whole = id.len == rest.len;
	if (!box_id_is_good(id) || !(is_log || is_whole))
		return fault(404, "there is nothing of that name");
	memcpy(a->id, id.ptr, id.len);
	if (is_log && is_method(r, "GET")) {
		a->kind = ASK_LOG;
		return read_cursor(query, a);
	}
	if (is_whole && is_method(r, "PUT")) {
		a->kind = ASK_PUT;
		return read_put(r, a);
	}
	if (is_whole && is_method(r, "DELETE")) {
		a->kind = ASK_DELETE;
		return read_owner(query, a);
	}
	return fault(405, "that can't be done with it");
}

struct ask_fault ask_read(const struct request *r, bool is_known, struct ask *out)
{
	struct slice query = r->head.target, path = slice_cut(&query, '?');
	*out = (struct ask){.kind = ASK_HEALTH};
	if (!is_known || slice_eq(path, SLICE("/v1/healthz")))
		return fine;
	if (slice_eq(path, SLICE(SANDBOXES)) && is_method(r, "GET")) {
		out->kind = ASK_LIST;
		return read_owner(query, out);
	}
	if (slice_starts(path, SLICE(SANDBOXES "/")))
		return read_one(r, slice_from(path, sizeof(SANDBOXES)), query, out);
	return fault(404, "there is nothing of that name");
}

void ask_free(struct ask *a)
{
	json_decref(a->body);
	a->body = NULL;
}
