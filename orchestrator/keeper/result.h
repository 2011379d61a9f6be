/* What became of a sandbox: lines NAME=VALUE, written once, when all of it is gone. The service reads it, also after a restart. */
#ifndef CAGE_KEEPER_RESULT_H
#define CAGE_KEEPER_RESULT_H

#include "core/base/limits.h"
#include "core/base/slice.h"

enum result_state { RESULT_NONE, RESULT_SUCCEEDED, RESULT_FAILED, RESULT_TIMED_OUT, RESULT_KILLED };

/* Of a room that somebody else measures, and is paid for: what is known of it. */
enum result_mark {
	RESULT_METERED = 1, /* billed_s, vcpu_us and gb_us are told; without it none of what follows is */
	RESULT_HAS_CPU = 2,
	RESULT_HAS_MEMORY = 4,
	RESULT_HAS_NETWORK = 8,
	RESULT_HAS_START = 16, /* it was told from when it is paid for; else it was asked for then */
	RESULT_HAS_END = 32    /* it is known to have gone; else it was there then */
};

struct result {
	enum result_state state;
	char reason
		[32]; /* exit, signal, time.wall, oom, asked, room.failed, keeper.failed, policy, artifact.missing, ... */
	bool has_exit;
	uint64_t exit, signal;       /* of the command; signal 0: none */
	uint64_t began_us, ended_us; /* wall clock; 0: never */
	uint64_t cpu_us, memory_peak, disk_peak, oom;
	uint64_t output_bytes, output_lost;      /* kept, and thrown away */
	uint64_t marks;                          /* of enum result_mark */
	uint64_t memory_average, received, sent; /* bytes */
	uint64_t metered_s;                      /* seconds of which cpu_us and memory are known */
	uint64_t billed_s, vcpu_us, gb_us;       /* paid for: seconds, and millionths of vCPU- and GB-seconds */
	char message[LIMIT_KEEPER_MESSAGE + 1];  /* one line for people, or empty */
};

/* "succeeded"; "none" of what is none. */
const char *result_state_name(enum result_state state);

/* How many bytes it takes; at most LIMIT_KEEPER_RESULT. */
size_t result_format(const struct result *r, char out[LIMIT_KEEPER_RESULT]);

/* False: it is none. Names that are not known are passed over. */
bool result_parse(struct slice bytes, struct result *out);

/* DIR/result. False: it is not there, or none. */
bool result_read(const char *dir, struct result *out);

/* One of its numbers, by its name; others are passed over. False: it is no number, and nothing has changed. */
bool result_take_number(struct result *r, struct slice name, struct slice value);

/* Sets the message, as one line of printable bytes. */
void result_say(struct result *r, struct slice text);

#endif
