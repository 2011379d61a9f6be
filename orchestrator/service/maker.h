/* Backends whose rooms are made by a program of their own, cage-pod or cage-aci, in the place of `cage run`. Their keepers are those of
 * the local backend, with words for that program in their spec; what it has made outside of a sandbox's directory is found by it, by
 * labels or tags, and removed by it too. */
#ifndef CAGE_SERVICE_MAKER_H
#define CAGE_SERVICE_MAKER_H

#include "orchestrator/backend.h"

struct maker {
	const char *program;    /* "cage-pod" */
	const char *word;       /* that begins what the spec has for it: "pod=" */
	const char *const *env; /* names of variables of ours that it has too, up to a NULL; NULL: none */
	struct words options;   /* of it, as configured */
	bool is_used;           /* the configuration has it */
};

/* It is one of the backends from now on. */
void maker_use(struct maker *m);

/* An option of its program, "--image"; for all sandboxes that are started from now on. */
void maker_set(struct maker *m, const char *option, const char *value);
void maker_forget(struct maker *m);

/* Is there all that it needs? May take long. The exit code of its program, after it was said why not: 2, what is configured is wrong. */
int maker_check(const struct maker *m);

/* What a spec has for it, and for the run: all that is configured, the image that a create names, a CA of the sandbox's own. */
struct words maker_words(const struct maker *m, const struct backend_start *s);

/* As the functions of a backend have it (orchestrator/backend.h). */
bool maker_has_groups(const struct backend *self);
pid_t maker_start(const struct backend *self, const struct backend_start *s);
bool maker_begin(const struct backend *self, const struct backend_start *s);
bool maker_list(const struct backend *self, const char *state);
void maker_tidy(const struct backend *self, const char *state);
bool maker_has_started(const struct backend *self, const char *dir);
bool maker_reap(const struct backend *self, const char *dir);
bool maker_remove(const struct backend *self, const char *dir);

/* A row of the table of backends. */
#define MAKER_BACKEND(its_name, its_maker)                                                                        \
	{                                                                                                         \
		.name = (its_name), .maker = (its_maker), .takes_images = true, .has_groups = maker_has_groups,   \
		.start = maker_start, .begin = maker_begin, .list = maker_list, .has_started = maker_has_started, \
		.tidy = maker_tidy, .reap = maker_reap, .remove = maker_remove                                    \
	}

#endif
