/* Values that are known to be secret, and how to find one of them in a text, however it is written there.
 *
 * A value is compared with the bytes as they stand, in each form on the fly: nothing is built from it that would have
 * to be kept secret too, but for tables of the four bytes with which some form of some value begins (set.h), which are
 * cleansed. The values themselves stay where their owner has them (proxy/vault.h). */
#ifndef CAGE_INSPECTORS_KNOWN_H
#define CAGE_INSPECTORS_KNOWN_H

#include "core/base/slice.h"
#include "core/base/status.h"

/* How a value is written. A set of them is an unsigned with bits (1u << form). */
enum known_form {
	KNOWN_RAW,
	KNOWN_PERCENT,  /* any of its bytes as %XX, either case; '+' for a blank */
	KNOWN_JSON,     /* any of its bytes escaped as in a JSON string */
	KNOWN_BASE64,   /* inside a run of base64 or base64url, at any of three alignments */
	KNOWN_HEX,      /* two digits each, any case */
	KNOWN_LOOSE,    /* any case of letters, with zero-width characters in between */
	KNOWN_REVERSED, /* the same backwards */
	KNOWN_FORMS
};

/* What responses are cleaned of, and what is looked for in texts that views have decoded already. */
#define KNOWN_REDACTED (1u << KNOWN_RAW | 1u << KNOWN_PERCENT | 1u << KNOWN_JSON | 1u << KNOWN_BASE64 | 1u << KNOWN_HEX)
#define KNOWN_IN_VIEWS (1u << KNOWN_LOOSE | 1u << KNOWN_REVERSED)

enum known_kind {
	KNOWN_VALUE,
	KNOWN_PLACEHOLDER,
	KNOWN_RANDOM_PLACEHOLDER /* bytes are what all of them begin with; 32 hex digits follow */
};

struct known_item {
	enum known_kind kind;
	unsigned secret;    /* index in the policy; no matter with KNOWN_RANDOM_PLACEHOLDER */
	struct slice bytes; /* at least LIMIT_SECRET_VALUE_MIN; borrowed, unchanged while the set lives */
};

struct known_set;

/* NULL: no memory. items are copied, their bytes are not. forms: of all of them. One reference is the caller's; the
 * last one frees it. */
struct known_set *known_set_new(const struct known_item *items, size_t n, unsigned forms);
struct known_set *known_set_ref(struct known_set *set);
void known_set_unref(struct known_set **set);
bool known_set_is_empty(const struct known_set *set);

/* The most bytes that a match may have. */
size_t known_set_reach(const struct known_set *set);

struct known_match {
	const struct known_item *item;
	enum known_form form;
	unsigned align;    /* with KNOWN_BASE64: bytes of the run's group of three before the value, 0 to 2 */
	size_t start, end; /* in the text; with KNOWN_BASE64 from the first to the last digit that has bits of it */
};

enum known_answer {
	KNOWN_NONE,
	KNOWN_FOUND,  /* *m is the match that begins first; of those, the longest */
	KNOWN_PARTIAL /* none, but m->start to the end of the text may be the beginning of one; nothing before it is */
};

/* The first match in text at or behind `from`. is_end: nothing comes after the text, so that nothing is partial. */
enum known_answer known_find(const struct known_set *set, struct slice text, size_t from, bool is_end,
			     struct known_match *m);

#endif
