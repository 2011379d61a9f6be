/* Secrets in heads: each kind of slot, what the inspectors see of it, and what is left alone. */
#include "tests/unit/proxy/inject.h"

#include <openssl/evp.h>

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define BIT(i) ((uint64_t)1 << (i))

/* One request on its way. */
struct request {
	struct arena arena;
	struct field fields[4];
	struct message head;
	struct target target;
	struct inject_plan plan;
	const char *detail;
};

static void setup(struct request *r, const char *path, const char *query)
{
	*r = (struct request){.head = {.method = WORD("GET"), .target = WORD("/as-it-came"), .framing = BODY_NONE}};
	arena_init(&r->arena, LIMIT_TXN_ARENA);
	r->head.fields = r->fields;
	r->target.path = r->target.loose = slice_str(path);
	r->target.query = slice_str(query);
}

static void add_field(struct request *r, const char *name, struct slice value)
{
	r->fields[r->head.n_fields++] = (struct field){slice_str(name), value, field_identify(slice_str(name))};
}

static enum reason plan(struct request *r)
{
	return inject_plan(secrets, N_SECRETS, &r->head, &r->target, &r->arena, &r->plan, &r->detail);
}

static enum cage_status fill(struct request *r)
{
	return inject_head(&r->plan, values, &r->head, &r->target, &r->arena);
}

static void teardown(struct request *r)
{
	arena_free(&r->arena);
}

static void assert_text(struct slice got, const char *want)
{
	assert_int_equal(got.len, strlen(want));
	assert_memory_equal(got.ptr, want, got.len);
}

/* ---- fields ---- */

struct field_case {
	const char *name, *value, *masked, *filled;
	uint64_t used;
};

static const struct field_case field_cases[] = {
	{"x-api-key", "{{KEY_ONE}}", "-", "sk-1/\"\\&= %", BIT(ONE)},
	{"X-API-Key", "{{KEY+TWO}}", "-", "token-two", BIT(TWO)},
	{"Authorization", "Bearer {{KEY+TWO}}", "Bearer -", "Bearer token-two", BIT(TWO)},
	{"Cookie", "t={{KEY+TWO}}, a=b", "t=-, a=b", "t=token-two, a=b", BIT(TWO)},
	{"cookie", "{{KEY+TWO}}{{KEY+TWO}};{{KEY+TWO}}", "--;-", "token-twotoken-two;token-two", BIT(TWO)},
	{"cookie", "a={{KEY+TWO}}; b={{KEY_ONE}}", "a=-; b=-", "a=token-two; b=sk-1/\"\\&= %", BIT(ONE) | BIT(TWO)},
	/* of two that begin in one place, the longer; where that one has no slot, the other */
	{"authorization", "{{KEY_ONE}}/b {{KEY_ONE}}/", "- -/", "longer-value sk-1/\"\\&= %/", BIT(ONE) | BIT(LONGER)},
	{"cookie", "{{KEY_ONE}}/b", "-/b", "sk-1/\"\\&= %/b", BIT(ONE)},
	{"cookie", "{{{{KEY+TWO}}}}", "{{-}}", "{{token-two}}", BIT(TWO)},
	/* left alone: no slot, no placeholder of a slot, another spelling, not sent on, a key */
	{"x-other", "{{KEY_ONE}}", NULL, NULL, 0},
	{"x-api-key", "{{A/TOKEN}}", NULL, NULL, 0},
	{"x-api-key", "%7B%7BKEY_ONE}}", NULL, NULL, 0},
	{"x-api-key", "{{key one}}", NULL, NULL, 0},
	{"x-api-key", "{{KEY_ONE}", NULL, NULL, 0},
	{"x-api-key", "", NULL, NULL, 0},
	{"proxy-authorization", "Bearer {{KEY_ONE}}", NULL, NULL, 0},
	{"host", "{{KEY_ONE}}", NULL, NULL, 0},
	{"authorization", "{{AWS_KEY}}", NULL, NULL, 0},
};

