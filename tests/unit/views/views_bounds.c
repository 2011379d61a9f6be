/* Bounds: what people send never reaches them, what is made to reach them is stopped, and errors of the reader end the
 * work at once. */
#include "tests/unit/views/fixture.h"

#define MANY MIB(1)

/* A reader that only counts. */
struct counts {
	size_t n_open, most_open, n_decoded;
	enum cage_status read_status; /* what read answers, for decoded texts */
	bool no_memory;               /* for decoded texts */
};

struct counted {
	struct counts *counts;
	unsigned depth;
};

static void *count_begin(void *arg, const struct view *view, uint64_t offset)
{
	struct counts *c = arg;
	(void)offset;
	struct counted *t = view->depth > 0 && c->no_memory ? NULL : malloc(sizeof(*t));
	if (!t)
		return NULL;
	*t = (struct counted){c, view->depth};
	if (++c->n_open > c->most_open)
		c->most_open = c->n_open;
	return t;
}

static enum cage_status count_read(void *text, struct slice bytes)
{
	struct counted *t = text;
	if (t->depth == 0)
		return CAGE_OK;
	t->counts->n_decoded += bytes.len;
	return t->counts->read_status;
}

static enum cage_status count_end(void *text)
{
	struct counted *t = text;
	t->counts->n_open--;
	free(t);
	return CAGE_OK;
}

static void count_run(void *arg, enum view_kind kind, uint64_t offset, uint64_t length, struct slice start)
{
	(void)start;
	(void)arg;
	(void)kind;
	(void)offset;
	(void)length;
}

static const struct view_reader counter = {count_begin, count_read, count_end, count_run};

static enum cage_status feed_pieces(struct views *v, struct slice input, size_t size)
{
	enum cage_status st = CAGE_OK;
	for (; st == CAGE_OK && input.len > 0; input = slice_from(input, size))
		st = views_feed(v, slice_head(input, size));
	return st == CAGE_OK ? views_end(v) : st;
}

/* The bounds hold in any case. */
static enum cage_status count_all(struct slice input)
{
	struct counts c = {0};
	struct views *v = views_new(&counter, &c);
	assert_non_null(v);
	enum cage_status st = feed_pieces(v, input, KIB(16));
	assert_true(c.most_open <= LIMIT_VIEW_TEXTS + 1);
	assert_true(c.n_decoded <= LIMIT_VIEW_WORK * input.len + LIMIT_VIEW_WORK_FREE);
	views_free(&v);
	assert_int_equal(c.n_open, 0);
	return st;
}

static void repeat(struct bytes *b, const char *text, size_t n)
{
	while (b->len < n)
		bytes_add(b, slice_str(text));
}

static void add_random(struct bytes *b, size_t n)
{
	uint64_t x = 88172645463325252u;
	for (size_t i = 0; i < n; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		bytes_add_char(b, (char)(x >> 32));
	}
}

static void repeated_texts_are_read(void **state)
{
	(void)state;
	static const char *const texts[] = {
		"%25%25%25",
		"\\u4f60\\u597d",
		"AAAA",
		"3333",
		"41",
		"0x41, ",
		"41:",
		"deadbeef",
		"x\0",
		"%2541",
		"\\/",
		"====",
		"----",
		"\\\\u0041",
		"YWFh",
		"\\x41%41 ",
		"5a47\n",
		"%33%33 \\u0033",
		"a b c ",
		"/usr/lib/x86_64-linux-gnu/",
		"\"41\", ",
		"4142 4344\n",
		"\"c29tZSB0ZXh0IG9mIHRoZSBsaXN0\", ",
		"550e8400-e29b-41d4-a716-446655440000\n",
		"\"an_identifier_of_it\", ",
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct bytes input = {0};
		repeat(&input, texts[i], MANY);
		if (count_all(bytes_slice(&input)) != CAGE_OK)
			fail_msg("%s", texts[i]);
		bytes_free(&input);
	}
}

static void images_are_read(void **state)
{
	(void)state;
	struct bytes image = {0}, input = {0};
	add_random(&image, 8 * MANY);
	assert_int_equal(count_all(bytes_slice(&image)), CAGE_OK);
	bytes_add(&input, SLICE("{\"source\": {\"type\": \"base64\", \"data\": \""));
	encode_base64(&input, bytes_slice(&image), STYLE_STANDARD);
	bytes_add(&input, SLICE("\"}}"));
	assert_int_equal(count_all(bytes_slice(&input)), CAGE_OK);
	bytes_free(&image);
	bytes_free(&input);
}

/* Every kind three times over itself, around a long text and around random bytes. */
static void encodings_of_encodings_are_read(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2 * VIEW_UTF16; i++) {
		struct bytes text = {0};
		if (i % 2)
			add_random(&text, KIB(40));
		else
			repeat(&text, "The quick brown fox said /usr/bin/env 100% to {\"x\": 12}. ", KIB(40));
		for (unsigned depth = 0; depth < 3; depth++) {
			struct bytes outer = {0};
			encode(&outer, bytes_slice(&text), i / 2);
			bytes_free(&text);
			text = outer;
		}
		if (count_all(bytes_slice(&text)) != CAGE_OK)
			fail_msg("%.*s", SLICE_FMT(view_kind_text(i / 2)));
		bytes_free(&text);
	}
}

