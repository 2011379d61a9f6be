/* The external inspector in the real chain, with the program played on memory: what it is told, what its answers do, and
 * that nothing but a good answer in time lets a request go. */
#include "inspectors/chain.h"
#include "inspectors/external.h"
#include "inspectors/external_private.h"
#include "inspectors/ledger.h"
#include "tests/unit/policy/fixture.h"

#define POLICY(keys)                                            \
	"version: 1\nname: t\nrules:\n"                         \
	"  - {id: api, hosts: [api.test]}\n"                    \
	"  - {id: watch, hosts: [watch.test], mode: observe}\n" \
	"inspectors: {external: {" keys "}}\n"
#define PROGRAM "command: [/bin/true]"
#define SECOND 1000000u
#define SAID KIB(512)
#define REQUESTS 3

/* One request under way. */
struct request {
	struct arena arena;
	struct target target;
	struct message head;
	struct field fields[8];
	struct chain_run *run;
	unsigned resumed;
};

struct rig {
	struct fixture f;
	struct ledger *ledger;
	struct chain *chain;
	struct external *talk;
	uint64_t now_us;
	bool has_room;
	char *said; /* all lines to the program */
	size_t said_len;
	char note[512];
	struct request requests[REQUESTS];
};

static bool port_send(void *arg, struct slice line)
{
	struct rig *r = arg;
	if (!r->has_room)
		return false;
	assert_true(r->said_len + line.len < SAID);
	assert_int_equal(slice_find(line, '\n'), line.len - 1);
	memcpy(r->said + r->said_len, line.ptr, line.len);
	r->said_len += line.len;
	r->said[r->said_len] = 0;
	return true;
}

static uint64_t port_now(void *arg)
{
	const struct rig *r = arg;
	return r->now_us;
}

static void port_note(void *arg, struct slice id, struct slice text)
{
	struct rig *r = arg;
	snprintf(r->note, sizeof(r->note), "%.*s %.*s", SLICE_FMT(id), SLICE_FMT(text));
}

static struct rig *rig_new(const char *yaml)
{
	static const unsigned char key[CHAIN_KEY] = {1};
	struct rig *r = calloc(1, sizeof(*r));
	assert_non_null(r);
	r->f = fixture_new();
	r->f.inspectors = chain_read_policy;
	if (!fixture_load(&r->f, yaml))
		policy_errors_print(r->f.errs, STDERR_FILENO);
	assert_non_null(r->f.policy);
	r->ledger = ledger_init(calloc(1, ledger_size()));
	r->chain = chain_new(r->f.policy, r->ledger, key);
	r->said = calloc(1, SAID);
	r->has_room = true;
	r->now_us = SECOND;
	struct external_port port = {.send = port_send, .now_us = port_now, .note = port_note, .arg = r};
	r->talk = external_new(2 * SECOND, &port);
	assert_true(r->chain && r->talk && r->said);
	chain_set_external(r->chain, r->talk);
	external_open(r->talk);
	return r;
}

static void request_end(struct request *q)
{
	chain_finish(&q->run);
	arena_free(&q->arena);
}

static void rig_free(struct rig *r)
{
	for (size_t i = 0; i < REQUESTS; i++)
		request_end(&r->requests[i]);
	external_free(&r->talk);
	chain_free(&r->chain);
	free(r->ledger);
	free(r->said);
	fixture_free(&r->f);
	free(r);
}

static void on_resume(void *arg)
{
	struct request *q = arg;
	q->resumed++;
}

static void add_field(struct request *q, const char *name, const char *value)
{
	q->fields[q->head.n_fields++] = (struct field){
		.name = slice_str(name), .value = slice_str(value), .id = field_identify(slice_str(name))};
}

/* Begins a request, whose transaction has that id; its head is not shown yet. */
static void request_begin(struct rig *r, struct request *q, uint64_t txn, const char *url)
{
	struct chain_owner owner = {.resume = on_resume, .arg = q};
	const char *why;
	request_end(q);
	*q = (struct request){.head = {.method = SLICE("POST"), .fields = q->fields}};
	arena_init(&q->arena, MIB(4));
	assert_int_equal(url_parse(slice_str(url), &q->arena, &q->target, &why), CAGE_OK);
	struct policy_verdict v = policy_match_request(r->f.policy, &q->target, q->head.method, NOW);
	assert_non_null(v.applies);
	struct subject s = {.target = &q->target,
			    .method = q->head.method,
			    .head = &q->head,
			    .rule = v.applies,
			    .sandbox = SLICE("box"),
			    .txn = txn};
	q->run = chain_begin(r->chain, &q->arena, &s, v.applies->mode == POLICY_OBSERVE, &owner);
	assert_non_null(q->run);
}

