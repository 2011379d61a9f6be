/* Random values in random text, in random forms, cut at random: the output has no value in any form, says so a slow
 * search of its own, and is else what it was. The numbers are the same in every run. */
#include "tests/unit/known/fixture.h"

#include "tests/unit/known/naive.h"

#define SETS 300
#define TEXTS 12
#define VALUES 3
#define VALUE_MAX 64

static uint64_t seed = 88172645463325252u;

static size_t below(size_t n)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (size_t)(seed >> 20) % n;
}

/* Any byte but NUL, CR and LF. */
static char random_byte(void)
{
	char c = '\0';
	while (c == '\0' || c == '\r' || c == '\n')
		c = (char)below(256);
	return c;
}

/* A world: values, what replaces them, and a text as it is and as it should be. */
struct world {
	char values[VALUES][VALUE_MAX];
	struct known_item items[VALUES];
	char placeholder_bytes[VALUES][24];
	struct slice placeholders[VALUES];
	struct bytes text, wanted;
};

static void make_values(struct world *w)
{
	for (unsigned i = 0; i < VALUES; i++) {
		size_t len = 8 + below(VALUE_MAX - 8 + 1);
		for (size_t k = 0; k < len; k++)
			w->values[i][k] = random_byte();
		w->items[i] = (struct known_item){KNOWN_VALUE, i, slice_of(w->values[i], len)};
		len = (size_t)snprintf(w->placeholder_bytes[i], sizeof(w->placeholder_bytes[i]), "{{%.*s}}",
				       (int)(4 + below(15)), "\"PLACE\\HOLDER 1234567");
		w->placeholders[i] = slice_of(w->placeholder_bytes[i], len);
	}
}

/* ---- encoders that choose ---- */

/* At least the first byte is escaped: else it would not be that form. */
static void add_percent(struct bytes *b, struct slice s)
{
	for (size_t i = 0; i < s.len; i++) {
		if (i == 0 || s.ptr[i] == '%' || below(3) == 0) {
			bytes_add_char(b, '%');
			add_hex(b, slice_of(s.ptr + i, 1), below(2) ? LOWER : UPPER);
		} else {
			bytes_add_char(b, s.ptr[i] == ' ' && below(2) ? '+' : s.ptr[i]);
		}
	}
}

static void add_json(struct bytes *b, struct slice s)
{
	for (size_t i = 0; i < s.len; i++) {
		if ((s.ptr[i] == '"' || s.ptr[i] == '\\' || s.ptr[i] == '/') && below(2)) {
			bytes_add_char(b, '\\');
			bytes_add_char(b, s.ptr[i]);
		} else if (i == 0 || s.ptr[i] == '"' || s.ptr[i] == '\\' || below(3) == 0) {
			bytes_add(b, SLICE("\\u00"));
			add_hex(b, slice_of(s.ptr + i, 1), below(2) ? LOWER : UPPER);
		} else {
			bytes_add_char(b, s.ptr[i]);
		}
	}
}

static void add_percent_placeholder(struct bytes *b, struct slice s)
{
	for (size_t i = 0; i < s.len; i++) {
		bool is_plain = ascii_is_digit((unsigned char)s.ptr[i]) || (s.ptr[i] >= 'A' && s.ptr[i] <= 'Z');
		if (!is_plain)
			bytes_add_char(b, '%');
		if (is_plain)
			bytes_add_char(b, s.ptr[i]);
		else
			add_hex(b, slice_of(s.ptr + i, 1), UPPER);
	}
}

static void add_json_placeholder(struct bytes *b, struct slice s)
{
	for (size_t i = 0; i < s.len; i++) {
		if (s.ptr[i] == '"' || s.ptr[i] == '\\')
			bytes_add_char(b, '\\');
		bytes_add_char(b, s.ptr[i]);
	}
}

/* ---- pieces of a text ---- */

static void add_noise(struct bytes *a, struct bytes *b)
{
	for (size_t n = below(2) ? below(6) : below(60); n > 0; n--) {
		char c = random_byte();
		bytes_add_char(a, c);
		bytes_add_char(b, c);
	}
}

static bool has_url_digits(struct slice s)
{
	return slice_find(s, '-') < s.len || slice_find(s, '_') < s.len;
}

