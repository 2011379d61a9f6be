/* The guard: known values in every place and view, placeholders where they may stand and where not; and that neither
 * observe mode nor a policy without inspectors makes a difference. */
#include "inspectors/search.h"
#include "tests/unit/inspectors/chain_rig.h"

#define VALUE "tr0ub4dor-Zebra.91x_Q"
#define SHOP "{{SHOP_API_KEY}}"
#define RANDOM "cage-ph-0123456789abcdef0123456789abcdef"
#define OTHER_RANDOM "cage-ph-00000000000000001111111111111111"
#define PAT "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" /* made up; right by its checksum */

#define API "https://api.example.test/"
#define WATCH "https://watch.test/"

#define ALL_OFF                                                                             \
	"inspectors: {name: {action: off}, body_size: {action: off}, rate: {action: off}, " \
	"budget: {action: off}, secrets: {action: off}, content_type: {action: off}, "      \
	"entropy: {action: off}, encoded_blob: {action: off}}\n"

enum { TOKEN, SHOP_SECRET, SECRETS };

static const struct known_item items[] = {
	{KNOWN_VALUE, TOKEN, WORD(VALUE)},
	{KNOWN_VALUE, SHOP_SECRET, WORD("p@ss w0rd/\"with+all")},
	{KNOWN_PLACEHOLDER, SHOP_SECRET, WORD(SHOP)},
	{KNOWN_RANDOM_PLACEHOLDER, 0, WORD("cage-ph-")},
};

#define N_ITEMS (sizeof(items) / sizeof(items[0]))

/* Views leave short runs of base64 and hex alone when there is little text in them; these do not. */
#define IN_SHORT_RUNS (1u << KNOWN_BASE64 | 1u << KNOWN_HEX)

static struct known_set *set_of(const struct known_item *list, size_t n, unsigned more_forms)
{
	struct known_set *set = known_set_new(list, n, KNOWN_IN_VIEWS | more_forms);
	assert_non_null(set);
	return set;
}

static void give_in(struct rig *r, const struct known_item *list, size_t n, unsigned more_forms)
{
	struct known_set *set = set_of(list, n, more_forms);
	chain_set_known(r->chain, set);
	known_set_unref(&set);
}

static void give(struct rig *r, const struct known_item *list, size_t n)
{
	give_in(r, list, n, 0);
}

/* A policy that has the secrets, and a chain that knows them. */
static struct rig guarded(const char *yaml)
{
	static struct policy_secret secrets[SECRETS] = {{.id = WORD("token")}, {.id = WORD("shop")}};
	struct rig r = rig_new(yaml);
	r.f.policy->secrets = secrets;
	r.f.policy->n_secrets = SECRETS;
	give(&r, items, N_ITEMS);
	return r;
}

static void assert_leaked(struct rig *r, enum chain_verdict v, enum place place)
{
	assert_blocked(r, v, REASON_SECRET_LEAKED);
	const struct finding *f = chain_block(r->run);
	assert_true(slice_eq(f->by->name, SLICE("guard")));
	assert_true(slice_eq(f->id, SLICE("token")));
	assert_int_equal(f->action, ACTION_BLOCK);
	assert_int_equal(f->spot.place, place);
	assert_true(f->fingerprint != 0);
	assert_true(chain_hides(r->run, place));
}

static void assert_misplaced(struct rig *r, enum chain_verdict v, enum place place)
{
	assert_blocked(r, v, REASON_SECRET_MISPLACED);
	assert_int_equal(chain_block(r->run)->spot.place, place);
	assert_int_equal(chain_block(r->run)->fingerprint, 0);
	assert_true(chain_hides(r->run, place));
}

static enum chain_verdict send_body(struct rig *r, struct slice body, size_t cut)
{
	return deliver(r, API, no_fields, body, cut);
}

/* ---- ways to write a value ---- */

typedef void writer(struct text *out, struct slice value);

static void as_is(struct text *out, struct slice value)
{
	text_put(out, value);
}

static void as_percent(struct text *out, struct slice value)
{
	for (size_t i = 0; i < value.len; i++) {
		text_put_char(out, '%');
		text_put_hex(out, value.ptr + i, 1);
	}
}

