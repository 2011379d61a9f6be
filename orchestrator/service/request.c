/* Requests: what was asked, and bodies. A body is held in memory within a bound, or spooled if it is a file. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/escape.h"
#include "core/proc/sandbox_id.h"
#include "orchestrator/service/api.h"
#include "orchestrator/service/http_private.h"
#include "orchestrator/service/unique.h"

struct request *request_new(struct conn *c)
{
	struct http *h = c->http;
	struct request *r = h->n_requests < LIMIT_SERVE_REQUESTS ? calloc(1, sizeof(*r)) : NULL;
	if (!r)
		return NULL;
	*r = (struct request){.http = h, .service = h->service, .conn = c, .spool = -1, .next = h->requests};
	r->fields = evbuffer_new();
	if (!r->fields) {
		free(r);
		return NULL;
	}
	arena_init(&r->arena, LIMIT_SERVE_ARENA);
	unique_text("r-", r->id, sizeof(r->id));
	h->requests = r;
	h->n_requests++;
	c->request = r;
	return r;
}

void request_drop(struct request *r)
{
	struct http *h = r->http;
	struct request **at = &h->requests;
	while (*at && *at != r)
		at = &(*at)->next;
	if (*at)
		*at = r->next;
	h->n_requests--;
	if (r->body) {
		h->held -= evbuffer_get_length(r->body);
		evbuffer_free(r->body);
	}
	if (r->fields)
		evbuffer_free(r->fields);
	if (r->spool >= 0)
		close(r->spool);
	key_drop(&r->key);
	arena_free(&r->arena);
	free(r);
}

/* ---- what was asked ---- */

const char *request_field(struct request *r, const char *name)
{
	const struct field *f = message_field(&r->head, slice_str(name));
	char *text = f ? arena_alloc(&r->arena, f->value.len + 1) : NULL;
	if (text && f->value.len > 0)
		memcpy(text, f->value.ptr, f->value.len);
	return text;
}

const char *request_decode(struct request *r, struct slice s)
{
	char *text = arena_alloc(&r->arena, s.len + 1);
	size_t n = 0;
	for (size_t i = 0; i < s.len && text; i++) {
		int value = escape_percent_value(s, i);
		if (value == 0)
			return NULL;
		text[n++] = value > 0 ? (char)value : s.ptr[i];
		i += value > 0 ? 2 : 0;
	}
	return text;
}

const char *query_value(struct request *r, const char *name)
{
	struct slice rest = r->query;
	while (rest.len > 0) {
		struct slice value = slice_cut(&rest, '&'), key = slice_cut(&value, '=');
		const char *text = slice_eq(key, slice_str(name)) ? request_decode(r, value) : NULL;
		if (text || slice_eq(key, slice_str(name)))
			return text ? text : ""; /* what can't be read is there, and no good value of anything */
	}
	return NULL;
}

/* ---- the beginning ---- */

static void choose_id(struct request *r)
{
	const char *id = request_field(r, "x-request-id");
	if (id && sandbox_id_is_good(slice_str(id)))
		snprintf(r->id, sizeof(r->id), "%s", id);
}

static void open_spool(struct request *r)
{
	r->spool = service_spool(r->service);
	if (r->spool < 0)
		r->refused = errno == ENOSPC ? 507 : 503;
}

void request_begin(struct request *r)
{
	api_route(r);
	size_t most = api_takes_file(r) ? LIMIT_SERVE_FILE : LIMIT_SERVE_BODY;
	choose_id(r);
	r->refused = access_check(r);
	if (!r->refused && r->head.has_content_length && r->head.content_length > most)
		r->refused = 413;
	if (!r->refused && api_takes_file(r))
		open_spool(r);
}

/* ---- bodies ---- */

static void hold(struct request *r, struct slice data)
{
	if (r->length + data.len > LIMIT_SERVE_BODY) {
		r->refused = 413;
		return;
	}
	if (!r->body)
		r->body = evbuffer_new();
	if (!r->body || r->http->held + data.len > LIMIT_SERVE_HELD || evbuffer_add(r->body, data.ptr, data.len) != 0) {
		r->refused = 503;
		return;
	}
	r->http->held += data.len;
}

static void spool(struct request *r, struct slice data)
{
	if (r->length + data.len > LIMIT_SERVE_FILE)
		r->refused = 413;
	else if (write(r->spool, data.ptr, data.len) != (ssize_t)data.len)
		r->refused = 507;
}

void request_take(struct request *r, struct slice data)
{
	if (r->spool >= 0)
		spool(r, data);
	else
		hold(r, data);
	r->length += data.len;
}

static void refuse(struct request *r)
{
	switch (r->refused) {
	case 401:
		add_header(r, "WWW-Authenticate", "Bearer");
		answer_problem(r, 401, "%s: Authorization: Bearer TOKEN",
			       request_field(r, "authorization") ? "the token is wrong" : "a token is needed");
		return;
	case 403:
		answer_problem(r, 403, "this socket is for the user of the service");
		return;
	case 413:
		answer_problem(r, 413, "the body is too large");
		return;
	case 507:
		answer_problem(r, 507, "the disk is full");
		return;
	default:
		answer_problem(r, 503, "there is no room for the body now");
		return;
	}
}

void request_handle(struct request *r)
{
	r->state = REQUEST_HANDLING;
	if (r->refused)
		refuse(r);
	else if (r->service->stopping)
		answer_problem(r, 503, "the service is stopping");
	else
		api_handle(r);
}
