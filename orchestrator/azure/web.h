/* HTTP exchanges with Azure by libcurl, several at a time, none of them waited for: the loop of a program calls web_wait(), and looks
 * at what has ended.
 *
 *	EXCHANGE_NONE -> EXCHANGE_RUNS -> EXCHANGE_ENDED -> EXCHANGE_NONE
 *
 * Only https, and http to this machine and to the identity service of a link: a token never goes over the network in plain. Nothing is
 * followed, no proxy and no file of the environment counts. What carried a token is wiped. */
#ifndef CAGE_AZURE_WEB_H
#define CAGE_AZURE_WEB_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>

#include "core/base/limits.h"
#include "core/base/slice.h"
#include "orchestrator/words.h"

struct web {
	void *multi;         /* CURLM */
	const char *ca_file; /* NULL: those of the system */
};

#define WEB_SYSTEM "" /* the certificates of the system, whatever is believed elsewhere */

/* All of it is the caller's, and may be gone when the exchange has begun. */
struct web_request {
	const char *method, *url;
	const struct words *headers; /* "Name: value"; NULL: none */
	struct slice body;           /* no pointer: none */
	const char *ca_file;         /* whom to believe there; NULL: as everywhere else; or WEB_SYSTEM */
	unsigned most_ms;            /* of all of it; 0: LIMIT_ARM_CALL_MS */
};

enum exchange_state { EXCHANGE_NONE, EXCHANGE_RUNS, EXCHANGE_ENDED };

struct exchange {
	enum exchange_state state;
	void *curl, *headers; /* CURL, curl_slist */
	char *sent;           /* owned */
	size_t n_sent;
	/* of EXCHANGE_ENDED */
	long status; /* 0: there was no answer, or not a whole one; why says more */
	char *body;  /* owned; NUL behind it; NULL: none */
	size_t len, room;
	char retry_after[64], operation[LIMIT_ARM_URL], location[LIMIT_ARM_URL];
	char log_next[64], log_lost[8], log_more[8]; /* of a gateway's log (orchestrator/gateway/api.c) */
	char why[256];                               /* with the host's name */
	bool is_disbelieved;                         /* what it showed is not signed by whom is believed there */
};

/* False with a message. */
bool web_open(struct web *w, const char *ca_file);
void web_close(struct web *w);

/* False: it ended before it began, with a `why`. */
bool exchange_begin(struct web *w, struct exchange *x, const struct web_request *r);
void exchange_free(struct web *w, struct exchange *x);

/* Waits for exchanges, and for descriptors as poll() does, for at most so long. */
void web_wait(struct web *w, struct pollfd *fds, size_t n_fds, int ms);

#endif