/* Every other character. */
static void as_some_percent(struct text *out, struct slice value)
{
	for (size_t i = 0; i < value.len; i++)
		(i % 2 ? as_percent : as_is)(out, slice_of(value.ptr + i, 1));
}

static void as_json(struct text *out, struct slice value)
{
	for (size_t i = 0; i < value.len; i++) {
		text_put(out, SLICE("\\u00"));
		text_put_hex(out, value.ptr + i, 1);
	}
}

static void as_hex(struct text *out, struct slice value)
{
	text_put_hex(out, value.ptr, value.len);
}

static void as_base64(struct text *out, struct slice value)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	for (size_t i = 0; i < value.len; i += 3) {
		unsigned bits = 0;
		size_t n = value.len - i < 3 ? value.len - i : 3;
		for (size_t k = 0; k < 3; k++)
			bits = bits << 8 | (k < n ? (unsigned char)value.ptr[i + k] : 0u);
		for (size_t k = 0; k < 4; k++)
			text_put_char(out, k <= n ? digits[bits >> (18 - 6 * k) & 63] : '=');
	}
}

static void as_utf16(struct text *out, struct slice value)
{
	for (size_t i = 0; i < value.len; i++) {
		text_put_char(out, value.ptr[i]);
		text_put_char(out, '\0');
	}
}

static bool is_letter(char c)
{
	return ascii_lower((unsigned char)c) >= 'a' && ascii_lower((unsigned char)c) <= 'z';
}

static void in_other_case(struct text *out, struct slice value)
{
	for (size_t i = 0; i < value.len; i++)
		text_put_char(out, is_letter(value.ptr[i]) ? (char)(value.ptr[i] ^ 0x20) : value.ptr[i]);
}

static void as_reversed(struct text *out, struct slice value)
{
	for (size_t i = value.len; i > 0; i--)
		text_put_char(out, value.ptr[i - 1]);
}

static void as_spaced(struct text *out, struct slice value)
{
	for (size_t i = 0; i < value.len; i++) {
		text_put(out, i > 0 ? SLICE("\xe2\x80\x8b") : SLICE(""));
		text_put_char(out, value.ptr[i]);
	}
}

/* The same one after the other, the innermost first; up to NULL. */
static struct slice written(struct slice value, writer *const *how, char rooms[2][1024])
{
	for (size_t i = 0; how[i]; i++) {
		struct text out = text_in(rooms[i % 2], 1024);
		how[i](&out, value);
		assert_true(text_ok(&out));
		value = text_slice(&out);
	}
	return value;
}

static struct slice around(struct slice before, struct slice value, struct slice behind, char room[1024])
{
	struct text out = text_in(room, 1024);
	text_put(&out, before);
	text_put(&out, value);
	text_put(&out, behind);
	assert_true(text_ok(&out));
	return text_slice(&out);
}

static writer *const ways[][4] = {
	{as_is},
	{as_percent},
	{as_some_percent},
	{as_json},
	{as_hex},
	{as_base64},
	{as_utf16},
	{in_other_case},
	{as_reversed},
	{as_spaced},
	{in_other_case, as_base64},
	{as_reversed, as_hex},
	{as_spaced, as_percent},
	{as_percent, as_percent},
	{as_json, as_base64},
	{as_base64, as_json},
	{as_hex, as_base64, as_percent},
	{as_utf16, as_base64, as_json},
};

#define N_WAYS (sizeof(ways) / sizeof(ways[0]))

/* ---- values ---- */

static void t29_a_value_in_a_body_is_found_however_it_is_written_and_cut(void **state)
{
	(void)state;
	struct rig r = guarded(RULES);
	char rooms[2][1024], room[1024];
	for (size_t i = 0; i < N_WAYS; i++) {
		struct slice value = written(SLICE(VALUE), ways[i], rooms);
		struct slice body = around(SLICE("{\"note\":\"it is "), value, SLICE(" as ever\"}"), room);
		for (size_t cut = 1; cut <= body.len; cut++)
			assert_leaked(&r, send_body(&r, body, cut), PLACE_BODY);
	}
	rig_free(&r);
}

