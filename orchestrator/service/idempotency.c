/* A POST that is sent again, since its answer got lost, is done once: the answer is kept by its key for a day. */
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/text.h"
#include "orchestrator/service/api.h"
#include "orchestrator/service/http_private.h"

static bool key_is_good(const char *key)
{
	size_t n = strlen(key);
	for (size_t i = 0; i < n; i++)
		if (key[i] < '!' || key[i] > '~')
			return false;
	return n > 0 && n <= LIMIT_SERVE_KEY;
}

static void hash_body(struct request *r)
{
	unsigned char digest[SHA256_DIGEST_LENGTH];
	struct slice body = request_body(r);
	struct text t = text_in(r->body_sha, sizeof(r->body_sha) - 1);
	SHA256((const unsigned char *)(body.ptr ? body.ptr : ""), body.len, digest);
	text_put_hex(&t, digest, sizeof(digest));
	r->body_sha[t.len] = '\0';
}

static bool is_under_way(const struct request *r, const char *key)
{
	for (const struct request *other = r->http->requests; other; other = other->next)
		if (other != r && strcmp(other->key, key) == 0)
			return true;
	return false;
}

/* True: the key is known, and it was answered. */
static bool answer_known(struct request *r, const char *key)
{
	struct answer a = {0};
	bool same = false;
	enum store_result result = store_find_answer(r->service->store, key, r->body_sha, &a, &same);
	if (result == STORE_NONE)
		return false;
	if (result != STORE_OK)
		answer_store(r, result);
	else if (!same)
		answer_problem(r, 422, "this Idempotency-Key was used with another body");
	else if (!a.body || !a.body[0])
		answer_problem(r, 410, "the sandbox that was made with this Idempotency-Key is deleted");
	else
		answer_again(r, &a);
	answer_free(&a);
	return true;
}

bool idempotency_begin(struct request *r)
{
	char whole[sizeof(r->key)];
	const char *key = request_field(r, "idempotency-key");
	if (!key)
		return true;
	if (!key_is_good(key)) {
		answer_problem(r, 400, "Idempotency-Key: expected 1 to %d visible ASCII characters", LIMIT_SERVE_KEY);
		return false;
	}
	snprintf(whole, sizeof(whole), "%s %s", r->sandbox, key);
	hash_body(r);
	if (is_under_way(r, whole)) {
		answer_problem(r, 409, "a request with this Idempotency-Key is under way");
		return false;
	}
	if (answer_known(r, whole))
		return false;
	memcpy(r->key, whole, sizeof(whole));
	return true;
}

enum store_result idempotency_keep(struct request *r, int status, const json_t *value, const char *location)
{
	if (!r->key[0])
		return STORE_OK;
	struct answer a = {status, json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(12)),
			   location ? strdup(location) : NULL};
	enum store_result result =
		a.body ? store_keep_answer(r->service->store, r->key, r->body_sha, &a, (int64_t)clock_wall_us())
		       : STORE_FAILED;
	answer_free(&a);
	return result;
}
