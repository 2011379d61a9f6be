/* A strict reader for one shape of JSON: the members that event.c writes, without the braces around them. */
#include "core/audit/body.h"

/* In the order of the line. `schema`, `ts`, `seq`, `prev` and `hash` are the writer's: here they are unknown. */
static const struct slice keys[] = {
	WORD("event"),     WORD("sandbox"),  WORD("policy"),        WORD("policy_sha"),   WORD("gen"),
	WORD("conn"),      WORD("txn"),      WORD("decision"),      WORD("enforced"),     WORD("reason"),
	WORD("stage"),     WORD("rule"),     WORD("method"),        WORD("scheme"),       WORD("host"),
	WORD("port"),      WORD("path"),     WORD("alpn"),          WORD("address"),      WORD("status"),
	WORD("bytes_out"), WORD("bytes_in"), WORD("inspected_out"), WORD("inspected_in"), WORD("ms"),
	WORD("findings"),  WORD("injected"), WORD("redacted"),
};

#define KEYS (sizeof(keys) / sizeof(keys[0]))
#define KEY_CONN 5 /* the first key behind those that say who and under which policy */
#define KEY_TXN 6

static const struct slice times[] = {WORD("dns"), WORD("connect"), WORD("tls"), WORD("inspect"), WORD("total")};

#define TIMES (sizeof(times) / sizeof(times[0]))

static const struct slice finding[] = {WORD("inspector"), WORD("action"), WORD("reason"), WORD("id"),
				       WORD("where"),     WORD("view"),   WORD("offset"), WORD("fingerprint")};

#define FINDING (sizeof(finding) / sizeof(finding[0]))

struct scan {
	const char *at, *end;
};

static bool take(struct scan *s, char c)
{
	if (s->at == s->end || *s->at != c)
		return false;
	s->at++;
	return true;
}

static bool take_word(struct scan *s, struct slice word)
{
	if (!slice_starts(slice_of(s->at, (size_t)(s->end - s->at)), word))
		return false;
	s->at += word.len;
	return true;
}

static bool take_digits(struct scan *s)
{
	const char *from = s->at;
	while (s->at < s->end && ascii_is_digit((unsigned char)*s->at))
		s->at++;
	return s->at > from;
}

/* JSON has no number with more digits behind a first zero. */
static bool take_number(struct scan *s)
{
	return (take(s, '0') || take_digits(s)) && (!take(s, '.') || take_digits(s));
}

/* Behind a backslash: a quote, a backslash, or u00XX. */
static bool take_escape(struct scan *s)
{
	if (take(s, '"') || take(s, '\\'))
		return true;
	if (!take_word(s, SLICE("u00")) || s->end - s->at < 2)
		return false;
	s->at += 2;
	return ascii_hex((unsigned char)s->at[-2]) >= 0 && ascii_hex((unsigned char)s->at[-1]) >= 0;
}

static bool take_string(struct scan *s)
{
	if (!take(s, '"'))
		return false;
	for (;;) {
		s->at += text_plain_length(slice_of(s->at, (size_t)(s->end - s->at)));
		if (take(s, '"'))
			return true;
		if (!take(s, '\\') || !take_escape(s))
			return false;
	}
}

/* Reads `"name":` and moves *next behind that name's place in the list. */
static bool take_key(struct scan *s, const struct slice *list, size_t n, size_t *next)
{
	if (!take(s, '"'))
		return false;
	struct slice name = slice_of(s->at, text_plain_length(slice_of(s->at, (size_t)(s->end - s->at))));
	while (*next < n && !slice_eq(list[*next], name))
		++*next;
	if (*next == n)
		return false;
	++*next;
	s->at += name.len;
	return take(s, '"') && take(s, ':');
}

/* The object of `ms`, behind its opening brace. */
static bool take_times(struct scan *s)
{
	size_t next = 0;
	do {
		if (!take_key(s, times, TIMES, &next) || !take_number(s))
			return false;
	} while (take(s, ','));
	return take(s, '}');
}

static bool take_text_or_number(struct scan *s)
{
	return s->at < s->end && *s->at == '"' ? take_string(s) : take_number(s);
}

