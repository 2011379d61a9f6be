/* One decision, as it goes into the log. docs/log.md describes each key; docs/log.schema.json is checked by the tests.
 */
#ifndef CAGE_AUDIT_EVENT_H
#define CAGE_AUDIT_EVENT_H

#include "core/base/addr.h"
#include "core/base/limits.h"
#include "core/base/reason.h"
#include "core/base/slice.h"
#include "core/base/text.h"

enum audit_kind {
	AUDIT_START,
	AUDIT_POLICY,
	AUDIT_CONNECT,  /* refusals before any request, and tunnels */
	AUDIT_REQUEST,  /* the decision; in the ring before the first byte goes upstream */
	AUDIT_RESPONSE, /* the result of a request or tunnel */
	AUDIT_MESSAGE,  /* about one message of a stream */
	AUDIT_DNS,      /* about one query of a name, or its answer */
	AUDIT_TOOL,     /* about one tool call in a sandbox, before it is made */
	AUDIT_SECRET,   /* about one reading of a secret from a vault */
	AUDIT_ERROR,
	AUDIT_STOP
};

enum audit_decision { DECISION_NONE, DECISION_ALLOW, DECISION_FLAG, DECISION_BLOCK, DECISION_ERROR };

enum audit_stage {
	STAGE_NONE,
	STAGE_CONNECT,
	STAGE_TLS,
	STAGE_HEAD,
	STAGE_BODY,
	STAGE_MESSAGE,
	STAGE_UPSTREAM,
	STAGE_RESPONSE,
	STAGE_DNS,
	STAGE_POLICY,
	STAGE_LOG
};

/* What an inspector found, as it is logged: never the value itself. */
struct audit_finding {
	struct slice inspector;
	enum audit_decision action; /* flag or block */
	enum reason reason;
	struct slice id;    /* of a format or canary; may be empty */
	struct slice where; /* "body", "header:x-key" */
	struct slice view;  /* how it was encoded there: "base64", "json+hex"; may be empty */
	uint64_t offset;
	uint64_t fingerprint; /* 0: absent */
};

/* Keys are absent from the line when empty or, for numbers, when the matching has_ bit is false. */
struct audit_event {
	uint64_t ts_us; /* wall clock */
	enum audit_kind kind;
	struct slice sandbox;
	struct slice policy; /* of a struct audit_policy; may be empty */
	uint64_t conn, txn;  /* 0: absent */
	enum audit_decision decision;
	bool observed; /* "enforced": false; written with every decision block, true otherwise */
	enum reason reason;
	enum audit_stage stage;
	struct slice rule, method, scheme, host;
	uint16_t port; /* 0: absent */
	struct slice path, alpn;
	const struct addr *address;
	int status; /* 0: absent */
	bool has_bytes;
	uint64_t bytes_out, bytes_in, inspected_out, inspected_in;
	bool has_times;
	uint64_t us_dns, us_connect, us_tls, us_inspect, us_total; /* written under "ms" with three decimals */
	const struct audit_finding *findings;
	size_t n_findings;
	const struct slice *injected, *redacted; /* ids of secrets */
	size_t n_injected, n_redacted;           /* at most LIMIT_LOG_SECRETS are written */
};

/* The policy of an event: name, hash and generation, as they stand in the line. Many lines have the same, so it is made once. */
struct audit_policy {
	size_t len;
	char text[6 * LIMIT_POLICY_NAME + 128];
};

void audit_policy_init(struct audit_policy *p, struct slice name, struct slice sha, uint64_t gen);
struct slice audit_policy_text(const struct audit_policy *p);

/* "allow", "block" and so on; empty for DECISION_NONE. */
struct slice audit_decision_text(enum audit_decision d);

/* The middle of the line, from `"event":` to before `,"prev"`: without braces. The writer adds the rest.
 * All strings are escaped; overflow is left in t. */
void audit_event_write(struct text *t, const struct audit_event *e);

#endif
