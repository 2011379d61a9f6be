/* The chain with all its inspectors, on requests in memory: what is blocked, where it is found, what passes, and that
 * cuts make no difference. */
#include "tests/unit/inspectors/chain_rig.h"

/* Made up; right by its checksum. */
#define PAT "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"
#define PAT_BASE64 "Z2hwX0pxZXFKZ1RtamJ2MldOTTViSWV1cDI5c2FwN0hwMTRDZ3FXUQ=="

static void clean_requests_pass(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	static const char *const fields[] = {"content-type", "application/json", "x-request-id", "12", NULL};
	struct slice body = SLICE("{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"hello there\"}]}");
	size_t n;
	assert_int_equal(deliver(&r, "https://api.example.test/v1/chat?x=1", fields, body, body.len), CHAIN_PASS);
	chain_findings(r.run, &n);
	assert_int_equal(n, 0);
	rig_free(&r);
}

static void a_secret_in_the_body_is_found_however_it_is_cut(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	struct slice body = SLICE("{\"note\":\"it is " PAT " as ever\"}");
	for (size_t cut = 1; cut <= body.len; cut++) {
		assert_blocked(&r, deliver(&r, "https://api.example.test/", no_fields, body, cut),
			       REASON_SECRET_DETECTED);
		const struct finding *f = chain_block(r.run);
		assert_int_equal(f->spot.place, PLACE_BODY);
		assert_int_equal(f->spot.offset, 15);
		assert_int_equal(f->spot.view.depth, 0);
		assert_true(slice_eq(f->id, SLICE("github-pat")));
		assert_true(f->fingerprint != 0);
	}
	rig_free(&r);
}

static void the_same_value_has_the_same_fingerprint(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	deliver(&r, "https://api.example.test/", no_fields, SLICE("a " PAT " b"), 7);
	uint64_t first = chain_block(r.run)->fingerprint;
	deliver(&r, "https://api.example.test/?k=" PAT, no_fields, SLICE(""), 1);
	assert_int_equal(chain_block(r.run)->fingerprint, first);
	rig_free(&r);
}

static void views_are_named(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	struct slice body = SLICE("{\"data\":\"" PAT_BASE64 "\"}");
	for (size_t cut = 1; cut <= body.len; cut++) {
		assert_blocked(&r, deliver(&r, "https://api.example.test/", no_fields, body, cut),
			       REASON_SECRET_DETECTED);
		assert_int_equal(chain_block(r.run)->spot.view.depth, 1);
		assert_int_equal(chain_block(r.run)->spot.view.kinds[0], VIEW_BASE64);
	}
	rig_free(&r);
}

static void a_key_may_go_to_its_own_provider_over_tls(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES "  - {id: plain, hosts: [github.com], ports: [80]}\n");
	static const char *const auth[] = {"authorization", "Bearer " PAT, NULL};
	assert_int_equal(deliver(&r, "https://api.github.com/user", auth, SLICE(""), 1), CHAIN_PASS);
	assert_blocked(&r, deliver(&r, "https://api.example.test/user", auth, SLICE(""), 1), REASON_SECRET_DETECTED);
	assert_true(slice_eq(chain_block(r.run)->spot.name, SLICE("authorization")));
	assert_blocked(&r, deliver(&r, "http://github.com/", auth, SLICE(""), 1), REASON_SECRET_DETECTED);
	rig_free(&r);
}

static void every_part_of_a_head_is_looked_at(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	static const char *const name[] = {"x-" PAT, "1", NULL};
	static const char *const basic[] = {"authorization", "Basic " PAT_BASE64, NULL};
	assert_blocked(&r, deliver(&r, "https://api.example.test/a/" PAT "/b", no_fields, SLICE(""), 1),
		       REASON_SECRET_DETECTED);
	assert_int_equal(chain_block(r.run)->spot.place, PLACE_PATH);
	assert_blocked(&r, deliver(&r, "https://api.example.test/?a=" PAT, no_fields, SLICE(""), 1),
		       REASON_SECRET_DETECTED);
	assert_int_equal(chain_block(r.run)->spot.place, PLACE_QUERY);
	assert_blocked(&r, deliver(&r, "https://api.example.test/", name, SLICE(""), 1), REASON_SECRET_DETECTED);
	assert_blocked(&r, deliver(&r, "https://api.example.test/", basic, SLICE(""), 1), REASON_SECRET_DETECTED);
	assert_int_equal(chain_block(r.run)->spot.view.kinds[0], VIEW_BASE64);
	rig_free(&r);
}