static void a_short_value_is_found_too(void **state)
{
	(void)state;
	static const struct slice values[] = {WORD("hunter42"), WORD("\x9c\x01\xff\x80\xfe\x13\xd7\xc0\xee")};
	static writer *const short_ways[][4] = {{as_is}, {as_percent}, {as_base64}, {as_hex}, {as_percent, as_base64}};
	char rooms[2][1024], room[1024];
	struct rig r = guarded(RULES);
	for (size_t i = 0; i < 2; i++) {
		give_in(&r, &(struct known_item){KNOWN_VALUE, TOKEN, values[i]}, 1, IN_SHORT_RUNS);
		for (size_t k = 0; k < sizeof(short_ways) / sizeof(short_ways[0]); k++) {
			struct slice value = written(values[i], short_ways[k], rooms);
			struct slice body = around(SLICE("{\"a\":\""), value, SLICE("\"}"), room);
			for (size_t cut = 1; cut <= body.len; cut++)
				assert_leaked(&r, send_body(&r, body, cut), PLACE_BODY);
		}
	}
	rig_free(&r);
}

static void a_value_is_told_with_its_place_view_and_fingerprint(void **state)
{
	(void)state;
	struct rig r = guarded(RULES);
	assert_leaked(&r, send_body(&r, SLICE("it is " VALUE " as ever"), 3), PLACE_BODY);
	assert_int_equal(chain_block(r.run)->spot.offset, 6);
	assert_int_equal(chain_block(r.run)->spot.view.depth, 0);
	uint64_t first = chain_block(r.run)->fingerprint;
	assert_leaked(&r, send_body(&r, SLICE("dHIwdWI0ZG9yLVplYnJhLjkxeF9R"), 5), PLACE_BODY);
	assert_int_equal(chain_block(r.run)->spot.view.depth, 1);
	assert_int_equal(chain_block(r.run)->spot.view.kinds[0], VIEW_BASE64);
	assert_int_equal(chain_block(r.run)->fingerprint, first);
	rig_free(&r);
}

static void every_part_of_a_head_is_looked_at(void **state)
{
	(void)state;
	struct rig r = guarded(RULES);
	static const char *const field[] = {"x-other", "a " VALUE, NULL};
	static const char *const name[] = {"x-" VALUE, "1", NULL};
	static const char *const encoded[] = {"accept", "*/*", "x-other", "dHIwdWI0ZG9yLVplYnJhLjkxeF9R", NULL};
	assert_leaked(&r, deliver(&r, API "a/" VALUE "/b", no_fields, SLICE(""), 1), PLACE_PATH);
	assert_leaked(&r, deliver(&r, API "?a=" VALUE, no_fields, SLICE(""), 1), PLACE_QUERY);
	assert_leaked(&r, deliver(&r, API "?a=tr0ub4dor%2dZebra%2e91x_Q", no_fields, SLICE(""), 1), PLACE_QUERY);
	assert_leaked(&r, deliver(&r, API, field, SLICE(""), 1), PLACE_HEADER);
	assert_true(slice_eq(chain_block(r.run)->spot.name, SLICE("x-other")));
	assert_leaked(&r, deliver(&r, API, encoded, SLICE(""), 1), PLACE_HEADER);
	assert_true(slice_eq(chain_block(r.run)->spot.name, SLICE("x-other")));
	assert_leaked(&r, deliver(&r, API, name, SLICE(""), 1), PLACE_HEADER);
	assert_int_equal(chain_block(r.run)->spot.name.len, 0);
	assert_true(chain_hides_names(r.run));
	rig_free(&r);
}

static void a_method_and_trailers_are_looked_at(void **state)
{
	(void)state;
	struct rig r = guarded(RULES);
	struct field trailer = {.name = SLICE("x-sum"), .value = SLICE(VALUE)};
	request(&r, API, no_fields);
	assert_int_equal(chain_head(r.run), CHAIN_PASS);
	assert_int_equal(chain_body(r.run, SLICE("hello")), CHAIN_PASS);
	assert_leaked(&r, chain_end(r.run, &trailer, 1), PLACE_TRAILER);
	chain_finish(&r.run);
	struct chain_owner owner = {.resume = no_resume};
	struct subject s = {.target = &r.target, .method = SLICE(VALUE), .head = &r.head, .sandbox = SLICE("box")};
	r.run = chain_begin(r.chain, &r.arena, &s, false, &owner);
	assert_non_null(r.run);
	assert_leaked(&r, chain_head(r.run), PLACE_METHOD);
	rig_free(&r);
}

