/* A chain under a policy, and requests in memory that are shown to it. */
#ifndef CAGE_TESTS_INSPECTORS_CHAIN_RIG_H
#define CAGE_TESTS_INSPECTORS_CHAIN_RIG_H

#include <zlib.h>

#include "core/base/text.h"
#include "inspectors/chain.h"
#include "inspectors/ledger.h"
#include "tests/unit/policy/fixture.h"

#define RULES                                                   \
	"version: 1\nname: t\nrules:\n"                         \
	"  - {id: api, hosts: [api.example.test]}\n"            \
	"  - {id: forge, hosts: [api.github.com]}\n"            \
	"  - {id: wide, hosts: ['*.wide.test']}\n"              \
	"  - {id: pages, hosts: ['*.github.io']}\n"             \
	"  - {id: watch, hosts: [watch.test], mode: observe}\n" \
	"  - {id: small, hosts: [small.test], limits: {body: 100}}\n"

struct rig {
	struct fixture f;
	struct chain *chain;
	struct ledger *ledger;
	struct arena arena;
	struct target target;
	struct message head;
	struct field fields[8];
	struct subject more; /* what subjects have beside a request and its rule */
	struct chain_run *run;
};

static inline struct rig rig_new(const char *yaml)
{
	static const unsigned char key[CHAIN_KEY] = {1};
	struct rig r = {.f = fixture_inspected(yaml, chain_read_policy)};
	r.ledger = ledger_init(calloc(1, ledger_size()));
	r.chain = chain_new(r.f.policy, r.ledger, key);
	assert_non_null(r.chain);
	arena_init(&r.arena, MIB(4));
	return r;
}

static inline void rig_free(struct rig *r)
{
	chain_finish(&r->run);
	chain_free(&r->chain);
	free(r->ledger);
	arena_free(&r->arena);
	fixture_free(&r->f);
}

static inline void no_resume(void *arg)
{
	(void)arg;
	fail();
}

/* Begins a request to that URL, with fields as name, value, ..., NULL. */
static inline void request(struct rig *r, const char *url, const char *const *fields)
{
	const char *why;
	struct chain_owner owner = {.resume = no_resume};
	chain_finish(&r->run);
	arena_reset(&r->arena);
	r->head = (struct message){.method = SLICE("POST"), .fields = r->fields};
	assert_int_equal(url_parse(slice_str(url), &r->arena, &r->target, &why), CAGE_OK);
	for (; fields && *fields; fields += 2)
		r->fields[r->head.n_fields++] = (struct field){.name = slice_str(fields[0]),
							       .value = slice_str(fields[1]),
							       .id = field_identify(slice_str(fields[0]))};
	struct policy_verdict v = policy_match_request(r->f.policy, &r->target, r->head.method, NOW);
	assert_int_equal(v.reason, REASON_NONE);
	struct subject s = r->more;
	s.target = &r->target;
	s.method = r->head.method;
	s.head = &r->head;
	s.rule = v.applies;
	s.sandbox = SLICE("box");
	r->run = chain_begin(r->chain, &r->arena, &s, v.applies->mode == POLICY_OBSERVE, &owner);
	assert_non_null(r->run);
}

static inline void assert_blocked(struct rig *r, enum chain_verdict v, enum reason reason)
{
	assert_int_equal(v, CHAIN_BLOCK);
	assert_non_null(chain_block(r->run));
	assert_int_equal(chain_block(r->run)->reason, reason);
}

/* Head, then the body in pieces of that size, then the end. */
static inline enum chain_verdict deliver(struct rig *r, const char *url, const char *const *fields, struct slice body,
					 size_t cut)
{
	request(r, url, fields);
	enum chain_verdict v = chain_head(r->run);
	for (size_t at = 0; v == CHAIN_PASS && at < body.len; at += cut)
		v = chain_body(r->run, slice_head(slice_from(body, at), cut));
	return v == CHAIN_PASS ? chain_end(r->run, NULL, 0) : v;
}

static const char *const no_fields[] = {NULL};

static inline struct slice gzip(struct slice plain, unsigned char *out, size_t room)
{
	z_stream z = {0};
	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
	z.next_in = (unsigned char *)(uintptr_t)plain.ptr;
	z.avail_in = (unsigned)plain.len;
	z.next_out = out;
	z.avail_out = (unsigned)room;
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	deflateEnd(&z);
	return slice_of(out, z.total_out);
}

#endif