static void a_placeholder_in_a_field_is_replaced(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(field_cases); i++) {
		const struct field_case *c = &field_cases[i];
		struct request r;
		setup(&r, "/", "");
		add_field(&r, "accept", SLICE("{{KEY_ONE}}")); /* misplaced */
		add_field(&r, c->name, slice_str(c->value));
		assert_int_equal(plan(&r), REASON_NONE);
		assert_int_equal(r.plan.used, c->used);
		assert_text(r.plan.head->fields[0].value, "{{KEY_ONE}}");
		assert_text(r.plan.head->fields[1].value, c->masked ? c->masked : c->value);
		assert_int_equal(fill(&r), CAGE_OK);
		assert_text(r.head.fields[1].value, c->filled ? c->filled : c->value);
		assert_text(r.head.fields[1].name, c->name);
		assert_ptr_equal(r.head.fields[0].value.ptr, r.fields[0].value.ptr);
		if (c->used == 0) {
			assert_ptr_equal(r.plan.head, &r.head);
			assert_ptr_equal(r.head.fields, r.fields);
		}
		assert_text(r.fields[1].value, c->value);
		teardown(&r);
	}
}

static void all_fields_of_a_name_count(void **state)
{
	(void)state;
	struct request r;
	setup(&r, "/", "");
	add_field(&r, "x-api-key", SLICE("{{KEY+TWO}}"));
	add_field(&r, "x-api-key", SLICE("other"));
	add_field(&r, "X-Api-Key", SLICE("{{KEY+TWO}}"));
	assert_int_equal(plan(&r), REASON_NONE);
	assert_text(r.plan.head->fields[2].value, "-");
	assert_int_equal(fill(&r), CAGE_OK);
	assert_text(r.head.fields[0].value, "token-two");
	assert_text(r.head.fields[1].value, "other");
	assert_text(r.head.fields[2].value, "token-two");
	teardown(&r);
}

/* ---- Basic ---- */

static struct slice basic(struct request *r, const char *scheme, const char *plain)
{
	size_t len = strlen(plain), n = strlen(scheme);
	char *text = arena_alloc(&r->arena, n + (len + 2) / 3 * 4 + 1);
	assert_non_null(text);
	memcpy(text, scheme, n);
	int digits = EVP_EncodeBlock((unsigned char *)text + n, (const unsigned char *)plain, (int)len);
	return slice_of(text, n + (size_t)digits);
}

struct basic_case {
	const char *scheme, *plain, *masked, *filled;
};

static const struct basic_case basic_cases[] = {
	{"Basic ", "user:{{KEY_ONE}}", "user:-", "user:sk-1/\"\\&= %"},
	{"basic ", "{{KEY+TWO}}:", "-:", "token-two:"},
	{"BASIC   ", "{{KEY+TWO}}:x-oauth-basic", "-:x-oauth-basic", "token-two:x-oauth-basic"},
	{"Basic ", "{{KEY+TWO}}:{{KEY_ONE}}", "-:-", "token-two:sk-1/\"\\&= %"},
	{"Basic ", "a:{{KEY_ONE}}/b", "a:-", "a:longer-value"},
	{"Basic ", "ab:{{KEY+TWO}}", "ab:-", "ab:token-two"},
	{"Basic ", "abc:{{KEY+TWO}}", "abc:-", "abc:token-two"},
};

static void basic_is_decoded_and_encoded_again(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(basic_cases); i++) {
		const struct basic_case *c = &basic_cases[i];
		struct request r;
		setup(&r, "/", "");
		add_field(&r, "authorization", basic(&r, c->scheme, c->plain));
		assert_int_equal(plan(&r), REASON_NONE);
		assert_true(slice_eq(r.plan.head->fields[0].value, basic(&r, c->scheme, c->masked)));
		assert_int_equal(fill(&r), CAGE_OK);
		assert_true(slice_eq(r.head.fields[0].value, basic(&r, c->scheme, c->filled)));
		teardown(&r);
	}
}

static void basic_may_lack_its_padding(void **state)
{
	(void)state;
	struct request r;
	setup(&r, "/", "");
	struct slice value = basic(&r, "Basic ", "{{KEY+TWO}}:ab");
	assert_int_equal(value.ptr[value.len - 1], '=');
	value.len = slice_find(value, '=');
	add_field(&r, "authorization", value);
	assert_int_equal(plan(&r), REASON_NONE);
	assert_int_equal(fill(&r), CAGE_OK);
	assert_true(slice_eq(r.head.fields[0].value, basic(&r, "Basic ", "token-two:ab")));
	teardown(&r);
}

