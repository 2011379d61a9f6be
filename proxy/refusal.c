/* Refusals: status, sentence and hint of every reason, and the response made of them. */
#include "proxy/refusal.h"

#include "core/base/addr.h"
#include "core/base/limits.h"

#define SENTENCE_ROOM (REFUSAL_ROOM / 4)

struct answer {
	int status;
	const char *phrase, *message, *hint;
};

#define FORBIDDEN 403, "Forbidden"
#define BAD_REQUEST 400, "Bad Request"
#define BAD_GATEWAY 502, "Bad Gateway"
#define UNAVAILABLE 503, "Service Unavailable"

static const struct answer answers[REASON_COUNT] = {
	[REASON_NONE] = {FORBIDDEN, "The request was refused.", "See the log."},
	[REASON_HOST_NOT_ALLOWED] = {FORBIDDEN, "No rule of the policy allows this host.",
				     "Ask for a rule that lists this host."},
	[REASON_PORT_NOT_ALLOWED] =
		{FORBIDDEN, "The policy does not allow this port on this host.",
		 "Ask for the port in the rule of this host; rules allow 443 unless they say otherwise."},
	[REASON_METHOD_NOT_ALLOWED] = {FORBIDDEN, "The policy does not allow this method here.",
				       "Ask for the method in the rule of this host."},
	[REASON_PATH_NOT_ALLOWED] = {FORBIDDEN, "The policy does not allow this path on this host.",
				     "Ask for the path in the rule of this host."},
	[REASON_RULE_DENIED] = {FORBIDDEN, "A deny rule of the policy covers this request.",
				"Only a change of that deny rule would allow it."},
	[REASON_TUNNEL_ONLY] = {FORBIDDEN, "This host and port are for an opaque tunnel only.",
				"Connect with CONNECT, or ask for an allow rule instead of the tunnel."},
	[REASON_UNINSPECTED] = {FORBIDDEN, "The tunnel was refused.", "See the log."},
	[REASON_TARGET_MALFORMED] = {BAD_REQUEST, "The target is not a well-formed host, port or path.",
				     "Send a plain host name or a canonical address, and a clean path."},
	[REASON_NAME_SUSPICIOUS] = {FORBIDDEN, "The name spells out an address that is not public, or looks like data.",
				    "Use the name of the service itself, or ask for a rule that lists it."},
	[REASON_ALIAS_NOT_ALLOWED] = {FORBIDDEN, "The name is an alias of one that no rule allows.",
				      "Ask for a rule that lists the other name too."},
	[REASON_NAME_UNBOUND] = {FORBIDDEN, "cage-dns has answered no address for this name, or its time is over.",
				 "Ask cage-dns for the name first, and connect soon."},
	[REASON_ADDRESS_PRIVATE] = {FORBIDDEN, "The name or address leads into a private or special range.",
				    "Ask for a rule for this host that lists the range under addresses; metadata "
				    "addresses can't be listed."},
	[REASON_ADDRESS_OUTSIDE] = {FORBIDDEN, "The name leads to an address outside the rule's addresses.",
				    "Ask for the range in the rule's addresses."},
	[REASON_ADDRESS_SELF] = {FORBIDDEN, "The target is the cage itself.", "Nothing allows this."},
	[REASON_AUTHORITY_MISMATCH] = {FORBIDDEN, "CONNECT, SNI and Host name different hosts.",
				       "Send the same name in all of them."},
	[REASON_CONNECT_CAPTURED] = {FORBIDDEN, "The connection goes past the proxy, to a port that is not captured.",
				     "Use the proxy: HTTP_PROXY and HTTPS_PROXY say where it is."},
	[REASON_AUTHORITY_MISSING] = {FORBIDDEN, "The connection names no host: it has neither SNI nor Host.",
				      "Send the name of the host as SNI or Host, or ask for a rule that lists the "
				      "address."},
	[REASON_FRAMING_AMBIGUOUS] = {BAD_REQUEST, "The length of the body can be read in two ways.",
				      "Send one Content-Length or one Transfer-Encoding: chunked."},
	[REASON_HEAD_MALFORMED] = {BAD_REQUEST, "The request head is not well-formed HTTP/1.1.",
				   "Send a request head that follows RFC 9112."},
	[REASON_HEAD_TOO_LARGE] = {431, "Request Header Fields Too Large", "The request head is too large.",
				   "Send at most 64 KiB and 200 fields."},
	[REASON_PROTOCOL_UNKNOWN] = {FORBIDDEN, "This is neither TLS nor HTTP/1.1 where one of them must be.",
				     "Speak TLS on port 443, HTTP on port 80; other protocols need a tunnel rule."},
	[REASON_QUERY_MALFORMED] = {FORBIDDEN, "This is not a DNS query.", "Mend the client."},
	[REASON_QUERY_TYPE] = {FORBIDDEN, "This type of DNS query is not answered.",
			       "Ask for the type in dns.types of the policy."},
	[REASON_BODY_TOO_LARGE] =
		{FORBIDDEN, "The request body is larger than the rule allows.",
		 "Send it in smaller parts, or ask for a higher limits.body or limits.out in the rule."},
	[REASON_BODY_MALFORMED] = {BAD_REQUEST, "The request body breaks its own framing.",
				   "Send well-formed chunks and trailers."},
	[REASON_BODY_UNDECODABLE] = {FORBIDDEN, "The request body can't be decoded, so nobody can look at it.",
				     "Send it with gzip, deflate, br or zstd, at most three deep, or without any."},
	[REASON_SECRET_DETECTED] =
		{FORBIDDEN, "The request carries what looks like a credential that does not belong to this host.",
		 "Take it out; or ask for the format to be allowed at this rule (inspectors.secrets.allow)."},
	[REASON_SECRET_MISPLACED] = {FORBIDDEN, "The placeholder of a secret is where the secret may not go.",
				     "Use it only at the hosts and in the slots that the policy gives it."},
	[REASON_SECRET_LEAKED] = {FORBIDDEN, "The request carries the real value of a secret.",
				  "Take it out. Nothing allows this; use the placeholder."},
	[REASON_SECRET_SLOT] = {FORBIDDEN,
				"Where a secret is put in, the request has something else than its placeholder.",
				"Send the placeholder there."},
	[REASON_SECRET_UNAVAILABLE] = {UNAVAILABLE, "A secret that this request needs is not available.",
				       "Try again later; the operator must bring it back."},
	[REASON_CANARY_DETECTED] = {FORBIDDEN, "The request carries a string that must never leave.",
				    "Take it out. Nothing allows this."},
	[REASON_EXTERNAL_BLOCKED] = {FORBIDDEN, "An inspector of the operator refused the request.",
				     "Ask the operator."},
	[REASON_EXTERNAL_FLAGGED] = {FORBIDDEN, "An inspector of the operator noted the request.", "See the log."},
	[REASON_EXTERNAL_UNAVAILABLE] = {UNAVAILABLE, "An inspector of the operator is not available.",
					 "Try again later; the operator must mend it."},
	[REASON_ENTROPY_HIGH] = {FORBIDDEN, "The request carries data that looks encrypted or compressed.",
				 "Send it readable, or ask for another inspectors.entropy."},
	[REASON_ENCODED_BLOB] = {FORBIDDEN, "The request carries a long run of encoded data.",
				 "Send it readable, or ask for another inspectors.encoded_blob."},
	[REASON_TYPE_MISMATCH] = {FORBIDDEN, "The request body is not what its Content-Type says.",
				  "Declare what is sent."},
	[REASON_CLIENT_TLS_FAILED] = {FORBIDDEN, "The TLS handshake with the client failed.", "Trust cage's CA."},
	[REASON_CLIENT_TIMEOUT] = {408, "Request Timeout", "The request took too long to arrive.", "Send it faster."},
	[REASON_CLIENT_GONE] = {BAD_REQUEST, "The client went away.", "Nothing to do."},
	[REASON_TOOL_NOT_ALLOWED] = {FORBIDDEN, "This tool is not among those of the sandbox.",
				     "Create the sandbox with this tool."},
	[REASON_TOOL_COMMAND] = {FORBIDDEN, "The command is one of those that are blocked.", "Use another command."},
	[REASON_TOOL_PATH] = {FORBIDDEN, "The path leads out of the workspace.", "Name a file of the workspace."},
	[REASON_TOOL_ARGUMENTS] = {FORBIDDEN, "The arguments are not those of the tool.", "Mend them."},
	[REASON_LIMIT_TOOL] = {UNAVAILABLE, "Too many tool calls are under way.", "Try again later."},
	[REASON_AUTH_REQUIRED] = {407, "Proxy Authentication Required", "This proxy wants to know which sandbox asks.",
				  "Send Proxy-Authorization: Basic with sandbox and token."},
	[REASON_AUTH_FAILED] = {407, "Proxy Authentication Required", "Sandbox and token are not known here.",
				"Send the token that was given to this sandbox."},
	[REASON_LIMIT_RATE] = {429, "Too Many Requests", "Too much of this in too short a time.", "Try again later."},
	[REASON_LIMIT_BUDGET] = {429, "Too Many Requests",
				 "The budget of bytes, of the rule or of the sandbox, is used up.",
				 "That of a rule comes back with time; that of a sandbox is for all of its life."},
	[REASON_LIMIT_COUNTERS] = {UNAVAILABLE,
				   "Too many rates, budgets and names of this sandbox are counted already.",
				   "Try again later, and ask for fewer different things."},
	[REASON_LIMIT_HOLD] = {UNAVAILABLE, "Too many request bodies are held for inspection just now.",
			       "Try again later."},
	[REASON_LIMIT_CONNECTIONS] = {UNAVAILABLE, "Too many connections are open just now.", "Try again later."},
	[REASON_LOG_UNAVAILABLE] = {UNAVAILABLE, "The decision log can't be written, so nothing is let out.",
				    "Try again later; the operator must make room for the log."},
	[REASON_SIGNER_UNAVAILABLE] = {UNAVAILABLE, "No certificate can be made for this name just now.",
				       "Try again later."},
	[REASON_WORKER_DIED] = {UNAVAILABLE, "A worker ended unexpectedly.", "Try again."},
	[REASON_SHUTTING_DOWN] = {UNAVAILABLE, "The proxy is shutting down.", "Try again later."},
	[REASON_INTERNAL] = {UNAVAILABLE, "Something inside the proxy failed, so nothing was let out.", "Try again."},
	[REASON_NAME_UNRESOLVED] = {BAD_GATEWAY, "The name has no address.", "Check the name."},
	[REASON_UPSTREAM_UNREACHABLE] = {BAD_GATEWAY, "The server can't be reached.", "Try again later."},
	[REASON_UPSTREAM_UNVERIFIED] = {BAD_GATEWAY, "The server's certificate can't be verified.",
					"The server needs a valid certificate, or its CA must be in upstream.trust."},
	[REASON_UPSTREAM_TIMEOUT] = {504, "Gateway Timeout", "The server did not answer in time.", "Try again later."},
	[REASON_UPSTREAM_MALFORMED] = {BAD_GATEWAY, "The server's response is not well-formed HTTP.",
				       "The server must be mended."},
	[REASON_UPSTREAM_TRUNCATED] = {BAD_GATEWAY, "The server ended the connection before its response was complete.",
				       "Try again."},
	[REASON_POLICY_LOADED] = {FORBIDDEN, "The policy was loaded.", ""},
	[REASON_POLICY_REJECTED] = {FORBIDDEN, "The policy was rejected.", ""},
	[REASON_POLICY_CHANGED] = {FORBIDDEN, "The policy has changed and no longer allows this.",
				   "Ask for a rule that allows it."},
};

