/* Backends whose rooms are made by a program of their own, cage-pod or cage-aci, in the place of `cage run`. Their keepers are those of
 * the local backend, with words for that program in their spec; what it has made outside of a sandbox's directory is found by it, by
 * labels or tags, and removed by it too. */
#ifndef CAGE_SERVICE_MAKER_H
#define CAGE_SERVICE_MAKER_H

#include "orchestrator/backend.h"

struct maker {
	const char *program;  /* "cage-pod" */
	const char *word;     /* that begins what the spec has for it: "pod=" */
	struct words options; /* of it, as configured */
	bool is_used;         /* the configuration has it */
};

/* It is one of the backends from now on. */
void maker_use(struct maker *m);

/* An option of its program, "--image"; for all sandboxes that are started from now on. */
void maker_set(struct maker *m, const char *option, const char *value);
void maker_forget(struct maker *m);

/* Is there all that it needs? May take long. False after it was said why not. more: an option; NULL: none. */
bool maker_check(struct maker *m, const char *state, const char *more);

/* Its program with all that is configured, to which a word is added. */
struct words maker_line(const struct maker *m, const char *state);

/* What a spec has for it, and for the run: all that is configured, the image that a create names, a CA of the sandbox's own. */
struct words maker_words(struct maker *m, const struct backend_start *s);

/* As the functions of a backend have it (orchestrator/backend.h). */
pid_t maker_start(struct maker *m, const struct backend_start *s);
bool maker_begin(struct maker *m, const struct backend_start *s);
bool maker_list(const char *state);
void maker_tidy(struct maker *m, const char *state);
bool maker_has_started(struct maker *m, const char *dir);
bool maker_reap(struct maker *m, const char *dir);
bool maker_remove(struct maker *m, const char *dir);

#endif