static struct request *begin(struct rig *r, size_t n, const char *url)
{
	request_begin(r, &r->requests[n], 0xa0 + n, url);
	return &r->requests[n];
}

/* A request whose head is shown and not yet answered. */
static struct request *ask(struct rig *r, size_t n)
{
	struct request *q = begin(r, n, "https://api.test/v1");
	assert_int_equal(chain_head(q->run), CHAIN_HOLD);
	return q;
}

/* All lines that the program was told since the last call. */
static const char *said(struct rig *r)
{
	r->said_len = 0;
	return r->said;
}

static void expect_said(struct rig *r, const char *lines)
{
	assert_string_equal(said(r), lines);
	r->said[0] = 0;
}

/* Gives bytes to the conversation, as many lines as there are. */
static enum cage_status feed(struct rig *r, struct slice bytes)
{
	enum cage_status st = CAGE_OK;
	while (st == CAGE_OK && bytes.len > 0) {
		size_t used = 0;
		st = external_receive(r->talk, bytes, &used);
		bytes = slice_from(bytes, used);
	}
	return st;
}

static void answer(struct rig *r, const char *line)
{
	assert_int_equal(feed(r, slice_str(line)), CAGE_OK);
}

#define ID(n, number) "00000000000000a" #n "." #number
#define ANSWER(n, number, rest) "{\"id\":\"" ID(n, number) "\",\"verdict\":" rest "}\n"
#define PASS(n, number) ANSWER(n, number, "\"pass\"")
#define BODY(n, number, data) "{\"type\":\"body\",\"id\":\"" ID(n, number) "\",\"data\":\"" data "\"}\n"
#define END(n, number) "{\"type\":\"end\",\"id\":\"" ID(n, number) "\",\"trailers\":[]}\n"
#define CANCEL(n, number) "{\"type\":\"cancel\",\"id\":\"" ID(n, number) "\"}\n"

static void assert_blocked(struct request *q, enum reason reason)
{
	assert_int_equal(chain_verdict(q->run), CHAIN_BLOCK);
	assert_int_equal(chain_block(q->run)->reason, reason);
}

/* The same, and why: a clause that the client is told. */
static void assert_unavailable(struct request *q, const char *why)
{
	assert_blocked(q, REASON_EXTERNAL_UNAVAILABLE);
	assert_string_equal(chain_block(q->run)->why, why);
}

/* ---- the protocol ---- */

static void a_request_goes_step_by_step(void **state)
{
	(void)state;
	struct rig *r = rig_new(POLICY(PROGRAM));
	struct request *q = begin(r, 0, "https://api.test:443/v1/x?q=\"1");
	struct field trailer = {.name = SLICE("x-sum"), .value = SLICE("7")};
	add_field(q, "Host", "api.test");
	add_field(q, "X-Key", "tab\there \xe9\"");
	add_field(q, "Proxy-Authorization", "Basic c2VjcmV0");
	add_field(q, "Connection", "close");
	assert_int_equal(chain_head(q->run), CHAIN_HOLD);
	expect_said(r, "{\"type\":\"head\",\"id\":\"" ID(
			       0, 1) "\",\"method\":\"POST\",\"scheme\":\"https\",\"host\":\"api.test\","
				     "\"port\":443,\"path\":\"/v1/x?q=\\\"1\",\"rule\":\"api\",\"sandbox\":\"box\","
				     "\"headers\":[[\"X-Key\",\"tab\\u0009here \\u00e9\\\"\"]]}\n");
	answer(r, PASS(0, 1));
	assert_int_equal(q->resumed, 1);
	assert_int_equal(chain_verdict(q->run), CHAIN_PASS);
	assert_int_equal(chain_body(q->run, SLICE("f")), CHAIN_HOLD);
	assert_int_equal(chain_body(q->run, SLICE("fo")), CHAIN_HOLD);
	assert_int_equal(chain_body(q->run, SLICE("foo\xff")), CHAIN_HOLD);
	expect_said(r, BODY(0, 1, "Zg==") BODY(0, 1, "Zm8=") BODY(0, 1, "Zm9v/w=="));
	answer(r, PASS(0, 1) PASS(0, 1));
	assert_int_equal(q->resumed, 1);
	assert_int_equal(chain_verdict(q->run), CHAIN_HOLD);
	answer(r, PASS(0, 1));
	assert_int_equal(q->resumed, 2);
	assert_int_equal(chain_end(q->run, &trailer, 1), CHAIN_HOLD);
	expect_said(r, "{\"type\":\"end\",\"id\":\"" ID(0, 1) "\",\"trailers\":[[\"x-sum\",\"7\"]]}\n");
	answer(r, PASS(0, 1));
	assert_int_equal(chain_verdict(q->run), CHAIN_PASS);
	chain_finish(&q->run);
	expect_said(r, "");
	rig_free(r);
}

