/* What cage-inside says to its keeper, said by us: that it is ready, what the command writes, and how it ended. All else that it could
 * be asked for is not to be had of a container group. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/write_all.h"
#include "orchestrator/aci/aci.h"

void keeper_say(enum frame_kind kind, uint16_t id, struct slice payload)
{
	char header[FRAME_HEADER];
	frame_header(header, kind, id, payload.len);
	if (write_all(1, header, sizeof(header)) && payload.len > 0)
		write_all(1, payload.ptr, payload.len); /* a keeper that is gone is seen at stdin */
}

void keeper_refuse(uint16_t id, int why)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "error %d", why);
	keeper_say(FRAME_DONE, id, slice_of(text, (size_t)n));
}

/* ---- output ---- */

void keeper_flush(struct aci *a)
{
	size_t at = 0;
	while (at < a->n_held && a->window > 0) {
		size_t n = a->n_held - at;
		if (n > a->window)
			n = a->window;
		if (n > LIMIT_INSIDE_FRAME)
			n = LIMIT_INSIDE_FRAME;
		keeper_say(FRAME_OUT, a->job, slice_of(a->held + at, n));
		a->window -= n;
		at += n;
	}
	if (at > 0)
		memmove(a->held, a->held + at, a->n_held - at);
	a->n_held -= at;
}

/* As much as one look can bring; no other is made before this was taken. */
bool keeper_output(struct aci *a, struct slice line)
{
	if (a->n_held + line.len > a->room) {
		const size_t room = 2 * (a->n_held + line.len);
		char *bigger = realloc(a->held, room);
		if (!bigger)
			return false;
		a->held = bigger;
		a->room = room;
	}
	memcpy(a->held + a->n_held, line.ptr, line.len);
	a->n_held += line.len;
	return true;
}

void keeper_done(struct aci *a)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "exit %d", a->exit_code);
	a->code = 0;
	keeper_say(FRAME_DONE, a->job, slice_of(text, (size_t)n));
}

/* ---- frames ---- */

/* A directory, then a program and its arguments. */
static void take_command(struct aci *a, const struct frame *f)
{
	struct slice rest = f->payload;
	if (a->state != ACI_WAITS) {
		keeper_refuse(f->id, EOPNOTSUPP);
		return;
	}
	slice_cut(&rest, '\0');
	while (rest.len > 0) {
		struct slice word = slice_cut(&rest, '\0');
		words_add(&a->command, "%.*s", SLICE_FMT(word));
	}
	a->job = f->id;
	a->window = LIMIT_INSIDE_WINDOW;
	if (a->command.n == 0 || a->command.failed)
		keeper_refuse(f->id, EINVAL);
	else if (aci_is_split(a->options))
		split_begin(a);
	else
		create_begin(a);
}

static void take_frame(struct aci *a, const struct frame *f)
{
	switch (f->kind) {
	case FRAME_RUN:
		take_command(a, f);
		return;
	case FRAME_MORE:
		if (f->id == a->job) {
			a->window += frame_more(f->payload);
			keeper_flush(a);
		}
		return;
	case FRAME_STOP:
		if (f->id == a->job && a->state == ACI_RUNS) {
			watch_stop(a);
			return;
		}
		if (a->state == ACI_STOPS || a->state == ACI_TELLS)
			return; /* it ends already */
		__attribute__((fallthrough));
	case FRAME_CANCEL:
		if (f->id == a->job && a->state != ACI_WAITS && a->state < ACI_DELETES) {
			a->exit_code = 128 + 15;
			a->has_ended = true;
			keeper_done(a);
			aci_end(a);
		}
		return;
	case FRAME_READ:
	case FRAME_TAKE:
	case FRAME_LIST:
	case FRAME_CONNECT:
	case FRAME_USED:
		keeper_refuse(f->id, EOPNOTSUPP);
		return;
	case FRAME_WRITE:
	case FRAME_DATA:
	case FRAME_END:
		files_take(a, f);
		return;
	case FRAME_ENV:
	case FRAME_FETCH:
	case FRAME_TOOL:
	case FRAME_RELOAD:
	case FRAME_BEGIN:
	case FRAME_STANDS:
	case FRAME_READY:
	case FRAME_OUT:
	case FRAME_ERR:
	case FRAME_DONE:
		return;
	}
}

bool keeper_take(struct aci *a)
{
	size_t room;
	struct frame f;
	enum frame_result result;
	char *to = frame_room(&a->in, &room);
	ssize_t n = read(0, to, room);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0)
		return false;
	frame_arrived(&a->in, (size_t)n);
	while ((result = frame_take(&a->in, &f)) == FRAME_TAKEN)
		take_frame(a, &f);
	return result == FRAME_PARTIAL;
}