static const struct answer *answer_for(enum reason r)
{
	return &answers[r < REASON_COUNT ? r : REASON_INTERNAL];
}

int refusal_status(enum reason r)
{
	return answer_for(r)->status;
}

bool refusal_is_upstream_failure(enum reason r)
{
	int status = refusal_status(r);
	return status == 502 || status == 504;
}

static void put_member(struct text *t, const char *key, struct slice value)
{
	if (value.len == 0)
		return;
	text_put(t, SLICE(",\""));
	text_put(t, slice_str(key));
	text_put(t, SLICE("\":\""));
	text_put_json(t, value);
	text_put_char(t, '"');
}

/* The reason's sentence; with a detail that is a sentence of its own, that one; with a clause, both. */
static void put_sentence(struct text *t, const struct refusal *r)
{
	struct slice sentence = slice_str(answer_for(r->reason)->message);
	struct slice detail = r->detail ? slice_str(r->detail) : SLICE_NONE;
	if (slice_ends(detail, SLICE("."))) {
		text_put(t, detail);
		return;
	}
	text_put(t, detail.len > 0 ? slice_head(sentence, sentence.len - 1) : sentence);
	if (detail.len == 0)
		return;
	text_put(t, SLICE(": "));
	text_put(t, detail);
	text_put_char(t, '.');
}