static void an_encoded_secret_is_found_where_it_stands(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	static const char *const fields[] = {"accept", "*/*", "x-other",
					     "Z2hwX0pxZXFKZ1RtamJ2MldOTTViSWV1cDI5c2FwN0hwMTRDZ3FXUQ", NULL};
	assert_blocked(&r,
		       deliver(&r, "https://api.example.test/a/b?x=1&y=ghp%5FJqeqJgTmjbv2WNM5bIeup29sap7Hp14CgqWQ",
			       no_fields, SLICE(""), 1),
		       REASON_SECRET_DETECTED);
	assert_int_equal(chain_block(r.run)->spot.place, PLACE_QUERY);
	assert_blocked(&r, deliver(&r, "https://api.example.test/a/b", fields, SLICE(""), 1), REASON_SECRET_DETECTED);
	assert_true(slice_eq(chain_block(r.run)->spot.name, SLICE("x-other")));
	rig_free(&r);
}

static void a_field_name_that_is_a_secret_is_not_told(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	static const char *const name[] = {"x-" PAT, "1", NULL};
	assert_blocked(&r, deliver(&r, "https://api.example.test/", name, SLICE(""), 1), REASON_SECRET_DETECTED);
	assert_int_equal(chain_block(r.run)->spot.name.len, 0);
	rig_free(&r);
}

static void t28_what_is_split_is_whole_again(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	static const char *const fields[] = {"x-a", "ghp_JqeqJgTmjbv2WNM5", "accept", "*/*",
					     "x-b", "bIeup29sap7Hp14CgqWQ", NULL};
	static const char *const form[] = {"content-type", "application/x-www-form-urlencoded", NULL};
	struct slice body = SLICE("a=ghp_JqeqJgTmjbv2W&b=NM5bIeup29sap7&c=Hp14CgqWQ");
	assert_blocked(&r,
		       deliver(&r, "https://api.example.test/?a=ghp_JqeqJgTmjbv2WN&b=M5bIeup29sap7Hp14CgqWQ", no_fields,
			       SLICE(""), 1),
		       REASON_SECRET_DETECTED);
	assert_blocked(&r,
		       deliver(&r, "https://api.example.test/ghp_JqeqJgTmjb/v2WNM5bIeup29/sap7Hp14CgqWQ", no_fields,
			       SLICE(""), 1),
		       REASON_SECRET_DETECTED);
	assert_blocked(&r, deliver(&r, "https://api.example.test/", fields, SLICE(""), 1), REASON_SECRET_DETECTED);
	for (size_t cut = 1; cut <= body.len; cut++)
		assert_blocked(&r, deliver(&r, "https://api.example.test/", form, body, cut), REASON_SECRET_DETECTED);
	rig_free(&r);
}

static void t28_cookies_are_joined(void **state)
{
	(void)state;
	static const char *const cookies[][5] = {
		{"cookie", "a=ghp_JqeqJgTmjbv2WNM5; b=bIeup29sap7Hp14CgqWQ", NULL},
		{"cookie", "x; a=\"ghp_JqeqJgTmjbv2WNM5\";b=\"bIeup29sap7Hp14CgqWQ\"", NULL},
		{"Cookie", "ghp_JqeqJgTmjbv2WNM5; bIeup29sap7Hp14CgqWQ", NULL},
		{"cookie", "ghp_JqeqJgTmjbv2WNM5=bIeup29sap7Hp14CgqWQ", NULL},
		{"cookie", "a=ghp_JqeqJgTmjbv2WNM5", "Cookie", "b=bIeup29sap7Hp14CgqWQ; c=d", NULL}};
	static const char *const harmless[] = {"cookie", "a=ghp_JqeqJgTmjbv2WNM5; b=b; c=Ieup29sap7Hp14Cgq", NULL};
	struct rig r = rig_new(RULES);
	for (size_t i = 0; i < sizeof(cookies) / sizeof(cookies[0]); i++) {
		assert_blocked(&r, deliver(&r, "https://api.example.test/", cookies[i], SLICE(""), 1),
			       REASON_SECRET_DETECTED);
		assert_int_equal(chain_block(r.run)->spot.place, PLACE_HEADER);
	}
	assert_int_equal(deliver(&r, "https://api.example.test/", harmless, SLICE(""), 1), CHAIN_PASS);
	rig_free(&r);
}

