/* An inspection for tests: what inspector.h promises to inspectors at work, with findings kept in a list. One request at
 * a time. Whoever tests an inspector that counts (the ledger), changes fields or talks to a program defines those calls
 * himself. */
#ifndef CAGE_TESTS_INSPECTORS_STUB_H
#define CAGE_TESTS_INSPECTORS_STUB_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "inspectors/inspector.h"

#define STUB_FINDINGS 16
#define STUB_FIELDS 8

struct inspection {
	const struct inspector *by;
	enum inspect_action action; /* of the policy */
	const void *conf;
	void *state;
	struct subject subject;
	struct target target;
	struct message head;
	struct field fields[STUB_FIELDS];
	struct finding findings[STUB_FINDINGS];
	size_t n_findings;
	const char *why;                /* as explained last */
	uint64_t raw_bytes, body_bytes; /* so far; content codings are none */
	bool is_done;
};

const struct subject *inspection_subject(const struct inspection *i)
{
	return &i->subject;
}

const void *inspection_conf(const struct inspection *i)
{
	return i->conf;
}

void *inspection_state(struct inspection *i)
{
	return i->state;
}

uint64_t inspection_raw_bytes(const struct inspection *i)
{
	return i->raw_bytes;
}

uint64_t inspection_body_bytes(const struct inspection *i)
{
	return i->body_bytes;
}

void inspection_explain(struct inspection *i, const char *why)
{
	i->why = why;
}

void inspection_report_as(struct inspection *i, enum inspect_action action, enum reason reason, const struct spot *spot,
			  struct slice id, struct slice value)
{
	(void)value;
	assert_true(i->n_findings < STUB_FINDINGS);
	i->findings[i->n_findings++] = (struct finding){
		.by = i->by, .action = action, .reason = reason, .id = id, .spot = *spot, .why = i->why};
}

void inspection_report(struct inspection *i, enum reason reason, const struct spot *spot, struct slice id,
		       struct slice value)
{
	inspection_report_as(i, i->action, reason, spot, id, value);
}

static inline void stub_begin(struct inspection *i, const struct inspector *by)
{
	*i = (struct inspection){.by = by, .action = by->action, .conf = by->conf_default};
	i->target.path = SLICE("/");
	i->head.fields = i->fields;
	i->subject = (struct subject){.target = &i->target, .head = &i->head};
	i->state = calloc(1, by->state_size + 1);
	assert_non_null(i->state);
}

static inline void stub_finish(struct inspection *i)
{
	free(i->state);
	i->state = NULL;
}

static inline void stub_field(struct inspection *i, struct slice name, struct slice value)
{
	assert_true(i->head.n_fields < STUB_FIELDS);
	i->fields[i->head.n_fields++] = (struct field){.name = name, .value = value};
}

static inline void stub_answer(struct inspection *i, enum inspect_result result)
{
	assert_true(result == INSPECT_PASS || result == INSPECT_DONE);
	i->is_done |= result == INSPECT_DONE;
}

static inline void stub_head(struct inspection *i)
{
	if (i->by->on_head && !i->is_done)
		stub_answer(i, i->by->on_head(i));
}

/* Pieces are copied to memory of their own size, so that reading beyond one, or later, is an error. */
static inline void stub_piece(struct inspection *i, struct slice piece)
{
	if (i->is_done || piece.len == 0)
		return;
	char *copy = malloc(piece.len);
	assert_non_null(copy);
	memcpy(copy, piece.ptr, piece.len);
	if (i->by->on_raw)
		stub_answer(i, i->by->on_raw(i, slice_of(copy, piece.len)));
	if (i->by->on_body && !i->is_done)
		stub_answer(i, i->by->on_body(i, slice_of(copy, piece.len)));
	i->body_bytes += piece.len;
	i->raw_bytes += piece.len;
	free(copy);
}

static inline void stub_end(struct inspection *i)
{
	if (i->by->on_end && !i->is_done)
		stub_answer(i, i->by->on_end(i));
}

/* A whole body in pieces of that size; 0: in one. */
static inline void stub_body(struct inspection *i, struct slice body, size_t size)
{
	while (size > 0 && body.len > size) {
		stub_piece(i, slice_head(body, size));
		body = slice_from(body, size);
	}
	stub_piece(i, body);
	stub_end(i);
}

/* The same bytes at every run. */
static inline void fill_random(char *out, size_t n, uint64_t seed)
{
	for (size_t k = 0; k < n; k++) {
		seed = seed * 6364136223846793005u + 1442695040888963407u;
		out[k] = (char)(seed >> 56);
	}
}

#endif