static struct slice error_of(enum reason r)
{
	return refusal_is_upstream_failure(r) ? SLICE("upstream_failed") : SLICE("blocked_by_cage");
}

/* Of the client's own machine, which is no matter of ours: a rule would lead to that of the proxy. */
static struct slice hint_of(const struct refusal *r)
{
	struct addr addr;
	bool is_loopback = slice_eq(r->host, SLICE("localhost")) || slice_ends(r->host, SLICE(".localhost")) ||
			   (addr_parse(r->host, &addr) && addr_is_loopback(&addr));
	if (is_loopback && (r->reason == REASON_HOST_NOT_ALLOWED || r->reason == REASON_ADDRESS_PRIVATE))
		return SLICE("Connect to servers of your own machine without the proxy: curl --noproxy '*', or "
			     "NO_PROXY=localhost,127.0.0.1,::1.");
	return slice_str(answer_for(r->reason)->hint);
}

static void write_body(struct text *t, const struct refusal *r)
{
	char room[SENTENCE_ROOM];
	struct text sentence = text_in(room, sizeof(room));
	put_sentence(&sentence, r);
	text_put(t, SLICE("{\"error\":\""));
	text_put(t, error_of(r->reason));
	text_put_char(t, '"');
	put_member(t, "reason", reason_code(r->reason));
	put_member(t, "host", r->host);
	put_member(t, "rule", r->rule);
	put_member(t, "message", text_slice(&sentence));
	put_member(t, "hint", hint_of(r));
	text_put(t, SLICE(",\"txn\":\""));
	text_put_hex64(t, r->txn);
	text_put(t, SLICE("\"}\n"));
}