static void t28_what_is_split_is_whole_again(void **state)
{
	(void)state;
	struct rig r = guarded(RULES);
	static const char *const fields[] = {"x-a", "tr0ub4dor-", "accept", "*/*", "x-b", "Zebra.91x_Q", NULL};
	struct slice body = SLICE("a=tr0ub4d&b=or-Zebra.9&c=1x_Q");
	assert_leaked(&r, deliver(&r, API "?a=tr0ub4dor&b=-Zebra.91x_Q", no_fields, SLICE(""), 1), PLACE_QUERY);
	assert_leaked(&r, deliver(&r, API "tr0ub4/dor-Zeb/ra.91x_Q", no_fields, SLICE(""), 1), PLACE_PATH);
	assert_leaked(&r, deliver(&r, API, fields, SLICE(""), 1), PLACE_HEADER);
	for (size_t cut = 1; cut <= body.len; cut++)
		assert_leaked(&r, send_body(&r, body, cut), PLACE_BODY);
	rig_free(&r);
}

static void a_value_with_blanks_and_quotes_is_found_in_a_form(void **state)
{
	(void)state;
	struct rig r = guarded(RULES);
	assert_blocked(&r, send_body(&r, SLICE("q=p@ss+w0rd/%22with%2Ball"), 4), REASON_SECRET_LEAKED);
	assert_true(slice_eq(chain_block(r.run)->id, SLICE("shop")));
	assert_blocked(&r, send_body(&r, SLICE("{\"q\":\"p@ss w0rd\\/\\\"with+all\"}"), 4), REASON_SECRET_LEAKED);
	rig_free(&r);
}

static void t26_a_value_under_a_content_coding_is_found(void **state)
{
	(void)state;
	struct rig r = guarded(RULES);
	static const char *const zipped[] = {"content-encoding", "gzip", NULL};
	unsigned char room[512];
	struct slice body = gzip(SLICE("it is " VALUE), room, sizeof(room));
	for (size_t cut = 1; cut <= body.len; cut++)
		assert_leaked(&r, deliver(&r, API, zipped, body, cut), PLACE_BODY);
	rig_free(&r);
}

static void a_value_in_a_name_under_a_wildcard_is_found(void **state)
{
	(void)state;
	static const struct known_item word[] = {{KNOWN_VALUE, TOKEN, WORD("Zebra91x")}};
	struct rig r = guarded(RULES);
	give(&r, word, 1);
	request(&r, "https://zebra91x.wide.test/", no_fields);
	assert_leaked(&r, chain_name(r.run), PLACE_HOST);
	request(&r, "https://ze.bra91x.wide.test/", no_fields);
	assert_leaked(&r, chain_name(r.run), PLACE_HOST);
	request(&r, "https://zebra.wide.test/", no_fields);
	assert_int_equal(chain_name(r.run), CHAIN_PASS);
	give(&r, &(struct known_item){KNOWN_VALUE, TOKEN, WORD("api.example.test")}, 1);
	request(&r, API, no_fields);
	assert_int_equal(chain_name(r.run), CHAIN_PASS); /* the rule spells it out */
	rig_free(&r);
}

static void what_is_known_says_more_than_its_format(void **state)
{
	(void)state;
	static const struct known_item pat[] = {{KNOWN_VALUE, TOKEN, WORD(PAT)}};
	static const char *const auth[] = {"authorization", "Bearer " PAT, NULL};
	struct rig r = guarded(RULES);
	give(&r, pat, 1);
	assert_leaked(&r, deliver(&r, API, auth, SLICE(""), 1), PLACE_HEADER);
	assert_leaked(&r, send_body(&r, SLICE("it is " PAT " as ever"), 64), PLACE_BODY);
	assert_leaked(&r, deliver(&r, "https://api.github.com/user", auth, SLICE(""), 1), PLACE_HEADER);
	rig_free(&r);
}

/* ---- what a policy can't turn off ---- */

