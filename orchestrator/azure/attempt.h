/* One request, and how often and when it is made: what is the same for all that is asked over the web with a token (arm.h, and
 * orchestrator/aci/intake.h). When it is made again, and what an answer means, is known to who asks. */
#ifndef CAGE_AZURE_ATTEMPT_H
#define CAGE_AZURE_ATTEMPT_H

#include <stdint.h>

#include "orchestrator/azure/web.h"

struct attempt {
	const char *method; /* stays valid */
	const char *coding; /* of the body, "gzip"; NULL: none; stays valid */
	char *url, *body;   /* owned; body may be NULL */
	size_t n_body;
	unsigned tries, most;        /* how often it was made, and may be */
	unsigned call_ms;            /* of each; 0: as in struct web_request */
	uint64_t until_us, again_us; /* monotonic: after that it is not made any more; the next time that it is */
	struct exchange exchange;    /* the one that runs, or the last one */
};

/* url and body are taken over. It may be made up to `most` times, within LIMIT_ARM_TIME_MS. */
void attempt_begin(struct attempt *a, const char *method, char *url, char *body, size_t n_body, unsigned most);

/* ca_file: as in struct web_request. */
void attempt_send(struct web *w, struct attempt *a, const char *token, const char *ca_file);

/* It was for nothing. True: it is made again at again_us, after what the answer asks for, or else ever longer with some chance in it, so that
 * many do not come back at the same moment. False: that was all. */
bool attempt_rest(struct web *w, struct attempt *a);
bool attempt_is_due(const struct attempt *a);

/* A body may have values of secrets: it is wiped. */
void attempt_free(struct web *w, struct attempt *a);

/* What the service asked for, up to LIMIT_ARM_WAIT_MS. False: it did not. */
bool attempt_asked_ms(const char *retry_after, uint64_t *ms);

/* What a retry waits, in ms: of the try that has failed, and what the service asked for. */
unsigned attempt_wait_ms(unsigned tries, const char *retry_after);

/* From now to then, at most so long. */
int attempt_ms_until(uint64_t at_us, int most_ms);

#endif
