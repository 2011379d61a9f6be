/* What a container group tells of itself: when its images were pulled and its containers begun, and what it was given. Whatever is not
 * there, or is not what it should be, is not known. */
#ifndef CAGE_AZURE_INSTANCE_H
#define CAGE_AZURE_INSTANCE_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

/* Wall clock of Azure, in microseconds; 0: not known. */
struct instance_times {
	uint64_t pulling; /* the first pull of an image, of whatever container */
	uint64_t pulled;  /* the last one that has ended */
	uint64_t begun;   /* the first container */
	uint64_t started; /* the container that was asked about */
};

void instance_times(const json_t *group, const char *container, struct instance_times *out);

/* What is paid for: all containers together. Also of the body that a group is asked for with. */
struct instance_share {
	uint64_t cpu_hundredths;     /* of a vCPU */
	uint64_t memory_thousandths; /* thousandths of a GB */
};

/* False: it is not told, or absurd. */
bool instance_share(const json_t *group, struct instance_share *out);

/* The state of a container, an object; NULL: none. */
const json_t *instance_state(const json_t *group, const char *container);

#define INSTANCE_CODE_UNKNOWN (-1)

/* What a state tells of the end of its container: 0 to 255; INSTANCE_CODE_UNKNOWN: nothing, or what there can't be. */
int instance_exit_code(const json_t *state);

#endif
