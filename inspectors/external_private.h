/* What the files of the external inspector share: lines to the program, and its answers. */
#ifndef CAGE_INSPECTORS_EXTERNAL_PRIVATE_H
#define CAGE_INSPECTORS_EXTERNAL_PRIVATE_H

#include <jansson.h>

#include "core/base/text.h"
#include "inspectors/external.h"
#include "inspectors/inspector.h"

/* ---- external_policy.c ---- */

extern const struct external_conf external_defaults;
#define N_EXTERNAL_KEYS 4
extern const struct key external_keys[N_EXTERNAL_KEYS];

void external_check(struct loader *l, const struct node *section, void *conf);

/* ---- external_line.c: one line with its newline; text_ok() says whether it fitted ---- */

void external_line_head(struct text *t, struct slice id, const struct subject *s);
void external_line_body(struct text *t, struct slice id, struct slice piece);
void external_line_end(struct text *t, struct slice id, const struct field *trailers, size_t n);
void external_line_cancel(struct text *t, struct slice id);

/* ---- external_answer.c ---- */

/* What was wrong with an answer, as a clause about the program. */
#define WRONG(what) "it has given a wrong answer: " what

enum external_verdict { EXTERNAL_PASS, EXTERNAL_FLAG, EXTERNAL_BLOCK, EXTERNAL_DONE };

/* What slices and tables it has are the document's. */
struct external_answer {
	const char *fault; /* of a line that is no answer: what is wrong with it */
	json_t *document;
	struct slice id, note;
	enum external_verdict verdict;
	json_t *set, *remove; /* changes to the fields, all of them good; NULL: none */
};

/* CAGE_EPROTO: this is not an answer, and fault says why. Otherwise it has to be freed. */
enum cage_status external_answer_parse(struct slice line, struct external_answer *a) MUST_CHECK;
void external_answer_free(struct external_answer *a);

/* Makes the changes that it asks for; false without memory. */
bool external_answer_apply(const struct external_answer *a, struct inspection *i) MUST_CHECK;

#endif
