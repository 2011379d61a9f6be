/* Taking the workspace out of the room when all is done: regular files and directories, into kept/. Names and contents are the
 * sandbox's, so that nothing is believed of them: no name leads anywhere, and what all takes on the disk is bounded by what the workspace had.
 * What does not fit, or does not come as a whole, is left out and counted. */
#ifndef CAGE_KEEPER_PULL_H
#define CAGE_KEEPER_PULL_H

#include <stdbool.h>
#include <stdint.h>

#include "core/base/slice.h"

struct keeper;
struct task;

struct pull_entry {
	char *name;      /* "" is the workspace itself */
	uint32_t above;  /* the entry of its directory; its own for the workspace */
	uint32_t length; /* of its path */
	uint16_t depth;
	bool is_dir;
};

struct pull {
	struct pull_entry *entries;
	size_t n, room, at;
	bool is_made; /* the file or directory at `at` is there, and not whole yet */
	int fd;       /* of a file */
	char *list;   /* of a directory, as far as it has come */
	size_t n_list;
	uint64_t size;    /* of the file, as far as it has come */
	uint64_t bytes;   /* that all of it takes on a disk, ... */
	uint64_t allowed; /* ... and may take */
	uint64_t lost;    /* files and directories that could not be taken out */
};

/* The keeper ends when all is done. */
void pull_begin(struct keeper *k);

/* It is over, done or not: says so in the result where something is missing. */
void pull_end(struct keeper *k);

/* May a file be called that? One name, and not one that leads elsewhere. */
bool pull_name_is_good(struct slice name);

struct pull_listed {
	struct slice name;
	uint64_t size;
	bool is_dir;
};

/* Takes one entry of a list: "f 12 NAME". False: it is none that is kept. */
bool pull_entry_parse(struct slice text, struct pull_listed *out);

#endif
