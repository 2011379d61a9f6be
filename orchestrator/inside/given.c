/* Records, and the text that they travel in. Nothing in it is secret: Azure shows config maps to who may look at a group. */
#include "orchestrator/inside/given.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/base64.h"
#include "core/base/hash.h"
#include "core/base/limits.h"

#define MARK "cage-run-1 "
#define MARK_LEN (sizeof(MARK) - 1)
#define HASH_LEN 16
#define RECORD_HEADER 5

/* ---- writing ---- */

static char *make_room(struct given *g, size_t more)
{
	const size_t room = g->n + more;
	if (g->failed || more > LIMIT_GIVEN || room > LIMIT_GIVEN)
		return NULL;
	if (room > g->room) {
		char *bigger = realloc(g->bytes, 2 * room);
		if (!bigger)
			return NULL;
		g->bytes = bigger;
		g->room = 2 * room;
	}
	g->n = room;
	return g->bytes + room - more;
}

static char *put(char *to, struct slice bytes)
{
	if (bytes.len > 0)
		memcpy(to, bytes.ptr, bytes.len);
	return to + bytes.len;
}

void given_add(struct given *g, enum given_kind kind, struct slice path, struct slice bytes)
{
	const bool has_both = kind == GIVEN_FILE;
	const size_t len = path.len + has_both + bytes.len;
	char *to = make_room(g, RECORD_HEADER + len);
	if (!to) {
		g->failed = true;
		return;
	}
	*to++ = (char)kind;
	for (int shift = 24; shift >= 0; shift -= 8)
		*to++ = (char)(len >> shift & 0xff);
	to = put(to, path);
	if (has_both)
		*to++ = '\0';
	put(to, bytes);
}

char *given_text(struct given *g)
{
	char mark[MARK_LEN + HASH_LEN + 2];
	const size_t digits = BASE64_DIGITS(g->n), head = sizeof(mark) - 1;
	char *text = !g->failed && head + digits <= LIMIT_GIVEN ? malloc(head + digits + 1) : NULL;
	if (text) {
		base64_write(slice_of(g->bytes, g->n), text + head);
		text[head + digits] = '\0';
		snprintf(mark, sizeof(mark), MARK "%016llx ",
			 (unsigned long long)hash_bytes(slice_of(text + head, digits)));
		memcpy(text, mark, head);
	}
	given_free(g);
	return text;
}

void given_free(struct given *g)
{
	free(g->bytes);
	*g = (struct given){0};
}

/* ---- reading ---- */

static struct slice without_blanks(struct slice text)
{
	while (text.len > 0 && strchr(" \t\r\n", text.ptr[text.len - 1]))
		text.len--;
	return text;
}

static bool read_hash(struct slice digits, uint64_t *out)
{
	*out = 0;
	for (size_t i = 0; i < digits.len; i++) {
		const int value = ascii_hex((unsigned char)digits.ptr[i]);
		if (value < 0)
			return false;
		*out = *out << 4 | (unsigned)value;
	}
	return digits.len == HASH_LEN;
}

bool given_open(struct slice text, char *room, size_t size, struct slice *records)
{
	uint64_t hash;
	size_t n;
	text = without_blanks(text);
	if (!slice_starts(text, SLICE(MARK)))
		return false;
	struct slice digits = slice_from(text, MARK_LEN), number = slice_cut(&digits, ' ');
	if (!read_hash(number, &hash) || hash != hash_bytes(digits) || !base64_read(digits, room, size, &n))
		return false;
	*records = slice_of(room, n);
	return true;
}

/* The header of a record says how long it is; false: it is none, or not whole. */
static bool cut_record(struct slice *rest, struct given_record *out)
{
	size_t len = 0;
	if (rest->len < RECORD_HEADER)
		return false;
	for (size_t i = 1; i < RECORD_HEADER; i++)
		len = len << 8 | (unsigned char)rest->ptr[i];
	if (len > rest->len - RECORD_HEADER)
		return false;
	*out = (struct given_record){.kind = (enum given_kind)rest->ptr[0],
				     .bytes = slice_of(rest->ptr + RECORD_HEADER, len)};
	*rest = slice_from(*rest, RECORD_HEADER + len);
	return true;
}

static void read_path(struct given_record *r)
{
	if (r->kind == GIVEN_FILE)
		r->path = slice_cut(&r->bytes, '\0');
	else if (r->kind == GIVEN_KEY || r->kind == GIVEN_ONCE)
		r->path = r->bytes;
}

static bool record_is_good(const struct given_record *r, size_t len)
{
	const bool is_text = slice_find(r->bytes, '\0') == r->bytes.len;
	const size_t equals = slice_find(r->bytes, '=');
	switch (r->kind) {
	case GIVEN_WORD:
		return is_text;
	case GIVEN_VARIABLE:
		return is_text && equals > 0 && equals < r->bytes.len;
	case GIVEN_FILE:
		return slice_starts(r->path, SLICE("/")) && r->path.len < len && r->path.len < LIMIT_GIVEN_PATH;
	case GIVEN_KEY:
	case GIVEN_ONCE:
		return is_text && slice_starts(r->path, SLICE("/")) && r->path.len < LIMIT_GIVEN_PATH;
	}
	return false;
}

bool given_is_good(struct slice records)
{
	struct given_record r;
	size_t marks = 0;
	while (records.len > 0) {
		if (!cut_record(&records, &r))
			return false;
		const size_t len = r.bytes.len;
		read_path(&r);
		if (!record_is_good(&r, len))
			return false;
		marks += r.kind == GIVEN_ONCE;
	}
	return marks == 1;
}

bool given_next(struct slice *records, struct given_record *out)
{
	if (!cut_record(records, out))
		return false;
	read_path(out);
	return true;
}
