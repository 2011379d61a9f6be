/* The conversation with an external inspector, and the inspector that holds requests until it has answered.
 *
 * Each request that is shown is a talk with a number of its own, which is never used again: an answer that comes too late, to a
 * talk that is over, is told from one that makes no sense. Talks that wait for an answer are in a list, the one that has
 * waited longest first. */
#include "inspectors/external.h"

#include <stdlib.h>

#include "inspectors/chain_conf.h"
#include "inspectors/external_private.h"
#include "inspectors/table.h"

#define ID_ROOM 40 /* 16 hex digits, a dot, a number */

enum talk_state {
	TALK_NONE, /* the program does not know of it */
	TALK_ON,
	TALK_ENDING, /* it was told that this is all */
	TALK_OVER
};

/* One request that is shown to the program: the inspection's state. */
struct talk {
	struct inspection *of;
	struct external *with;
	enum talk_state state;
	uint64_t number;
	uint64_t program;      /* which one: a later one knows nothing of this */
	size_t unanswered;     /* lines; the list has the talk while there are any */
	bool is_head_answered; /* fields can only be changed by the first answer */
	uint64_t since_us;     /* it waits since then: since the last answer, or the first unanswered line */
	struct talk *prev, *next;
};

struct external {
	struct external_port port;
	uint64_t timeout_us;
	bool is_open;
	uint64_t program; /* counts them */
	uint64_t next_number;
	uint64_t heard_us; /* when the program last said something */
	const char *why;   /* it is given up, if it is; NULL: it has ended by itself, or was never there */
	struct talk *first, *last;
	size_t n_waiting;
};

/* One line at a time is written here: workers are single-threaded. Every byte of a head may take six. */
static char line_room[6 * (LIMIT_HEAD + LIMIT_TARGET) + KIB(8)];

/* ---- who waits ---- */

static void list_add(struct talk *t)
{
	struct external *e = t->with;
	t->prev = e->last;
	t->next = NULL;
	if (e->last)
		e->last->next = t;
	else
		e->first = t;
	e->last = t;
	e->n_waiting++;
	t->since_us = e->port.now_us(e->port.arg);
}

static void list_remove(struct talk *t)
{
	struct external *e = t->with;
	if (t->prev)
		t->prev->next = t->next;
	else
		e->first = t->next;
	if (t->next)
		t->next->prev = t->prev;
	else
		e->last = t->prev;
	e->n_waiting--;
}

static void talk_over(struct talk *t)
{
	if (t->unanswered > 0)
		list_remove(t);
	t->unanswered = 0;
	t->state = TALK_OVER;
}

/* ---- lines out ---- */

static struct slice id_of(const struct talk *t, char room[ID_ROOM])
{
	struct text id = text_in(room, ID_ROOM);
	text_put_hex64(&id, inspection_subject(t->of)->txn);
	text_put_char(&id, '.');
	text_put_u64(&id, t->number);
	return text_slice(&id);
}

/* Does the program that it began with still listen? */
static bool is_heard(const struct talk *t)
{
	return t->with->is_open && t->program == t->with->program;
}

/* Nobody waits for the answers any more; there will be none that counts. */
static void cancel(struct talk *t)
{
	char room[ID_ROOM];
	struct text line = text_in(line_room, sizeof(line_room));
	bool is_known = t->state == TALK_ON || t->state == TALK_ENDING;
	if (!is_known)
		return;
	talk_over(t);
	external_line_cancel(&line, id_of(t, room));
	if (is_heard(t))
		(void)t->with->port.send(t->with->port.arg, text_slice(&line)); /* no room: it is told nothing more */
}

/* Blocks whatever `action` says: what can't be looked at does not pass. */
static enum inspect_result unavailable(struct inspection *i, const char *why)
{
	const struct spot spot = {.place = PLACE_HOST};
	inspection_explain(i, why);
	inspection_report_as(i, ACTION_BLOCK, REASON_EXTERNAL_UNAVAILABLE, &spot, SLICE_NONE, SLICE_NONE);
	return INSPECT_DONE;
}

static enum inspect_result give_up(struct talk *t, const char *why)
{
	cancel(t);
	return unavailable(t->of, why);
}

/* The same, of one that waits. */
static void fail(struct talk *t, const char *why)
{
	enum inspect_result r = give_up(t, why);
	inspection_resume(t->of, r);
}

