/* A token from the wish for one to its end. How it is come by: token_request.c, token_az.c. */
#include "orchestrator/azure/token_private.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/wipe.h"

const char *token_env(const char *name)
{
	const char *value = getenv(name);
	return value && value[0] ? value : NULL;
}

/* ---- states ---- */

static enum azure_credentials choose(const struct token *t)
{
	if (t->options->credentials != CREDENTIALS_AUTO)
		return t->options->credentials;
	if (token_env("AZURE_CLIENT_SECRET"))
		return CREDENTIALS_SECRET;
	return token_env("AZURE_FEDERATED_TOKEN_FILE") ? CREDENTIALS_WORKLOAD : CREDENTIALS_IDENTITY;
}

static void end(struct token *t, enum token_state how, const char *why)
{
	static const char *const asked[] = {[CREDENTIALS_AUTO] = "the machine's identity",
					    [CREDENTIALS_SECRET] = "a client's secret",
					    [CREDENTIALS_WORKLOAD] = "a workload's identity",
					    [CREDENTIALS_IDENTITY] = "the machine's identity",
					    [CREDENTIALS_AZ] = "az"};
	const bool is_auto = t->options->credentials == CREDENTIALS_AUTO;
	t->state = how;
	snprintf(t->why, sizeof(t->why), "no token for %s by %s%s: %s", t->resource, asked[choose(t)],
		 is_auto ? " (credentials auto)" : "", why);
}

void token_fail(struct token *t, const char *why)
{
	end(t, TOKEN_FAILED, why);
}

void token_refuse(struct token *t, const char *why)
{
	end(t, TOKEN_REFUSED, why);
}

/* Whoever writes it, seconds are an integer, or one in a string. */
static uint64_t seconds_of(const json_t *value)
{
	uint64_t n = 0;
	if (json_is_integer(value))
		return json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
	if (json_is_string(value) && slice_to_u64(slice_str(json_string_value(value)), UINT32_MAX, &n))
		return n;
	return 0;
}

/* az tells an end and no duration: it is asked again after a while, and then has another if it is time. */
bool token_take(struct token *t, struct slice bytes, const char *key, uint64_t seconds)
{
	json_t *answer = json_loadb(bytes.ptr, bytes.len, 0, NULL);
	const json_t *token = json_object_get(answer, key), *life = json_object_get(answer, "expires_in");
	const size_t len = json_string_length(token);
	bool is_good = len > 0 && len < LIMIT_ARM_TOKEN &&
		       strspn(json_string_value(token),
			      "!#$%&'()*+,-./"
			      "0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[]^_`abcdefghijklmnopqrstuvwxyz{|}~") == len;
	if (is_good) {
		t->text = malloc(len + 1);
		is_good = t->text != NULL;
	}
	if (is_good) {
		memcpy(t->text, json_string_value(token), len + 1);
		explicit_bzero((char *)json_string_value(token), len);
		if (life)
			seconds = seconds_of(life);
		t->until_us =
			clock_mono_us() +
			(seconds > 2 * LIMIT_ARM_TOKEN_EARLY_S ? seconds - LIMIT_ARM_TOKEN_EARLY_S : seconds / 2) *
				1000000ull;
		t->state = TOKEN_HELD;
	}
	json_decref(answer);
	return is_good;
}

/* ---- from outside ---- */

static void ask(struct token *t, struct web *w)
{
	switch (choose(t)) {
	case CREDENTIALS_SECRET:
		token_ask_authority(t, w, true);
		return;
	case CREDENTIALS_WORKLOAD:
		token_ask_authority(t, w, false);
		return;
	case CREDENTIALS_AZ:
		token_ask_az(t);
		return;
	case CREDENTIALS_AUTO:
	case CREDENTIALS_IDENTITY:
		token_ask_identity(t, w);
		return;
	}
}

void token_want(struct token *t, struct web *w)
{
	if (t->state == TOKEN_HELD && clock_mono_us() >= t->until_us)
		token_drop(t);
	if (t->state == TOKEN_NONE || t->state == TOKEN_FAILED || t->state == TOKEN_REFUSED)
		ask(t, w);
}

void token_drop(struct token *t)
{
	if (t->text) {
		wipe_free(t->last);
		t->last = t->text;
	}
	t->text = NULL;
	if (t->state == TOKEN_HELD)
		t->state = TOKEN_NONE;
}

void token_free(struct token *t, struct web *w)
{
	token_drop(t);
	wipe_free(t->last);
	t->last = NULL;
	exchange_free(w, &t->exchange);
	t->state = TOKEN_NONE;
}