static void large_pieces_are_cut(void **state)
{
	(void)state;
	struct rig *r = rig_new(POLICY(PROGRAM));
	struct request *q = ask(r, 0);
	char *body = calloc(1, 2 * LIMIT_EXTERNAL_PIECE + 1);
	answer(r, PASS(0, 1));
	said(r);
	assert_non_null(body);
	assert_int_equal(chain_body(q->run, slice_of(body, 2 * LIMIT_EXTERNAL_PIECE + 1)), CHAIN_HOLD);
	size_t lines = 0;
	for (size_t i = 0; i < r->said_len; i++)
		lines += r->said[i] == '\n';
	assert_int_equal(lines, 3);
	answer(r, PASS(0, 1) PASS(0, 1) PASS(0, 1));
	assert_int_equal(chain_verdict(q->run), CHAIN_PASS);
	free(body);
	rig_free(r);
}

static void the_largest_head_fits(void **state)
{
	(void)state;
	struct rig *r = rig_new(POLICY(PROGRAM));
	struct request *q = begin(r, 0, "https://api.test/");
	char *value = malloc(LIMIT_HEAD);
	assert_non_null(value);
	memset(value, 0xe9, LIMIT_HEAD);
	q->fields[q->head.n_fields++] = (struct field){.name = SLICE("x"), .value = slice_of(value, LIMIT_HEAD)};
	assert_int_equal(chain_head(q->run), CHAIN_HOLD);
	chain_finish(&q->run);
	free(value);
	rig_free(r);
}

static void answers_come_in_any_order_and_cut_anywhere(void **state)
{
	(void)state;
	struct slice all = SLICE(PASS(2, 3) ANSWER(0, 1, "\"block\"") " " PASS(1, 2));
	for (size_t cut = 1; cut <= all.len; cut++) {
		struct rig *r = rig_new(POLICY(PROGRAM));
		struct request *q[REQUESTS] = {ask(r, 0), ask(r, 1), ask(r, 2)};
		struct slice have = slice_head(all, cut);
		size_t from = 0;
		while (from < all.len) {
			size_t used = 0;
			enum cage_status st = external_receive(r->talk, slice_from(have, from), &used);
			assert_true(st == CAGE_OK || st == CAGE_AGAIN);
			from += used;
			if (st == CAGE_AGAIN) /* one more byte */
				have = slice_head(all, have.len + 1);
		}
		assert_int_equal(chain_verdict(q[2]->run), CHAIN_PASS);
		assert_blocked(q[0], REASON_EXTERNAL_BLOCKED);
		assert_int_equal(chain_verdict(q[1]->run), CHAIN_PASS);
		rig_free(r);
	}
}

/* ---- verdicts ---- */

static void blocks_are_as_the_policy_says(void **state)
{
	(void)state;
	struct rig *r = rig_new(POLICY(PROGRAM));
	struct request *q = ask(r, 0);
	answer(r, ANSWER(0, 1, "\"block\",\"note\":\"not today\""));
	assert_blocked(q, REASON_EXTERNAL_BLOCKED);
	assert_int_equal(chain_block(q->run)->spot.place, PLACE_HEADER);
	assert_string_equal(r->note, ID(0, 1) " not today");
	said(r);
	chain_finish(&q->run);
	assert_int_equal(r->said_len, 0); /* it knows: no cancel */
	rig_free(r);

	r = rig_new(POLICY(PROGRAM ", action: flag"));
	q = ask(r, 0);
	answer(r, ANSWER(0, 1, "\"block\""));
	size_t n;
	assert_int_equal(chain_verdict(q->run), CHAIN_PASS);
	assert_int_equal(chain_findings(q->run, &n)->action, ACTION_FLAG);
	external_lost(r->talk);
	q = begin(r, 1, "https://api.test/");
	assert_int_equal(chain_head(q->run), CHAIN_BLOCK); /* nobody looked */
	rig_free(r);
}