static void observing_does_not_let_it_pass(void **state)
{
	(void)state;
	struct rig r = guarded(RULES);
	size_t n;
	assert_leaked(&r, deliver(&r, WATCH "?k=" VALUE, no_fields, SLICE(""), 1), PLACE_QUERY);
	assert_misplaced(&r, deliver(&r, WATCH, no_fields, SLICE("the " SHOP), 3), PLACE_BODY);
	/* behind what is only observed */
	assert_leaked(&r, deliver(&r, WATCH "?k=" PAT, no_fields, SLICE("and " VALUE), 3), PLACE_BODY);
	const struct finding *f = chain_findings(r.run, &n);
	assert_int_equal(n, 2);
	assert_int_equal(f[0].reason, REASON_SECRET_DETECTED);
	assert_int_equal(f[1].reason, REASON_SECRET_LEAKED);
	rig_free(&r);
}

static void what_can_not_be_looked_at_is_not_only_observed(void **state)
{
	(void)state;
	struct rig r = guarded(RULES);
	static const char *const strange[] = {"content-encoding", "snappy", NULL};
	struct slice body = SLICE("it is " VALUE);
	assert_blocked(&r, deliver(&r, WATCH "?k=" PAT, strange, body, 5), REASON_BODY_UNDECODABLE);
	chain_set_known(r.chain, NULL);
	assert_int_equal(deliver(&r, WATCH, strange, body, 5), CHAIN_PASS);
	rig_free(&r);
}

static void it_is_found_when_all_inspectors_are_off(void **state)
{
	(void)state;
	struct rig r = guarded(RULES ALL_OFF);
	assert_leaked(&r, deliver(&r, API "?k=" VALUE, no_fields, SLICE(""), 1), PLACE_QUERY);
	assert_leaked(&r, send_body(&r, SLICE("dHIwdWI0ZG9yLVplYnJhLjkxeF9R"), 5), PLACE_BODY);
	assert_leaked(&r, deliver(&r, WATCH "?k=" VALUE, no_fields, SLICE(""), 1), PLACE_QUERY);
	assert_misplaced(&r, send_body(&r, SLICE("the " SHOP), 3), PLACE_BODY);
	rig_free(&r);
}

static void a_full_list_has_room_for_it(void **state)
{
	(void)state;
	struct rig r = guarded(RULES "inspectors: {canary: {strings: ['aaaaaaa1', 'aaaaaaa2', 'aaaaaaa3', 'aaaaaaa4', "
				     "'aaaaaaa5', 'aaaaaaa6', 'aaaaaaa7', 'aaaaaaa8']}}\n");
	static const char *const fields[] = {
		"x-a", "aaaaaaa1 aaaaaaa2 aaaaaaa3 aaaaaaa4 aaaaaaa5 aaaaaaa6 aaaaaaa7 aaaaaaa8", NULL};
	size_t n, by_guard = 0;
	assert_leaked(&r, deliver(&r, WATCH, fields, SLICE("and " VALUE), 99), PLACE_BODY);
	const struct finding *f = chain_findings(r.run, &n);
	assert_int_equal(n, LIMIT_FINDINGS);
	for (size_t i = 0; i < n; i++)
		by_guard += f[i].reason == REASON_SECRET_LEAKED;
	assert_int_equal(by_guard, 1);
	rig_free(&r);
}

/* ---- placeholders ---- */

static void a_placeholder_is_misplaced_where_nothing_allows_it(void **state)
{
	(void)state;
	struct rig r = guarded(RULES);
	static const char *const field[] = {"x-key", SHOP, NULL};
	static const char *const random[] = {"x-key", RANDOM, NULL};
	char rooms[2][1024];
	assert_misplaced(&r, deliver(&r, API, field, SLICE(""), 1), PLACE_HEADER);
	assert_true(slice_eq(chain_block(r.run)->id, SLICE("shop")));
	assert_misplaced(&r, deliver(&r, API "?k=%7b%7bSHOP_API_KEY%7D%7D", no_fields, SLICE(""), 1), PLACE_QUERY);
	assert_misplaced(&r, deliver(&r, API, random, SLICE(""), 1), PLACE_HEADER);
	assert_int_equal(chain_block(r.run)->id.len, 0);
	assert_misplaced(&r, deliver(&r, API "x/" RANDOM, no_fields, SLICE(""), 1), PLACE_PATH);
	for (size_t i = 0; i < N_WAYS; i++) {
		struct slice body = written(SLICE(SHOP), ways[i], rooms);
		assert_misplaced(&r, send_body(&r, body, 7), PLACE_BODY);
	}
	rig_free(&r);
}

