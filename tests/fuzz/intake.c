/* A request of the gateway's intake, in pieces whose length the first byte says. Promises: it comes to the same however it is cut; what
 * is refused has a status and a reason; what is asked for has an id, a token and an owner that name nothing but themselves; and nothing
 * is asked of who has shown no token but whether we are there. */
#include "orchestrator/gateway/ask.h"
#include "tests/fuzz/fuzz.h"

static bool is_over(const struct request *r)
{
	return r->state == REQUEST_WHOLE || r->state == REQUEST_BAD;
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* As a connection does it: what was not taken is there again, with more behind it. */
static void feed(struct request *r, struct slice input, size_t piece)
{
	size_t there = smaller(piece, input.len);
	request_init(r);
	while (!is_over(r)) {
		const enum request_state before = r->state;
		struct slice given = fuzz_copy(slice_head(input, there));
		const size_t used = request_take(r, given);
		fuzz_free(&given);
		PROMISE(used <= there);
		input = slice_from(input, used);
		there -= used;
		if (r->state == REQUEST_HEADED)
			request_go_on(r);
		else if (used == 0 && r->state == before && there == input.len)
			return; /* it waits for more than there is */
		else if (used == 0 && r->state == before)
			there = smaller(there + piece, input.len);
	}
}

static void check_word(const char *text, size_t least, size_t most)
{
	const size_t n = strlen(text);
	PROMISE(n >= least && n <= most && !strpbrk(text, "/:?# \r\n"));
}

static void check_ask(const struct ask *a)
{
	if (a->kind != ASK_HEALTH && a->kind != ASK_LIST) {
		check_word(a->id, 1, LIMIT_SANDBOX);
		PROMISE(a->id[0] != '.');
	}
	check_word(a->owner, 0, LIMIT_SANDBOX);
	if (a->kind == ASK_PUT) {
		check_word(a->token, LIMIT_SANDBOX_TOKEN_MIN, LIMIT_SANDBOX_TOKEN);
		PROMISE(!a->policy || strlen(a->policy) <= LIMIT_GATEWAY_POLICY);
	}
}

static void check_whole(const struct request *r, bool is_known)
{
	struct ask a;
	const struct ask_fault fault = ask_read(r, is_known, &a);
	PROMISE(fault.status == 0 ? !fault.why : fault.status >= 400 && fault.status < 500 && fault.why);
	PROMISE(is_known || (fault.status == 0 && a.kind == ASK_HEALTH));
	if (fault.status == 0)
		check_ask(&a);
	ask_free(&a);
}

static void check_same(const struct request *a, const struct request *b)
{
	PROMISE(a->state == b->state); /* of two faults, either may be met first */
	if (a->state != REQUEST_WHOLE)
		return;
	PROMISE(slice_eq(a->head.method, b->head.method) && slice_eq(a->head.target, b->head.target));
	PROMISE(a->len == b->len && (a->len == 0 || memcmp(a->body, b->body, a->len) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice input = slice_of(data, size);
	const size_t piece = 1 + (size_t)fuzz_number(&input, 1);
	struct request whole, cut;
	feed(&whole, input, input.len + 1);
	feed(&cut, input, piece);
	check_same(&whole, &cut);
	PROMISE(whole.state != REQUEST_BAD || (whole.status >= 400 && whole.status < 500 && whole.why));
	if (whole.state == REQUEST_WHOLE) {
		check_whole(&whole, true);
		check_whole(&whole, false);
	}
	request_free(&whole);
	request_free(&cut);
	return 0;
}