/* ---- gRPC ---- */

struct slice refusal_grpc_status(enum reason r)
{
	switch (refusal_status(r)) {
	case 429:
		return SLICE("8"); /* RESOURCE_EXHAUSTED */
	case 502:
	case 503:
	case 504:
		return SLICE("14"); /* UNAVAILABLE */
	default:
		return SLICE("7"); /* PERMISSION_DENIED */
	}
}

static void put_percent_encoded(struct text *t, struct slice words)
{
	for (size_t i = 0; i < words.len; i++) {
		unsigned char c = (unsigned char)words.ptr[i];
		if (c >= 0x20 && c <= 0x7e && c != '%') {
			text_put_char(t, (char)c);
			continue;
		}
		text_put_char(t, '%');
		text_put_hex(t, &c, 1);
	}
}

void refusal_put_grpc_message(struct text *t, const struct refusal *r)
{
	char room[SENTENCE_ROOM];
	struct text sentence = text_in(room, sizeof(room));
	put_sentence(&sentence, r);
	text_put(t, error_of(r->reason));
	text_put_char(t, ' ');
	text_put(t, reason_code(r->reason));
	text_put_char(t, ' ');
	text_put_hex64(t, r->txn);
	text_put(t, SLICE(": "));
	put_percent_encoded(t, text_slice(&sentence));
}

/* ---- the response ---- */

static void put_status(struct text *t, const struct refusal *r)
{
	const struct answer *a = answer_for(r->reason);
	text_put(t, SLICE("HTTP/1.1 "));
	text_put_u64(t, (uint64_t)a->status);
	text_put_char(t, ' ');
	text_put(t, slice_str(a->phrase));
	text_put(t, SLICE("\r\nContent-Type: application/json"));
	if (a->status == 407)
		text_put(t, SLICE("\r\nProxy-Authenticate: Basic realm=\"cage\""));
}

/* All in one head, without a body: what gRPC calls "trailers only". */
static void put_grpc_status(struct text *t, const struct refusal *r)
{
	text_put(t, SLICE("HTTP/1.1 200 OK\r\nContent-Type: application/grpc\r\nGrpc-Status: "));
	text_put(t, refusal_grpc_status(r->reason));
	text_put(t, SLICE("\r\nGrpc-Message: "));
	refusal_put_grpc_message(t, r);
}

void refusal_write(struct text *t, const struct refusal *r, bool close, bool head_only)
{
	char body_room[REFUSAL_ROOM / 2];
	struct text body = text_in(body_room, sizeof(body_room));
	if (r->form == REFUSAL_JSON)
		write_body(&body, r);

	(r->form == REFUSAL_GRPC ? put_grpc_status : put_status)(t, r);
	text_put(t, SLICE("\r\nCache-Control: no-store\r\nX-Cage-Decision: "));
	text_put(t, refusal_is_upstream_failure(r->reason) ? SLICE("error") : SLICE("block"));
	text_put(t, SLICE("\r\nX-Cage-Reason: "));
	text_put(t, reason_code(r->reason));
	text_put(t, SLICE("\r\nX-Cage-Txn: "));
	text_put_hex64(t, r->txn);
	if (r->retry_after_s > 0) {
		text_put(t, SLICE("\r\nRetry-After: "));
		text_put_u64(t, r->retry_after_s);
	}
	text_put(t, SLICE("\r\nContent-Length: "));
	text_put_u64(t, body.len);
	text_put(t, close ? SLICE("\r\nConnection: close\r\n\r\n") : SLICE("\r\n\r\n"));
	if (!head_only)
		text_put(t, text_slice(&body));
}
