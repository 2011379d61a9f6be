/* What the files of inject share: placeholders as they are written in a text, and one way through a request. */
#ifndef CAGE_PROXY_INJECT_PRIVATE_H
#define CAGE_PROXY_INJECT_PRIVATE_H

#include "core/base/limits.h"
#include "proxy/inject.h"

/* ---- inject_words.c: finding ---- */

/* How a text is written. A placeholder, which is printable ASCII without blanks, quotes and backslashes, may also stand in it
 * byte for byte, whatever the form. */
enum word_form {
	WORD_RAW,
	WORD_PERCENT, /* any byte may be %XX */
	WORD_JSON     /* any byte may be escaped as in a JSON string */
};

#define WORD_LONGEST (LIMIT_PLACEHOLDER * (sizeof("\\u0000") - 1)) /* bytes of a placeholder in a text */

struct words {
	const struct inject_secret *secrets;
	uint64_t which; /* of them: those whose placeholders are looked for */
	enum word_form form;
	bool stops[256]; /* bytes that may begin one, or that begin an escape */
};

void words_init(struct words *w, const struct inject_secret *secrets, uint64_t which, enum word_form form);

/* Where in the text a reader is. No placeholder begins inside an escape, nor right behind one that is broken: what is put
 * there would become a part of it, and come back from an echo as something that nobody looks for. */
struct word_place {
	bool is_escaped; /* a backslash came before */
	unsigned wary;   /* bytes ahead that belong to an escape, or would if it were whole */
};

struct word_match {
	unsigned secret; /* its index */
	size_t start, end;
};

enum word_answer {
	WORD_NONE,
	WORD_FOUND,  /* *m is the match that begins first; of those, the longest */
	WORD_PARTIAL /* none, but m->start to the end of the text may be the beginning of one */
};

/* From `from` on, which `place` belongs to; it is moved to where the answer is. is_end: nothing comes after the text. */
enum word_answer words_find(const struct words *w, struct slice text, size_t from, bool is_end,
			    struct word_place *place, struct word_match *m);

/* ---- inject_write.c: writing ---- */

/* Something that is measured first and then made: without room it only counts. */
struct made {
	char *ptr; /* NULL: measured */
	size_t len;
};

void made_put(struct made *m, struct slice s);

/* No CR, LF or NUL, which could end what a value is put into. */
bool value_is_one_line(struct slice value);

/* s as it has to be written in a text of that form. */
void made_put_escaped(struct made *m, struct slice s, enum word_form form);

/* All of the text, with with[i] in place of the placeholder of secret i. Those that were found. */
uint64_t made_put_replaced(struct made *m, const struct words *w, struct slice text, const struct slice *with);

/* ---- one way through a request ---- */

enum slot_kind { SLOT_HEADER, SLOT_QUERY };

struct rewrite {
	const struct inject_secret *secrets;
	uint64_t active;                   /* those that are put in on this way */
	struct slice raw[LIMIT_SECRETS];   /* what is put in for each, ... */
	struct slice coded[LIMIT_SECRETS]; /* ... and in a target, percent-encoded */
	struct arena *arena;

	uint64_t found;   /* have a placeholder in a slot of theirs */
	uint64_t present; /* have a slot that is there, whatever it holds */
	struct slice
		foreign; /* the first slot that holds something else where `require` forbids it: its name, or ptr NULL */
	enum slot_kind foreign_kind;
};

/* A slot of the secrets in `which` is there, and holds the placeholders of those in `found`. */
void rewrite_saw(struct rewrite *r, enum slot_kind kind, struct slice name, uint64_t which, uint64_t found);

/* inject_fields.c, inject_target.c: what changes is new in the arena; what does not is left where it is. */
enum cage_status rewrite_fields(struct rewrite *r, struct message *head) MUST_CHECK;
enum cage_status rewrite_target(struct rewrite *r, struct target *target) MUST_CHECK;

static inline uint64_t bit_of(size_t secret)
{
	return (uint64_t)1 << secret;
}

/* Takes the lowest of the bits, of which there is one, and says which. */
static inline unsigned take_bit(uint64_t *bits)
{
	unsigned i = (unsigned)__builtin_ctzll(*bits);
	*bits &= *bits - 1;
	return i;
}

#endif