static const struct slice in_body[] = {WORD(SHOP), WORD(RANDOM)};

static void allow_in_body(struct rig *r)
{
	r->more = (struct subject){.body_placeholders = in_body, .n_body_placeholders = 2};
}

static void a_placeholder_of_the_body_passes_as_it_will_be_replaced(void **state)
{
	(void)state;
	struct rig r = guarded(RULES);
	static writer *const replaced[][2] = {{as_is}, {as_percent}, {as_some_percent}, {as_json}};
	char rooms[2][1024], room[1024];
	size_t n;
	allow_in_body(&r);
	for (size_t i = 0; i < 2 * sizeof(replaced) / sizeof(replaced[0]); i++) {
		struct slice placeholder = written(in_body[i % 2], replaced[i / 2], rooms);
		struct slice body = around(SLICE("{\"key\": \""), placeholder, SLICE("\", \"n\": 1}"), room);
		for (size_t cut = 1; cut <= body.len; cut++) {
			assert_int_equal(send_body(&r, body, cut), CHAIN_PASS);
			chain_findings(r.run, &n);
			assert_int_equal(n, 0);
		}
		body = around(SLICE("a=1&key="), placeholder, SLICE("&b=2"), room);
		for (size_t cut = 1; cut <= body.len; cut++)
			assert_int_equal(send_body(&r, body, cut), CHAIN_PASS);
	}
	rig_free(&r);
}

static void escapes_around_a_placeholder_do_not_matter(void **state)
{
	(void)state;
	struct rig r = guarded(RULES);
	static const struct slice bodies[] = {
		WORD("{\"a\":\"caf\\u00e9 %20 " SHOP " \\/ %2541 \\u0041\"}"),
		WORD("{\"a\":\"caf\\u00e9 %20 \\u007b{SHOP_API_KEY}} \\/ %2541 \\u0041\"}"),
		WORD("{\"k\":\"" SHOP "\",\"a\":\"caf\\u00e9 %2520 x\"}"),
	};
	allow_in_body(&r);
	for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++)
		for (size_t cut = 1; cut <= bodies[i].len; cut++)
			assert_int_equal(send_body(&r, bodies[i], cut), CHAIN_PASS);
	rig_free(&r);
}

static void elsewhere_it_is_misplaced_all_the_same(void **state)
{
	(void)state;
	struct rig r = guarded(RULES);
	static const char *const field[] = {"x-key", SHOP, NULL};
	static const char *const zipped[] = {"content-encoding", "gzip", NULL};
	static writer *const kept[][4] = {{as_base64},
					  {as_hex},
					  {as_utf16},
					  {in_other_case},
					  {as_reversed},
					  {as_spaced},
					  {as_percent, as_percent},
					  {as_json, as_percent},
					  {as_base64, as_json}};
	struct field trailer = {.name = SLICE("x-sum"), .value = SLICE(SHOP)};
	char rooms[2][1024];
	unsigned char room[512];
	allow_in_body(&r);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		struct slice body = written(SLICE(SHOP), kept[i], rooms);
		for (size_t cut = 1; cut <= body.len; cut++)
			assert_misplaced(&r, send_body(&r, body, cut), PLACE_BODY);
	}
	assert_misplaced(&r, send_body(&r, SLICE("the " OTHER_RANDOM), 3), PLACE_BODY);
	assert_misplaced(&r, deliver(&r, API, field, SLICE(""), 1), PLACE_HEADER);
	assert_misplaced(&r, deliver(&r, API, zipped, gzip(SLICE("the " SHOP), room, sizeof(room)), 9), PLACE_BODY);
	request(&r, API, no_fields);
	assert_int_equal(chain_head(r.run), CHAIN_PASS);
	assert_misplaced(&r, chain_end(r.run, &trailer, 1), PLACE_TRAILER);
	assert_leaked(&r, send_body(&r, SLICE("the " SHOP " and " VALUE), 3), PLACE_BODY);
	rig_free(&r);
}