static void flags_go_on_and_done_is_the_end(void **state)
{
	(void)state;
	struct rig *r = rig_new(POLICY(PROGRAM));
	struct request *q = ask(r, 0);
	size_t n;
	answer(r, ANSWER(0, 1, "\"flag\""));
	assert_int_equal(chain_verdict(q->run), CHAIN_PASS);
	const struct finding *f = chain_findings(q->run, &n);
	assert_int_equal(n, 1);
	assert_int_equal(f->action, ACTION_FLAG);
	assert_int_equal(f->reason, REASON_EXTERNAL_FLAGGED);
	assert_int_equal(chain_body(q->run, SLICE("a")), CHAIN_HOLD);
	assert_int_equal(chain_body(q->run, SLICE("b")), CHAIN_HOLD);
	answer(r, ANSWER(0, 1, "\"done\"") PASS(0, 1)); /* the second is to a talk that is over */
	assert_int_equal(chain_verdict(q->run), CHAIN_PASS);
	said(r);
	assert_int_equal(chain_body(q->run, SLICE("c")), CHAIN_PASS);
	assert_int_equal(chain_end(q->run, NULL, 0), CHAIN_PASS);
	chain_finish(&q->run);
	assert_int_equal(r->said_len, 0);
	rig_free(r);
}

static void a_late_block_names_the_body(void **state)
{
	(void)state;
	struct rig *r = rig_new(POLICY(PROGRAM));
	struct request *q = ask(r, 0);
	answer(r, PASS(0, 1));
	assert_int_equal(chain_body(q->run, SLICE("abc")), CHAIN_HOLD);
	answer(r, ANSWER(0, 1, "\"block\""));
	assert_blocked(q, REASON_EXTERNAL_BLOCKED);
	assert_int_equal(chain_block(q->run)->spot.place, PLACE_BODY);
	assert_int_equal(chain_block(q->run)->spot.offset, 3);
	rig_free(r);
}

static void heads_alone_are_enough_without_body(void **state)
{
	(void)state;
	struct rig *r = rig_new(POLICY(PROGRAM ", body: false"));
	struct request *q = ask(r, 0);
	answer(r, PASS(0, 1));
	said(r);
	assert_int_equal(chain_body(q->run, SLICE("abc")), CHAIN_PASS);
	assert_int_equal(chain_end(q->run, NULL, 0), CHAIN_PASS);
	assert_int_equal(r->said_len, 0);
	rig_free(r);
}

static void observing_stops_nothing(void **state)
{
	(void)state;
	struct rig *r = rig_new(POLICY(PROGRAM));
	struct request *q = begin(r, 0, "https://watch.test/");
	assert_int_equal(chain_head(q->run), CHAIN_HOLD);
	answer(r, ANSWER(0, 1, "\"block\""));
	assert_int_equal(chain_verdict(q->run), CHAIN_PASS);
	assert_int_equal(chain_block(q->run)->reason, REASON_EXTERNAL_BLOCKED);
	external_lost(r->talk);
	q = begin(r, 1, "https://watch.test/");
	assert_int_equal(chain_head(q->run), CHAIN_PASS);
	assert_int_equal(chain_block(q->run)->reason, REASON_EXTERNAL_UNAVAILABLE);
	rig_free(r);
}

/* ---- changes ---- */

static void fields_are_set_and_removed(void **state)
{
	(void)state;
	struct rig *r = rig_new(POLICY(PROGRAM));
	struct request *q = begin(r, 0, "https://api.test/");
	add_field(q, "X-Old", "1");
	add_field(q, "x-both", "2");
	add_field(q, "X-Both", "3");
	add_field(q, "accept", "*/*");
	assert_int_equal(chain_head(q->run), CHAIN_HOLD);
	answer(r, ANSWER(0, 1,
			 "\"pass\",\"remove\":[\"x-old\",\"x-none\"],"
			 "\"set\":{\"x-both\":\"\\u00e9\\t!\",\"X-New\":\"\"}"));
	assert_int_equal(chain_rewrite(q->run, &q->head), CAGE_OK);
	assert_int_equal(chain_rewrite(q->run, &q->head), CAGE_OK); /* as a replay does */
	assert_int_equal(q->head.n_fields, 3);
	assert_true(slice_eq(q->head.fields[0].name, SLICE("accept")));
	assert_true(slice_eq(message_field(&q->head, SLICE("x-both"))->value, SLICE("\xe9\t!")));
	assert_int_equal(message_field(&q->head, SLICE("x-new"))->value.len, 0);
	rig_free(r);
}

