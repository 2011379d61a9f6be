/* Requests to the service and what comes back: an object, or a body that the command reads itself. */
#include "orchestrator/client/api.h"

#include <openssl/rand.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/base/escape.h"
#include "core/base/say.h"

/* ---- targets ---- */

static void put_escaped(struct text *t, struct slice s, char kept)
{
	char out[ESCAPE_PERCENT];
	for (size_t i = 0; i < s.len; i++) {
		if (kept && s.ptr[i] == kept)
			text_put_char(t, kept);
		else
			text_put(t, slice_of(out, escape_percent((unsigned char)s.ptr[i], out)));
	}
}

void target_begin(struct target *t, const char *path)
{
	t->text = text_in(t->bytes, sizeof(t->bytes));
	t->has_query = false;
	text_put(&t->text, slice_str(path));
}

void target_sandbox(struct target *t, const char *id, const char *rest)
{
	target_begin(t, "/api/v1/sandboxes");
	if (id) {
		text_put_char(&t->text, '/');
		put_escaped(&t->text, slice_str(id), '\0');
	}
	if (rest) {
		text_put_char(&t->text, '/');
		text_put(&t->text, slice_str(rest));
	}
}

void target_file(struct target *t, const char *path)
{
	put_escaped(&t->text, slice_str(path), '/');
}

void target_query(struct target *t, const char *name, const char *value)
{
	if (!value)
		return;
	text_put_char(&t->text, t->has_query ? '&' : '?');
	t->has_query = true;
	text_put(&t->text, slice_str(name));
	text_put_char(&t->text, '=');
	put_escaped(&t->text, slice_str(value), '\0');
}

struct http_request api_request(const char *method, const struct target *t)
{
	/* too long is no target at all, which is refused */
	return (struct http_request){
		.method = method, .target = text_ok(&t->text) ? text_slice(&t->text) : SLICE_NONE, .fd = -1};
}

/* ---- answers ---- */

bool api_open(struct client *c, const struct http_request *r)
{
	if (r->target.len == 0) {
		say("what was asked for has too long a name");
		return false;
	}
	enum http_result got = http_ask(&c->http, &c->place, r);
	if (got == HTTP_BROKEN && r->key &&
	    !r->from_file) /* the key makes it the same request, whether or not it was heard */
		got = http_ask(&c->http, &c->place, r);
	if (got != HTTP_ANSWERED)
		return false;
	if (c->http.head.status < 300)
		return true;
	problem_say(c);
	return false;
}

/* Room for n more bytes. */
static bool grow(char **buf, size_t *room, size_t len, size_t n)
{
	size_t wanted = *room ? *room : KIB(16);
	while (wanted < len + n)
		wanted *= 2;
	char *more = wanted > *room ? realloc(*buf, wanted) : *buf;
	if (more) {
		*buf = more;
		*room = wanted;
	}
	return more != NULL;
}

char *api_read_all(struct client *c, size_t *len)
{
	char *buf = NULL;
	size_t room = 0;
	struct slice piece;
	enum cage_status st;
	*len = 0;
	while ((st = http_read(&c->http, LIMIT_CLIENT_IDLE_MS, &piece)) == CAGE_OK) {
		if (piece.len > LIMIT_CLIENT_JSON - *len || !grow(&buf, &room, *len, piece.len)) {
			say("the service's answer has more than can be taken");
			break;
		}
		memcpy(buf + *len, piece.ptr, piece.len);
		*len += piece.len;
	}
	if (st == CAGE_EOF)
		return buf ? buf : calloc(1, 1);
	free(buf);
	return NULL;
}

json_t *api_json(struct client *c, const struct http_request *r)
{
	json_error_t error;
	size_t len;
	char *text = api_open(c, r) ? api_read_all(c, &len) : NULL;
	if (!text)
		return NULL;
	json_t *value = json_loadb(text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	free(text);
	if (json_is_object(value))
		return value;
	json_decref(value);
	say("the service at %s: what it says is not what was asked for: is that cage serve?", c->place.name);
	return NULL;
}

json_t *api_post(struct client *c, const struct target *t, const json_t *body, const char *key, unsigned answer_ms)
{
	char *text = json_dumps(body, JSON_COMPACT);
	struct http_request r = api_request("POST", t);
	if (!text) {
		say("no memory");
		return NULL;
	}
	r.type = "application/json";
	r.body = slice_str(text);
	r.key = key;
	r.answer_ms = answer_ms;
	json_t *answer = api_json(c, &r);
	free(text);
	return answer;
}

/* ---- made ---- */

#define KEY 16 /* random bytes of an idempotency key */

static bool make_key(char out[2 * KEY + 1])
{
	unsigned char bytes[KEY];
	struct text t = text_in(out, 2 * KEY);
	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return false;
	text_put_hex(&t, bytes, sizeof(bytes));
	out[2 * KEY] = '\0';
	return true;
}

json_t *api_make(struct client *c, const struct target *t, const json_t *body)
{
	char key[2 * KEY + 1];
	if (!make_key(key)) {
		say("no random bytes are to be had");
		return NULL;
	}
	json_t *made = api_post(c, t, body, key, 0);
	if (!made || id_is_good(json_text(made, "id")))
		return made;
	json_decref(made);
	return NULL;
}