/* "e3tLRVkrVFdPfX06" is "{{KEY+TWO}}:". */
static void other_base64_is_left_alone(void **state)
{
	static const struct {
		const char *name, *value;
	} cases[] = {
		{"x-api-key", "Basic e3tLRVkrVFdPfX06"},       {"authorization", "Bearer e3tLRVkrVFdPfX06"},
		{"authorization", "Basic e3tLRVkrVFdPfX06="},  {"authorization", "Basic e3tLRVkrVFdPfX06===="},
		{"authorization", "Basic e3tLRVkrVFdPfX06Q"},  {"authorization", "Basic e3tLRVkrVFdPfX06!!!!"},
		{"authorization", "Basic e3tLRVkrVFdPfX06QR"}, {"authorization", "Basic e3tLRVkrVFdPfX06Y_8-"},
		{"authorization", "Basic e3tLRVkrVFdPfX06 "},  {"authorization", "Basic"},
		{"authorization", "Basic dXNlcjpwYXNz"},
	};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct request r;
		setup(&r, "/", "");
		add_field(&r, cases[i].name, slice_str(cases[i].value));
		assert_int_equal(plan(&r), REASON_NONE);
		assert_ptr_equal(r.plan.head, &r.head);
		assert_int_equal(r.plan.used, 0);
		teardown(&r);
	}
}

static void a_value_may_be_the_credentials_as_they_are_sent(void **state)
{
	(void)state;
	struct request r;
	setup(&r, "/", "");
	add_field(&r, "authorization", SLICE("Basic {{KEY+TWO}}"));
	assert_int_equal(plan(&r), REASON_NONE);
	assert_text(r.plan.head->fields[0].value, "Basic -");
	assert_int_equal(fill(&r), CAGE_OK);
	assert_text(r.head.fields[0].value, "Basic token-two");
	teardown(&r);
}

/* ---- targets ---- */

#define ONE_CODED "sk-1%2F%22%5C%26%3D%20%25"
#define PATH_CODED "..%2Fa%3Fb%3Bc"

struct target_case {
	const char *path, *query, *masked_path, *masked_query, *filled_path, *filled_query;
};