/* Nothing of this is an answer to the head of request 0. */
static void wrong_answers_are_wrong(void **state)
{
	(void)state;
	static const char *const lines[] = {
		"\n",
		"hello\n",
		"[]\n",
		"{}\n",
		"{\"id\":\"" ID(0, 1) "\"}\n",
		"{\"verdict\":\"pass\"}\n",
		"{\"id\":1,\"verdict\":\"pass\"}\n",
		"{\"id\":\"1\",\"verdict\":\"pass\"}\n",
		ANSWER(0, 2, "\"pass\""), /* asked by nobody yet */
		ANSWER(0, 0, "\"pass\""),
		ANSWER(0, 1, "\"PASS\""),
		ANSWER(0, 1, "\"\""),
		ANSWER(0, 1, "true"),
		ANSWER(0, 1, "\"pass\",\"verdict\":\"pass\""),
		ANSWER(0, 1, "\"pass\",\"more\":1"),
		ANSWER(0, 1, "\"pass\",\"note\":1"),
		ANSWER(0, 1, "\"pass\"} {"),
		ANSWER(0, 1, "\"pass\",\"note\":\"\xff\""),
		ANSWER(0, 1, "\"pass\",\"note\":\"\\u0000\""),
		ANSWER(0, 1, "\"pass\",\"remove\":\"x\""),
		ANSWER(0, 1, "\"pass\",\"remove\":[1]"),
		ANSWER(0, 1, "\"pass\",\"remove\":[\"\"]"),
		ANSWER(0, 1, "\"pass\",\"remove\":[\"x y\"]"),
		ANSWER(0, 1, "\"pass\",\"remove\":[\"Host\"]"),
		ANSWER(0, 1, "\"pass\",\"remove\":[\"Content-Encoding\"]"),
		ANSWER(0, 1, "\"pass\",\"set\":[]"),
		ANSWER(0, 1, "\"pass\",\"set\":{\"x\":1}"),
		ANSWER(0, 1, "\"pass\",\"set\":{\"x\":\"1\",\"x\":\"2\"}"),
		ANSWER(0, 1, "\"pass\",\"set\":{\"x\":\"a\\r\\nb: c\"}"),
		ANSWER(0, 1, "\"pass\",\"set\":{\"x\":\"a\\nb\"}"),
		ANSWER(0, 1, "\"pass\",\"set\":{\"x\":\"a\\u007f\"}"),
		ANSWER(0, 1, "\"pass\",\"set\":{\"x\":\" a\"}"),
		ANSWER(0, 1, "\"pass\",\"set\":{\"x\":\"\\u0100\"}"),
		ANSWER(0, 1, "\"pass\",\"set\":{\"x:\":\"1\"}"),
		ANSWER(0, 1, "\"pass\",\"set\":{\"host\":\"evil.test\"}"),
		ANSWER(0, 1, "\"pass\",\"set\":{\"content-length\":\"1\"}"),
		ANSWER(0, 1, "\"pass\",\"set\":{\"transfer-encoding\":\"chunked\"}"),
		ANSWER(0, 1, "\"pass\",\"set\":{\"connection\":\"close\"}"),
		ANSWER(0, 1, "\"pass\",\"set\":{\"te\":\"trailers\"}"),
		ANSWER(0, 1, "\"pass\",\"set\":{\"upgrade\":\"websocket\"}"),
		ANSWER(0, 1, "\"pass\",\"set\":{\"expect\":\"100-continue\"}"),
		ANSWER(0, 1, "\"pass\",\"set\":{\"trailer\":\"x\"}"),
		ANSWER(0, 1, "\"pass\",\"set\":{\"proxy-anything\":\"x\"}"),
		ANSWER(0, 1, "\"pass\",\"set\":{\"X-Cage-Reason\":\"x\"}"),
		ANSWER(0, 1, "\"pass\",\"set\":{\"X_HTTP-Method-Override\":\"DELETE\"}"),
	};
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct rig *r = rig_new(POLICY(PROGRAM));
		struct request *q[] = {ask(r, 0), NULL};
		if (feed(r, slice_str(lines[i])) != CAGE_EPROTO)
			fail_msg("taken for an answer: %s", lines[i]);
		assert_int_equal(chain_verdict(q[0]->run), CHAIN_HOLD);
		external_lost(r->talk);
		assert_unavailable(q[0], external_why(r->talk));
		assert_memory_equal(external_why(r->talk), WRONG(""), sizeof(WRONG("")) - 1);
		rig_free(r);
	}
}

