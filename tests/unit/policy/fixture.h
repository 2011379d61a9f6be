/* A policy in a directory of its own: write files, load, look at the errors, ask for decisions. */
#ifndef CAGE_TESTS_POLICY_FIXTURE_H
#define CAGE_TESTS_POLICY_FIXTURE_H

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/policy/policy.h"

#define HEAD "version: 1\nname: t\n" /* two lines: what follows starts in line 3 */
#define NOW 1800000000               /* 2027-01-15 */

struct fixture {
	char dir[32];
	struct arena arena;
	struct policy_errors *errs;
	struct policy *policy;
	int64_t now;
	policy_inspectors_reader *inspectors; /* NULL: that section is not read */
	policy_value_reader *values;          /* NULL: values of secrets are not read */
};

static inline struct fixture fixture_new(void)
{
	struct fixture f = {.dir = "/tmp/cage-policy-XXXXXX", .now = NOW};
	assert_non_null(mkdtemp(f.dir));
	arena_init(&f.arena, LIMIT_POLICY_REGION);
	f.errs = calloc(1, sizeof(*f.errs));
	assert_non_null(f.errs);
	return f;
}

static inline int fixture_remove(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static inline void fixture_free(struct fixture *f)
{
	assert_int_equal(nftw(f->dir, fixture_remove, 4, FTW_DEPTH | FTW_PHYS), 0);
	arena_free(&f->arena);
	free(f->errs);
}

static inline void fixture_path(const struct fixture *f, const char *name, char out[128])
{
	snprintf(out, 128, "%s/%s", f->dir, name);
}

static inline void fixture_write(const struct fixture *f, const char *name, struct slice bytes)
{
	char path[128];
	fixture_path(f, name, path);
	FILE *file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fwrite(bytes.ptr, 1, bytes.len, file), bytes.len);
	assert_int_equal(fclose(file), 0);
}

/* Loads what stands in policy.yaml. */
static inline struct policy *fixture_load_file(struct fixture *f)
{
	char path[128];
	fixture_path(f, "policy.yaml", path);
	struct policy_readers readers = {.inspectors = f->inspectors, .value = f->values};
	f->policy = policy_load(path, &f->arena, f->now, &readers, f->errs);
	assert_true(f->policy ? f->errs->n == 0 : f->errs->n > 0);
	return f->policy;
}

static inline struct policy *fixture_load(struct fixture *f, const char *yaml)
{
	fixture_write(f, "policy.yaml", slice_str(yaml));
	return fixture_load_file(f);
}

/* Loads a policy that has to be good, with its inspectors. */
static inline struct fixture fixture_inspected(const char *yaml, policy_inspectors_reader *reader)
{
	struct fixture f = fixture_new();
	f.inspectors = reader;
	if (!fixture_load(&f, yaml))
		policy_errors_print(f.errs, STDERR_FILENO);
	assert_non_null(f.policy);
	return f;
}

static inline struct fixture fixture_good(const char *yaml)
{
	return fixture_inspected(yaml, NULL);
}

/* "file:line:column: text" of an error, without the directory. */
static inline const char *fixture_error(const struct fixture *f, size_t i)
{
	static char text[1024];
	assert_true(i < f->errs->n);
	const struct policy_error *e = &f->errs->list[i];
	const char *slash = strrchr(e->file, '/');
	snprintf(text, sizeof(text), "%.255s:%u:%u: %.511s", slash ? slash + 1 : e->file, e->line, e->column, e->text);
	return text;
}

/* The loaded policy has exactly this one error. */
static inline void fixture_expect_error(const struct fixture *f, const char *error)
{
	if (f->errs->n != 1 || strcmp(fixture_error(f, 0), error) != 0) {
		print_error("expected %s, got %zu errors:\n", error, f->errs->n);
		policy_errors_print(f->errs, STDERR_FILENO);
	}
	assert_int_equal(f->errs->n, 1);
	assert_string_equal(fixture_error(f, 0), error);
}

static inline void expect_error(const char *yaml, const char *error)
{
	struct fixture f = fixture_new();
	assert_null(fixture_load(&f, yaml));
	fixture_expect_error(&f, error);
	fixture_free(&f);
}

static inline void expect_good(const char *yaml)
{
	struct fixture f = fixture_good(yaml);
	fixture_free(&f);
}

/* The verdict on "METHOD URL". */
static inline struct policy_verdict fixture_ask(struct fixture *f, const char *request)
{
	struct slice url = slice_str(request);
	struct slice method = slice_cut(&url, ' ');
	struct target t;
	const char *why = NULL;
	assert_int_equal(url_parse(url, &f->arena, &t, &why), CAGE_OK);
	return policy_match_request(f->policy, &t, method, f->now);
}

static inline struct policy_verdict fixture_connect(struct fixture *f, const char *authority)
{
	struct host host;
	uint16_t port;
	const char *why = NULL;
	assert_int_equal(authority_parse(slice_str(authority), 443, &f->arena, &host, &port, &why), CAGE_OK);
	return policy_match_connect(f->policy, &host, port, f->now);
}

/* rule: its id, or NULL for none. */
static inline void expect_verdict(struct policy_verdict v, enum reason reason, const char *rule)
{
	assert_string_equal(reason_code(v.reason).ptr, reason_code(reason).ptr);
	if (!rule) {
		assert_null(v.rule);
		return;
	}
	assert_non_null(v.rule);
	assert_int_equal(v.rule->id.len, strlen(rule));
	assert_memory_equal(v.rule->id.ptr, rule, v.rule->id.len);
}

#endif
