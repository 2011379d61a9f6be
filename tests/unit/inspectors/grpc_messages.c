/* Messages in a body of gRPC: each is looked at by itself and together with what came before, and may leave when it is
 * whole. */
#include "tests/unit/inspectors/chain_rig.h"

#include "core/http/grpc.h"

#define URL "https://api.example.test/pkg.Service/Method"
#define PAT "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" /* made up; right by its checksum */
#define PAT_LEN (sizeof(PAT) - 1)

static const char *const plain[] = {"content-type", "application/grpc", NULL};
static const char *const gzipped[] = {"content-type", "application/grpc+proto", "grpc-encoding", "gzip", NULL};

static char body[KIB(64)];
static size_t n_body;

static void put(unsigned char flag, struct slice payload)
{
	assert_true(n_body + GRPC_PREFIX + payload.len <= sizeof(body));
	const char prefix[GRPC_PREFIX] = {(char)flag, (char)(payload.len >> 24), (char)(payload.len >> 16),
					  (char)(payload.len >> 8), (char)payload.len};
	memcpy(body + n_body, prefix, GRPC_PREFIX);
	if (payload.len > 0)
		memcpy(body + n_body + GRPC_PREFIX, payload.ptr, payload.len);
	n_body += GRPC_PREFIX + payload.len;
}

/* One body after the other, shown piece by piece; what came of the last piece. */
static enum chain_verdict show(struct rig *r, struct slice text, size_t cut)
{
	enum chain_verdict v = CHAIN_PASS;
	for (size_t at = 0; v == CHAIN_PASS && at < text.len; at += cut)
		v = chain_body(r->run, slice_head(slice_from(text, at), cut));
	return v;
}

static void begin(struct rig *r, const char *url, const char *const *fields)
{
	n_body = 0;
	request(r, url, fields);
	assert_int_equal(chain_head(r->run), CHAIN_PASS);
}

static void a_message_may_leave_when_it_is_whole(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	begin(&r, URL, plain);
	put(0, SLICE("hello"));
	put(0, SLICE(""));
	put(0, SLICE("you"));
	const uint64_t ends[] = {GRPC_PREFIX + 5, 2 * GRPC_PREFIX + 5, 3 * GRPC_PREFIX + 8};
	size_t passed = 0;
	for (size_t at = 0; at < n_body; at++) {
		assert_int_equal(chain_body(r.run, slice_of(body + at, 1)), CHAIN_PASS);
		passed += passed < 3 && at + 1 == ends[passed];
		assert_int_equal(chain_whole(r.run), passed == 0 ? 0 : ends[passed - 1]);
	}
	assert_int_equal(chain_end(r.run, NULL, 0), CHAIN_PASS);
	rig_free(&r);
}

/* Where its own bytes end is not known in a body with a coding, and in one that is no gRPC nothing ends. */
static void other_bodies_have_no_messages(void **state)
{
	(void)state;
	static const char *const coded[] = {"content-type", "application/grpc", "content-encoding", "gzip", NULL};
	unsigned char room[256];
	struct rig r = rig_new(RULES);
	begin(&r, URL, no_fields);
	put(0, SLICE("hello"));
	assert_int_equal(show(&r, slice_of(body, n_body), 3), CHAIN_PASS);
	assert_int_equal(chain_whole(r.run), 0);
	begin(&r, URL, coded);
	put(0, SLICE("hello"));
	assert_int_equal(show(&r, gzip(slice_of(body, n_body), room, sizeof(room)), 3), CHAIN_PASS);
	assert_int_equal(chain_whole(r.run), 0);
	assert_int_equal(chain_end(r.run, NULL, 0), CHAIN_PASS);
	rig_free(&r);
}