/* Digits whose hex is digits again, behind escapes of both kinds that keep their texts open. */
static void too_much_is_stopped(void **state)
{
	(void)state;
	struct bytes input = {0};
	while (input.len < 4 * MANY) {
		bytes_add(&input, SLICE("%33\\u0033"));
		bytes_fill(&input, '3', 1093);
	}
	assert_int_equal(count_all(bytes_slice(&input)), CAGE_ELIMIT);
	bytes_free(&input);
}

/* In hex whose digits move apart once it is seen what they are. */
static struct bytes wrap_thin(struct slice text, const char *between, unsigned depth)
{
	struct bytes inner = {0};
	bytes_add(&inner, text);
	for (unsigned i = 0; i < depth; i++) {
		struct bytes outer = {0};
		encode_each(&outer, slice_head(bytes_slice(&inner), 70), "%02x", "");
		bytes_add(&outer, slice_str(between));
		encode_each(&outer, slice_from(bytes_slice(&inner), 70), "%02x", between);
		bytes_free(&inner);
		inner = outer;
	}
	return inner;
}

/* Of a text that takes too much of the outermost one, the end would come when the beginning has left. */
static void thin_views_are_stopped(void **state)
{
	(void)state;
	static const struct {
		const char *between;
		unsigned depth;
		enum cage_status status;
	} texts[] = {
		{"                        ", 1, CAGE_OK},     {"      ", 2, CAGE_OK},       {" ", 3, CAGE_OK},
		{"                        ", 2, CAGE_ELIMIT}, {"        ", 3, CAGE_ELIMIT},
	};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct bytes text = {0};
		repeat(&text, "a token that is here: SECRET-MARKER-0123456789. ", 400);
		struct bytes input = wrap_thin(bytes_slice(&text), texts[i].between, texts[i].depth);
		if (count_all(bytes_slice(&input)) != texts[i].status)
			fail_msg("%zu bytes between, %u deep", strlen(texts[i].between), texts[i].depth);
		bytes_free(&input);
		bytes_free(&text);
	}
	struct bytes padded = {0};
	bytes_add(&padded, SLICE("U0VDUkVULU1BUktFUi0wMTIzNDU2Nzg5"));
	bytes_fill(&padded, '=', KIB(64));
	bytes_add(&padded, SLICE("U0VDUkVULU1BUktFUi0wMTIzNDU2Nzg5"));
	assert_int_equal(count_all(bytes_slice(&padded)), CAGE_ELIMIT);
	bytes_free(&padded);
}

static void the_reader_may_stop(void **state)
{
	(void)state;
	static const enum cage_status answers[] = {CAGE_EPROTO, CAGE_ENOMEM, CAGE_ESYS};
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		struct counts c = {.read_status = answers[i]};
		struct views *v = views_new(&counter, &c);
		assert_int_equal(feed_pieces(v, SLICE("plain, and %41 more"), 5), answers[i]);
		assert_true(c.n_decoded > 0);
		views_reset(v);
		assert_int_equal(c.n_open, 0);
		assert_int_equal(feed_pieces(v, SLICE("plain"), 5), CAGE_OK);
		views_free(&v);
	}
}

static void the_reader_may_lack_memory(void **state)
{
	(void)state;
	struct counts c = {.no_memory = true};
	struct views *v = views_new(&counter, &c);
	assert_int_equal(feed_pieces(v, SLICE("plain, and %41 more"), 5), CAGE_ENOMEM);
	views_free(&v);
	assert_int_equal(c.n_open, 0);
}

/* In the middle of everything: open texts are ended, and nothing of them is left for the next text. */
static void reset_forgets(void **state)
{
	(void)state;
	struct kept kept = {.n_texts = 0};
	struct views *v = views_new(&keeper, &kept);
	struct bytes input = {0};
	bytes_add(&input, SLICE("%41\\u0042"));
	encode_base64(&input, SLICE("%41\\u0042 and this: " MARKER MARKER MARKER MARKER MARKER MARKER), STYLE_STANDARD);
	for (size_t n = 1; n < input.len; n++) {
		views_reset(v);
		kept_clear(&kept);
		assert_int_equal(views_feed(v, slice_head(bytes_slice(&input), n)), CAGE_OK);
		views_reset(v);
		for (size_t i = 0; i < kept.n_texts; i++)
			assert_true(kept.texts[i]->is_over);
		keep_all(v, &kept, slice_from(bytes_slice(&input), n), 0);
		size_t n_texts = kept.n_texts;
		struct views *fresh = views_new(&keeper, &kept);
		keep_all(fresh, &kept, slice_from(bytes_slice(&input), n), 0);
		assert_int_equal(kept.n_texts, n_texts);
		views_free(&fresh);
	}
	views_free(&v);
	kept_clear(&kept);
	bytes_free(&input);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(repeated_texts_are_read),         cmocka_unit_test(images_are_read),
		cmocka_unit_test(encodings_of_encodings_are_read), cmocka_unit_test(too_much_is_stopped),
		cmocka_unit_test(thin_views_are_stopped),          cmocka_unit_test(the_reader_may_stop),
		cmocka_unit_test(the_reader_may_lack_memory),      cmocka_unit_test(reset_forgets),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