/* Several values in one run, with other bytes between. Never is a byte of the alphabet right before or behind it. */
static void add_run(struct world *w)
{
	struct bytes plain = {0}, wanted = {0};
	add_noise(&plain, &wanted);
	for (size_t n = 1 + below(3); n > 0; n--) {
		size_t i = below(VALUES);
		bytes_add(&plain, w->items[i].bytes);
		bytes_add(&wanted, w->placeholders[i]);
		add_noise(&plain, &wanted);
	}
	enum alphabet alphabet = below(2) ? ALPHABET_STD : ALPHABET_URL;
	bool pads = below(2);
	bytes_add_char(&w->text, '"');
	bytes_add_char(&w->wanted, '"');
	size_t start = w->text.len;
	add_base64(&w->text, bytes_slice(&plain), alphabet, pads);
	if (plain.len % 3 == 0)
		pads = !has_url_digits(slice_from(bytes_slice(&w->text), start));
	add_base64(&w->wanted, bytes_slice(&wanted), alphabet, pads);
	bytes_add_char(&w->text, '"');
	bytes_add_char(&w->wanted, '"');
	bytes_free(&plain);
	bytes_free(&wanted);
}

static bool has_letters(struct slice hex)
{
	size_t i = 0;
	while (i < hex.len && ascii_is_digit((unsigned char)hex.ptr[i]))
		i++;
	return i < hex.len;
}

static void add_value(struct world *w)
{
	size_t i = below(VALUES), at;
	struct slice value = w->items[i].bytes, placeholder = w->placeholders[i];
	const char *digits = below(2) ? LOWER : UPPER;
	switch (below(5)) {
	case 0:
		bytes_add(&w->text, value);
		bytes_add(&w->wanted, placeholder);
		break;
	case 1:
		add_percent(&w->text, value);
		add_percent_placeholder(&w->wanted, placeholder);
		break;
	case 2:
		add_json(&w->text, value);
		add_json_placeholder(&w->wanted, placeholder);
		break;
	case 3:
		bytes_add_char(&w->text, digits[10]); /* it need not begin at an even digit */
		bytes_add_char(&w->wanted, digits[10]);
		at = w->text.len;
		add_hex(&w->text, value, digits);
		add_hex(&w->wanted, placeholder, has_letters(slice_from(bytes_slice(&w->text), at)) ? digits : LOWER);
		break;
	default:
		add_run(w);
		break;
	}
}

/* Of a run that shows its alphabet late the start may be in the other one; what it says is the same. */
static void level_alphabets(struct bytes *b)
{
	for (size_t i = 0; i < b->len; i++) {
		if (b->ptr[i] == '-')
			b->ptr[i] = '+';
		if (b->ptr[i] == '_')
			b->ptr[i] = '/';
	}
}

static void must_equal(struct bytes *out, struct bytes *wanted, size_t way)
{
	level_alphabets(out);
	level_alphabets(wanted);
	if (!slice_eq(bytes_slice(out), bytes_slice(wanted)))
		fail_msg("way %zu: something else than the values was changed", way);
}

static void check_text(struct world *w, const struct known_set *set)
{
	struct bytes out = {0};
	w->text.len = w->wanted.len = 0;
	for (size_t n = below(4); n > 0; n--) {
		add_noise(&w->text, &w->wanted);
		add_value(w);
	}
	add_noise(&w->text, &w->wanted);
	for (size_t way = 0; way < 5; way++) {
		size_t cut = way == 0 ? 0 : below(w->text.len + 1), step = way < 2 ? 0 : way == 2 ? 1 : 1 + below(40);
		redact_cut(set, w->placeholders, bytes_slice(&w->text), cut, step, &out);
		for (size_t i = 0; way == 0 && i < VALUES; i++)
			assert_false(naive_has(bytes_slice(&out), w->items[i].bytes));
		must_equal(&out, &w->wanted, way);
	}
	bytes_free(&out);
}

static void nothing_is_left_and_nothing_else_is_changed(void **state)
{
	(void)state;
	static struct world w;
	for (size_t i = 0; i < SETS; i++) {
		make_values(&w);
		struct known_set *set = known_set_new(w.items, VALUES, KNOWN_REDACTED);
		assert_non_null(set);
		for (size_t k = 0; k < TEXTS; k++)
			check_text(&w, set);
		known_set_unref(&set);
	}
	bytes_free(&w.text);
	bytes_free(&w.wanted);
}

/* The slow search is no use when it finds nothing. */
static void the_slow_search_finds(void **state)
{
	(void)state;
	static struct world w;
	for (size_t i = 0; i < SETS; i++) {
		make_values(&w);
		w.text.len = w.wanted.len = 0;
		add_noise(&w.text, &w.wanted);
		add_value(&w);
		add_noise(&w.text, &w.wanted);
		bool is_found = false;
		for (size_t k = 0; k < VALUES; k++)
			is_found |= naive_has(bytes_slice(&w.text), w.items[k].bytes);
		assert_true(is_found);
	}
	bytes_free(&w.text);
	bytes_free(&w.wanted);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_slow_search_finds),
		cmocka_unit_test(nothing_is_left_and_nothing_else_is_changed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
