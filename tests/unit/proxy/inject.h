/* What the tests of inject share: secrets with all kinds of slots, and their values. */
#ifndef CAGE_TESTS_UNIT_PROXY_INJECT_H
#define CAGE_TESTS_UNIT_PROXY_INJECT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/base/limits.h"
#include "proxy/inject.h"

enum { ONE, TWO, LONGER, PATH, SIGNED, N_SECRETS };

static struct slice headers[] = {WORD("authorization"), WORD("x-api-key"), WORD("cookie"), WORD("proxy-authorization"),
				 WORD("host")};
static struct slice queries[] = {WORD("key"), WORD("api key")};

#define ALL_HEADERS .headers = headers, .n_headers = sizeof(headers) / sizeof(headers[0])

static struct policy_secret policy_secrets[N_SECRETS] = {
	[ONE] = {.id = WORD("one"), ALL_HEADERS, .queries = queries, .n_queries = 2, .in_body = true},
	[TWO] = {.id = WORD("two"), ALL_HEADERS, .in_body = true, .use = SECRET_CREDENTIALS},
	[LONGER] = {.id = WORD("longer"), .headers = headers, .n_headers = 1, .in_body = true},
	[PATH] = {.id = WORD("path"), .in_path = true},
	[SIGNED] = {.id = WORD("signed"), ALL_HEADERS, .in_path = true, .in_body = true, .use = SECRET_SIGV4},
};

static const struct inject_secret secrets[N_SECRETS] = {
	[ONE] = {&policy_secrets[ONE], WORD("{{KEY_ONE}}")},
	[TWO] = {&policy_secrets[TWO], WORD("{{KEY+TWO}}")},
	[LONGER] = {&policy_secrets[LONGER], WORD("{{KEY_ONE}}/b")},
	[PATH] = {&policy_secrets[PATH], WORD("{{A/TOKEN}}")},
	[SIGNED] = {&policy_secrets[SIGNED], WORD("{{AWS_KEY}}")},
};

static const struct slice values[N_SECRETS] = {
	[ONE] = WORD("sk-1/\"\\&= %"), [TWO] = WORD("token-two"),        [LONGER] = WORD("longer-value"),
	[PATH] = WORD("../a?b;c"),     [SIGNED] = WORD("aws-key-value"),
};

#endif