static const struct target_case target_cases[] = {
	{"/", "?key={{KEY%5FONE}}", NULL, "?key=-", NULL, "?key=" ONE_CODED},
	{"/", "?key=%7B%7BKEY_ONE%7D%7d&key=x", NULL, "?key=-&key=x", NULL, "?key=" ONE_CODED "&key=x"},
	{"/", "?a=%7b&key=x+%7B{%4bEY%5FONE}}+y%2f&&b", NULL, "?a=%7b&key=x+-+y%2f&&b", NULL,
	 "?a=%7b&key=x+" ONE_CODED "+y%2f&&b"},
	{"/", "?%6bey={{KEY_ONE}}{{KEY_ONE}}", NULL, "?%6bey=--", NULL, "?%6bey=" ONE_CODED ONE_CODED},
	{"/", "?api+key={{KEY_ONE}}&api%20key={{KEY_ONE}}", NULL, "?api+key=-&api%20key=-", NULL,
	 "?api+key=" ONE_CODED "&api%20key=" ONE_CODED},
	{"/", "?key=a={{KEY_ONE}};b", NULL, "?key=a=-;b", NULL, "?key=a=" ONE_CODED ";b"},
	{"/", "?key=%25{{KEY_ONE}}", NULL, "?key=%25-", NULL, "?key=%25" ONE_CODED},
	/* left alone: another parameter or spelling, a secret without the slot, behind an escape that is broken */
	{"/", "?Key={{KEY_ONE}}", NULL, NULL, NULL, NULL},
	{"/", "?keys={{KEY_ONE}}&ke={{KEY_ONE}}&%6={{KEY_ONE}}", NULL, NULL, NULL, NULL},
	{"/", "?a=1;key={{KEY_ONE}}", NULL, NULL, NULL, NULL},
	{"/", "?{{KEY_ONE}}", NULL, NULL, NULL, NULL},
	{"/", "?{{KEY_ONE}}=key", NULL, NULL, NULL, NULL},
	{"/", "?key", NULL, NULL, NULL, NULL},
	{"/", "?", NULL, NULL, NULL, NULL},
	{"/", "?key={{KEY%2BTWO}}", NULL, NULL, NULL, NULL},
	{"/", "?key={{KEY%2BONE}}", NULL, NULL, NULL, NULL},
	{"/", "?key=%257B%257BKEY_ONE}}", NULL, NULL, NULL, NULL},
	{"/", "?key=%{{KEY_ONE}}", NULL, NULL, NULL, NULL},
	{"/", "?key=%4{{KEY_ONE}}", NULL, NULL, NULL, NULL},
	{"/", "?key=%z%{{KEY_ONE}}", NULL, NULL, NULL, NULL},
	{"/", "?key=%%7B{KEY_ONE}}", NULL, NULL, NULL, NULL},
	{"/", "?key=%7B%7BKEY_ONE%7D%7", NULL, NULL, NULL, NULL},
	/* paths */
	{"/bot{{A%2FTOKEN}}/send", "", "/bot-/send", NULL, "/bot" PATH_CODED "/send", NULL},
	{"/%7B%7BA%2FTOKEN%7D%7D", "?a=b", "/-", NULL, "/" PATH_CODED, NULL},
	{"//{{A%2FTOKEN}}{{A%2FTOKEN}}//", "", "//--//", NULL, "//" PATH_CODED PATH_CODED "//", NULL},
	{"/{{A%2FTOKEN}}", "?key={{KEY_ONE}}", "/-", "?key=-", "/" PATH_CODED, "?key=" ONE_CODED},
	{"/{{A/TOKEN}}", "", NULL, NULL, NULL, NULL},
	{"/{{KEY%5FONE}}", "?x={{A%2FTOKEN}}", NULL, NULL, NULL, NULL},
	{"/{{AWS_KEY}}", "", NULL, NULL, NULL, NULL},
	{"*", "", NULL, NULL, NULL, NULL},
};

static void check_path(const struct target_case *c, const char *want, const struct target *got)
{
	assert_text(got->path, want ? want : c->path);
	assert_text(got->loose, want ? "" : c->path);
}

static void a_placeholder_in_a_target_is_replaced(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(target_cases); i++) {
		const struct target_case *c = &target_cases[i];
		bool changes = c->masked_path || c->masked_query;
		struct request r;
		setup(&r, c->path, c->query);
		assert_int_equal(plan(&r), REASON_NONE);
		assert_int_equal(r.plan.target != &r.target, changes);
		check_path(c, c->masked_path, r.plan.target);
		assert_text(r.plan.target->query, c->masked_query ? c->masked_query : c->query);
		assert_int_equal(fill(&r), CAGE_OK);
		check_path(c, c->filled_path, &r.target);
		assert_text(r.target.query, c->filled_query ? c->filled_query : c->query);
		if (!c->masked_path)
			assert_ptr_equal(r.target.path.ptr, c->path);
		teardown(&r);
	}
}

/* As it came it would show the placeholder, or not the value. */
static void the_target_of_the_message_goes_along(void **state)
{
	(void)state;
	struct request r;
	setup(&r, "/a", "?key={{KEY_ONE}}");
	assert_int_equal(plan(&r), REASON_NONE);
	assert_text(r.plan.head->target, "/a?key=-");
	assert_int_equal(fill(&r), CAGE_OK);
	assert_text(r.head.target, "/a?key=" ONE_CODED);
	teardown(&r);
}

static void a_path_with_a_value_is_canonical(void **state)
{
	(void)state;
	struct request r;
	struct target again = {0};
	const char *why = NULL;
	setup(&r, "/x/{{A%2FTOKEN}}y", "");
	assert_int_equal(plan(&r), REASON_NONE);
	struct slice harmless[N_SECRETS] = {[PATH] = WORD("%2f tok/en")};
	assert_int_equal(inject_head(&r.plan, harmless, &r.head, &r.target, &r.arena), CAGE_OK);
	assert_int_equal(path_parse(r.target.path, &r.arena, &again, &why), CAGE_OK);
	assert_true(slice_eq(again.path, r.target.path));
	teardown(&r);
}

