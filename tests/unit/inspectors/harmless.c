/* Whatever is said to be harmless at once, a search has to find nothing in: random names, and names with secrets in them in
 * every view that a name has room for. */
#include "inspectors/harmless.h"

#include "inspectors/scan/shape.h"
#include "tests/unit/inspectors/chain_rig.h"

#define NAMES 12000
#define POLICY                                                                               \
	RULES "inspectors:\n"                                                                \
	      "  canary: {strings: [Kestrel-Harbour-7, tinysand]}\n"                         \
	      "  secrets: {extra: [{id: corp, pattern: '(?i:corp)_[0-9A-F]{12}(?:[.]x)?'}, " \
	      "{id: lined, pattern: 'zz[a-z]{2}[\\s.]{1,2}[a-z]{8}'}]}\n"

static uint64_t state_of_random;

static unsigned number(unsigned below)
{
	state_of_random = state_of_random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(state_of_random >> 33) % below;
}

static void put_random(struct text *t, const char *alphabet, size_t n)
{
	for (size_t i = 0; i < n; i++)
		text_put_char(t, alphabet[number((unsigned)strlen(alphabet))]);
}

#define HEX "0123456789abcdef"
#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define ALNUM LOWER "0123456789"

/* What must not be shown, as far as a name can hold it. */
static void put_secret(struct text *t)
{
	static const struct {
		const char *prefix, *alphabet;
		size_t n;
	} secrets[] = {
		{"npg_", ALNUM, 12},          {"akia", "abcdefghijklmnop234567", 16},
		{"do00", ALNUM, 16},          {"glpat-", ALNUM "_-", 20},
		{"sk_live_", ALNUM, 24},      {"hvs.", ALNUM, 24},
		{"kestrel-harbour-7", "", 0}, {"tinysand", "", 0},
		{"7-ruobrah-lertsek", "", 0}, {"corp_", HEX, 12},
		{"cage-ph-", HEX, 32},        {"zebra91x", "", 0},
		{"zzab.abcdefgh", "", 0},     {"sq0atp-", ALNUM, 22},
		{"scw", ALNUM, 17},           {"esecret_", ALNUM, 26},
		{"rzp_live_", ALNUM, 14},     {"xoxb-", "0123456789-", 40},
	};
	unsigned i = number(sizeof(secrets) / sizeof(secrets[0]));
	text_put(t, slice_str(secrets[i].prefix));
	put_random(t, secrets[i].alphabet, secrets[i].n);
}

static void put_hex(struct text *t, struct slice bytes, const char *between)
{
	for (size_t i = 0; i < bytes.len; i++) {
		text_put_hex(t, bytes.ptr + i, 1);
		text_put(t, slice_str(between));
	}
}

static void put_base64(struct text *t, struct slice bytes)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	for (size_t i = 0; i + 2 < bytes.len; i += 3) {
		const unsigned char *b = (const unsigned char *)bytes.ptr + i;
		unsigned bits = (unsigned)b[0] << 16 | (unsigned)b[1] << 8 | b[2];
		for (unsigned k = 0; k < 4; k++)
			text_put_char(t, digits[bits >> (18 - 6 * k) & 63]);
	}
}

/* A secret in one of its views. */
static void put_planted(struct text *t)
{
	char plain[128], once[256];
	struct text secret = text_in(plain, sizeof(plain)), inner = text_in(once, sizeof(once));
	static const char *const betweens[] = {"", "-", ".", "_", "x"};
	put_secret(&secret);
	switch (number(6)) {
	case 0:
		put_hex(t, text_slice(&secret), betweens[number(5)]);
		break;
	case 1:
		put_base64(t, text_slice(&secret));
		break;
	case 2:
		put_hex(&inner, text_slice(&secret), "");
		put_hex(t, slice_head(text_slice(&inner), 56), "");
		break;
	default:
		text_put(t, text_slice(&secret));
		break;
	}
}

/* Dots in between, letters that are lower case, and no more than a name has. */
static struct slice as_name(struct slice raw, char *out)
{
	struct text t = text_in(out, LIMIT_HOST);
	unsigned every = 3 + number(60);
	for (size_t i = 0; i < raw.len && t.len + 2 < LIMIT_HOST; i++) {
		text_put_char(&t, (char)ascii_lower((unsigned char)raw.ptr[i]));
		if (number(every) == 0)
			text_put_char(&t, '.');
	}
	return text_slice(&t);
}

static struct slice make_name(char *out)
{
	char buf[512];
	struct text t = text_in(buf, sizeof(buf));
	static const char *const alphabets[] = {LOWER, ALNUM, HEX, "0123456789", ALNUM "-_", "acgkmnostz.-_"};
	unsigned kind = number(8);
	put_random(&t, alphabets[number(6)], number(40));
	if (kind >= 3)
		put_planted(&t);
	put_random(&t, alphabets[number(6)], number(30));
	if (kind == 7)
		put_planted(&t);
	text_put(&t, SLICE(".example.net"));
	return as_name(slice_head(text_slice(&t), 250), out);
}

static unsigned hides(struct rig *r, struct slice name)
{
	struct target target = {.host = {.kind = HOST_NAME, .text = name}};
	struct subject s = {.target = &target};
	arena_reset(&r->arena);
	return chain_places_to_hide(r->chain, &r->arena, &s) >> PLACE_HOST & 1;
}