static void what_is_wrong_is_said(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{"hello\n", WRONG("not JSON")},
		{"[]\n", WRONG("not an object of JSON")},
		{"{\"verdict\":\"pass\"}\n", WRONG("no id")},
		{"{\"id\":\"" ID(0, 1) "\"}\n", WRONG("no verdict")},
		{"{\"id\":1,\"verdict\":\"pass\"}\n", WRONG("an id that is no text")},
		{ANSWER(0, 2, "\"pass\""), WRONG("an id that nobody was given")},
		{ANSWER(0, 1, "\"open\""), WRONG("unknown verdict")},
		{ANSWER(0, 1, "\"pass\",\"verdict\":\"pass\""), WRONG("a key twice")},
		{ANSWER(0, 1, "\"pass\",\"more\":1"), WRONG("unknown key")},
		{ANSWER(0, 1, "\"pass\",\"note\":1"), WRONG("a note that is no text")},
		{ANSWER(0, 1, "\"pass\",\"remove\":[\"Host\"]"), WRONG("remove has a field that may not be changed")},
		{ANSWER(0, 1, "\"pass\",\"set\":{\"x\":1}"),
		 WRONG("set has a field that may not be changed, or a wrong value")},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct rig *r = rig_new(POLICY(PROGRAM));
		struct request *q = ask(r, 0);
		assert_int_equal(feed(r, slice_str(cases[i][0])), CAGE_EPROTO);
		external_lost(r->talk);
		assert_unavailable(q, cases[i][1]);
		rig_free(r);
	}
}

static void only_the_first_answer_changes_fields(void **state)
{
	(void)state;
	struct rig *r = rig_new(POLICY(PROGRAM));
	struct request *q = ask(r, 0);
	answer(r, PASS(0, 1));
	assert_int_equal(chain_end(q->run, NULL, 0), CHAIN_HOLD);
	assert_int_equal(feed(r, SLICE(ANSWER(0, 1, "\"pass\",\"set\":{}"))), CAGE_EPROTO);
	assert_string_equal(external_why(r->talk), WRONG("changes after the first answer"));
	rig_free(r);
}

static void a_line_has_an_end(void **state)
{
	(void)state;
	struct rig *r = rig_new(POLICY(PROGRAM));
	char *line = malloc(LIMIT_EXTERNAL_LINE + 1);
	assert_non_null(line);
	memset(line, ' ', LIMIT_EXTERNAL_LINE + 1);
	ask(r, 0);
	assert_int_equal(feed(r, slice_of(line, LIMIT_EXTERNAL_LINE)), CAGE_AGAIN);
	assert_int_equal(feed(r, slice_of(line, LIMIT_EXTERNAL_LINE + 1)), CAGE_EPROTO);
	assert_string_equal(external_why(r->talk), WRONG("too long"));
	free(line);
	rig_free(r);
}

/* ---- no answer ---- */

static void losing_the_program_blocks_all_that_waits(void **state)
{
	(void)state;
	struct rig *r = rig_new(POLICY(PROGRAM));
	struct request *waits = ask(r, 0), *between = ask(r, 1);
	answer(r, PASS(1, 2));
	external_lost(r->talk);
	assert_unavailable(waits, "it has ended");
	assert_int_equal(waits->resumed, 1);
	assert_int_equal(between->resumed, 1);
	struct request *q = begin(r, 2, "https://api.test/");
	assert_int_equal(chain_head(q->run), CHAIN_BLOCK);
	/* The next program knows nothing of what the first was shown. */
	external_open(r->talk);
	said(r);
	assert_int_equal(chain_body(between->run, SLICE("a")), CHAIN_BLOCK);
	assert_blocked(between, REASON_EXTERNAL_UNAVAILABLE);
	assert_int_equal(r->said_len, 0);
	q = ask(r, 2);
	assert_int_equal(feed(r, SLICE(PASS(2, 3))), CAGE_OK);
	assert_int_equal(chain_verdict(q->run), CHAIN_PASS);
	rig_free(r);
}

static void a_program_that_says_nothing_is_given_up(void **state)
{
	(void)state;
	struct rig *r = rig_new(POLICY(PROGRAM));
	assert_int_equal(external_deadline_us(r->talk), 0);
	ask(r, 0);
	assert_int_equal(external_deadline_us(r->talk), 3 * SECOND);
	r->now_us = 3 * SECOND - 1;
	assert_true(external_expire(r->talk));
	r->now_us = 3 * SECOND;
	assert_false(external_expire(r->talk));
	assert_string_equal(external_why(r->talk), "it does not answer");
	rig_free(r);
}