/* Without a byte more: the next one may never come. */
static void a_secret_at_the_very_end_is_found_before_it_leaves(void **state)
{
	(void)state;
	unsigned char room[256];
	struct rig r = rig_new(RULES);
	for (size_t cut = 1; cut < 20; cut++) {
		begin(&r, URL, plain);
		put(0, SLICE("before"));
		put(0, SLICE("it is " PAT));
		assert_blocked(&r, show(&r, slice_of(body, n_body), cut), REASON_SECRET_DETECTED);
		assert_int_equal(chain_block(r.run)->spot.offset, 12);
		begin(&r, URL, gzipped);
		put(1, gzip(SLICE("it is " PAT), room, sizeof(room)));
		assert_blocked(&r, show(&r, slice_of(body, n_body), cut), REASON_SECRET_DETECTED);
	}
	rig_free(&r);
}

/* To whoever does not read it as one, a length is text in front of the message. */
static void t28_a_secret_that_begins_in_a_length_is_found(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	static char payload[0x6768];
	const struct slice pat = SLICE(PAT);
	for (size_t in_length = 1; in_length <= 2; in_length++)
		for (size_t cut = 1; cut < 300; cut += 17) {
			const size_t len = in_length == 1 ? 'g' : 'g' << 8 | 'h';
			memset(payload, '.', sizeof(payload));
			memcpy(payload, pat.ptr + in_length, pat.len - in_length);
			begin(&r, URL, plain);
			put(0, SLICE("before"));
			put(0, slice_of(payload, len));
			assert_blocked(&r, show(&r, slice_of(body, n_body), cut), REASON_SECRET_DETECTED);
		}
	rig_free(&r);
}

/* What stands right behind a length is found, whatever that looks like. */
static void t28_a_length_does_not_hide_what_is_behind_it(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	static char payload['x'];
	memset(payload, '.', sizeof(payload));
	memcpy(payload, PAT, PAT_LEN);
	begin(&r, URL, plain);
	put(0, slice_of(payload, sizeof(payload)));
	assert_blocked(&r, show(&r, slice_of(body, n_body), 7), REASON_SECRET_DETECTED);
	rig_free(&r);
}

/* There are servers that go by that field alone. */
static void t26_an_encoding_of_messages_without_their_type_is_undecodable(void **state)
{
	(void)state;
	static const char *const fields[][5] = {{"grpc-encoding", "gzip", NULL},
						{"content-type", "text/plain", "grpc-encoding", "gzip", NULL},
						{"content-type", "application/grpc-foo", "grpc-encoding", "br", NULL},
						{"connect-content-encoding", "gzip", NULL}};
	static const char *const none[] = {"content-type", "text/plain", "grpc-encoding", "identity", NULL};
	struct rig r = rig_new(RULES);
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
		begin(&r, URL, fields[i]);
		put(1, SLICE("hello"));
		assert_blocked(&r, show(&r, slice_of(body, n_body), 100), REASON_BODY_UNDECODABLE);
	}
	begin(&r, URL, none);
	assert_int_equal(show(&r, SLICE("hello"), 100), CHAIN_PASS);
	assert_int_equal(chain_end(r.run, NULL, 0), CHAIN_PASS);
	rig_free(&r);
}

static void t28_what_is_split_over_messages_is_found(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	struct slice pat = SLICE(PAT);
	for (size_t at = 1; at < pat.len; at++) {
		begin(&r, URL, plain);
		put(0, slice_head(pat, at));
		put(0, SLICE(""));
		assert_int_equal(show(&r, slice_of(body, n_body), 7), CHAIN_PASS);
		size_t first = n_body;
		assert_int_equal(chain_whole(r.run), first);
		put(0, slice_from(pat, at));
		assert_blocked(&r, show(&r, slice_of(body + first, n_body - first), 7), REASON_SECRET_DETECTED);
		assert_int_equal(chain_block(r.run)->spot.offset, 0);
	}
	rig_free(&r);
}

static void t28_byte_by_byte(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	begin(&r, URL, plain);
	for (size_t i = 0; i < PAT_LEN; i++)
		put(0, slice_of(&PAT[i], 1));
	assert_int_equal(show(&r, slice_of(body, n_body - 1), n_body - 1), CHAIN_PASS);
	assert_blocked(&r, chain_body(r.run, slice_of(body + n_body - 1, 1)), REASON_SECRET_DETECTED);
	rig_free(&r);
}