static void what_is_searched_may_be_another_head(void **state)
{
	(void)state;
	struct rig r = guarded(RULES);
	static const char *const field[] = {"x-key", SHOP, NULL};
	struct field cleaned[] = {{.name = SLICE("x-key"), .value = SLICE("-")}};
	struct message head = {.method = SLICE("POST"), .fields = cleaned, .n_fields = 1};
	struct target target = {.host.text = SLICE("api.example.test"), .path = SLICE("/"), .query = SLICE("?k=-")};
	r.more.search_head = &head;
	assert_int_equal(deliver(&r, API, field, SLICE("hello"), 5), CHAIN_PASS);
	assert_misplaced(&r, deliver(&r, API "?k=" RANDOM, field, SLICE(""), 5), PLACE_QUERY);
	r.more.search_target = &target;
	assert_int_equal(deliver(&r, API "?k=" RANDOM, field, SLICE("hello"), 5), CHAIN_PASS);
	cleaned[0].value = SLICE("-" VALUE);
	assert_leaked(&r, deliver(&r, API, no_fields, SLICE(""), 5), PLACE_HEADER);
	rig_free(&r);
}

/* ---- what is hidden ---- */

static void the_places_of_a_refused_request_are_told(void **state)
{
	(void)state;
	static const struct known_item all[] = {{KNOWN_VALUE, TOKEN, WORD("Zebra91x")},
						{KNOWN_RANDOM_PLACEHOLDER, 0, WORD("cage-ph-")}};
	struct rig r = guarded(RULES);
	give(&r, all, 2);
	request(&r, "https://zebra91x.wide.test/x/" RANDOM "?q=Zebra91x", no_fields);
	struct subject s = {.target = &r.target, .method = SLICE("ZEBRA91X"), .sandbox = SLICE("box")};
	unsigned expected = 1u << PLACE_HOST | 1u << PLACE_METHOD | 1u << PLACE_PATH | 1u << PLACE_QUERY;
	assert_int_equal(chain_places_to_hide(r.chain, &r.arena, &s), expected);
	chain_set_known(r.chain, NULL);
	assert_int_equal(chain_places_to_hide(r.chain, &r.arena, &s), 0);
	rig_free(&r);
}

static void what_ends_a_run_early_shows_no_more(void **state)
{
	(void)state;
	static const struct known_item word[] = {{KNOWN_VALUE, TOKEN, WORD("Zebra91x")}};
	struct rig r = guarded("version: 1\nname: t\nrules:\n"
			       "  - {id: few, hosts: [few.test], limits: {rate: 1/h, burst: 0}}\n"
			       "  - {id: wide, hosts: ['*.wide.test']}\n");
	give(&r, word, 1);
	request(&r, "https://few.test/a/Zebra91x", no_fields);
	assert_blocked(&r, chain_head(r.run), REASON_LIMIT_RATE);
	assert_true(chain_hides(r.run, PLACE_PATH));
	assert_false(chain_hides(r.run, PLACE_HOST));
	request(&r, "https://a.b.c.d.e.f.zebra91x.wide.test/a/b/Zebra91x", no_fields);
	assert_blocked(&r, chain_name(r.run), REASON_NAME_SUSPICIOUS);
	assert_true(chain_hides(r.run, PLACE_HOST));
	assert_true(chain_hides(r.run, PLACE_PATH));
	rig_free(&r);
}

/* ---- sets ---- */

static void a_run_goes_on_with_what_was_known_when_it_began(void **state)
{
	(void)state;
	static const struct known_item next[] = {{KNOWN_VALUE, SHOP_SECRET, WORD("another one")}};
	struct rig r = guarded(RULES);
	assert_int_equal(send_body(&r, SLICE("another one"), 3), CHAIN_PASS); /* leaves searches for the next */
	request(&r, API, no_fields);
	assert_int_equal(chain_head(r.run), CHAIN_PASS);
	assert_int_equal(chain_body(r.run, SLICE("another one, tr0ub4dor-")), CHAIN_PASS);
	give(&r, next, 1);
	assert_leaked(&r, chain_body(r.run, SLICE("Zebra.91x_Q")), PLACE_BODY);
	assert_int_equal(send_body(&r, SLICE(VALUE), 3), CHAIN_PASS);
	assert_blocked(&r, send_body(&r, SLICE("another one"), 3), REASON_SECRET_LEAKED);
	/* begun before, searched after */
	request(&r, API "?k=" VALUE, no_fields);
	give(&r, items, N_ITEMS);
	assert_int_equal(chain_head(r.run), CHAIN_PASS);
	assert_leaked(&r, deliver(&r, API "?k=" VALUE, no_fields, SLICE(""), 1), PLACE_QUERY);
	rig_free(&r);
}

