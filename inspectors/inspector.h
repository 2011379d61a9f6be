/* Inspectors: what looks at every request before it leaves. Start reading here, then chain.h, which runs them.
 *
 * An inspector is a const table of functions in a file of its own. table.c names them in the order in which they run.
 * README.md beside this file shows how to write one.
 *
 * Glossary: the *subject* is the request that is looked at; an *inspection* is one inspector at work on one subject; a
 * *finding* is what it reports; a *place* is a part of the request; a *view* is what a text is once it is decoded
 * (views/views.h); a *hit* is a confirmed match of a format in some view (scan/scan.h). */
#ifndef CAGE_INSPECTORS_INSPECTOR_H
#define CAGE_INSPECTORS_INSPECTOR_H

#include "core/base/reason.h"
#include "core/http/message.h"
#include "core/policy/load.h"
#include "core/policy/policy.h"
#include "inspectors/scan/scan.h"
#include "inspectors/views/views.h"

/* What is done about a finding. */
enum inspect_action { ACTION_OFF, ACTION_FLAG, ACTION_BLOCK };

/* An inspection's answer. Findings are reported beside it; a finding that blocks ends the chain by itself. */
enum inspect_result {
	INSPECT_PASS,
	INSPECT_HOLD,  /* nothing more may leave until inspection_resume() */
	INSPECT_DONE,  /* not interested in the rest of this subject */
	INSPECT_FAILED /* something broke: a block */
};

/* A message of a stream that a request has opened, such as a websocket's. */
enum message_kind { MESSAGE_NONE, MESSAGE_TEXT, MESSAGE_BINARY, MESSAGE_CONTROL };

enum place { PLACE_HOST, PLACE_METHOD, PLACE_PATH, PLACE_QUERY, PLACE_HEADER, PLACE_BODY, PLACE_TRAILER };

/* Where something stands. */
struct spot {
	enum place place;
	struct slice name; /* of the field, with PLACE_HEADER and PLACE_TRAILER */
	bool is_joined; /* there: in the values of all fields together, each of which was searched by itself before */
	struct view view;
	uint64_t offset; /* in the outermost text of that place: of a body once its content codings are undone */
};

struct finding {
	const struct inspector *by;
	enum inspect_action action;
	enum reason reason;
	struct slice id; /* of the format or canary, if it is about one; lives as long as the policy */
	struct spot spot;
	uint64_t fingerprint; /* of the value, keyed; 0: none */
	const char *why;      /* a clause that says more to the client; never of a peer; NULL: none */
};

struct subject {
	const struct target *target;
	struct slice method;
	const struct message *head;     /* NULL at a CONNECT */
	const struct policy_rule *rule; /* that applies; NULL when one is only observed to be missing */
	const struct host_match *match; /* how it fits the host; NULL: that has to be looked for */
	struct slice sandbox;
	uint64_t txn;              /* its id in the log */
	enum message_kind message; /* MESSAGE_NONE: the request itself, else a message behind it */

	/* What is searched instead of head and target: the same, without placeholders of secrets where they may stand. NULL: those
	 * themselves. */
	const struct message *search_head;
	const struct target *search_target;
	const struct slice *body_placeholders; /* those that may stand in the body */
	size_t n_body_placeholders;
};

/* Does the rule that applies spell out the host, so that no wildcard was needed? */
bool subject_host_is_listed(const struct subject *s);

/* What names are counted under: the registrable domain of the host, or what the rule's wildcard stands before, whichever is
 * wider ("*.github.io": each name below it is registrable by itself). */
struct slice subject_domain(const struct subject *s);

struct inspection;

struct inspector {
	struct slice name;          /* its section of the policy, and what the log calls it */
	enum inspect_action action; /* unless the policy says otherwise */

	/* Its section: `action` is read by the chain; these are its other keys, which are read into conf. */
	size_t conf_size;
	const void *conf_default;
	const struct key *keys;
	size_t n_keys;
	/* After the keys: checks what belongs together. Some may be wrong, which was said already, and not be in conf. */
	void (*check)(struct loader *l, const struct node *section, void *conf);
	/* The formats that it looks for beyond the catalogue. */
	const struct format *(*formats)(const void *conf, size_t *n);

	/* At work. Each may be NULL. State is zeroed memory that ends with the subject. */
	size_t state_size;
	enum inspect_result (*on_name)(struct inspection *); /* a host, before anything else */
	enum inspect_result (*on_head)(struct inspection *); /* a whole head */
	/* A message begins, in place of on_name and on_head; it goes on like a body. */
	enum inspect_result (*on_message)(struct inspection *);
	enum inspect_result (*on_raw)(struct inspection *, struct slice piece);  /* the body as it came */
	enum inspect_result (*on_body)(struct inspection *, struct slice piece); /* the body, codings undone */
	/* A message in the body is whole, and may leave before there is more: now or never, if it is to be found. */
	enum inspect_result (*on_pause)(struct inspection *);
	enum inspect_result (*on_trailers)(struct inspection *, const struct field *fields, size_t n);
	enum inspect_result (*on_hit)(struct inspection *, const struct scan_hit *hit, const struct spot *spot);
	/* A run of base64 or hex in a head or body has ended; start is what it began with: RUN_START bytes or all. */
	enum inspect_result (*on_run)(struct inspection *, enum view_kind kind, uint64_t length,
				      const struct spot *spot, struct slice start);
	enum inspect_result (*on_end)(struct inspection *);
	void (*release)(struct inspection *); /* gives back what does not end with the state */
};

/* In the order in which they run; defined in table.c. */
extern const struct inspector *const inspectors[];
extern const size_t n_inspectors;

/* ---- for inspectors at work ---- */

const struct subject *inspection_subject(const struct inspection *i);
const void *inspection_conf(const struct inspection *i);
void *inspection_state(struct inspection *i);
struct ledger *inspection_ledger(struct inspection *i);
struct external *inspection_external(struct inspection *i); /* NULL: nobody to talk to */

/* Bytes of the body so far: as they came, and with codings undone. */
uint64_t inspection_raw_bytes(const struct inspection *i);
uint64_t inspection_body_bytes(const struct inspection *i);

/* Reports with the action that the policy has for this inspector, or with a given one. value: what the fingerprint is
 * made of; may be empty. id: empty, or of the policy. */
void inspection_report(struct inspection *i, enum reason reason, const struct spot *spot, struct slice id,
		       struct slice value);
void inspection_report_as(struct inspection *i, enum inspect_action action, enum reason reason, const struct spot *spot,
			  struct slice id, struct slice value);

/* What findings of this inspection say from now on beside their reason: a clause of the program's own text. */
void inspection_explain(struct inspection *i, const char *why);

/* Changes the request before it is sent: fields of that name go and, if value has a ptr, one with it takes their place.
 * Copied. The fields that frame or route a request are not to be changed. False: no memory, which must block. */
bool inspection_rewrite(struct inspection *i, struct slice name, struct slice value) MUST_CHECK;

/* After INSPECT_HOLD, from the event loop: the answer at last. The run may be gone when this returns. */
void inspection_resume(struct inspection *i, enum inspect_result result);

/* For refusals that a later try may escape: how long to wait. */
void inspection_retry_after(struct inspection *i, uint64_t us);

#endif
