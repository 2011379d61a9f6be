/* One batch on its way, and what the answer means: taken, too big, or not now. */
#include "core/base/clock.h"
#include "core/base/say.h"
#include "orchestrator/ship/ship.h"

void send_begin(struct ship *s)
{
	s->told_tries = 0;
	if (s->batch.n_packed == 0 && !batch_pack(&s->batch)) {
		ship_trouble(s, "a batch can't be compressed");
		ship_end(s, 1);
		return;
	}
	arm_begin_bytes(&s->arm, &s->call, "POST", s->where, slice_of(s->batch.packed, s->batch.n_packed), "gzip",
			ARM_REPEATS);
	ship_enter(s, SHIP_SENDS);
}

/* Whatever it was before: a batch as large as can be is tried again soon. */
static void take_good(struct ship *s)
{
	s->counts.batches++;
	s->counts.lines += s->batch.lines;
	s->counts.bytes += s->batch.len - s->batch.lines - 1;
	s->shipped_us = clock_wall_us();
	s->batch.most = s->batch.most < LIMIT_SHIP_BATCH / 2 ? 2 * s->batch.most : LIMIT_SHIP_BATCH;
	ship_enter(s, SHIP_STORES);
}

void ship_rewind(struct ship *s)
{
	for (size_t i = 0; i < s->n; i++)
		if (source_has_moved(s->list[i])) {
			s->list[i]->reached = s->list[i]->place;
			s->list[i]->skips = false;
		}
	batch_clear(&s->batch);
}

/* A line that is too big by itself will never be taken: all others may not wait for it. */
static void take_too_big(struct ship *s)
{
	s->counts.refused++;
	if (s->batch.lines == 1) {
		s->counts.too_big++;
		if (s->options->once)
			s->code = 1; /* who waits for the end is told that not all of it was taken */
		ship_trouble(s, "a line of %zu bytes is too big for the service, and passed over", s->batch.len);
		ship_enter(s, SHIP_STORES);
		return;
	}
	ship_trouble(s, "a batch of %zu bytes is too big for the service: half of it is sent", s->batch.len);
	s->batch.most = s->batch.len / 2;
	ship_rewind(s);
	ship_enter(s, SHIP_FILLS);
}

/* Whatever is wrong, somebody may mend it: nothing is dropped, and it is not asked for often. */
static void take_refusal(struct ship *s)
{
	const struct arm_call *c = &s->call;
	const unsigned wait_ms = attempt_wait_ms(LIMIT_ARM_TRIES, "");
	s->counts.refused++;
	ship_trouble(s, "%s is not taken (status %ld%s%s): %s", s->options->stream, c->status, c->code[0] ? ", " : "",
		     c->code, c->message);
	s->again_us = clock_mono_us() + wait_ms * 1000ull;
	if (s->options->once)
		ship_end(s, 1);
	else
		ship_enter(s, SHIP_RESTS);
}

static void take_answer(struct ship *s)
{
	const bool is_good = arm_is_good(&s->call), is_too_big = s->call.status == 413;
	if (is_good)
		take_good(s);
	else if (is_too_big)
		take_too_big(s);
	else
		take_refusal(s);
	arm_free(&s->arm, &s->call);
}

void send_look(struct ship *s)
{
	arm_look(&s->arm, &s->call);
	if (s->call.state == ARM_DONE) {
		take_answer(s);
	} else if (s->call.attempt.tries != s->told_tries) {
		s->told_tries = s->call.attempt.tries;
		s->counts.retries++;
		ship_trouble(s, "the service has to be asked again (status %ld): %s", s->call.status, s->call.message);
	}
}
