/* Placeholders in a body that comes in pieces of any size. What is not a placeholder goes on from where it lies; the
 * beginning of one at the end of a piece is kept, and looked at again with the piece that follows. */
#include <openssl/crypto.h>
#include <stdlib.h>

#include "proxy/inject_private.h"

struct body_injector {
	struct words words;
	struct word_place place;
	inject_sink *sink;
	void *arg;
	uint64_t used;
	unsigned n_used;         /* how often */
	bool is_binary;          /* there was a NUL */
	enum cage_status status; /* not CAGE_OK: nothing goes on */
	size_t n_kept;
	char kept[2 * WORD_LONGEST]; /* less than WORD_LONGEST of it between two pieces */
	struct slice with[LIMIT_SECRETS];
	size_t room;
	char values[]; /* as they are written; the vault may change during a long body */
};

/* ---- what the body is ---- */

static bool is_json(struct slice type)
{
	static const struct slice suffix = WORD("+json");
	if (slice_ieq(type, SLICE("application/json")))
		return true;
	return type.len > suffix.len && slice_find(type, '/') < type.len &&
	       slice_ieq(slice_from(type, type.len - suffix.len), suffix);
}

enum inject_escape inject_escape_for(const struct message *head)
{
	const struct field *f = message_field(head, SLICE("content-type"));
	struct slice rest = f ? f->value : SLICE_NONE;
	struct slice type = slice_trim(slice_cut(&rest, ';'));
	if (is_json(type))
		return INJECT_JSON;
	return slice_ieq(type, SLICE("application/x-www-form-urlencoded")) ? INJECT_FORM : INJECT_RAW;
}

static bool is_ascii_like(struct slice charset)
{
	static const struct slice known[] = {WORD("utf-8"), WORD("utf8"), WORD("us-ascii"), WORD("iso-8859-1")};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (slice_ieq(charset, known[i]))
			return true;
	return false;
}

static bool has_other_charset(struct slice type)
{
	(void)slice_cut(&type, ';');
	while (type.len > 0) {
		struct slice value = slice_trim(slice_cut(&type, ';'));
		struct slice name = slice_trim(slice_cut(&value, '='));
		value = slice_trim(value);
		if (value.len >= 2 && value.ptr[0] == '"')
			value = slice_of(value.ptr + 1, value.len - 2);
		if (slice_ieq(name, SLICE("charset")) && !is_ascii_like(value))
			return true;
	}
	return false;
}

bool inject_may_change_body(const struct message *head)
{
	unsigned types = 0;
	for (size_t i = 0; i < head->n_fields; i++) {
		const struct field *f = &head->fields[i];
		if (slice_ieq(f->name, SLICE("content-encoding")))
			return false;
		if (!slice_ieq(f->name, SLICE("content-type")))
			continue;
		if (++types > 1 || has_other_charset(f->value))
			return false;
	}
	return head->framing != BODY_NONE;
}

static enum word_form form_of(enum inject_escape how)
{
	switch (how) {
	case INJECT_RAW:
		return WORD_RAW;
	case INJECT_JSON:
		return WORD_JSON;
	case INJECT_FORM:
		return WORD_PERCENT;
	}
	return WORD_RAW;
}

/* ---- making one ---- */

static uint64_t secrets_in_body(const struct inject_plan *plan, const struct slice *values)
{
	uint64_t which = 0;
	for (size_t i = 0; i < plan->n_secrets && i < LIMIT_SECRETS; i++) {
		const struct policy_secret *s = plan->secrets[i].secret;
		if (s->in_body && secret_is_put_in(s) && values[i].len > 0)
			which |= bit_of(i);
	}
	return which;
}

static void set_values(struct body_injector *b, const struct slice *values)
{
	struct made made = {.ptr = b->values};
	for (uint64_t left = b->words.which; left > 0;) {
		unsigned i = take_bit(&left);
		size_t start = made.len;
		made_put_escaped(&made, values[i], b->words.form);
		b->with[i] = slice_of(b->values + start, made.len - start);
		if (b->words.secrets[i].placeholder.len > LIMIT_PLACEHOLDER || !value_is_one_line(values[i]))
			b->status = CAGE_EPROTO;
	}
}