/* Sends a line that has to be answered. */
static enum inspect_result ask(struct talk *t, const struct text *line)
{
	const struct external_port *port = &t->with->port;
	if (!is_heard(t))
		return give_up(t, external_why(t->with));
	if (!text_ok(line))
		return give_up(t, "the request is too large for it");
	if (!port->send(port->arg, text_slice(line)))
		return give_up(t, "it does not read what it is sent");
	if (t->unanswered++ == 0)
		list_add(t);
	return INSPECT_HOLD;
}

/* ---- the inspector ---- */

static bool is_configured(const struct external_conf *conf)
{
	return conf->command || conf->socket;
}

static enum inspect_result on_head(struct inspection *i)
{
	char room[ID_ROOM];
	struct text line = text_in(line_room, sizeof(line_room));
	struct external *e = inspection_external(i);
	struct talk *t = inspection_state(i);
	if (!is_configured(inspection_conf(i)))
		return INSPECT_DONE;
	if (!e || !e->is_open)
		return unavailable(i, e ? external_why(e) : NULL);
	if (e->n_waiting >= LIMIT_EXTERNAL_WAITING)
		return unavailable(i, "too many requests wait for it");
	*t = (struct talk){.of = i, .with = e, .number = ++e->next_number, .program = e->program};
	external_line_head(&line, id_of(t, room), inspection_subject(i));
	enum inspect_result r = ask(t, &line);
	if (r == INSPECT_HOLD)
		t->state = TALK_ON;
	return r;
}

/* A message is shown like a request of its own, if it is shown at all. */
static enum inspect_result on_message(struct inspection *i)
{
	const struct external_conf *conf = inspection_conf(i);
	return conf->body ? on_head(i) : INSPECT_DONE;
}

static enum inspect_result on_body(struct inspection *i, struct slice piece)
{
	char room[ID_ROOM];
	struct talk *t = inspection_state(i);
	while (piece.len > 0) {
		struct text line = text_in(line_room, sizeof(line_room));
		struct slice part = slice_head(piece, LIMIT_EXTERNAL_PIECE);
		external_line_body(&line, id_of(t, room), part);
		enum inspect_result r = ask(t, &line);
		if (r != INSPECT_HOLD)
			return r;
		piece = slice_from(piece, part.len);
	}
	return t->unanswered > 0 ? INSPECT_HOLD : INSPECT_PASS;
}

static enum inspect_result on_trailers(struct inspection *i, const struct field *fields, size_t n)
{
	char room[ID_ROOM];
	struct talk *t = inspection_state(i);
	struct text line = text_in(line_room, sizeof(line_room));
	external_line_end(&line, id_of(t, room), fields, n);
	t->state = TALK_ENDING;
	return ask(t, &line);
}

/* Trailers came with the end already. */
static enum inspect_result on_end(struct inspection *i)
{
	const struct talk *t = inspection_state(i);
	return t->state == TALK_ENDING ? INSPECT_HOLD : on_trailers(i, NULL, 0);
}

static void release(struct inspection *i)
{
	struct talk *t = inspection_state(i);
	cancel(t);
}

const struct inspector external_inspector = {.name = WORD("external"),
					     .action = ACTION_BLOCK,
					     .conf_size = sizeof(struct external_conf),
					     .conf_default = &external_defaults,
					     .keys = external_keys,
					     .n_keys = N_EXTERNAL_KEYS,
					     .check = external_check,
					     .state_size = sizeof(struct talk),
					     .on_head = on_head,
					     .on_message = on_message,
					     .on_body = on_body,
					     .on_trailers = on_trailers,
					     .on_end = on_end,
					     .release = release};

const struct external_conf *external_conf_of(const struct policy *p)
{
	const struct chain_conf *chain = p->inspectors;
	for (size_t i = 0; i < n_inspectors; i++)
		if (inspectors[i] == &external_inspector && chain->list[i].action != ACTION_OFF &&
		    is_configured(chain->list[i].conf))
			return chain->list[i].conf;
	return NULL;
}

/* ---- answers ---- */

/* In most programs the first that was asked is the first that is answered. */
static struct talk *find_talk(const struct external *e, struct slice id)
{
	char room[ID_ROOM];
	struct talk *t = e->first;
	while (t && !slice_eq(id_of(t, room), id))
		t = t->next;
	return t;
}

/* Is it of a talk that is over: cancelled, or given up? */
static bool is_old(const struct external *e, struct slice id)
{
	uint64_t number;
	slice_cut(&id, '.');
	return slice_to_u64(id, e->next_number, &number) && number > 0;
}