static struct rig rig_with_known(const char *yaml)
{
	static const struct known_item items[] = {{KNOWN_VALUE, 0, WORD("Zebra91x")},
						  {KNOWN_RANDOM_PLACEHOLDER, 0, WORD("cage-ph-")}};
	struct rig r = rig_new(yaml);
	struct known_set *known = known_set_new(items, 2, KNOWN_IN_VIEWS);
	assert_non_null(known);
	chain_set_known(r.chain, known);
	known_set_unref(&known);
	return r;
}

static void nothing_is_found_in_what_is_harmless(void **state)
{
	(void)state;
	static const char *const policies[] = {POLICY, RULES};
	for (size_t p = 0; p < 2; p++) {
		struct rig r = rig_with_known(policies[p]);
		unsigned n_hidden = 0, n_harmless = 0;
		state_of_random = 7 + p;
		for (unsigned i = 0; i < NAMES; i++) {
			char buf[LIMIT_HOST];
			struct slice name = make_name(buf);
			bool is_harmless = chain_name_is_harmless(r.chain, name);
			unsigned hidden = hides(&r, name);
			if (is_harmless && hidden)
				fail_msg("%.*s", SLICE_FMT(name));
			n_hidden += hidden;
			n_harmless += is_harmless;
		}
		assert_true(n_hidden > NAMES / 10); /* the names are good for something */
		assert_true(n_harmless > NAMES / 10);
		rig_free(&r);
	}
}

static void usual_names_are_harmless(void **state)
{
	(void)state;
	static const char *const names[] = {"example.net",
					    "cdn7.evil0.example.net",
					    "telemetry.vendor.example",
					    "a.b",
					    "www.a-rather-long-name.example.org",
					    "x1.y2.z3.test"};
	struct rig r = rig_with_known(RULES);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!chain_name_is_harmless(r.chain, slice_str(names[i])))
			fail_msg("%s", names[i]);
	rig_free(&r);
}

static void what_is_no_name_is_not_told(void **state)
{
	(void)state;
	struct rig r = rig_with_known(RULES);
	assert_false(chain_name_is_harmless(r.chain, SLICE("")));
	assert_false(chain_name_is_harmless(r.chain, SLICE("a b.example.net")));
	assert_false(chain_name_is_harmless(r.chain, SLICE("Www.example.net")));
	assert_false(chain_name_is_harmless(r.chain, SLICE("\xc3\xa4.example.net")));
	rig_free(&r);
}

/* ---- shapes ---- */

static struct byte_set lower_case(void)
{
	struct byte_set set = {{0}};
	for (const char *c = ALNUM "_.-"; *c; c++)
		byte_set_add(&set, (unsigned char)*c);
	return set;
}

static void assert_shape(const char *pattern, bool is_possible, unsigned least, const char *first)
{
	struct format f = {.pattern = slice_str(pattern)};
	struct byte_set set = lower_case();
	struct shape s;
	assert_true(shape_of(&f, &set, &s));
	assert_int_equal(s.is_possible, is_possible);
	if (!is_possible)
		return;
	assert_int_equal(s.least, least);
	for (size_t i = 0; i < strlen(first); i++)
		assert_true(first[i] == '*' ? byte_set_has(&s.first[i], 'q')
					    : byte_set_has(&s.first[i], (unsigned char)first[i]));
}

static void the_shape_of_a_pattern(void **state)
{
	(void)state;
	assert_shape("abc", true, 3, "abc");
	assert_shape("\\bghp_[A-Za-z0-9]{36}\\b", true, 40, "ghp");
	assert_shape("(?:\\b|\\\\[nrt])(npg_[a-z]{12,16})", true, 16, "npg");
	assert_shape("AKIA[A-Z]{16}", false, 0, "");
	assert_shape("(?i:AKIA)x{2}", true, 6, "aki");
	assert_shape("(?:a|bcd)e", true, 2, "b*");
	assert_shape("(?:a|bcd)e", true, 2, "ae");
	assert_shape("a?bc", true, 2, "b*");
	assert_shape("a?bc", true, 2, "ab*");
	assert_shape("(?:ab){2,}", true, 4, "aba");
	assert_shape("(?:[a-c]{1,2}:)?xy", true, 2, "xy");
	assert_shape("x=[a-z]{8}", false, 0, "");
	assert_shape("[^a-p]{3}", true, 3, "qqq");
	assert_shape("\\x61\\.\\d", true, 3, "a.7");
	assert_shape("(?:=|:)?abc", true, 3, "abc");
}

static void what_is_not_understood_is_said(void **state)
{
	(void)state;
	static const char *const patterns[] = {"(?=a)b", "\\Qa\\E", "[[:alpha:]]", "a{,3}", "(?i)abc", "\\1", "(a",
					       "a)",     "[a",      "[b-a]",       "a\\",   "x{2",     "*a",  "\\p{L}"};
	struct byte_set set = lower_case();
	struct shape s;
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		struct format f = {.pattern = slice_str(patterns[i])};
		if (shape_of(&f, &set, &s))
			fail_msg("%s", patterns[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_found_in_what_is_harmless), cmocka_unit_test(usual_names_are_harmless),
		cmocka_unit_test(what_is_no_name_is_not_told),          cmocka_unit_test(the_shape_of_a_pattern),
		cmocka_unit_test(what_is_not_understood_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