/* ---- what can't be put in ---- */

static void values_that_could_end_a_field_are_refused(void **state)
{
	static const struct slice bad[] = {WORD("abcdefgh\r"), WORD("abc\ndefgh"), WORD("\0abcdefgh"), WORD("abcdefg"),
					   WORD("")};
	(void)state;
	for (size_t i = 0; i < COUNT(bad); i++) {
		struct request r;
		setup(&r, "/", "?key={{KEY_ONE}}");
		add_field(&r, "cookie", SLICE("{{KEY_ONE}}"));
		assert_int_equal(plan(&r), REASON_NONE);
		struct slice with[N_SECRETS] = {[ONE] = bad[i]};
		assert_int_equal(inject_head(&r.plan, with, &r.head, &r.target, &r.arena), CAGE_EPROTO);
		assert_ptr_equal(r.head.fields, r.fields);
		assert_text(r.target.query, "?key={{KEY_ONE}}");
		teardown(&r);
	}
}

static void without_memory_nothing_is_half_done(void **state)
{
	(void)state;
	char room[1024];
	struct request r;
	setup(&r, "/", "?key={{KEY_ONE}}");
	add_field(&r, "cookie", SLICE("{{KEY_ONE}}"));
	assert_int_equal(plan(&r), REASON_NONE);
	enum cage_status st = CAGE_ENOMEM;
	for (size_t size = 0; st != CAGE_OK && size < sizeof(room); size++) {
		struct arena small;
		memset(room, 0, sizeof(room));
		arena_init_region(&small, room, size);
		st = inject_head(&r.plan, values, &r.head, &r.target, &small);
		if (st == CAGE_OK)
			break;
		assert_int_equal(st, CAGE_ENOMEM);
		assert_ptr_equal(r.head.fields, r.fields);
		assert_text(r.target.query, "?key={{KEY_ONE}}");
	}
	assert_int_equal(st, CAGE_OK);
	assert_text(r.target.query, "?key=" ONE_CODED);
	teardown(&r);
}

static void a_plan_without_memory_is_no_plan(void **state)
{
	(void)state;
	struct request r;
	setup(&r, "/", "?key={{KEY_ONE}}");
	arena_init(&r.arena, 16);
	assert_int_equal(plan(&r), REASON_INTERNAL);
	teardown(&r);
}

/* ---- require ---- */

struct require_case {
	const char *path, *query, *name, *value;
	bool has_body;
	const char *detail; /* NULL: passes */
};

#define NOTHING_THERE "the placeholder of a secret is required, and nothing that may hold it is there"

static const struct require_case require_cases[] = {
	{"/", "", "x-api-key", "{{KEY_ONE}}", false, NULL},
	{"/", "", "x-api-key", "pre {{KEY_ONE}}", false, NULL},
	{"/", "?key={{KEY_ONE}}", "accept", "any", false, NULL},
	{"/", "?key=%7B{KEY_ONE}}", "accept", "any", false, NULL},
	{"/", "?key=a%7B{KEY_ONE}}", "accept", "any", false, "the parameter key has to hold a placeholder"},
	{"/", "", "x-api-key", "my own {{KEY_ONE}}", false, "the field x-api-key has to hold a placeholder"},
	{"/", "", "x_api_key", "{{KEY_ONE}}", false, "the field x_api_key has to hold a placeholder"},
	{"/", "", "authorization", "Basic dTp7e0tFWV9PTkV9fQ==", false, NULL}, /* u:{{KEY_ONE}} */
	{"/{{A%2FTOKEN}}", "", "x-api-key", "{{KEY_ONE}}", false, NULL},
	{"/", "", "X-Api-Key", "my own", false, "the field X-Api-Key has to hold a placeholder"},
	{"/", "", "x-api-key", "", false, "the field x-api-key has to hold a placeholder"},
	{"/", "", "x-api-key", "{{KEY+TWO}}", false, "the field x-api-key has to hold a placeholder"},
	{"/", "", "authorization", "Basic dTpw", false, "the field authorization has to hold a placeholder"},
	{"/", "?key=own", "x-api-key", "{{KEY_ONE}}", false, "the parameter key has to hold a placeholder"},
	{"/", "?key={{KEY_ONE}}&key", "accept", "any", false, "the parameter key has to hold a placeholder"},
	{"/", "?key={{KEY_ONE}}", "x-api-key", "own", false, "the field x-api-key has to hold a placeholder"},
	{"/", "", "accept", "any", false, NOTHING_THERE},
	{"/", "", "accept", "{{KEY_ONE}}", false, NOTHING_THERE},
	{"/", "", "accept", "any", true, NOTHING_THERE},
	{"/", "", "x-api-key", "own", true, "the field x-api-key has to hold a placeholder"},
};

