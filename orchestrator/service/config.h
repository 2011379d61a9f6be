/* The configuration of the service: one YAML file, and CAGE_... variables over it. */
#ifndef CAGE_SERVICE_CONFIG_H
#define CAGE_SERVICE_CONFIG_H

#include <jansson.h>

#include "core/base/cost.h"
#include "core/net/listener.h"
#include "orchestrator/backend.h"
#include "orchestrator/service/ceiling.h"
#include "orchestrator/service/queue.h"
#include "orchestrator/words.h"

#define CONFIG_PATH 4096

/* What one sandbox may use. */
struct sandbox_limits {
	double cpu; /* processors */
	uint64_t memory, pids, disk, wall_s, egress, output, lifetime_s;
};

struct config {
	struct listen_spec listen[LIMIT_SERVE_LISTENERS];
	size_t n_listen; /* 0: the socket in the state directory */
	char state[CONFIG_PATH];
	char policies[CONFIG_PATH];   /* "": no policy can be named */
	struct ceiling *ceiling;      /* NULL: none */
	char signatures[CONFIG_PATH]; /* of images (orchestrator/image/signatures.h); "": none */
	struct queue_rules queue;
	uint64_t queued;       /* that may wait */
	uint64_t retention_us; /* of what has ended */
	uint64_t records_us;   /* of the record of a deleted one, from its end, ... */
	uint64_t usage_us;     /* ... and of its numbers, from its creation */
	uint64_t log_max;      /* bytes of each log of a sandbox */
	uint64_t warm_age_us;  /* that a room stands ready, at most */
	struct sandbox_limits defaults, maximum;
	char publish[LIMIT_KEEPER_PUBLISHED][64]; /* addresses that ports may be published on, beside 127.0.0.1 */
	size_t n_publish;
	json_t *profiles;                                     /* name to what a create may say */
	json_t *warm;                                         /* name of a profile to how many rooms stand ready */
	json_t *warm_at;                                      /* and to where that stands: line and column */
	json_t *rootfs;                                       /* name to the directory that is the root of a room */
	const struct backend *backends[LIMIT_SERVE_BACKENDS]; /* that a create may name; the first if it names none */
	size_t n_backends;
	char mode[16];            /* of the local backend */
	struct prices prices;     /* of rooms of this machine */
	struct prices aci_prices; /* of groups of Azure */
	struct {
		char webhook[1024]; /* "": none */
		bool log;
		uint64_t egress, blocks; /* more than that is told; 0: never */
	} alerts;
	struct {
		struct words options;         /* of cage-ship; none: nothing is shipped */
		uint64_t keep_bytes, keep_us; /* of logs that were not shipped when their sandbox was removed */
	} ship;
};

/* file: NULL, all as it is without one. The variables of the environment count in any case. False once it was said what is
 * wrong, all of it. */
bool config_read(struct config *c, const char *file);

/* One more place to listen on, as the file and --listen have it; false with a reason. */
bool config_add_listener(struct config *c, const char *text, const char **why);
void config_free(struct config *c);

#endif
