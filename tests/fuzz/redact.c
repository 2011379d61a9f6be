/* Redaction and the search for known values. Promises: what comes out, and what is reported, does not depend on how
 * the text is cut; no value is left in it, in any form, says a slow search; a text without one is not changed; and
 * less is kept back than the longest value is long.
 *
 * Input: eight bytes that say how to cut, then the text. The values begin and end with a byte whose bits no placeholder
 * has, in any form or alignment, and which no zero bits at the end of a run complete: so none can come about where a
 * placeholder meets other text. Where padding goes away, two runs may become one: then it is not asked what is left. */
#include "inspectors/known/known_scan.h"
#include "inspectors/known/redact.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/known/naive.h"

#define OUT_MAX (1 << 22)

static const struct known_item items[] = {
	{KNOWN_VALUE, 0, WORD("[first:one*")},
	{KNOWN_VALUE, 1, WORD("[first:one*, longer*")},
	{KNOWN_VALUE, 2, WORD("[\"se%41 c+\\nd/\xc3\xa4\xff*")},
	{KNOWN_VALUE, 3, WORD("[[[[[[[[.*")},
};
#define N_ITEMS (sizeof(items) / sizeof(items[0]))

static const struct slice placeholders[N_ITEMS] = {WORD("~{A}~"), WORD("~{longer}~"), WORD("~{B}~"),
						   WORD("~{BCDEFGHIJ}~")};

struct result {
	char out[OUT_MAX];
	size_t len;
	uint64_t found, reports;
};

static void sink(void *arg, struct slice bytes)
{
	struct result *r = arg;
	PROMISE(bytes.len > 0 && bytes.len <= OUT_MAX - r->len);
	memcpy(r->out + r->len, bytes.ptr, bytes.len);
	r->len += bytes.len;
}

static void report(void *arg, const struct known_item *item, struct slice bytes, uint64_t offset)
{
	struct result *r = arg;
	r->reports = ((r->reports * 31 + item->secret) * 31 + bytes.len) * 31 + offset + 1;
}

/* Pieces of the sizes that the eight bytes say, again and again; a zero is 4096. */
static void run(const struct known_set *set, struct slice text, uint64_t sizes, bool keep_length, struct result *result)
{
	struct redactor *r = redactor_new(set, placeholders, sink, result);
	struct known_scan *s = known_scan_new(set, report, result);
	PROMISE(r && s);
	if (keep_length)
		redactor_keep_length(r);
	result->len = 0;
	result->reports = 0;
	while (text.len > 0) {
		struct slice piece = fuzz_copy(fuzz_take(&text, sizes & 0xff ? sizes & 0xff : 4096));
		PROMISE(redactor_feed(r, piece) == CAGE_OK && known_scan_feed(s, piece) == CAGE_OK);
		PROMISE(redactor_kept(r) < known_set_reach(set));
		fuzz_free(&piece);
		sizes = sizes >> 8 | sizes << 56;
	}
	PROMISE(redactor_end(r) == CAGE_OK && known_scan_end(s) == CAGE_OK);
	PROMISE(redactor_kept(r) == 0);
	result->found = redactor_found(r);
	redactor_free(&r);
	known_scan_free(&s);
}

static void must_be_clean(struct slice text, const struct result *r)
{
	struct slice out = slice_of(r->out, r->len);
	PROMISE((r->found == 0) == (r->reports == 0));
	PROMISE(r->found != 0 || slice_eq(out, text));
	for (size_t i = 0; i < N_ITEMS && slice_find(text, '=') == text.len; i++)
		PROMISE(!naive_has(out, items[i].bytes));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct known_set *sets[2]; /* all items are in both; only the first is for redaction */
	static struct result whole, cut;
	struct slice text = slice_of(data, size);
	uint64_t sizes = fuzz_number(&text, 8);
	if (!sets[0]) {
		sets[0] = known_set_new(items, N_ITEMS, KNOWN_REDACTED);
		sets[1] = known_set_new(items, N_ITEMS, KNOWN_REDACTED | KNOWN_IN_VIEWS);
	}
	for (size_t i = 0; i < 2; i++) {
		PROMISE(sets[i]);
		run(sets[i], text, sizes, true, &cut);
		PROMISE(cut.len == text.len);
		run(sets[i], text, 0, false, &whole);
		run(sets[i], text, sizes, false, &cut);
		PROMISE(slice_eq(slice_of(whole.out, whole.len), slice_of(cut.out, cut.len)));
		PROMISE(whole.found == cut.found && whole.reports == cut.reports);
		if (i == 0)
			must_be_clean(text, &whole);
	}
	return 0;
}
