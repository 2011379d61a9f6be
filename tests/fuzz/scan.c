/* The scanner. Promises: a hit's value is what stands at its offset; hits of one format come in order and do not overlap;
 * a format is given up at most once; and none of it depends on how the text is cut.
 *
 * Input: 8 bytes that say how to cut, then the text. It is scanned with the catalogue, and with formats that have many
 * candidates, checks that fail, and edges. */
#include "core/base/arena.h"
#include "core/base/limits.h"
#include "inspectors/scan/scan.h"
#include "tests/fuzz/fuzz.h"

#define HITS_MAX 4096
#define PATTERN(lit) .id = {(lit), sizeof(lit) - 1}, .pattern = {(lit), sizeof(lit) - 1}

static struct format own[] = {
	{PATTERN("\\bk-([a-z]{2,9})\\b"), .min_entropy = 1.5},
	{PATTERN("[0-9]{4,8}"), .check = CHECK_LUHN},
	{PATTERN("(?:a{1,6}){1,6}b|x{60}")},
	{PATTERN("x?abc\\b|abc"), .caseless = true},
	{PATTERN("(?m)^(?:ab|abc|c{1,3}d?){1,20}$")},
	{PATTERN("t_[0-9A-Za-z]{7,12}"), .check = CHECK_CRC32},
	{PATTERN("k=([A-Za-z0-9+/]{4,40}={0,2})"), .check = CHECK_BASE64},
	{PATTERN("eyJ[A-Za-z0-9_-]{0,30}\\.[A-Za-z0-9_-]{0,30}\\.[A-Za-z0-9_-]{0,30}"), .check = CHECK_JWT},
	{PATTERN("aa$|z\\z")},
};
#define N_OWN (sizeof(own) / sizeof(own[0]))

struct hits {
	struct slice text;
	struct hit {
		const struct format *format;
		enum scan_certainty certainty;
		uint64_t offset;
		size_t len;
	} list[HITS_MAX];
	size_t n;
};

static const struct hit *last_of(const struct hits *hits, const struct format *format)
{
	for (size_t i = hits->n; i > 0; i--)
		if (hits->list[i - 1].format == format)
			return &hits->list[i - 1];
	return NULL;
}

static void found(void *arg, const struct scan_hit *hit)
{
	struct hits *hits = arg;
	const struct hit *before = last_of(hits, hit->format);
	PROMISE(!before || before->certainty == SCAN_CONFIRMED);
	if (hit->certainty == SCAN_CONFIRMED) {
		PROMISE(hit->offset + hit->value.len <= hits->text.len);
		PROMISE(memcmp(hits->text.ptr + hit->offset, hit->value.ptr, hit->value.len) == 0);
		PROMISE(!before || before->offset + before->len <= hit->offset);
	} else {
		PROMISE(hit->value.len == 0);
	}
	PROMISE(hits->n < HITS_MAX);
	/* Where a format was given up may depend on the cuts; that it was does not. */
	hits->list[hits->n++] = (struct hit){hit->format, hit->certainty,
					     hit->certainty == SCAN_CONFIRMED ? hit->offset : 0, hit->value.len};
}

static bool has(const struct hits *hits, const struct hit *wanted)
{
	for (size_t i = 0; i < hits->n; i++) {
		const struct hit *h = &hits->list[i];
		if (h->format == wanted->format && h->certainty == wanted->certainty && h->offset == wanted->offset &&
		    h->len == wanted->len)
			return true;
	}
	return false;
}

/* Pieces of the sizes that the eight bytes say, again and again; a zero is 4096. */
static void scan_in_pieces(struct scan *s, struct slice text, uint64_t sizes, struct hits *hits)
{
	hits->text = text;
	hits->n = 0;
	PROMISE(scan_reset(s, hits) == CAGE_OK);
	while (text.len > 0) {
		size_t size = sizes & 0xff ? sizes & 0xff : 4096;
		struct slice piece = fuzz_copy(fuzz_take(&text, size));
		PROMISE(scan_feed(s, piece) == CAGE_OK);
		fuzz_free(&piece);
		sizes = sizes >> 8 | sizes << 56;
	}
	PROMISE(scan_end(s) == CAGE_OK);
}

static void cuts_must_not_matter(struct scan *s, struct slice text, uint64_t sizes)
{
	static struct hits whole, cut;
	whole.text = text;
	whole.n = 0;
	PROMISE(scan_reset(s, &whole) == CAGE_OK);
	PROMISE(scan_feed(s, text) == CAGE_OK && scan_end(s) == CAGE_OK);
	scan_in_pieces(s, text, sizes, &cut);
	PROMISE(whole.n == cut.n);
	for (size_t i = 0; i < whole.n; i++)
		PROMISE(has(&cut, &whole.list[i]));
}

static struct scan *scan_of_own(void)
{
	static struct arena arena;
	struct scan_bytes bytes;
	size_t at;
	const char *why;
	arena_init(&arena, MIB(16));
	PROMISE(scan_set_compile(own, N_OWN, &arena, &bytes, &at, &why) == CAGE_OK);
	struct scan_set *set = scan_set_load(own, N_OWN, &bytes);
	PROMISE(set);
	return scan_new(set, found, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct scan *scans[2]; /* kept, as are their sets: a stream that was used before must not matter */
	struct slice text = slice_of(data, size);
	uint64_t sizes = fuzz_number(&text, 8);
	if (!scans[0]) {
		scans[0] = scan_of_own();
		scans[1] = scan_new(scan_catalogue(), found, NULL);
	}
	for (size_t i = 0; i < 2; i++) {
		PROMISE(scans[i]);
		cuts_must_not_matter(scans[i], text, sizes);
	}
	return 0;
}