static bool take_finding(struct scan *s)
{
	size_t next = 0;
	if (!take(s, '{'))
		return false;
	do {
		if (!take_key(s, finding, FINDING, &next) || !take_text_or_number(s))
			return false;
	} while (take(s, ','));
	return take(s, '}');
}

/* The list of `findings`, or of ids, behind its opening bracket. */
static bool take_list(struct scan *s)
{
	do {
		if (s->at < s->end && *s->at == '"' ? !take_string(s) : !take_finding(s))
			return false;
	} while (take(s, ','));
	return take(s, ']');
}

static bool take_value(struct scan *s)
{
	if (s->at == s->end)
		return false;
	switch (*s->at) {
	case '"':
		return take_string(s);
	case 't':
		return take_word(s, SLICE("true"));
	case 'f':
		return take_word(s, SLICE("false"));
	case '{':
		s->at++;
		return take_times(s);
	case '[':
		s->at++;
		return take_list(s);
	default:
		return take_number(s);
	}
}

/* Sixteen hex digits, as audit_put_id writes them; 0 is never written. */
static bool take_id(struct scan *s, uint64_t *id)
{
	*id = 0;
	if (!take(s, '"') || s->end - s->at < 16)
		return false;
	for (const char *end = s->at + 16; s->at < end; s->at++) {
		int digit = ascii_hex((unsigned char)*s->at);
		if (digit < 0 || (*s->at >= 'A' && *s->at <= 'F'))
			return false;
		*id = *id << 4 | (uint64_t)digit;
	}
	return *id != 0 && take(s, '"');
}

static bool take_member(struct scan *s, size_t *next, struct audit_body *out)
{
	if (!take_key(s, keys, KEYS, next))
		return false;
	switch (*next - 1) {
	case KEY_CONN:
		return take_id(s, &out->conn);
	case KEY_TXN:
		return take_id(s, &out->txn);
	default:
		return take_value(s);
	}
}

static bool take_event(struct scan *s, size_t *next, struct slice *event)
{
	if (!take_key(s, keys, KEYS, next) || *next != 1)
		return false;
	const char *from = s->at;
	if (!take_string(s))
		return false;
	*event = slice_of(from + 1, (size_t)(s->at - from) - 2);
	return true;
}

/* The same members as last time, up to the end of the last one. */
static void take_last_who(struct scan *s, size_t *next, const struct audit_who *last)
{
	struct scan behind = *s;
	if (last->len == 0 || !take_word(&behind, slice_of(last->text, last->len)))
		return;
	if (behind.at != behind.end && *behind.at != ',')
		return;
	*s = behind;
	*next = last->next;
}

static void remember_who(struct audit_who *last, struct slice who, size_t next)
{
	if (who.len > sizeof(last->text) || slice_eq(who, slice_of(last->text, last->len)))
		return;
	memcpy(last->text, who.ptr, who.len);
	last->len = who.len;
	last->next = next;
}

bool audit_body_check(struct slice body, struct audit_who *last, struct audit_body *out)
{
	struct scan s = {body.ptr, body.ptr + body.len};
	size_t next = 0;
	out->conn = out->txn = 0;
	if (!take_event(&s, &next, &out->event))
		return false;
	const char *who_from = s.at;
	take_last_who(&s, &next, last);
	const char *who_to = s.at;
	size_t who_next = next;
	while (take(&s, ',')) {
		if (!take_member(&s, &next, out))
			return false;
		if (next <= KEY_CONN) {
			who_to = s.at;
			who_next = next;
		}
	}
	struct slice who = slice_of(who_from, (size_t)(who_to - who_from));
	out->who = slice_from(who, 1);
	if (s.at != s.end)
		return false;
	remember_who(last, who, who_next);
	return true;
}

bool audit_body_is_of_worker(const struct audit_body *b)
{
	return slice_eq(b->event, SLICE("connect")) || slice_eq(b->event, SLICE("request")) ||
	       slice_eq(b->event, SLICE("response")) || slice_eq(b->event, SLICE("message")) ||
	       slice_eq(b->event, SLICE("dns")) || slice_eq(b->event, SLICE("tool")) ||
	       slice_eq(b->event, SLICE("error"));
}
