/* Lines of the log. Promises: whatever an event holds, its line is strict JSON of the bytes 0x20..0x7e, with known keys
 * in the order of docs/log.md, and its texts decode to the bytes that were given. The check of what a worker hands over
 * accepts it. That check, given anything else, accepts only what would be such a line too. A buffer that is too small
 * is seen.
 *
 * Input: one byte that says what follows: the parts of an event, or a line's middle as a worker might forge it. */
#include "core/audit/body.h"
#include "core/audit/event.h"
#include "core/base/limits.h"
#include "tests/fuzz/fuzz.h"

#define ROOM LIMIT_LOG_RECORD

/* ---- a strict reader of JSON that knows the order of the keys ---- */

struct json {
	struct slice rest;
	const struct audit_event *event; /* to compare texts with; may be NULL */
};

static const char *const keys[] = {"event",     "sandbox",  "policy",        "policy_sha",   "gen",
				   "conn",      "txn",      "decision",      "enforced",     "reason",
				   "stage",     "rule",     "method",        "scheme",       "host",
				   "port",      "path",     "alpn",          "address",      "status",
				   "bytes_out", "bytes_in", "inspected_out", "inspected_in", "ms"};
static const char *const times[] = {"dns", "connect", "tls", "inspect", "total"};

static bool json_skip(struct json *j, struct slice word)
{
	if (!slice_starts(j->rest, word))
		return false;
	j->rest = slice_from(j->rest, word.len);
	return true;
}

