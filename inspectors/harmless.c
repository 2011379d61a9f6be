/* A table of all three bytes that a name can have in a row: how many bytes the shortest match has that begins with them. */
#include "inspectors/harmless.h"

#include <stdlib.h>

#include "core/base/limits.h"
#include "inspectors/head.h"
#include "inspectors/scan/shape.h"
#include "inspectors/views/views.h"

#define SYMBOLS 40 /* letters, digits, '-', '_' and '.', and 0 for all others */
#define NEVER 255

static const char alphabet[] = "?abcdefghijklmnopqrstuvwxyz0123456789-_.";

struct harmless {
	struct views *views;
	bool is_blind; /* some format was not understood */
	unsigned char symbols[256];
	unsigned char least[SYMBOLS][SYMBOLS][SYMBOLS];
};

/* ---- the table ---- */

struct harmless *harmless_new(void)
{
	static const struct view_reader nobody;
	struct harmless *h = calloc(1, sizeof(*h));
	if (!h)
		return NULL;
	h->views = views_new(&nobody, NULL);
	for (unsigned a = 1; a < SYMBOLS; a++)
		for (unsigned b = 1; b < SYMBOLS; b++)
			memset(&h->least[a][b][1], NEVER, SYMBOLS - 1);
	for (unsigned char i = 1; i < SYMBOLS; i++)
		h->symbols[(unsigned char)alphabet[i]] = i;
	if (!h->views)
		harmless_free(&h);
	return h;
}

void harmless_free(struct harmless **h)
{
	if (!*h)
		return;
	views_free(&(*h)->views);
	free(*h);
	*h = NULL;
}

static unsigned char upper(unsigned char c)
{
	return c >= 'a' && c <= 'z' ? (unsigned char)(c - 'a' + 'A') : c;
}

static bool has_symbol(const struct byte_set *set, unsigned symbol)
{
	unsigned char c = (unsigned char)alphabet[symbol];
	return byte_set_has(set, c) || byte_set_has(set, upper(c));
}

static void enter(struct harmless *h, const struct byte_set first[SHAPE_FIRST], unsigned char least)
{
	for (unsigned a = 1; a < SYMBOLS; a++) {
		for (unsigned b = 1; b < SYMBOLS && has_symbol(&first[0], a); b++) {
			for (unsigned c = 1; c < SYMBOLS && has_symbol(&first[1], b); c++) {
				unsigned char *at = &h->least[a][b][c];
				if (has_symbol(&first[2], c) && least < *at)
					*at = least;
			}
		}
	}
}

/* What parts of the text of a name consist of. */
enum part { PART_LOWER, PART_UPPER, PART_ALL };

static struct byte_set bytes_of(enum part part)
{
	struct byte_set set = {{0}};
	for (unsigned i = 1; i < SYMBOLS; i++) {
		unsigned char c = (unsigned char)alphabet[i];
		byte_set_add(&set, part == PART_UPPER ? upper(c) : c);
		if (part == PART_ALL)
			byte_set_add(&set, upper(c));
	}
	if (part == PART_ALL)
		byte_set_add(&set, '\n'); /* between them */
	return set;
}

/* Matches that lie within one part; false when it is not understood. */
static bool add_within(struct harmless *h, const struct format *f, enum part part)
{
	struct byte_set bytes = bytes_of(part);
	struct shape s;
	if (!shape_of(f, &bytes, &s) || (s.is_possible && s.least < SHAPE_FIRST))
		return false;
	if (s.is_possible)
		enter(h, s.first, s.least < NEVER ? (unsigned char)s.least : NEVER - 1);
	return true;
}

/* Matches that go over the end of a part: how much of them is in the part where they begin is open. */
static bool add_across(struct harmless *h, const struct format *f)
{
	struct byte_set bytes = bytes_of(PART_ALL);
	struct shape s;
	if (!shape_of(f, &bytes, &s))
		return false;
	if (!s.is_possible || !byte_set_has(&s.all, '\n'))
		return true;
	for (unsigned i = 0; i < SHAPE_FIRST; i++)
		if (s.least < SHAPE_FIRST || byte_set_has(&s.first[i], '\n'))
			return false;
	enter(h, s.first, SHAPE_FIRST);
	return true;
}

void harmless_add(struct harmless *h, const struct format *formats, size_t n)
{
	for (size_t i = 0; i < n && !h->is_blind; i++)
		h->is_blind = !add_within(h, &formats[i], PART_LOWER) || !add_within(h, &formats[i], PART_UPPER) ||
			      !add_across(h, &formats[i]);
}

/* ---- names ---- */

/* Can a match begin in a part? Where a byte is none of a name's, there the table says so. */
static bool may_match(const struct harmless *h, const char *part, size_t n)
{
	const unsigned char *least = &h->least[0][0][0];
	unsigned at = 0;
	bool found = false;
	for (size_t i = 0; i < n; i++) {
		at = at % (SYMBOLS * SYMBOLS) * SYMBOLS + h->symbols[(unsigned char)part[i]];
		found |= i >= SHAPE_FIRST - 1 && least[at] <= n - i + SHAPE_FIRST - 1;
	}
	return found;
}

static bool is_known(const struct known_set *known, struct slice text)
{
	struct known_match m;
	return known && known_find(known, text, 0, true, &m) != KNOWN_NONE;
}

bool harmless_is_name(struct harmless *h, const struct known_set *known, struct slice name)
{
	char text[VIEWS_ROOM(HEAD_NAME_TEXT(LIMIT_HOST))];
	if (h->is_blind || name.len < SHAPE_FIRST || name.len > LIMIT_HOST)
		return false;
	size_t n = head_name_text(name, text);
	if (may_match(h, text, name.len) || may_match(h, text + name.len + 1, n / 2 - name.len - 2))
		return false;
	return !is_known(known, slice_of(text, n)) && !views_may_decode(h->views, text, n);
}
