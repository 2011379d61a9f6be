/* Head, then body. request_enter() alone changes the state. */
#include "orchestrator/gateway/request.h"

#include <stdlib.h>
#include <string.h>

#include "core/base/limits.h"
#include "core/base/wipe.h"

static void request_enter(struct request *r, enum request_state next)
{
	if (!request_may_follow(r->state, next))
		abort();
	r->state = next;
}

static void refuse(struct request *r, int status, const char *why)
{
	r->status = status;
	r->why = why;
	request_enter(r, REQUEST_BAD);
}

void request_init(struct request *r)
{
	*r = (struct request){.state = REQUEST_HEAD, .gate = {.kind = H1_GATE_REQUEST}};
	arena_init(&r->arena, LIMIT_GATEWAY_ARENA);
}

void request_free(struct request *r)
{
	arena_cleanse(&r->arena);
	arena_free(&r->arena);
	wipe_free(r->body);
	r->body = NULL;
}

/* ---- the head ---- */

static void parse_head(struct request *r, struct slice head)
{
	struct h1_error why = {0};
	const struct slice copy = arena_dup(&r->arena, head);
	if (!copy.ptr || h1_parse_request(copy, &r->arena, &r->head, &why) != CAGE_OK)
		refuse(r, 400, why.what ? why.what : "the head can't be read");
	else
		request_enter(r, REQUEST_HEADED);
}

static size_t take_head(struct request *r, struct slice input)
{
	size_t len = 0;
	const enum cage_status st = input.len > 0 ? h1_gate(&r->gate, input, &len) : CAGE_AGAIN;
	if (st == CAGE_OK && len <= LIMIT_GATEWAY_HEAD) {
		parse_head(r, slice_head(input, len));
		return len;
	}
	if (st == CAGE_AGAIN && input.len <= LIMIT_GATEWAY_HEAD)
		return 0;
	if (st == CAGE_EPROTO)
		refuse(r, 400, "the head is malformed");
	else
		refuse(r, 431, "the head is too large");
	return 0;
}

/* ---- the body ---- */

void request_go_on(struct request *r)
{
	request_enter(r, REQUEST_BODY);
	if (r->head.has_content_length && r->head.content_length > LIMIT_GATEWAY_BODY)
		refuse(r, 413, "the body is too large");
	else
		h1_body_init(&r->framing, &r->head);
}

static bool keep(struct request *r, struct slice data)
{
	if (!r->body)
		r->body = calloc(1, LIMIT_GATEWAY_BODY + 1);
	if (!r->body || data.len > LIMIT_GATEWAY_BODY - r->len)
		return false;
	memcpy(r->body + r->len, data.ptr, data.len);
	r->len += data.len;
	return true;
}

static size_t take_body(struct request *r, struct slice input)
{
	size_t used = 0;
	struct slice data = SLICE_NONE;
	const enum cage_status st =
		h1_body_is_done(&r->framing) ? CAGE_EOF : h1_body_feed(&r->framing, input, &r->arena, &used, &data);
	if (st != CAGE_OK && st != CAGE_AGAIN && st != CAGE_EOF)
		refuse(r, 400, "the body is malformed");
	else if (data.len > 0 && !keep(r, data))
		refuse(r, 413, "the body is too large");
	else if (st == CAGE_EOF)
		request_enter(r, REQUEST_WHOLE);
	return used;
}

size_t request_take(struct request *r, struct slice input)
{
	switch (r->state) {
	case REQUEST_HEAD:
		return take_head(r, input);
	case REQUEST_BODY:
		return take_body(r, input);
	case REQUEST_HEADED:
	case REQUEST_WHOLE:
	case REQUEST_BAD:
	case REQUEST_STATES:
		break;
	}
	return 0;
}
