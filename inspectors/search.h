/* One text, looked at in all views with all formats and for all that is known: binds views/, scan/ and known/ together. */
#ifndef CAGE_INSPECTORS_SEARCH_H
#define CAGE_INSPECTORS_SEARCH_H

#include "inspectors/known/known.h"
#include "inspectors/scan/scan.h"
#include "inspectors/views/views.h"

/* What is looked for. Each may be NULL. */
struct search_sets {
	const struct scan_set *catalogue;
	const struct scan_set *own; /* of the policy */
	struct known_set *known;    /* not an empty one; the search takes its own reference */
};

struct search_cb {
	/* offset: of the value, or of the encoded run that it is in, in the text. */
	void (*hit)(void *arg, const struct scan_hit *hit, const struct view *view, uint64_t offset);
	/* Something known, as it stands there. */
	void (*known)(void *arg, const struct known_item *item, struct slice bytes, const struct view *view,
		      uint64_t offset);
	/* An encoded run has ended. May be NULL; without any set too, nothing is looked at. */
	void (*run)(void *arg, enum view_kind kind, uint64_t offset, uint64_t length, struct slice start);
};

struct search;

/* NULL: no memory. */
struct search *search_new(const struct search_sets *sets, const struct search_cb *cb);

/* Ready for a text, which reports to arg. */
void search_start(struct search *s, void *arg);

/* CAGE_OK, or why the text could not be looked at. */
enum cage_status search_feed(struct search *s, struct slice piece) MUST_CHECK;
enum cage_status search_end(struct search *s) MUST_CHECK;

/* What it looks for beside formats; NULL: nothing. */
const struct known_set *search_known(const struct search *s);

/* How many texts it has kept room for: the most that were open at once. */
size_t search_size(const struct search *s);

void search_free(struct search **s);

#endif