static void t27_a_form_is_joined_whatever_it_is_called(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	static const char *const text[] = {"content-type", "text/plain", NULL};
	struct slice body = SLICE("a=ghp_JqeqJgTmjbv2W&b=NM5bIeup29sap7&c=Hp14CgqWQ");
	assert_blocked(&r, deliver(&r, "https://api.example.test/", text, body, 5), REASON_SECRET_DETECTED);
	assert_blocked(&r, deliver(&r, "https://api.example.test/", no_fields, body, 1), REASON_SECRET_DETECTED);
	rig_free(&r);
}

static void in_a_form_a_plus_sign_is_a_blank(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES "inspectors: {canary: {strings: ['blue heron 4711']}}\n");
	struct slice body = SLICE("q=blue+heron+4711");
	for (size_t cut = 1; cut <= body.len; cut++)
		assert_blocked(&r, deliver(&r, "https://api.example.test/", no_fields, body, cut),
			       REASON_CANARY_DETECTED);
	assert_blocked(&r, deliver(&r, "https://api.example.test/?q=blue+heron+4711", no_fields, SLICE(""), 1),
		       REASON_CANARY_DETECTED);
	rig_free(&r);
}

static void t28_common_fields_are_joined_too(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	static const char *const fields[] = {"user-agent", "ghp_JqeqJgTmjbv2WNM5", "accept-language",
					     "bIeup29sap7Hp14CgqWQ", NULL};
	assert_blocked(&r, deliver(&r, "https://api.example.test/", fields, SLICE(""), 1), REASON_SECRET_DETECTED);
	rig_free(&r);
}

static void a_method_is_looked_at(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	request(&r, "https://api.example.test/", no_fields);
	chain_finish(&r.run);
	struct chain_owner owner = {.resume = no_resume};
	struct subject s = {
		.target = &r.target, .method = SLICE("AKIAJ3JWK2UTG5DY2QIM"), .head = &r.head, .sandbox = SLICE("box")};
	r.run = chain_begin(r.chain, &r.arena, &s, false, &owner);
	assert_non_null(r.run);
	assert_blocked(&r, chain_head(r.run), REASON_SECRET_DETECTED);
	assert_true(chain_hides(r.run, PLACE_METHOD));
	rig_free(&r);
}

static void a_flag_hides_no_block(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES "inspectors: {secrets: {action: flag}, canary: {strings: ['blue.heron 42']}}\n");
	/* a token in base64 in one field, the canary in base64 over a value and the next field's name in others */
	static const char *const fields[] = {"x-a", PAT_BASE64, "x-b", "Ymx1ZS5oZXJvbiA0Mg==", NULL};
	assert_blocked(&r, deliver(&r, "https://api.example.test/", fields, SLICE(""), 1), REASON_CANARY_DETECTED);
	rig_free(&r);
}

static void what_must_be_hidden_is_known_beyond_the_list(void **state)
{
	(void)state;
	struct rig r = rig_new(
		RULES "inspectors: {secrets: {action: flag}, canary: {action: flag, strings: ['aaaaaaa1', 'aaaaaaa2', "
		      "'aaaaaaa3', 'aaaaaaa4', 'aaaaaaa5', 'aaaaaaa6', 'aaaaaaa7', 'aaaaaaa8']}}\n");
	static const char *const fields[] = {
		"x-a", "aaaaaaa1 aaaaaaa2 aaaaaaa3 aaaaaaa4 aaaaaaa5 aaaaaaa6 aaaaaaa7 aaaaaaa8", NULL};
	size_t n;
	assert_int_equal(deliver(&r, "https://api.example.test/x/" PAT, fields, SLICE(""), 1), CHAIN_PASS);
	chain_findings(r.run, &n);
	assert_int_equal(n, LIMIT_FINDINGS);
	assert_true(chain_hides(r.run, PLACE_PATH));
	rig_free(&r);
}

static void trailers_are_looked_at(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	struct field trailer = {.name = SLICE("x-sum"), .value = SLICE(PAT)};
	request(&r, "https://api.example.test/", no_fields);
	assert_int_equal(chain_head(r.run), CHAIN_PASS);
	assert_int_equal(chain_body(r.run, SLICE("hello")), CHAIN_PASS);
	assert_blocked(&r, chain_end(r.run, &trailer, 1), REASON_SECRET_DETECTED);
	assert_int_equal(chain_block(r.run)->spot.place, PLACE_TRAILER);
	rig_free(&r);
}