struct body_injector *body_injector_new(const struct inject_plan *plan, const struct slice *values,
					enum inject_escape how, inject_sink *sink, void *arg)
{
	uint64_t which = secrets_in_body(plan, values);
	enum word_form form = form_of(how);
	struct made room = {0};
	for (uint64_t left = which; left > 0;)
		made_put_escaped(&room, values[take_bit(&left)], form);
	struct body_injector *b = calloc(1, sizeof(*b) + room.len);
	if (!b)
		return NULL;
	b->sink = sink;
	b->arg = arg;
	b->room = room.len;
	words_init(&b->words, plan->secrets, which, form);
	set_values(b, values);
	return b;
}

void body_injector_free(struct body_injector **b)
{
	if (!*b)
		return;
	OPENSSL_cleanse(*b, sizeof(**b) + (*b)->room);
	free(*b);
	*b = NULL;
}

uint64_t body_injector_used(const struct body_injector *b)
{
	return b->used;
}

/* ---- feeding it ---- */

static void send_on(struct body_injector *b, struct slice bytes)
{
	if (bytes.len > 0)
		b->sink(b->arg, bytes);
}

/* Sends on what is decided, and says where the rest begins. */
static size_t read_on(struct body_injector *b, struct slice text, bool is_end)
{
	struct word_match m;
	enum word_answer a;
	size_t at = 0;
	while ((a = words_find(&b->words, text, at, is_end, &b->place, &m)) == WORD_FOUND) {
		if (++b->n_used > LIMIT_BODY_SECRETS) {
			b->status = CAGE_ELIMIT;
			return text.len;
		}
		send_on(b, slice_from(slice_head(text, m.start), at));
		send_on(b, b->with[m.secret]);
		b->used |= bit_of(m.secret);
		at = m.end;
	}
	size_t stop = a == WORD_PARTIAL ? m.start : text.len;
	send_on(b, slice_from(slice_head(text, stop), at));
	return stop;
}

/* Looks at what was kept, with as much of the piece as one placeholder can reach into; the piece from where it is to be read on. */
static struct slice decide_kept(struct body_injector *b, struct slice piece)
{
	size_t before = b->n_kept;
	struct slice more = slice_head(piece, WORD_LONGEST);
	memcpy(b->kept + before, more.ptr, more.len);
	struct slice text = slice_of(b->kept, before + more.len);
	size_t stop = read_on(b, text, false);
	b->n_kept = 0;
	if (stop >= before)
		return slice_from(piece, stop - before);
	b->n_kept = text.len - stop; /* still open, so that all of the piece is in it */
	memmove(b->kept, text.ptr + stop, b->n_kept);
	return slice_from(piece, more.len);
}

/* A value among bytes that some reader takes two at a time could come back as what nobody knows it by. */
static enum cage_status judged(struct body_injector *b)
{
	if (b->status == CAGE_OK && b->is_binary && b->n_used > 0)
		b->status = CAGE_EPROTO;
	return b->status;
}

enum cage_status body_injector_feed(struct body_injector *b, struct slice piece)
{
	if (b->status != CAGE_OK || piece.len == 0)
		return b->status;
	if (memchr(piece.ptr, '\0', piece.len))
		b->is_binary = true;
	if (b->n_kept > 0)
		piece = decide_kept(b, piece);
	struct slice open = slice_from(piece, read_on(b, piece, false));
	if (open.len > 0) {
		memcpy(b->kept, open.ptr, open.len);
		b->n_kept = open.len;
	}
	return judged(b);
}

enum cage_status body_injector_end(struct body_injector *b)
{
	if (b->status == CAGE_OK)
		read_on(b, slice_of(b->kept, b->n_kept), true);
	b->n_kept = 0;
	return judged(b);
}
