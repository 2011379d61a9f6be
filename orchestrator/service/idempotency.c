/* A POST that is sent again, since its answer got lost, is done once: the answer is kept by its key for a day. Of a tool
 * call it is kept before it is begun that its outcome is not known, and then what came of it: whoever is killed meanwhile, and however
 * full the disk is, it is begun once. */
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/clock.h"
#include "core/base/text.h"
#include "orchestrator/service/api.h"
#include "orchestrator/service/http_private.h"

struct key {
	struct key *next;
	struct http *http;
	char text[LIMIT_SANDBOX + 1 + LIMIT_SERVE_KEY + 1]; /* with the sandbox that it is for */
	char body_sha[65];
};

void key_drop(struct key **k)
{
	if (!*k)
		return;
	struct key **at = &(*k)->http->keys;
	while (*at && *at != *k)
		at = &(*at)->next;
	if (*at)
		*at = (*k)->next;
	free(*k);
	*k = NULL;
}

static bool key_is_good(const char *key)
{
	size_t n = strlen(key);
	for (size_t i = 0; i < n; i++)
		if (key[i] < '!' || key[i] > '~')
			return false;
	return n > 0 && n <= LIMIT_SERVE_KEY;
}

static void hash_body(struct request *r, struct key *k)
{
	unsigned char digest[SHA256_DIGEST_LENGTH];
	struct slice body = request_body(r);
	struct text t = text_in(k->body_sha, sizeof(k->body_sha) - 1);
	SHA256((const unsigned char *)(body.ptr ? body.ptr : ""), body.len, digest);
	text_put_hex(&t, digest, sizeof(digest));
	k->body_sha[t.len] = '\0';
}

static bool is_under_way(const struct key *k)
{
	for (const struct key *other = k->http->keys; other; other = other->next)
		if (strcmp(other->text, k->text) == 0)
			return true;
	return false;
}

/* True: the key is known, and it was answered. */
static bool answer_known(struct request *r, const struct key *k)
{
	struct answer a = {0};
	bool same = false;
	enum store_result result = store_find_answer(r->service->store, k->text, k->body_sha, &a, &same);
	if (result == STORE_NONE)
		return false;
	if (result != STORE_OK)
		answer_store(r, result);
	else if (!same)
		answer_problem(r, 422, "this Idempotency-Key was used with another body");
	else if (!a.body || !a.body[0])
		answer_problem(r, 410, "what was made with this Idempotency-Key is deleted");
	else
		answer_again(r, &a);
	answer_free(&a);
	return true;
}

static void answer_under_way(struct request *r)
{
	answer_told(r, &(struct problem){409, "urn:cage:problem:idempotency-key-under-way", NULL,
					 "a request with this Idempotency-Key is under way; ask again for its answer"});
}

bool idempotency_begin(struct request *r)
{
	const char *given = request_field(r, "idempotency-key");
	if (!given)
		return true;
	if (!key_is_good(given)) {
		answer_problem(r, 400, "Idempotency-Key: expected 1 to %d visible ASCII characters", LIMIT_SERVE_KEY);
		return false;
	}
	struct key *k = calloc(1, sizeof(*k));
	if (!k) {
		answer_problem(r, 503, "no memory");
		return false;
	}
	k->http = r->http;
	snprintf(k->text, sizeof(k->text), "%s %s", r->sandbox, given);
	hash_body(r, k);
	bool is_taken = is_under_way(k);
	if (is_taken || answer_known(r, k)) {
		if (is_taken)
			answer_under_way(r);
		free(k);
		return false;
	}
	k->next = r->http->keys;
	r->http->keys = r->key = k;
	return true;
}

enum store_result idempotency_keep(const struct key *k, int status, const json_t *value, const char *location)
{
	if (!k)
		return STORE_OK;
	struct answer a = {status, json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(12)),
			   location ? strdup(location) : NULL};
	struct store *store = k->http->service->store;
	enum store_result result =
		a.body ? store_keep_answer(store, k->text, k->body_sha, &a, (int64_t)clock_wall_us()) : STORE_FAILED;
	answer_free(&a);
	return result;
}

enum store_result idempotency_mark(const struct key *k, const char *instance)
{
	static const struct problem unknown = {
		409, "urn:cage:problem:outcome-unknown", NULL,
		"a request with this Idempotency-Key was begun, and its outcome is not known; it "
		"is not done again"};
	json_t *answer = k ? problem_json(&unknown, instance) : NULL;
	enum store_result result = !k       ? STORE_OK
				   : answer ? idempotency_keep(k, unknown.status, answer, NULL)
					    : STORE_FAILED;
	json_decref(answer);
	return result;
}

void idempotency_unmark(const struct key *k)
{
	if (k)
		store_forget_answer(k->http->service->store, k->text);
}
