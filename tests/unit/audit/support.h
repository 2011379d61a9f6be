/* What the tests of core/audit share: rings in shared memory, events to put into them, and files to read back. */
#ifndef CAGE_TESTS_AUDIT_SUPPORT_H
#define CAGE_TESTS_AUDIT_SUPPORT_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "core/audit/ring.h"

static inline void *shared_memory(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(p != MAP_FAILED);
	return p;
}

static inline struct audit_ring *ring_new(void)
{
	struct audit_ring *r = audit_ring_init(shared_memory(audit_ring_size()));
	audit_ring_set_available(r, true);
	return r;
}

static inline void ring_free_memory(struct audit_ring *r)
{
	munmap(r, audit_ring_size());
}

/* 2026-11-16T04:03:41.123456Z */
#define SAMPLE_TS 1794801821123456u

static inline struct audit_event sample_intent(uint64_t conn, uint64_t txn)
{
	return (struct audit_event){.ts_us = SAMPLE_TS,
				    .kind = AUDIT_REQUEST,
				    .sandbox = SLICE("box"),
				    .policy = SLICE(",\"policy\":\"coder\",\"gen\":2"),
				    .conn = conn,
				    .txn = txn,
				    .decision = DECISION_ALLOW,
				    .rule = SLICE("anthropic"),
				    .method = SLICE("POST"),
				    .scheme = SLICE("https"),
				    .host = SLICE("api.anthropic.com"),
				    .port = 443,
				    .path = SLICE("/v1/messages")};
}

static inline struct audit_event sample_result(uint64_t conn, uint64_t txn)
{
	struct audit_event e = sample_intent(conn, txn);
	e.kind = AUDIT_RESPONSE;
	e.path = SLICE_NONE;
	e.status = 200;
	e.has_bytes = e.has_times = true;
	e.bytes_out = 10;
	e.us_total = 1204;
	return e;
}

static inline struct audit_event sample_note(uint64_t conn)
{
	return (struct audit_event){.ts_us = SAMPLE_TS,
				    .kind = AUDIT_CONNECT,
				    .conn = conn,
				    .decision = DECISION_BLOCK,
				    .reason = REASON_HOST_NOT_ALLOWED,
				    .stage = STAGE_CONNECT,
				    .host = SLICE("evil.test"),
				    .port = 443};
}

static inline bool slice_has(struct slice s, const char *part)
{
	return s.len > 0 && memmem(s.ptr, s.len, part, strlen(part)) != NULL;
}

#endif