static void t26_codings_are_undone_and_what_can_not_be_is_refused(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	unsigned char room[512];
	static const char *const zipped[] = {"content-encoding", "gzip", NULL};
	static const char *const strange[] = {"content-encoding", "snappy", NULL};
	struct slice bad = gzip(SLICE("it is " PAT), room, sizeof(room));
	for (size_t cut = 1; cut <= bad.len; cut++)
		assert_blocked(&r, deliver(&r, "https://api.example.test/", zipped, bad, cut), REASON_SECRET_DETECTED);
	struct slice good = gzip(SLICE("nothing to see"), room, sizeof(room));
	assert_int_equal(deliver(&r, "https://api.example.test/", zipped, good, 3), CHAIN_PASS);
	struct slice half = slice_head(good, good.len - 1);
	assert_blocked(&r, deliver(&r, "https://api.example.test/", zipped, half, 3), REASON_BODY_UNDECODABLE);
	assert_blocked(&r, deliver(&r, "https://api.example.test/", zipped, SLICE("plain"), 5),
		       REASON_BODY_UNDECODABLE);
	assert_blocked(&r, deliver(&r, "https://api.example.test/", strange, SLICE("plain"), 5),
		       REASON_BODY_UNDECODABLE);
	rig_free(&r);
}

static void observing_stops_nothing(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	static const char *const zipped[] = {"content-encoding", "gzip", NULL};
	assert_int_equal(deliver(&r, "https://watch.test/?k=" PAT, no_fields, SLICE("and " PAT), 3), CHAIN_PASS);
	assert_int_equal(chain_block(r.run)->reason, REASON_SECRET_DETECTED);
	assert_int_equal(deliver(&r, "https://watch.test/", zipped, SLICE("not gzip at all"), 4), CHAIN_PASS);
	assert_int_equal(chain_block(r.run)->reason, REASON_BODY_UNDECODABLE);
	rig_free(&r);
}

static void a_policy_adds_allows_and_turns_off(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES "inspectors:\n"
				     "  secrets:\n"
				     "    extra: [{id: corp, pattern: 'CORP-[0-9A-F]{8}', allow: [forge]}]\n"
				     "    allow: {wide: [github-pat]}\n"
				     "    off: [github-oauth]\n");
	struct slice corp = SLICE("key CORP-0123ABCD"), pat = SLICE("key " PAT);
	assert_blocked(&r, deliver(&r, "https://api.example.test/", no_fields, corp, 5), REASON_SECRET_DETECTED);
	assert_true(slice_eq(chain_block(r.run)->id, SLICE("corp")));
	assert_int_equal(deliver(&r, "https://api.github.com/", no_fields, corp, 5), CHAIN_PASS);
	assert_int_equal(deliver(&r, "https://a.wide.test/", no_fields, pat, 5), CHAIN_PASS);
	assert_blocked(&r, deliver(&r, "https://api.example.test/", no_fields, pat, 5), REASON_SECRET_DETECTED);
	rig_free(&r);
}

static void secrets_can_be_flagged_only(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES "inspectors: {secrets: {action: flag}}\n");
	size_t n;
	assert_int_equal(deliver(&r, "https://api.example.test/", no_fields, SLICE("key " PAT), 5), CHAIN_PASS);
	const struct finding *f = chain_findings(r.run, &n);
	assert_int_equal(n, 1);
	assert_int_equal(f->action, ACTION_FLAG);
	assert_null(chain_block(r.run));
	rig_free(&r);
}

static void canaries_are_found_in_any_case_and_reversed(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES "inspectors: {canary: {strings: ['blue.heron 42']}}\n");
	static const char *const texts[] = {"so blue.heron 42 it is",
					    "BLUE.Heron 42",
					    "24 noreh.eulb",
					    "Ymx1ZS5oZXJvbiA0Mg==",
					    "626c75652e6865726f6e203432",
					    "bl\xe2\x80\x8bue.he\xe2\x81\xa0\xe2\x80\x8bron 42"};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_blocked(&r, deliver(&r, "https://api.example.test/", no_fields, slice_str(texts[i]), 4),
			       REASON_CANARY_DETECTED);
	assert_int_equal(deliver(&r, "https://api.example.test/", no_fields, SLICE("bluexheron 42"), 4), CHAIN_PASS);
	rig_free(&r);
}

static void bodies_have_a_size(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	char body[101];
	memset(body, 'a', sizeof(body));
	assert_int_equal(deliver(&r, "https://small.test/", no_fields, slice_of(body, 100), 9), CHAIN_PASS);
	assert_blocked(&r, deliver(&r, "https://small.test/", no_fields, slice_of(body, 101), 9),
		       REASON_BODY_TOO_LARGE);
	request(&r, "https://small.test/", no_fields);
	r.head.framing = BODY_LENGTH;
	r.head.content_length = 101;
	assert_blocked(&r, chain_head(r.run), REASON_BODY_TOO_LARGE);
	rig_free(&r);
}

