/* Which creates can be given a room that stands: those that ask for the same room. Command, files, variables, labels, keep, tools,
 * and the bounds that the service and the keeper hold, are given to it later. */
#include <openssl/evp.h>
#include <stdio.h>
#include <string.h>

#include "orchestrator/service/seal.h"
#include "orchestrator/service/warm_private.h"

static void copy(json_t *to, const json_t *from, const char *const *keys)
{
	for (; *keys; keys++)
		if (json_object_get(from, *keys))
			json_object_set(to, *keys, json_object_get(from, *keys));
}

json_t *warm_shape(const json_t *full, const json_t *spec)
{
	static const char *const asked[] = {"network", "policy", NULL};
	static const char *const made[] = {"backend", "rootfs", "secrets", NULL};
	static const char *const limits[] = {"cpu", "memory", "pids", "disk", "egress_bytes", NULL};
	json_t *shape = json_object(), *bounds = json_object();
	copy(shape, full, asked);
	copy(shape, spec, made);
	copy(bounds, json_object_get(spec, "limits"), limits);
	json_object_set_new(shape, "limits", bounds);
	return shape;
}

/* ---- content ---- */

static bool add_secrets(const struct config *c, const json_t *spec, EVP_MD_CTX *ctx)
{
	size_t i;
	json_t *id;
	bool ok = true;
	json_array_foreach(json_object_get(spec, "secrets"), i, id)
	{
		struct seal_value value;
		ok = ok && seal_read(c->state, json_string_value(id), &value) == SEAL_FOUND &&
		     EVP_DigestUpdate(ctx, &value.len, sizeof(value.len)) &&
		     EVP_DigestUpdate(ctx, value.bytes, value.len);
		seal_value_wipe(&value);
		if (!ok)
			break;
	}
	return ok;
}

bool warm_content(const struct config *c, const json_t *spec, const struct policy_facts *facts, char out[WARM_CONTENT])
{
	unsigned char sum[EVP_MAX_MD_SIZE];
	unsigned n = 0;
	EVP_MD_CTX *ctx = EVP_MD_CTX_new();
	bool ok = ctx && EVP_DigestInit_ex(ctx, EVP_sha256(), NULL) &&
		  EVP_DigestUpdate(ctx, facts->sha, sizeof(facts->sha)) && add_secrets(c, spec, ctx) &&
		  EVP_DigestFinal_ex(ctx, sum, &n);
	EVP_MD_CTX_free(ctx);
	for (unsigned i = 0; ok && i < n && 2 * i + 2 < WARM_CONTENT; i++)
		snprintf(out + 2 * (size_t)i, 3, "%02x", sum[i]);
	return ok;
}

/* ---- what can be given later ---- */

/* Each is one message to cage-inside, with its name. */
static bool variables_fit(const json_t *env)
{
	const char *name;
	json_t *value;
	json_object_foreach((json_t *)env, name, value)
	{
		if (strlen(name) + 1 + json_string_length(value) > LIMIT_INSIDE_FRAME)
			return false;
	}
	return true;
}

/* The kernel ends a room some time after the lifetime that it was made for. */
bool warm_fits(const struct warm_pool *p, const json_t *spec)
{
	const json_t *life = json_object_get(spec, "lifetime_seconds");
	return json_integer_value(life) <= json_integer_value(json_object_get(p->spec, "lifetime_seconds")) &&
	       json_array_size(json_object_get(spec, "publish")) == 0 && !json_object_get(spec, "image") &&
	       variables_fit(json_object_get(spec, "env"));
}
