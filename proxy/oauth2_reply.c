/* What a token service answers: an object of JSON with a token in it and its life. */
#include <malloc.h>
#include <openssl/crypto.h>
#include <stdlib.h>

#include "core/http/chars.h"
#include "proxy/oauth2_private.h"

/* ---- JSON that carries secrets ---- */

static void free_cleansed(void *p)
{
	if (p)
		OPENSSL_cleanse(p, malloc_usable_size(p));
	free(p);
}

/* Jansson frees with this from now on; what it did before is put in *before. */
static void begin_cleansing(json_free_t *before)
{
	json_malloc_t allocate;
	json_get_alloc_funcs(&allocate, before);
	json_set_alloc_funcs(allocate, free_cleansed);
}

static void end_cleansing(json_free_t before)
{
	json_malloc_t allocate;
	json_free_t ours;
	json_get_alloc_funcs(&allocate, &ours);
	json_set_alloc_funcs(allocate, before);
}

json_t *secret_json_load(struct slice text)
{
	json_free_t before;
	begin_cleansing(&before);
	json_t *json = json_loadb(text.ptr, text.len, JSON_REJECT_DUPLICATES, NULL);
	if (json && !json_is_object(json)) {
		json_decref(json);
		json = NULL;
	}
	end_cleansing(before);
	return json;
}

void secret_json_free(json_t **json)
{
	json_free_t before;
	begin_cleansing(&before);
	json_decref(*json);
	end_cleansing(before);
	*json = NULL;
}

struct slice secret_json_text(const json_t *object, const char *name)
{
	const json_t *value = json_object_get(object, name);
	return json_is_string(value) ? slice_of(json_string_value(value), json_string_length(value)) : SLICE_NONE;
}

/* ---- the answer ---- */

/* It is going to stand in a field, and to be looked for in responses. */
static bool is_token(struct slice s)
{
	return s.len >= LIMIT_SECRET_VALUE_MIN && s.len <= LIMIT_SECRET_VALUE && char_span(s, CHAR_TARGET) == s.len;
}

/* A number, which some services write as a string. */
static bool read_life(const json_t *object, uint64_t *seconds)
{
	const json_t *value = json_object_get(object, "expires_in");
	*seconds = LIMIT_TOKEN_LIFE_DEFAULT_S;
	if (!value || json_is_null(value))
		return true;
	if (json_is_string(value))
		return slice_to_u64(secret_json_text(object, "expires_in"), INT64_MAX, seconds);
	if (!json_is_number(value) || json_number_value(value) < 0)
		return false;
	double life = json_number_value(value);
	*seconds = life < LIMIT_TOKEN_LIFE_S ? (uint64_t)life : LIMIT_TOKEN_LIFE_S;
	return true;
}

const char *token_reply_read(struct slice body, struct token_reply *out)
{
	*out = (struct token_reply){.json = secret_json_load(body)};
	if (!out->json)
		return "the token service's answer is not a JSON object";
	out->token = secret_json_text(out->json, "access_token");
	if (out->token.len == 0)
		out->token = secret_json_text(out->json, "id_token"); /* for an audience, from Google */
	const char *fault = NULL;
	if (!is_token(out->token))
		fault = "the token service's answer has no token that can be used";
	else if (!read_life(out->json, &out->life_s))
		fault = "the token service's answer has no life of the token that can be read";
	if (fault)
		token_reply_free(out);
	return fault;
}

void token_reply_free(struct token_reply *r)
{
	secret_json_free(&r->json);
	r->token = SLICE_NONE;
}