static struct spot spot_of(const struct talk *t)
{
	if (!t->is_head_answered)
		return (struct spot){.place = PLACE_HEADER};
	return (struct spot){.place = PLACE_BODY, .offset = inspection_body_bytes(t->of)};
}

/* What the program found; is the talk over with it? */
static bool judge(struct talk *t, enum external_verdict verdict)
{
	struct spot spot = spot_of(t);
	switch (verdict) {
	case EXTERNAL_PASS:
		return t->unanswered == 1 && t->state == TALK_ENDING;
	case EXTERNAL_FLAG:
		inspection_report_as(t->of, ACTION_FLAG, REASON_EXTERNAL_FLAGGED, &spot, SLICE_NONE, SLICE_NONE);
		return t->unanswered == 1 && t->state == TALK_ENDING;
	case EXTERNAL_BLOCK:
		inspection_report(t->of, REASON_EXTERNAL_BLOCKED, &spot, SLICE_NONE, SLICE_NONE);
		return true;
	case EXTERNAL_DONE:
		return true;
	}
	return true;
}

/* The request may go on, or end, in here. */
static void take_answer(struct talk *t, const struct external_answer *a)
{
	const struct external_conf *conf = inspection_conf(t->of);
	bool is_changed = external_answer_apply(a, t->of);
	if (!is_changed) {
		fail(t, "there is no memory for its changes");
		return;
	}
	bool is_over = judge(t, a->verdict) || !conf->body;
	t->is_head_answered = true;
	if (is_over) {
		talk_over(t);
		inspection_resume(t->of, INSPECT_DONE);
		return;
	}
	list_remove(t);
	if (--t->unanswered > 0)
		list_add(t);
	else
		inspection_resume(t->of, INSPECT_PASS);
}

/* NULL, or what is wrong with a well-formed answer to that talk; t is NULL without one. */
static const char *find_fault(const struct external *e, const struct talk *t, const struct external_answer *a)
{
	bool changes = a->set || a->remove;
	if (t)
		return changes && t->is_head_answered ? WRONG("changes after the first answer") : NULL;
	return is_old(e, a->id) ? NULL : WRONG("an id that nobody was given");
}

static enum cage_status take_line(struct external *e, struct slice line)
{
	struct external_answer a;
	if (external_answer_parse(line, &a) != CAGE_OK) {
		e->why = a.fault;
		return CAGE_EPROTO;
	}
	struct talk *t = find_talk(e, a.id);
	const char *fault = find_fault(e, t, &a);
	enum cage_status st = fault ? CAGE_EPROTO : CAGE_OK;
	e->why = fault;
	if (st == CAGE_OK && t && a.note.len > 0)
		e->port.note(e->port.arg, a.id, slice_head(a.note, LIMIT_EXTERNAL_NOTE));
	if (st == CAGE_OK && t)
		take_answer(t, &a);
	external_answer_free(&a);
	return st;
}

enum cage_status external_receive(struct external *e, struct slice input, size_t *used)
{
	struct slice line = slice_head(input, slice_find(input, '\n'));
	if (line.len > LIMIT_EXTERNAL_LINE) {
		e->why = WRONG("too long");
		return CAGE_EPROTO;
	}
	if (line.len == input.len)
		return CAGE_AGAIN;
	*used = line.len + 1;
	e->heard_us = e->port.now_us(e->port.arg);
	return take_line(e, line);
}

/* ---- life ---- */

struct external *external_new(uint64_t timeout_us, const struct external_port *port)
{
	struct external *e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->port = *port;
	e->timeout_us = timeout_us;
	return e;
}

void external_free(struct external **e)
{
	free(*e);
	*e = NULL;
}

void external_open(struct external *e)
{
	e->is_open = true;
	e->program++;
	e->heard_us = 0;
	e->why = NULL;
}

const char *external_why(const struct external *e)
{
	return e->why ? e->why : e->program > 0 ? "it has ended" : "it can't be reached";
}

void external_lost(struct external *e)
{
	e->is_open = false; /* so that nobody can begin to wait now */
	while (e->first)
		fail(e->first, external_why(e));
}

uint64_t external_deadline_us(const struct external *e)
{
	return e->first ? e->first->since_us + e->timeout_us : 0;
}

bool external_expire(struct external *e)
{
	uint64_t now = e->port.now_us(e->port.arg);
	while (e->first && now >= external_deadline_us(e)) {
		if (e->heard_us <= e->first->since_us) {
			e->why = "it does not answer";
			return false;
		}
		fail(e->first, "it does not answer");
	}
	return true;
}