static void one_slow_answer_does_not_hurt_the_others(void **state)
{
	(void)state;
	struct rig *r = rig_new(POLICY(PROGRAM));
	struct request *slow = ask(r, 0);
	r->now_us += SECOND;
	struct request *quick = ask(r, 1);
	answer(r, PASS(1, 2));
	assert_int_equal(chain_end(quick->run, NULL, 0), CHAIN_HOLD);
	said(r);
	r->now_us += SECOND;
	assert_true(external_expire(r->talk));
	assert_unavailable(slow, "it does not answer");
	expect_said(r, CANCEL(0, 1));
	assert_int_equal(chain_verdict(quick->run), CHAIN_HOLD);
	assert_int_equal(external_deadline_us(r->talk), 4 * SECOND);
	answer(r, PASS(0, 1) PASS(1, 2)); /* too late, and in time */
	assert_int_equal(chain_verdict(quick->run), CHAIN_PASS);
	assert_int_equal(slow->resumed, 1);
	rig_free(r);
}

static void each_answer_has_its_own_time(void **state)
{
	(void)state;
	struct rig *r = rig_new(POLICY(PROGRAM));
	struct request *q = ask(r, 0);
	answer(r, PASS(0, 1));
	assert_int_equal(chain_body(q->run, SLICE("a")), CHAIN_HOLD);
	assert_int_equal(chain_body(q->run, SLICE("b")), CHAIN_HOLD);
	r->now_us += SECOND;
	answer(r, PASS(0, 1));
	assert_int_equal(external_deadline_us(r->talk), r->now_us + 2 * SECOND);
	answer(r, PASS(0, 1));
	assert_int_equal(external_deadline_us(r->talk), 0);
	rig_free(r);
}

static void an_early_end_is_a_cancel(void **state)
{
	(void)state;
	struct rig *r = rig_new(POLICY(PROGRAM));
	struct request *q = ask(r, 0);
	said(r);
	chain_finish(&q->run);
	expect_said(r, CANCEL(0, 1));
	answer(r, PASS(0, 1)); /* was on its way */
	assert_int_equal(external_deadline_us(r->talk), 0);
	/* also where no answer is awaited at the moment */
	q = ask(r, 1);
	answer(r, PASS(1, 2));
	said(r);
	chain_finish(&q->run);
	expect_said(r, CANCEL(1, 2));
	rig_free(r);
}

static void what_finds_no_room_is_blocked(void **state)
{
	(void)state;
	struct rig *r = rig_new(POLICY(PROGRAM));
	struct request *q = ask(r, 0);
	answer(r, PASS(0, 1));
	r->has_room = false;
	assert_int_equal(chain_body(q->run, SLICE("a")), CHAIN_BLOCK);
	assert_unavailable(q, "it does not read what it is sent");
	q = begin(r, 1, "https://api.test/");
	assert_int_equal(chain_head(q->run), CHAIN_BLOCK);
	assert_int_equal(external_deadline_us(r->talk), 0);
	rig_free(r);
}

static void so_many_may_wait(void **state)
{
	(void)state;
	struct rig *r = rig_new(POLICY(PROGRAM));
	struct request *many = calloc(LIMIT_EXTERNAL_WAITING, sizeof(*many));
	assert_non_null(many);
	for (size_t i = 0; i < LIMIT_EXTERNAL_WAITING; i++) {
		request_begin(r, &many[i], i, "https://api.test/");
		assert_int_equal(chain_head(many[i].run), CHAIN_HOLD);
	}
	struct request *q = begin(r, 0, "https://api.test/");
	assert_int_equal(chain_head(q->run), CHAIN_BLOCK);
	assert_unavailable(q, "too many requests wait for it");
	for (size_t i = 0; i < LIMIT_EXTERNAL_WAITING; i++)
		request_end(&many[i]);
	free(many);
	ask(r, 1);
	rig_free(r);
}

/* ---- policy ---- */

static void without_a_program_there_is_none(void **state)
{
	(void)state;
	struct rig *r = rig_new("version: 1\nname: t\nrules: [{id: api, hosts: [api.test]}]\n");
	struct request *q = begin(r, 0, "https://api.test/");
	assert_null(external_conf_of(r->f.policy));
	assert_int_equal(chain_head(q->run), CHAIN_PASS);
	assert_int_equal(chain_end(q->run, NULL, 0), CHAIN_PASS);
	assert_int_equal(r->said_len, 0);
	rig_free(r);
	r = rig_new(POLICY(PROGRAM ", action: off"));
	q = begin(r, 0, "https://api.test/");
	assert_null(external_conf_of(r->f.policy));
	assert_int_equal(chain_head(q->run), CHAIN_PASS);
	rig_free(r);
}