static void a_required_slot_holds_nothing_else(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(require_cases); i++) {
		const struct require_case *c = &require_cases[i];
		struct request r;
		setup(&r, c->path, c->query);
		r.head.framing = c->has_body ? BODY_CHUNKED : BODY_NONE;
		add_field(&r, c->name, slice_str(c->value));
		policy_secrets[ONE].require = true;
		enum reason reason = plan(&r);
		policy_secrets[ONE].require = false;
		assert_int_equal(reason, c->detail ? REASON_SECRET_SLOT : REASON_NONE);
		if (c->detail)
			assert_string_equal(r.detail, c->detail);
		teardown(&r);
	}
}

static void a_required_path_has_it(void **state)
{
	(void)state;
	struct request with, without;
	setup(&with, "/x{{A%2FTOKEN}}", "");
	setup(&without, "/x", "");
	policy_secrets[PATH].require = policy_secrets[SIGNED].require = true; /* the latter is not put in */
	enum reason reason_with = plan(&with), reason_without = plan(&without);
	policy_secrets[PATH].require = policy_secrets[SIGNED].require = false;
	assert_int_equal(reason_with, REASON_NONE);
	assert_int_equal(reason_without, REASON_SECRET_SLOT);
	assert_string_equal(without.detail, NOTHING_THERE);
	teardown(&with);
	teardown(&without);
}

static void a_long_name_is_cut_in_the_detail(void **state)
{
	(void)state;
	char query[400];
	struct request r;
	memset(query, '%', sizeof(query));
	for (size_t i = 0; i < 99; i++)
		memcpy(query + 1 + 3 * i, "%6b", 3);
	query[0] = '?';
	memcpy(query + 298, "=x", 3);
	char name[100];
	memset(name, 'k', 99);
	struct slice long_name = slice_of(name, 99), kept = queries[0];
	setup(&r, "/", query);
	queries[0] = long_name;
	policy_secrets[ONE].require = true;
	enum reason reason = plan(&r);
	policy_secrets[ONE].require = false;
	queries[0] = kept;
	assert_int_equal(reason, REASON_SECRET_SLOT);
	assert_true(strlen(r.detail) < 120);
	assert_true(slice_ends(slice_str(r.detail), SLICE(" has to hold a placeholder")));
	teardown(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_placeholder_in_a_field_is_replaced),
		cmocka_unit_test(all_fields_of_a_name_count),
		cmocka_unit_test(basic_is_decoded_and_encoded_again),
		cmocka_unit_test(basic_may_lack_its_padding),
		cmocka_unit_test(other_base64_is_left_alone),
		cmocka_unit_test(a_value_may_be_the_credentials_as_they_are_sent),
		cmocka_unit_test(a_placeholder_in_a_target_is_replaced),
		cmocka_unit_test(the_target_of_the_message_goes_along),
		cmocka_unit_test(a_path_with_a_value_is_canonical),
		cmocka_unit_test(values_that_could_end_a_field_are_refused),
		cmocka_unit_test(without_memory_nothing_is_half_done),
		cmocka_unit_test(a_plan_without_memory_is_no_plan),
		cmocka_unit_test(a_required_slot_holds_nothing_else),
		cmocka_unit_test(a_required_path_has_it),
		cmocka_unit_test(a_long_name_is_cut_in_the_detail),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
