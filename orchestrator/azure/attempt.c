/* What is sent with each request, and how long is waited before the next. */
#include "orchestrator/azure/attempt.h"

#include <stdlib.h>
#include <sys/random.h>

#include "core/base/clock.h"
#include "core/base/wipe.h"

/* ---- time ---- */

bool attempt_asked_ms(const char *retry_after, uint64_t *ms)
{
	uint64_t seconds;
	if (!slice_to_u64(slice_str(retry_after), UINT32_MAX, &seconds))
		return false;
	*ms = seconds * 1000 < LIMIT_ARM_WAIT_MS ? seconds * 1000 : LIMIT_ARM_WAIT_MS;
	return true;
}

unsigned attempt_wait_ms(unsigned tries, const char *retry_after)
{
	uint64_t ms = 1000;
	uint16_t chance = 0;
	if (!attempt_asked_ms(retry_after, &ms))
		for (unsigned i = 1; i < tries && ms < LIMIT_ARM_WAIT_MS; i++)
			ms *= 2;
	if (ms > LIMIT_ARM_WAIT_MS)
		ms = LIMIT_ARM_WAIT_MS;
	if (getrandom(&chance, sizeof(chance), GRND_NONBLOCK) != (ssize_t)sizeof(chance))
		chance = UINT16_MAX / 2;
	return (unsigned)(ms + ms * chance / (4ull * UINT16_MAX)); /* never earlier than it was asked for */
}

int attempt_ms_until(uint64_t at_us, int most_ms)
{
	const uint64_t now = clock_mono_us();
	if (now >= at_us)
		return 0;
	const uint64_t ms = (at_us - now) / 1000 + 1;
	return ms < (uint64_t)most_ms ? (int)ms : most_ms;
}

/* ---- one of them ---- */

void attempt_begin(struct attempt *a, const char *method, char *url, char *body, size_t n_body, unsigned most)
{
	*a = (struct attempt){.method = method, .url = url, .body = body, .n_body = n_body, .most = most};
	a->until_us = clock_mono_us() + LIMIT_ARM_TIME_MS * 1000ull;
}

void attempt_send(struct web *w, struct attempt *a, const char *token, const char *ca_file)
{
	struct words headers = {0};
	words_add(&headers, "Authorization: Bearer %s", token);
	if (a->body)
		words_add(&headers, "Content-Type: application/json");
	if (a->coding)
		words_add(&headers, "Content-Encoding: %s", a->coding);
	const struct web_request r = {.method = a->method,
				      .url = a->url,
				      .headers = &headers,
				      .body = a->body ? slice_of(a->body, a->n_body) : SLICE_NONE,
				      .ca_file = ca_file,
				      .most_ms = a->call_ms};
	exchange_begin(w, &a->exchange, &r);
	words_wipe(&headers);
}

bool attempt_rest(struct web *w, struct attempt *a)
{
	a->again_us = clock_mono_us() + attempt_wait_ms(++a->tries, a->exchange.retry_after) * 1000ull;
	if (a->tries >= a->most || a->again_us >= a->until_us)
		return false;
	exchange_free(w, &a->exchange);
	return true;
}

bool attempt_is_due(const struct attempt *a)
{
	return clock_mono_us() >= a->again_us;
}

void attempt_free(struct web *w, struct attempt *a)
{
	exchange_free(w, &a->exchange);
	free(a->url);
	wipe_free(a->body);
	*a = (struct attempt){0};
}
