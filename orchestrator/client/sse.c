/* A reader of events. The line that is being read stands behind the data of its event, and becomes a part of it when its field is
 * "data": so one buffer is the bound of all. */
#include "orchestrator/client/sse.h"

#include <stdlib.h>

bool sse_init(struct sse *s)
{
	*s = (struct sse){.buf = malloc(LIMIT_CLIENT_EVENT)};
	return s->buf != NULL;
}

void sse_free(struct sse *s)
{
	free(s->buf);
	*s = (struct sse){0};
}

/* An event without data is none, whatever it was called. */
static bool dispatch(struct sse *s, sse_taker *take, void *arg)
{
	bool goes_on = true;
	struct slice name = s->name_len ? slice_of(s->name, s->name_len) : SLICE("message");
	if (s->data_len > 0)
		goes_on = take(arg, name, slice_of(s->buf, s->data_len - 1));
	s->data_len = s->name_len = 0;
	return goes_on;
}

static void set_name(struct sse *s, struct slice value)
{
	s->name_len = value.len < sizeof(s->name) ? value.len : sizeof(s->name);
	if (s->name_len > 0)
		memcpy(s->name, value.ptr, s->name_len);
}

/* Its line has room for a line break: at least the colon or the end of "data" stood there. */
static void add_data(struct sse *s, struct slice value)
{
	if (value.len > 0)
		memmove(s->buf + s->data_len, value.ptr, value.len);
	s->data_len += value.len;
	s->buf[s->data_len++] = '\n';
}

/* False: no more are wanted. Comments begin with a colon: their field has no name. */
static bool take_line(struct sse *s, sse_taker *take, void *arg)
{
	struct slice value = slice_of(s->buf + s->data_len, s->line_len);
	s->line_len = 0;
	if (value.len == 0)
		return dispatch(s, take, arg);
	struct slice field = slice_cut(&value, ':');
	if (slice_starts(value, SLICE(" ")))
		value = slice_from(value, 1);
	if (slice_eq(field, SLICE("data")))
		add_data(s, value);
	else if (slice_eq(field, SLICE("event")))
		set_name(s, value);
	return true;
}

/* Takes the bytes of a line up to its end, or all. */
static struct slice line_part(struct slice input)
{
	struct slice line = slice_head(input, slice_find(input, '\n'));
	return slice_head(line, slice_find(line, '\r'));
}

static enum cage_status add_to_line(struct sse *s, struct slice part)
{
	if (part.len > LIMIT_CLIENT_EVENT - s->data_len - s->line_len)
		return CAGE_ELIMIT;
	if (part.len > 0)
		memcpy(s->buf + s->data_len + s->line_len, part.ptr, part.len);
	s->line_len += part.len;
	return CAGE_OK;
}

/* The mark may come in pieces, so it is looked for in the first line when that is whole. */
static void drop_mark(struct sse *s)
{
	static const struct slice mark = WORD("\xef\xbb\xbf");
	struct slice line = slice_of(s->buf, s->line_len);
	if (s->state != SSE_START || !slice_starts(line, mark))
		return;
	s->line_len -= mark.len;
	memmove(s->buf, s->buf + mark.len, s->line_len);
}

enum cage_status sse_feed(struct sse *s, struct slice input, sse_taker *take, void *arg)
{
	while (input.len > 0) {
		if (s->state == SSE_AFTER_CR && input.ptr[0] == '\n')
			input = slice_from(input, 1);
		if (s->state == SSE_AFTER_CR)
			s->state = SSE_LINE;
		struct slice part = line_part(input);
		if (add_to_line(s, part) != CAGE_OK)
			return CAGE_ELIMIT;
		if (part.len == input.len)
			break;
		drop_mark(s);
		s->state = input.ptr[part.len] == '\r' ? SSE_AFTER_CR : SSE_LINE;
		input = slice_from(input, part.len + 1);
		if (!take_line(s, take, arg))
			return CAGE_EOF;
	}
	return CAGE_OK;
}