static enum chain_verdict name_verdict(struct rig *r, const char *url)
{
	request(r, url, no_fields);
	return chain_name(r->run);
}

static void t16_names_under_a_wildcard_can_not_carry_data(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	char url[128];
	assert_int_equal(name_verdict(&r, "https://www.wide.test/"), CHAIN_PASS);
	assert_int_equal(name_verdict(&r, "https://eu-west-1.my-company-staging.wide.test/"), CHAIN_PASS);
	assert_blocked(&r, name_verdict(&r, "https://mzxw6ytboi2tk3dmn5xgo5dforuw4.wide.test/"),
		       REASON_NAME_SUSPICIOUS);
	assert_blocked(&r, name_verdict(&r, "https://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.wide.test/"),
		       REASON_NAME_SUSPICIOUS);
	assert_blocked(&r, name_verdict(&r, "https://a.b.c.d.e.f.g.wide.test/"), REASON_NAME_SUSPICIOUS);
	enum chain_verdict v = CHAIN_PASS;
	for (int i = 0; i < 100 && v == CHAIN_PASS; i++) {
		snprintf(url, sizeof(url), "https://n%d.wide.test/", i);
		v = name_verdict(&r, url);
		assert_true(i > 40 || v == CHAIN_PASS);
	}
	assert_blocked(&r, v, REASON_NAME_SUSPICIOUS);
	assert_int_equal(name_verdict(&r, "https://api.example.test/"), CHAIN_PASS);
	/* each name under a public suffix could be somebody's own domain */
	assert_int_equal(name_verdict(&r, "https://someone.github.io/"), CHAIN_PASS);
	assert_blocked(&r, name_verdict(&r, "https://mzxw6ytboi2tk3dmn5xgo5dforuw4.github.io/"),
		       REASON_NAME_SUSPICIOUS);
	rig_free(&r);
}

static void secret_formats_in_labels_are_found(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES "inspectors: {name: {label_length: 63}}\n");
	/* the token in hex, over two labels */
	assert_blocked(&r,
		       name_verdict(&r, "https://6768705f4a7165714a67546d6a627632574e4d35."
					"624965757032397361703748703134436771575"
					"1.wide.test/"),
		       REASON_NAME_SUSPICIOUS);
	struct rig q = rig_new(RULES "inspectors: {name: {action: off}}\n");
	assert_blocked(&q,
		       name_verdict(&q, "https://6768705f4a7165714a67546d6a627632574e4d35."
					"624965757032397361703748703134436771575"
					"1.wide.test/"),
		       REASON_SECRET_DETECTED);
	assert_int_equal(chain_block(q.run)->spot.place, PLACE_HOST);
	rig_free(&q);
	rig_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(clean_requests_pass),
		cmocka_unit_test(a_secret_in_the_body_is_found_however_it_is_cut),
		cmocka_unit_test(the_same_value_has_the_same_fingerprint),
		cmocka_unit_test(views_are_named),
		cmocka_unit_test(a_key_may_go_to_its_own_provider_over_tls),
		cmocka_unit_test(every_part_of_a_head_is_looked_at),
		cmocka_unit_test(an_encoded_secret_is_found_where_it_stands),
		cmocka_unit_test(a_field_name_that_is_a_secret_is_not_told),
		cmocka_unit_test(t28_what_is_split_is_whole_again),
		cmocka_unit_test(t28_cookies_are_joined),
		cmocka_unit_test(t27_a_form_is_joined_whatever_it_is_called),
		cmocka_unit_test(in_a_form_a_plus_sign_is_a_blank),
		cmocka_unit_test(t28_common_fields_are_joined_too),
		cmocka_unit_test(a_method_is_looked_at),
		cmocka_unit_test(a_flag_hides_no_block),
		cmocka_unit_test(what_must_be_hidden_is_known_beyond_the_list),
		cmocka_unit_test(trailers_are_looked_at),
		cmocka_unit_test(t26_codings_are_undone_and_what_can_not_be_is_refused),
		cmocka_unit_test(observing_stops_nothing),
		cmocka_unit_test(a_policy_adds_allows_and_turns_off),
		cmocka_unit_test(secrets_can_be_flagged_only),
		cmocka_unit_test(canaries_are_found_in_any_case_and_reversed),
		cmocka_unit_test(bodies_have_a_size),
		cmocka_unit_test(t16_names_under_a_wildcard_can_not_carry_data),
		cmocka_unit_test(secret_formats_in_labels_are_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
