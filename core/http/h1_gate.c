/* A strict byte gate in front of the parser: one pass, no byte looked at twice, and a verdict at the first byte that
 * no head can have in that place. Every other file of the codec relies on what has passed here.
 *
 * Each state takes a run of bytes of one class and then one byte that ends it and leads on. */
#include "core/http/h1.h"

#include "core/base/limits.h"
#include "core/http/chars.h"

enum gate_state {
	GATE_START, /* kind says what comes first */
	GATE_METHOD,
	GATE_TARGET,
	GATE_REQUEST_VERSION, /* "HTTP/1." */
	GATE_REQUEST_MINOR,
	GATE_RESPONSE_VERSION,
	GATE_RESPONSE_MINOR,
	GATE_STATUS,
	GATE_PHRASE,
	GATE_NAME, /* or the empty line */
	GATE_VALUE,
	GATE_LINE_LF,
	GATE_END_LF,
	GATE_DONE
};

struct gate_rule {
	size_t min, max;      /* bytes of the run */
	enum char_class take; /* what the run is made of; 0: there is none */
	char stop;            /* ends the run */
	enum gate_state next;
	char other_stop; /* may end it instead, right after other_at bytes; 0: there is none */
	size_t other_at;
	enum gate_state other_next;
};

#define NO_OTHER 0, 0, GATE_DONE

static const struct gate_rule gate_rules[] = {
	[GATE_METHOD] = {1, LIMIT_METHOD, CHAR_TOKEN, ' ', GATE_TARGET, NO_OTHER},
	[GATE_TARGET] = {1, LIMIT_HEAD, CHAR_TARGET, ' ', GATE_REQUEST_VERSION, NO_OTHER},
	[GATE_REQUEST_MINOR] = {1, 1, CHAR_BINARY, '\r', GATE_LINE_LF, NO_OTHER},
	[GATE_RESPONSE_MINOR] = {1, 1, CHAR_BINARY, ' ', GATE_STATUS, NO_OTHER},
	[GATE_STATUS] = {3, 3, CHAR_DIGIT, ' ', GATE_PHRASE, '\r', 3, GATE_LINE_LF},
	[GATE_PHRASE] = {0, LIMIT_HEAD, CHAR_VALUE, '\r', GATE_LINE_LF, NO_OTHER},
	[GATE_NAME] = {1, LIMIT_HEAD, CHAR_TOKEN, ':', GATE_VALUE, '\r', 0, GATE_END_LF},
	[GATE_VALUE] = {0, LIMIT_HEAD, CHAR_VALUE, '\r', GATE_LINE_LF, NO_OTHER},
	[GATE_LINE_LF] = {0, 0, 0, '\n', GATE_NAME, NO_OTHER},
	[GATE_END_LF] = {0, 0, 0, '\n', GATE_DONE, NO_OTHER},
};

static enum gate_state gate_first(enum h1_gate_kind kind)
{
	switch (kind) {
	case H1_GATE_REQUEST:
		return GATE_METHOD;
	case H1_GATE_RESPONSE:
		return GATE_RESPONSE_VERSION;
	case H1_GATE_TRAILERS:
		return GATE_NAME;
	}
	return GATE_DONE;
}

static void gate_enter(struct h1_gate *gate, enum gate_state state)
{
	gate->state = state;
	gate->run = 0;
}

/* Takes what there is of "HTTP/1.". */
static bool gate_version(struct h1_gate *gate, struct slice rest, enum gate_state next)
{
	struct slice wanted = slice_from(SLICE("HTTP/1."), gate->run);
	struct slice got = slice_head(rest, wanted.len);
	if (!slice_starts(wanted, got))
		return false;
	gate->seen += got.len;
	gate->run += got.len;
	if (got.len == wanted.len)
		gate_enter(gate, next);
	return true;
}

/* Takes a run and, when it is there, the byte that ends it. */
static bool gate_run(struct h1_gate *gate, struct slice rest)
{
	const struct gate_rule *rule = &gate_rules[gate->state];
	size_t n = char_span(rest, rule->take);
	if (gate->run + n > rule->max)
		return false;
	gate->seen += n;
	gate->run += n;
	if (n == rest.len)
		return true;
	char c = rest.ptr[n];
	if (c == rule->stop && gate->run >= rule->min)
		gate_enter(gate, rule->next);
	else if (c == rule->other_stop && rule->other_stop && gate->run == rule->other_at)
		gate_enter(gate, rule->other_next);
	else
		return false;
	gate->seen++;
	return true;
}

static bool gate_step(struct h1_gate *gate, struct slice rest)
{
	if (gate->state == GATE_REQUEST_VERSION)
		return gate_version(gate, rest, GATE_REQUEST_MINOR);
	if (gate->state == GATE_RESPONSE_VERSION)
		return gate_version(gate, rest, GATE_RESPONSE_MINOR);
	return gate_run(gate, rest);
}

enum cage_status h1_gate(struct h1_gate *gate, struct slice input, size_t *head_len)
{
	size_t limit = gate->kind == H1_GATE_TRAILERS ? LIMIT_TRAILERS : LIMIT_HEAD;
	struct slice visible = slice_head(input, limit);
	if (gate->state == GATE_START)
		gate_enter(gate, gate_first(gate->kind));
	while (gate->seen < visible.len && gate->state != GATE_DONE)
		if (!gate_step(gate, slice_from(visible, gate->seen)))
			return CAGE_EPROTO;
	if (gate->state == GATE_DONE) {
		*head_len = gate->seen;
		return CAGE_OK;
	}
	return input.len >= limit ? CAGE_ELIMIT : CAGE_AGAIN;
}
