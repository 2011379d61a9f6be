/* What the command has written: frames in the file `output`, up to a bound. What does not fit there, or on the disk, is counted. */
#ifndef CAGE_KEEPER_OUTPUT_H
#define CAGE_KEEPER_OUTPUT_H

#include "orchestrator/inside/frame.h"

struct result;

struct output {
	int fd;
	uint64_t limit; /* bytes of the command's that are kept */
	uint64_t size;  /* of the file: whole frames */
};

/* False with errno. */
bool output_open(struct output *o, uint64_t limit);
void output_put(struct output *o, enum frame_kind kind, struct slice bytes, struct result *r);

#endif