/* One character inside a string, or -1. */
static int json_char(struct json *j)
{
	static const char plain[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
	struct slice s = fuzz_take(&j->rest, 1);
	if (s.len == 0 || s.ptr[0] < 0x20 || s.ptr[0] > 0x7e)
		return -1;
	if (s.ptr[0] != '\\')
		return s.ptr[0];
	s = fuzz_take(&j->rest, 1);
	if (s.len == 0)
		return -1;
	if (s.ptr[0] != 'u')
		return strchr(plain, s.ptr[0]) ? meant[strchr(plain, s.ptr[0]) - plain] : -1;
	int value = 0;
	for (int i = 0; i < 4; i++) {
		s = fuzz_take(&j->rest, 1);
		if (s.len == 0 || ascii_hex((unsigned char)s.ptr[0]) < 0)
			return -1;
		value = value * 16 + ascii_hex((unsigned char)s.ptr[0]);
	}
	return value;
}

static bool json_string(struct json *j, char *out, size_t *len)
{
	*len = 0;
	if (!json_skip(j, SLICE("\"")))
		return false;
	while (!json_skip(j, SLICE("\""))) {
		int c = json_char(j);
		if (c < 0 || c > 0xff || *len == ROOM)
			return false;
		out[(*len)++] = (char)c;
	}
	return true;
}

static size_t json_digits(struct json *j)
{
	size_t n = 0;
	while (n < j->rest.len && ascii_is_digit((unsigned char)j->rest.ptr[n]))
		n++;
	j->rest = slice_from(j->rest, n);
	return n;
}

/* Without sign and exponent, which nobody writes here. */
static bool json_number(struct json *j)
{
	bool zero_first = slice_starts(j->rest, SLICE("0"));
	size_t n = json_digits(j);
	return n > 0 && (n == 1 || !zero_first) && (!json_skip(j, SLICE(".")) || json_digits(j) > 0);
}

static bool json_key(struct json *j, const char *const *list, size_t n, size_t *next)
{
	static char name[ROOM];
	size_t len;
	if (!json_string(j, name, &len) || !json_skip(j, SLICE(":")))
		return false;
	while (*next < n && !slice_eq(slice_str(list[*next]), slice_of(name, len)))
		++*next;
	return (*next)++ < n;
}

static bool json_times(struct json *j)
{
	size_t next = 0;
	do {
		if (!json_key(j, times, sizeof(times) / sizeof(times[0]), &next) || !json_number(j))
			return false;
	} while (json_skip(j, SLICE(",")));
	return json_skip(j, SLICE("}"));
}

/* The text of the event that goes by that key, or nothing. */
static const struct slice *text_of(const struct audit_event *e, const char *key)
{
	const struct {
		const char *key;
		const struct slice *text;
	} texts[] = {{"sandbox", &e->sandbox}, {"rule", &e->rule}, {"method", &e->method}, {"scheme", &e->scheme},
		     {"host", &e->host},       {"path", &e->path}, {"alpn", &e->alpn}};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		if (strcmp(texts[i].key, key) == 0)
			return texts[i].text;
	return NULL;
}

static bool json_value(struct json *j, const char *key)
{
	static char text[ROOM];
	size_t len;
	if (json_skip(j, SLICE("true")) || json_skip(j, SLICE("false")))
		return true;
	if (json_skip(j, SLICE("{")))
		return json_times(j);
	if (!slice_starts(j->rest, SLICE("\"")))
		return json_number(j);
	if (!json_string(j, text, &len))
		return false;
	const struct slice *given = j->event ? text_of(j->event, key) : NULL;
	return !given || slice_eq(*given, slice_of(text, len));
}

/* The members of an object, without its braces. */
static bool is_good_line(struct slice body, const struct audit_event *event)
{
	struct json j = {body, event};
	size_t next = 0;
	do {
		if (!json_key(&j, keys, sizeof(keys) / sizeof(keys[0]), &next) || !json_value(&j, keys[next - 1]))
			return false;
	} while (json_skip(&j, SLICE(",")));
	return j.rest.len == 0 && slice_starts(body, SLICE("\"event\":\""));
}

/* ---- events ---- */

/* Mostly short, now and then long. */
static struct slice take_text(struct slice *input)
{
	size_t n = fuzz_number(input, 1);
	return fuzz_take(input, n < 0xf0 ? n % 32 : n * 2);
}

static void take_who(struct slice *in, struct audit_event *e, struct audit_policy *policy)
{
	e->kind = (enum audit_kind)(fuzz_number(in, 1) % (AUDIT_STOP + 1));
	e->sandbox = take_text(in);
	struct slice name = take_text(in), sha = take_text(in);
	audit_policy_init(policy, name, sha, fuzz_number(in, 8));
	e->policy = audit_policy_text(policy);
	e->conn = fuzz_number(in, 8);
	e->txn = fuzz_number(in, 1);
}

static void take_decision(struct slice *in, struct audit_event *e)
{
	e->decision = (enum audit_decision)(fuzz_number(in, 1) % (DECISION_ERROR + 1));
	e->observed = fuzz_number(in, 1) & 1;
	e->reason = (enum reason)(fuzz_number(in, 1) % REASON_COUNT);
	e->stage = (enum audit_stage)(fuzz_number(in, 1) % (STAGE_LOG + 1));
	e->rule = take_text(in);
}

static void take_target(struct slice *in, struct audit_event *e, struct addr *addr)
{
	e->method = take_text(in);
	e->scheme = take_text(in);
	e->host = take_text(in);
	e->port = (uint16_t)fuzz_number(in, 2);
	e->path = take_text(in);
	e->alpn = take_text(in);
	addr->family = fuzz_number(in, 1) & 1 ? ADDR_V4 : ADDR_V6;
	struct slice bytes = fuzz_take(in, addr->family == ADDR_V4 ? 4 : 16);
	if (bytes.len > 0) {
		memcpy(addr->bytes, bytes.ptr, bytes.len);
		e->address = addr;
	}
}

static void take_outcome(struct slice *in, struct audit_event *e)
{
	e->status = (int)fuzz_number(in, 4);
	e->has_bytes = fuzz_number(in, 1) & 1;
	e->bytes_out = fuzz_number(in, 8);
	e->bytes_in = fuzz_number(in, 1);
	e->inspected_out = fuzz_number(in, 4);
	e->inspected_in = fuzz_number(in, 2);
	e->has_times = fuzz_number(in, 1) & 1;
	e->us_dns = fuzz_number(in, 8);
	e->us_connect = fuzz_number(in, 1);
	e->us_tls = fuzz_number(in, 2);
	e->us_inspect = fuzz_number(in, 3);
	e->us_total = fuzz_number(in, 4);
}

/* With less room the same bytes come out as far as they go, or the lack of room is seen. */
static void small_room_must_be_seen(const struct audit_event *e, struct slice line, size_t room)
{
	char *buf = malloc(room + 1);
	PROMISE(buf);
	struct text t = text_in(buf, room);
	audit_event_write(&t, e);
	PROMISE(t.len <= room && text_ok(&t) == (room >= line.len));
	PROMISE(!text_ok(&t) || slice_eq(text_slice(&t), line));
	free(buf);
}

static bool is_of_worker(enum audit_kind kind)
{
	return kind == AUDIT_CONNECT || kind == AUDIT_REQUEST || kind == AUDIT_RESPONSE || kind == AUDIT_ERROR;
}

static void try_event(struct slice input)
{
	static char buf[ROOM];
	struct audit_event e = {0};
	struct addr addr = {0};
	struct audit_policy policy;
	struct audit_who who = {0};
	struct audit_body parts;
	size_t room = (size_t)fuzz_number(&input, 2) % 2048;
	take_who(&input, &e, &policy);
	take_decision(&input, &e);
	take_target(&input, &e, &addr);
	take_outcome(&input, &e);
	struct text t = text_in(buf, sizeof(buf));
	audit_event_write(&t, &e);
	PROMISE(text_ok(&t));
	PROMISE(is_good_line(text_slice(&t), &e));
	PROMISE(audit_body_check(text_slice(&t), &who, &parts));
	PROMISE(audit_body_check(text_slice(&t), &who, &parts)); /* now that it is known */
	PROMISE(parts.conn == e.conn && parts.txn == e.txn && audit_body_is_of_worker(&parts) == is_of_worker(e.kind));
	small_room_must_be_seen(&e, text_slice(&t), room);
}

static void try_forged(struct slice body)
{
	struct audit_who none = {0};
	struct audit_body parts;
	if (!audit_body_check(body, &none, &parts))
		return;
	struct slice who = parts.who;
	PROMISE(is_good_line(body, NULL));
	PROMISE(who.len == 0 || (who.ptr > body.ptr && who.ptr + who.len <= body.ptr + body.len));
	PROMISE(who.len == 0 || (who.ptr[0] == '"' && who.ptr[-1] == ','));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice input = slice_of(data, size);
	if (fuzz_number(&input, 1) & 1)
		try_event(input);
	else
		try_forged(input);
	return 0;
}
