/* SOCKS5 from the client. Promises: the pieces in which the bytes arrive change nothing. No target comes without a good
 * password where one is required. What waits for more never waits for more than the longest message. A name is a part
 * of the input, and an address is what host_parse() reads as the same address.
 *
 * Input: one byte with two bits (identity is required; the password is good), then what the client says. */
#include "core/http/socks5.h"
#include "core/http/url.h"
#include "tests/fuzz/fuzz.h"

#define STEPS 8 /* more than any conversation has */

enum { NEEDS_IDENTITY = 1, PASSWORD_IS_GOOD = 2 };

/* All that was said. */
struct talk {
	enum socks5_event events[STEPS];
	size_t n_events, used;
	struct slice host; /* a copy */
	uint16_t port;
	enum reason reason;
};

static void host_must_be_right(const struct socks5_step *step, struct slice input)
{
	struct arena arena;
	struct host host;
	struct addr a = {.family = ADDR_V4};
	const char *why;
	const char *end = input.ptr + step->used - 2;
	PROMISE(step->port != 0 && step->host.len >= 1 && step->host.len <= 255);
	if (input.ptr[3] == 3) {
		PROMISE(step->host.ptr + step->host.len == end && step->host.ptr == input.ptr + 5);
		return;
	}
	a.family = input.ptr[3] == 1 ? ADDR_V4 : ADDR_V6;
	memcpy(a.bytes, input.ptr + 4, (size_t)(end - input.ptr) - 4);
	arena_init(&arena, 4096);
	PROMISE(step->host_is_printable && host_parse(step->host, &arena, &host, &why) == CAGE_OK);
	PROMISE(host.kind == HOST_ADDRESS && addr_eq(&host.addr, &a));
	arena_free(&arena);
}

static void printable_must_be_right(const struct socks5_step *step)
{
	bool is_printable = true;
	for (size_t i = 0; i < step->host.len; i++)
		is_printable = is_printable && step->host.ptr[i] > ' ' && step->host.ptr[i] < 0x7f;
	PROMISE(is_printable == step->host_is_printable);
}

/* True: there may be more in what has arrived. */
static bool take_step(struct talk *t, struct socks5 *s, uint64_t choice, struct slice arrived)
{
	struct socks5_step step;
	struct slice input = slice_from(arrived, t->used);
	enum socks5_event event = socks5_read(s, input, &step);
	PROMISE(step.used <= input.len && step.used <= SOCKS5_MESSAGE && step.answer.len <= 10);
	if (event == SOCKS5_MORE) {
		PROMISE(step.used == 0 && (s->state == SOCKS5_OVER || input.len < SOCKS5_MESSAGE));
		return false;
	}
	PROMISE(t->n_events < STEPS);
	t->events[t->n_events++] = event;
	t->reason = step.reason;
	PROMISE((event == SOCKS5_REFUSE) == (step.reason != REASON_NONE && step.what));
	if (event == SOCKS5_IDENTITY)
		PROMISE(socks5_judge(s, choice & PASSWORD_IS_GOOD).len == 2);
	if (event == SOCKS5_CONNECT) {
		host_must_be_right(&step, input);
		printable_must_be_right(&step);
		t->host = fuzz_copy(step.host);
		t->port = step.port;
	}
	t->used += event == SOCKS5_REFUSE ? 0 : step.used;
	return true;
}

/* size: of each piece that arrives. */
static struct talk run(uint64_t choice, struct slice input, size_t size)
{
	struct talk t = {.n_events = 0};
	struct socks5 s = {.needs_identity = choice & NEEDS_IDENTITY};
	for (size_t n = 0; n < input.len;) {
		n = input.len - n > size ? n + size : input.len;
		struct slice arrived = fuzz_copy(slice_head(input, n));
		while (take_step(&t, &s, choice, arrived))
			;
		fuzz_free(&arrived);
	}
	return t;
}

static bool has(const struct talk *t, enum socks5_event event)
{
	for (size_t i = 0; i < t->n_events; i++)
		if (t->events[i] == event)
			return true;
	return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice input = slice_of(data, size);
	uint64_t choice = fuzz_number(&input, 1);
	input = slice_head(input, 2 * SOCKS5_MESSAGE);
	struct talk whole = run(choice, input, SIZE_MAX), pieces = run(choice, input, 1 + (size_t)(choice >> 2));
	PROMISE(whole.n_events == pieces.n_events && whole.used == pieces.used);
	PROMISE(memcmp(whole.events, pieces.events, sizeof(whole.events)) == 0);
	PROMISE(slice_eq(whole.host, pieces.host) && whole.port == pieces.port && whole.reason == pieces.reason);
	if (has(&whole, SOCKS5_CONNECT) && (choice & NEEDS_IDENTITY))
		PROMISE(has(&whole, SOCKS5_IDENTITY));
	if (has(&whole, SOCKS5_IDENTITY) && !(choice & PASSWORD_IS_GOOD))
		PROMISE(!has(&whole, SOCKS5_CONNECT));
	fuzz_free(&whole.host);
	fuzz_free(&pieces.host);
	return 0;
}
