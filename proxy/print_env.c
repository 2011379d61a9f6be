/* Names and placeholders of a policy's secrets. Nothing is said about their values: whether there are any is not looked at. */
#include "proxy/print_env.h"

#include <openssl/crypto.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "core/base/text.h"
#include "core/proc/key_file.h"
#include "core/proc/placeholder.h"
#include "proxy/roster.h"

#define DIR_ROOM 4096

static bool print_secret(const struct policy_secret *s, struct slice sandbox, const unsigned char key[PLACEHOLDER_KEY])
{
	char line[LIMIT_SECRET_NAME + 1 + LIMIT_PLACEHOLDER], room[PLACEHOLDER_RANDOM];
	struct text t = text_in(line, sizeof(line));
	struct slice placeholder = placeholder_of(s, sandbox, key, room);
	placeholder_variable(s, &t);
	text_put_char(&t, '=');
	text_put(&t, placeholder);
	return placeholder.ptr && text_ok(&t) && printf("%.*s\n", (int)t.len, line) > 0;
}

static int print_all(const struct policy *p, const struct options *options)
{
	unsigned char key[PLACEHOLDER_KEY];
	char dir[DIR_ROOM];
	if (!key_dir_path(options->ca_dir, dir, sizeof(dir))) {
		say("no place for the key of placeholders: give --ca-dir");
		return 2;
	}
	if (!placeholder_key_load(options->keys, dir, key))
		return 2;
	bool ok = true;
	for (size_t i = 0; i < p->n_secrets && ok; i++)
		ok = print_secret(&p->secrets[i], slice_str(options->sandbox), key);
	OPENSSL_cleanse(key, sizeof(key));
	return ok && fflush(stdout) == 0 ? 0 : 1;
}

int print_env(const struct options *options)
{
	struct policy_errors *errs = calloc(1, sizeof(*errs));
	struct arena arena;
	if (!errs)
		return 1;
	char own[DIR_ROOM];
	const char *path = options->policy;
	if (options->sandboxes && roster_policy_path(options->sandboxes, options->sandbox, own, sizeof(own)))
		path = own;
	arena_init(&arena, LIMIT_POLICY_REGION);
	const struct policy *p = policy_load(path, &arena, clock_wall_s(), NULL, errs);
	int code = 2;
	if (p)
		code = print_all(p, options);
	else
		policy_errors_print(errs, STDERR_FILENO);
	arena_free(&arena);
	free(errs);
	return code;
}