static void keys_are_read(void **state)
{
	(void)state;
	struct rig *r = rig_new(POLICY("command: [/bin/true, a b, c], timeout: 250ms, body: false"));
	const struct external_conf *conf = external_conf_of(r->f.policy);
	assert_non_null(conf);
	assert_string_equal(conf->command[0], "/bin/true");
	assert_string_equal(conf->command[1], "a b");
	assert_null(conf->command[3]);
	assert_int_equal(conf->timeout_us, 250000);
	assert_false(conf->body);
	assert_memory_equal(conf->directory, r->f.dir, strlen(r->f.dir));
	rig_free(r);
	r = rig_new(POLICY("socket: x.sock, timeout: 30s"));
	conf = external_conf_of(r->f.policy);
	assert_non_null(conf);
	assert_null(conf->command);
	assert_memory_equal(conf->socket, r->f.dir, strlen(r->f.dir));
	assert_int_equal(conf->timeout_us, 30 * SECOND);
	assert_true(conf->body);
	rig_free(r);
}

static void wrong_keys_are_told_with_their_place(void **state)
{
	(void)state;
	static const char *const cases[][2] = {
		{"timeout: 1s", "6:24: inspectors.external: expected command or socket, got neither"},
		{"command: [/bin/true], socket: /x", "6:24: inspectors.external: expected command or socket, got both"},
		{"command: /bin/true", "6:34: inspectors.external.command: expected a list of a program and its "
				       "arguments, got \"/bin/true\""},
		{"command: [/no/such]",
		 "6:35: inspectors.external.command[0]: can't run \"/no/such\": No such file or directory"},
		{"command: [/usr/bin]",
		 "6:35: inspectors.external.command[0]: can't run \"/usr/bin\": it is not a file"},
		{"socket: /usr/bin",
		 "6:33: inspectors.external.socket: can't connect to \"/usr/bin\": it is not a socket"},
		{"socket: none/x",
		 "6:33: inspectors.external.socket: can't connect to \"none/x\": No such file or directory"},
		{PROGRAM ", timeout: 2",
		 "6:56: inspectors.external.timeout: expected a time such as 500ms or 2s, at most 30 s, got \"2\""},
		{PROGRAM ", timeout: 31s",
		 "6:56: inspectors.external.timeout: expected a time such as 500ms or 2s, at most 30 s, got \"31s\""},
		{PROGRAM ", timeout: 0ms",
		 "6:56: inspectors.external.timeout: expected a time such as 500ms or 2s, at most 30 s, got \"0ms\""},
		{PROGRAM ", body: maybe", "6:53: inspectors.external.body: expected false or true, got \"maybe\""},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f = fixture_new();
		char yaml[512], want[512];
		snprintf(yaml, sizeof(yaml), POLICY("%s"), cases[i][0]);
		snprintf(want, sizeof(want), "policy.yaml:%s", cases[i][1]);
		f.inspectors = chain_read_policy;
		assert_null(fixture_load(&f, yaml));
		fixture_expect_error(&f, want);
		fixture_free(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_goes_step_by_step),
		cmocka_unit_test(large_pieces_are_cut),
		cmocka_unit_test(the_largest_head_fits),
		cmocka_unit_test(answers_come_in_any_order_and_cut_anywhere),
		cmocka_unit_test(blocks_are_as_the_policy_says),
		cmocka_unit_test(flags_go_on_and_done_is_the_end),
		cmocka_unit_test(a_late_block_names_the_body),
		cmocka_unit_test(heads_alone_are_enough_without_body),
		cmocka_unit_test(observing_stops_nothing),
		cmocka_unit_test(fields_are_set_and_removed),
		cmocka_unit_test(wrong_answers_are_wrong),
		cmocka_unit_test(what_is_wrong_is_said),
		cmocka_unit_test(only_the_first_answer_changes_fields),
		cmocka_unit_test(a_line_has_an_end),
		cmocka_unit_test(losing_the_program_blocks_all_that_waits),
		cmocka_unit_test(a_program_that_says_nothing_is_given_up),
		cmocka_unit_test(one_slow_answer_does_not_hurt_the_others),
		cmocka_unit_test(each_answer_has_its_own_time),
		cmocka_unit_test(an_early_end_is_a_cancel),
		cmocka_unit_test(what_finds_no_room_is_blocked),
		cmocka_unit_test(so_many_may_wait),
		cmocka_unit_test(without_a_program_there_is_none),
		cmocka_unit_test(keys_are_read),
		cmocka_unit_test(wrong_keys_are_told_with_their_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
