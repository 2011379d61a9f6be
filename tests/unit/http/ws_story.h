/* What a reader said, as text that can be compared: "[text:Hel<ping:x>lo]" is a message with a ping inside it,
 * "<close 1000:bye>" a close, after which "." says that the reader is done, and "!1002" the refusal. Behind cmocka.h. */
#ifndef CAGE_TESTS_HTTP_WS_STORY_H
#define CAGE_TESTS_HTTP_WS_STORY_H

#include <stdio.h>

#include "core/http/ws.h"
#include "tests/unit/bytes.h"

struct story {
	struct ws_reader reader;
	char buf[16];
	struct bytes said;
	size_t used; /* bytes of all input */
	enum cage_status status;
};

static inline void story_number(struct story *s, const char *before, unsigned number)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%s%u", before, number);
	bytes_add(&s->said, slice_of(text, (size_t)n));
}

static inline void story_control(struct story *s, const struct ws_event *e)
{
	static const char *const names[] = {"<close ", "<ping", "<pong"};
	bytes_add(&s->said, slice_str(names[e->opcode - WS_OP_CLOSE]));
	if (e->kind == WS_CLOSE)
		story_number(s, "", e->code);
	bytes_add_char(&s->said, ':');
	bytes_add(&s->said, e->payload);
	bytes_add_char(&s->said, '>');
}

static inline void story_event(struct story *s, const struct ws_event *e)
{
	switch (e->kind) {
	case WS_BEGIN:
		assert_true(e->opcode == WS_OP_TEXT || e->opcode == WS_OP_BINARY);
		bytes_add(&s->said, e->opcode == WS_OP_TEXT ? SLICE("[text:") : SLICE("[binary:"));
		break;
	case WS_PIECE:
		assert_true(e->payload.len > 0);
		bytes_add(&s->said, e->payload);
		break;
	case WS_END:
		bytes_add_char(&s->said, ']');
		break;
	case WS_PING:
	case WS_PONG:
	case WS_CLOSE:
		assert_int_equal(e->opcode, e->kind == WS_PING   ? WS_OP_PING
					    : e->kind == WS_PONG ? WS_OP_PONG
								 : WS_OP_CLOSE);
		story_control(s, e);
		break;
	case WS_NOTHING:
		fail_msg("an event that is none");
	}
}

static inline void story_begin(struct story *s, enum ws_role from)
{
	*s = (struct story){.status = CAGE_AGAIN};
	ws_reader_init(&s->reader, from, from == WS_CLIENT ? s->buf : NULL, sizeof(s->buf));
}

/* One piece of input arrives. Nothing does after the end. */
static inline void story_feed(struct story *s, struct slice input)
{
	struct ws_event event;
	size_t used, at = 0;
	if (s->status != CAGE_AGAIN)
		return;
	while ((s->status = ws_read(&s->reader, slice_from(input, at), &used, &event)) == CAGE_OK) {
		at += used;
		assert_true(at <= input.len);
		story_event(s, &event);
	}
	at += used;
	s->used += at;
	assert_int_equal(event.kind, WS_NOTHING);
	if (s->status == CAGE_AGAIN)
		assert_int_equal(at, input.len);
	else if (s->status == CAGE_EOF)
		bytes_add_char(&s->said, '.');
	else
		story_number(s, "!", s->reader.error.code);
}

static inline void story_end(struct story *s)
{
	bytes_free(&s->said);
}

#endif