/* What is long before and behind the cut does not matter. */
static void t28_long_messages_meet_too(void **state)
{
	(void)state;
	static char text[2 * LIMIT_MESSAGE_SPLICE];
	struct rig r = rig_new(RULES);
	size_t half = PAT_LEN / 2;
	begin(&r, URL, plain);
	memset(text, ' ', sizeof(text));
	memcpy(text + sizeof(text) - half, PAT, half);
	put(0, slice_of(text, sizeof(text)));
	size_t first = n_body;
	memset(text, ' ', sizeof(text));
	memcpy(text, &PAT[half], PAT_LEN - half);
	put(0, slice_of(text, sizeof(text)));
	assert_int_equal(show(&r, slice_of(body, first), 1000), CHAIN_PASS);
	assert_blocked(&r, show(&r, slice_of(body + first, n_body - first), 1000), REASON_SECRET_DETECTED);
	assert_int_equal(chain_block(r.run)->spot.offset, sizeof(text) - half);
	rig_free(&r);
}

/* One that is only observed is told once, though it is looked at again with the next message. */
static void what_was_told_is_not_told_again(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	size_t n;
	begin(&r, "https://watch.test/s/M", plain);
	put(0, SLICE("it is " PAT));
	put(0, SLICE(" as ever"));
	put(0, SLICE("once more " PAT));
	assert_int_equal(show(&r, slice_of(body, n_body), 9), CHAIN_PASS);
	assert_int_equal(chain_end(r.run, NULL, 0), CHAIN_PASS);
	chain_findings(r.run, &n);
	assert_int_equal(n, 1);
	rig_free(&r);
}

/* What an inspector says of a body at its end it says of each message. */
static void inspectors_decide_at_each_message(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES "inspectors:\n  entropy: {action: block}\n");
	char random[600];
	uint64_t x = 7;
	for (size_t i = 0; i < sizeof(random); i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		random[i] = (char)(x >> 56);
	}
	begin(&r, URL, plain);
	put(0, SLICE("a harmless beginning"));
	assert_int_equal(show(&r, slice_of(body, n_body), 16), CHAIN_PASS);
	begin(&r, URL, plain);
	put(0, slice_of(random, sizeof(random)));
	assert_blocked(&r, show(&r, slice_of(body, n_body), n_body), REASON_ENTROPY_HIGH);
	assert_int_equal(chain_block(r.run)->spot.offset, 0);
	rig_free(&r);
}

/* Limits are for the request, whose messages are its body. */
static void limits_are_for_all_messages(void **state)
{
	(void)state;
	struct rig r = rig_new(RULES);
	char text[45];
	memset(text, ' ', sizeof(text));
	begin(&r, "https://small.test/s/M", plain);
	put(0, slice_of(text, sizeof(text)));
	put(0, slice_of(text, sizeof(text)));
	assert_int_equal(show(&r, slice_of(body, n_body), 50), CHAIN_PASS);
	assert_blocked(&r, chain_body(r.run, SLICE("\0")), REASON_BODY_TOO_LARGE);
	rig_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_may_leave_when_it_is_whole),
		cmocka_unit_test(other_bodies_have_no_messages),
		cmocka_unit_test(a_secret_at_the_very_end_is_found_before_it_leaves),
		cmocka_unit_test(t28_a_secret_that_begins_in_a_length_is_found),
		cmocka_unit_test(t28_a_length_does_not_hide_what_is_behind_it),
		cmocka_unit_test(t26_an_encoding_of_messages_without_their_type_is_undecodable),
		cmocka_unit_test(t28_what_is_split_over_messages_is_found),
		cmocka_unit_test(t28_byte_by_byte),
		cmocka_unit_test(t28_long_messages_meet_too),
		cmocka_unit_test(what_was_told_is_not_told_again),
		cmocka_unit_test(inspectors_decide_at_each_message),
		cmocka_unit_test(limits_are_for_all_messages),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
