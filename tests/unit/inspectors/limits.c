/* The inspectors rate and budget, on a ledger of their own. Limits are per day, so that the clock has no say. */
#include "tests/unit/inspectors/stub.h"

#include <sys/mman.h>

#include "inspectors/ledger.h"
#include "inspectors/table.h"

#define DAY UINT64_C(86400000000)

static struct ledger *ledger;
static uint64_t retry_after;    /* of the last report; 0: none */
static enum reason refused_for; /* of the last request that was not let through */

struct ledger *inspection_ledger(struct inspection *i)
{
	(void)i;
	return ledger;
}

void inspection_retry_after(struct inspection *i, uint64_t us)
{
	(void)i;
	retry_after = us;
}

static int setup(void **state)
{
	(void)state;
	void *memory = mmap(NULL, ledger_size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(memory != MAP_FAILED);
	ledger = ledger_init(memory);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	return munmap(ledger, ledger_size());
}

/* Begins a request: POST to the host, under that rule, from that sandbox. */
static void begin(struct inspection *i, const struct inspector *by, const struct policy_rule *rule, const char *host)
{
	stub_begin(i, by);
	i->target.host = (struct host){.kind = HOST_NAME, .text = slice_str(host)};
	i->subject.rule = rule;
	i->subject.method = SLICE("POST");
	i->subject.sandbox = SLICE("box");
	retry_after = 0;
}

static void expect_one(const struct inspection *i, enum reason reason, enum place place)
{
	assert_int_equal(i->n_findings, 1);
	assert_int_equal(i->findings[0].reason, reason);
	assert_int_equal(i->findings[0].action, ACTION_BLOCK);
	assert_int_equal(i->findings[0].spot.place, place);
	assert_true(i->is_done);
}

/* ---- rate ---- */

/* Is a request to that host, from that sandbox, let through? */
static bool rate_passes(const struct policy_rule *rule, const char *host, struct slice sandbox)
{
	struct inspection i;
	begin(&i, &rate_inspector, rule, host);
	i.subject.sandbox = sandbox;
	stub_head(&i);
	stub_finish(&i);
	assert_true(i.is_done);
	refused_for = i.n_findings > 0 ? i.findings[0].reason : REASON_NONE;
	if (i.n_findings > 0)
		expect_one(&i, refused_for, PLACE_HOST);
	return i.n_findings == 0;
}

static void rate_is_per_sandbox_rule_and_domain(void **state)
{
	(void)state;
	const struct policy_rule a = {.id = SLICE("a"), .limit_rate = {1, DAY}, .limit_burst = 2};
	struct policy_rule b = a;
	b.id = SLICE("b");
	assert_true(rate_passes(&a, "x.example.com", SLICE("box")));
	assert_true(rate_passes(&a, "y.example.com", SLICE("box")));
	assert_false(rate_passes(&a, "z.example.com", SLICE("box")));
	assert_int_equal(refused_for, REASON_LIMIT_RATE);
	assert_true(retry_after > DAY / 2 && retry_after <= DAY);
	assert_true(rate_passes(&a, "x.example.org", SLICE("box")));
	assert_true(rate_passes(&a, "x.example.com", SLICE("other")));
	assert_true(rate_passes(&b, "x.example.com", SLICE("box")));
	assert_false(rate_passes(&a, "example.com", SLICE("box")));
}

static void rate_with_a_burst_of_nothing(void **state)
{
	(void)state;
	const struct policy_rule rule = {.id = SLICE("a"), .limit_rate = {1000, DAY}, .limit_burst = 0};
	assert_false(rate_passes(&rule, "example.com", SLICE("box")));
	assert_int_equal(retry_after, 0); /* no time helps */
}

static void no_limit_costs_nothing(void **state)
{
	(void)state;
	const struct policy_rule rule = {.id = SLICE("a")};
	struct inspection i;
	struct ledger *kept = ledger;
	ledger = NULL; /* it is not even touched */
	for (unsigned n = 0; n < 10; n++) {
		assert_true(rate_passes(&rule, "example.com", SLICE("box")));
		assert_true(rate_passes(NULL, "example.com", SLICE("box")));
		begin(&i, &budget_inspector, n % 2 ? &rule : NULL, "example.com");
		stub_head(&i);
		assert_true(i.is_done);
		assert_int_equal(i.n_findings, 0);
		stub_finish(&i);
	}
	ledger = kept;
}

/* ---- budget ---- */

static void raw(struct inspection *i, size_t n)
{
	static const char bytes[4096];
	while (n > 0 && !i->is_done) {
		size_t len = n < sizeof(bytes) ? n : sizeof(bytes);
		stub_piece(i, slice_of(bytes, len));
		n -= len;
	}
}

static void budget_counts_bodies(void **state)
{
	(void)state;
	const struct policy_rule rule = {.id = SLICE("a"), .limit_out = {10000, DAY}};
	struct inspection i;
	begin(&i, &budget_inspector, &rule, "example.com");
	stub_head(&i);
	raw(&i, 9000);
	assert_false(i.is_done);
	stub_finish(&i);
	/* another request and another host, but the same account */
	begin(&i, &budget_inspector, &rule, "example.org");
	stub_head(&i);
	raw(&i, 900);
	assert_false(i.is_done);
	raw(&i, 200);
	expect_one(&i, REASON_LIMIT_BUDGET, PLACE_BODY);
	assert_true(retry_after > 0 && retry_after <= 2 * DAY);
	stub_finish(&i);
	/* and another sandbox */
	begin(&i, &budget_inspector, &rule, "example.com");
	i.subject.sandbox = SLICE("other");
	stub_head(&i);
	raw(&i, 9000);
	assert_int_equal(i.n_findings, 0);
	stub_finish(&i);
}

static void budget_counts_heads(void **state)
{
	(void)state;
	static const char value[300];
	const struct policy_rule rule = {.id = SLICE("a"), .limit_out = {1000, DAY}};
	struct inspection i;
	for (unsigned n = 0; n < 4; n++) {
		begin(&i, &budget_inspector, &rule, "example.com");
		stub_field(&i, SLICE("x"), slice_of(value, sizeof(value)));
		stub_head(&i);
		if (n < 3)
			assert_int_equal(i.n_findings, 0);
		else
			expect_one(&i, REASON_LIMIT_BUDGET, PLACE_HOST);
		stub_finish(&i);
	}
	begin(&i, &budget_inspector, &rule, "example.com"); /* a query is a way out too */
	i.target.query = slice_of(value, sizeof(value));
	stub_head(&i);
	expect_one(&i, REASON_LIMIT_BUDGET, PLACE_HOST);
	stub_finish(&i);
}

static void budget_counts_trailers(void **state)
{
	(void)state;
	static const char value[600];
	const struct policy_rule rule = {.id = SLICE("a"), .limit_out = {1000, DAY}};
	const struct field trailer = {.name = SLICE("x"), .value = slice_of(value, sizeof(value))};
	struct inspection i;
	begin(&i, &budget_inspector, &rule, "example.com");
	stub_head(&i);
	stub_answer(&i, i.by->on_trailers(&i, &trailer, 1));
	assert_false(i.is_done);
	stub_finish(&i);
	begin(&i, &budget_inspector, &rule, "example.com");
	stub_head(&i);
	stub_answer(&i, i.by->on_trailers(&i, &trailer, 1));
	expect_one(&i, REASON_LIMIT_BUDGET, PLACE_TRAILER);
	stub_finish(&i);
}

static void budget_refuses_at_the_head_what_never_fits(void **state)
{
	(void)state;
	const struct policy_rule rule = {.id = SLICE("a"), .limit_out = {10000, DAY}};
	const uint64_t fits = 10000 - 5; /* POST and / */
	struct inspection i;
	for (uint64_t length = fits; length <= fits + 1; length++) {
		begin(&i, &budget_inspector, &rule, "example.com");
		i.head.framing = BODY_LENGTH;
		i.head.content_length = length;
		stub_head(&i);
		if (length > fits) {
			expect_one(&i, REASON_BODY_TOO_LARGE, PLACE_BODY);
			assert_string_equal(i.findings[0].why, "it has more bytes than all of limits.out");
			assert_int_equal(retry_after, 0);
		} else {
			assert_int_equal(i.n_findings, 0);
		}
		stub_finish(&i);
	}
}

/* No waiting helps one that outgrows the whole budget; one that meets what others have spent may wait. */
static void budget_tells_too_large_from_too_much(void **state)
{
	(void)state;
	const struct policy_rule rule = {.id = SLICE("a"), .limit_out = {10000, DAY}};
	struct inspection i;
	begin(&i, &budget_inspector, &rule, "example.com");
	stub_head(&i);
	raw(&i, 9000);
	raw(&i, 995);
	assert_false(i.is_done);
	raw(&i, 1);
	expect_one(&i, REASON_BODY_TOO_LARGE, PLACE_BODY);
	assert_int_equal(retry_after, 0);
	stub_finish(&i);
	begin(&i, &budget_inspector, &rule, "example.com");
	stub_head(&i);
	expect_one(&i, REASON_LIMIT_BUDGET, PLACE_HOST);
	assert_null(i.findings[0].why);
	assert_true(retry_after > 0);
	stub_finish(&i);
}

/* ---- both ---- */

static void a_full_ledger_refuses(void **state)
{
	(void)state;
	const struct policy_rule rule = {
		.id = SLICE("a"), .limit_rate = {9, DAY}, .limit_burst = 9, .limit_out = {10000, DAY}};
	const struct policy_rule wide = {.hosts = (struct slice[]){SLICE("*.example.com")}, .n_hosts = 1};
	struct inspection i;
	uint64_t wait, taken = 0;
	for (uint64_t n = 0; n < UINT64_C(4) * LIMIT_LEDGER_ENTRIES; n++) {
		struct slice part = slice_of(&n, sizeof(n));
		uint64_t key = ledger_key(ledger, SLICE("box"), LEDGER_NAMES, &part, 1);
		taken += ledger_take(ledger, key, 1, 10000 * DAY, 1, 0, &wait) == CAGE_OK;
	}
	assert_int_equal(taken, LIMIT_LEDGER_ENTRIES);
	assert_false(rate_passes(&rule, "example.com", SLICE("box")));
	assert_int_equal(refused_for, REASON_LIMIT_COUNTERS);
	assert_int_equal(retry_after, 0);
	begin(&i, &budget_inspector, &rule, "example.com");
	stub_head(&i);
	expect_one(&i, REASON_LIMIT_COUNTERS, PLACE_HOST);
	assert_int_equal(retry_after, 0);
	stub_finish(&i);
	begin(&i, &name_inspector, &wide, "a.example.com");
	stub_answer(&i, i.by->on_name(&i));
	expect_one(&i, REASON_LIMIT_COUNTERS, PLACE_HOST);
	stub_finish(&i);
	assert_true(rate_passes(&rule, "example.com", SLICE("other"))); /* nobody else notices */
}

/* ---- sizes ---- */

static void bodies_have_a_size(void **state)
{
	(void)state;
	static const char body[101];
	const struct policy_rule rule = {.limit_body = 100};
	struct inspection i;
	for (size_t cut = 1; cut <= sizeof(body); cut++) {
		begin(&i, &body_size_inspector, &rule, "example.com");
		stub_head(&i);
		stub_body(&i, slice_of(body, 100), cut);
		assert_int_equal(i.n_findings, 0);
		stub_finish(&i);
		begin(&i, &body_size_inspector, &rule, "example.com");
		stub_head(&i);
		stub_body(&i, slice_of(body, 101), cut);
		expect_one(&i, REASON_BODY_TOO_LARGE, PLACE_BODY);
		stub_finish(&i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(rate_is_per_sandbox_rule_and_domain, setup, teardown),
		cmocka_unit_test_setup_teardown(rate_with_a_burst_of_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(no_limit_costs_nothing, setup, teardown),
		cmocka_unit_test_setup_teardown(budget_counts_bodies, setup, teardown),
		cmocka_unit_test_setup_teardown(budget_counts_heads, setup, teardown),
		cmocka_unit_test_setup_teardown(budget_counts_trailers, setup, teardown),
		cmocka_unit_test_setup_teardown(budget_refuses_at_the_head_what_never_fits, setup, teardown),
		cmocka_unit_test_setup_teardown(budget_tells_too_large_from_too_much, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_ledger_refuses, setup, teardown),
		cmocka_unit_test(bodies_have_a_size),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