static void without_a_set_nothing_is_found(void **state)
{
	(void)state;
	struct rig r = guarded(RULES ALL_OFF);
	size_t n;
	for (int i = 0; i < 2; i++) {
		if (i == 0)
			chain_set_known(r.chain, NULL);
		else
			give(&r, items, 0);
		assert_int_equal(deliver(&r, API "?k=" VALUE, no_fields, SLICE(VALUE " " SHOP), 5), CHAIN_PASS);
		chain_findings(r.run, &n);
		assert_int_equal(n, 0);
	}
	rig_free(&r);
}

static void count(void *arg, const struct known_item *item, struct slice bytes, const struct view *view,
		  uint64_t offset)
{
	(void)item, (void)bytes, (void)view, (void)offset;
	++*(size_t *)arg;
}

static size_t texts_of_search(struct known_set *known, size_t *found)
{
	static const struct search_cb cb = {.known = count};
	struct search *s = search_new(&(struct search_sets){.known = known}, &cb);
	assert_non_null(s);
	*found = 0;
	search_start(s, found);
	assert_int_equal(search_feed(s, SLICE("it is " VALUE)), CAGE_OK);
	assert_int_equal(search_end(s), CAGE_OK);
	assert_ptr_equal(search_known(s), known);
	size_t texts = search_size(s);
	search_free(&s);
	return texts;
}

static void without_a_set_nothing_is_read(void **state)
{
	(void)state;
	size_t found;
	struct known_set *set = set_of(items, N_ITEMS, 0);
	assert_int_equal(texts_of_search(NULL, &found), 0);
	assert_int_equal(found, 0);
	assert_int_equal(texts_of_search(set, &found), 1);
	assert_int_equal(found, 1);
	known_set_unref(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(t29_a_value_in_a_body_is_found_however_it_is_written_and_cut),
		cmocka_unit_test(a_short_value_is_found_too),
		cmocka_unit_test(a_value_is_told_with_its_place_view_and_fingerprint),
		cmocka_unit_test(every_part_of_a_head_is_looked_at),
		cmocka_unit_test(a_method_and_trailers_are_looked_at),
		cmocka_unit_test(t28_what_is_split_is_whole_again),
		cmocka_unit_test(a_value_with_blanks_and_quotes_is_found_in_a_form),
		cmocka_unit_test(t26_a_value_under_a_content_coding_is_found),
		cmocka_unit_test(a_value_in_a_name_under_a_wildcard_is_found),
		cmocka_unit_test(what_is_known_says_more_than_its_format),
		cmocka_unit_test(observing_does_not_let_it_pass),
		cmocka_unit_test(what_can_not_be_looked_at_is_not_only_observed),
		cmocka_unit_test(it_is_found_when_all_inspectors_are_off),
		cmocka_unit_test(a_full_list_has_room_for_it),
		cmocka_unit_test(a_placeholder_is_misplaced_where_nothing_allows_it),
		cmocka_unit_test(a_placeholder_of_the_body_passes_as_it_will_be_replaced),
		cmocka_unit_test(escapes_around_a_placeholder_do_not_matter),
		cmocka_unit_test(elsewhere_it_is_misplaced_all_the_same),
		cmocka_unit_test(what_is_searched_may_be_another_head),
		cmocka_unit_test(the_places_of_a_refused_request_are_told),
		cmocka_unit_test(what_ends_a_run_early_shows_no_more),
		cmocka_unit_test(a_run_goes_on_with_what_was_known_when_it_began),
		cmocka_unit_test(without_a_set_nothing_is_found),
		cmocka_unit_test(without_a_set_nothing_is_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
