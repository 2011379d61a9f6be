/* The closed list of reason codes: what the log, the refusal and the metrics say. Documented in docs/log.md;
 * a test keeps the two lists equal. */
#ifndef CAGE_BASE_REASON_H
#define CAGE_BASE_REASON_H

#include "core/base/slice.h"

#define CAGE_REASONS(X)                                 \
	X(NONE, "")                                     \
	/* policy */                                    \
	X(HOST_NOT_ALLOWED, "host.not_allowed")         \
	X(PORT_NOT_ALLOWED, "port.not_allowed")         \
	X(METHOD_NOT_ALLOWED, "method.not_allowed")     \
	X(PATH_NOT_ALLOWED, "path.not_allowed")         \
	X(RULE_DENIED, "rule.denied")                   \
	X(TUNNEL_ONLY, "tunnel.only")                   \
	X(UNINSPECTED, "tunnel.uninspected")            \
	/* names and addresses */                       \
	X(TARGET_MALFORMED, "target.malformed")         \
	X(NAME_SUSPICIOUS, "name.suspicious")           \
	X(NAME_UNBOUND, "name.unbound")                 \
	X(ALIAS_NOT_ALLOWED, "alias.not_allowed")       \
	X(ADDRESS_PRIVATE, "address.private")           \
	X(ADDRESS_OUTSIDE, "address.outside_rule")      \
	X(ADDRESS_SELF, "address.self")                 \
	X(AUTHORITY_MISMATCH, "authority.mismatch")     \
	X(AUTHORITY_MISSING, "authority.missing")       \
	X(CONNECT_CAPTURED, "connect.captured")         \
	/* protocol */                                  \
	X(FRAMING_AMBIGUOUS, "framing.ambiguous")       \
	X(HEAD_MALFORMED, "head.malformed")             \
	X(HEAD_TOO_LARGE, "head.too_large")             \
	X(PROTOCOL_UNKNOWN, "protocol.unknown")         \
	X(QUERY_MALFORMED, "query.malformed")           \
	X(QUERY_TYPE, "query.type")                     \
	X(BODY_TOO_LARGE, "body.too_large")             \
	X(BODY_MALFORMED, "body.malformed")             \
	X(BODY_UNDECODABLE, "body.undecodable")         \
	X(CLIENT_TLS_FAILED, "client.tls_failed")       \
	X(CLIENT_TIMEOUT, "client.timeout")             \
	X(CLIENT_GONE, "client.gone")                   \
	/* content */                                   \
	X(SECRET_DETECTED, "secret.detected")           \
	X(SECRET_MISPLACED, "secret.misplaced")         \
	X(SECRET_LEAKED, "secret.leaked")               \
	X(SECRET_SLOT, "secret.slot")                   \
	X(SECRET_UNAVAILABLE, "secret.unavailable")     \
	X(CANARY_DETECTED, "canary.detected")           \
	X(EXTERNAL_BLOCKED, "external.blocked")         \
	X(EXTERNAL_FLAGGED, "external.flagged")         \
	X(EXTERNAL_UNAVAILABLE, "external.unavailable") \
	X(ENTROPY_HIGH, "entropy.high")                 \
	X(ENCODED_BLOB, "encoded.blob")                 \
	X(TYPE_MISMATCH, "type.mismatch")               \
	/* tools of a sandbox */                        \
	X(TOOL_NOT_ALLOWED, "tool.not_allowed")         \
	X(TOOL_COMMAND, "tool.command")                 \
	X(TOOL_PATH, "tool.path")                       \
	X(TOOL_ARGUMENTS, "tool.arguments")             \
	/* who asks */                                  \
	X(AUTH_REQUIRED, "auth.required")               \
	X(AUTH_FAILED, "auth.failed")                   \
	/* limits and our own lack */                   \
	X(LIMIT_RATE, "limit.rate")                     \
	X(LIMIT_BUDGET, "limit.budget")                 \
	X(LIMIT_COUNTERS, "limit.counters")             \
	X(LIMIT_HOLD, "limit.hold")                     \
	X(LIMIT_CONNECTIONS, "limit.connections")       \
	X(LIMIT_TOOL, "limit.tool")                     \
	X(LOG_UNAVAILABLE, "log.unavailable")           \
	X(SIGNER_UNAVAILABLE, "signer.unavailable")     \
	X(WORKER_DIED, "worker.died")                   \
	X(SHUTTING_DOWN, "shutting.down")               \
	X(INTERNAL, "internal.error")                   \
	/* upstream */                                  \
	X(NAME_UNRESOLVED, "name.unresolved")           \
	X(UPSTREAM_UNREACHABLE, "upstream.unreachable") \
	X(UPSTREAM_UNVERIFIED, "upstream.unverified")   \
	X(UPSTREAM_TIMEOUT, "upstream.timeout")         \
	X(UPSTREAM_MALFORMED, "upstream.malformed")     \
	X(UPSTREAM_TRUNCATED, "upstream.truncated")     \
	/* the policy itself */                         \
	X(POLICY_LOADED, "policy.loaded")               \
	X(POLICY_REJECTED, "policy.rejected")           \
	X(POLICY_CHANGED, "policy.changed")

enum reason {
#define X(name, text) REASON_##name,
	CAGE_REASONS(X)
#undef X
		REASON_COUNT
};

/* The code, such as "host.not_allowed"; empty for REASON_NONE. */
struct slice reason_code(enum reason r);

#endif
