/* The ring: room, reservations, wrap-around, two real processes, and what a worker that was taken over can do to it. */
#include "tests/unit/audit/support.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/audit/ring_private.h"

/* Reads one record and releases it. */
static bool take(struct audit_ring *r, struct audit_record *rec, bool *broken)
{
	uint64_t at = audit_ring_read_position(r);
	if (!audit_ring_next(r, &at, rec, broken))
		return false;
	audit_ring_release(r, at);
	return true;
}

static size_t take_all(struct audit_ring *r)
{
	struct audit_record rec;
	bool broken;
	size_t n = 0;
	while (take(r, &rec, &broken))
		n++;
	assert_false(broken);
	assert_int_equal(audit_ring_pending(r), 0);
	return n;
}

static void record_comes_through(void **state)
{
	(void)state;
	struct audit_ring *r = ring_new();
	struct audit_event e = sample_intent(5, 9);
	struct audit_record rec;
	bool broken;
	assert_false(take(r, &rec, &broken));
	assert_false(broken);
	assert_int_equal(audit_intent(r, &e), CAGE_OK);
	assert_true(take(r, &rec, &broken));
	assert_int_equal(rec.kind, AUDIT_RECORD_INTENT);
	assert_int_equal(rec.ts_us, SAMPLE_TS);
	assert_int_equal(rec.conn, 5);
	assert_int_equal(rec.txn, 9);
	assert_true(slice_has(rec.body, "\"host\":\"api.anthropic.com\""));
	e = sample_result(5, 9);
	audit_result(r, &e);
	assert_true(take(r, &rec, &broken));
	assert_int_equal(rec.kind, AUDIT_RECORD_RESULT);
	assert_false(take(r, &rec, &broken));
	ring_free_memory(r);
}

static void unavailable_takes_no_intent_but_notes(void **state)
{
	(void)state;
	struct audit_ring *r = audit_ring_init(shared_memory(audit_ring_size()));
	struct audit_event e = sample_intent(1, 1);
	assert_false(audit_is_available(r));
	assert_int_equal(audit_intent(r, &e), CAGE_ELIMIT);
	assert_int_equal(audit_note(r, &e), CAGE_OK);
	audit_ring_set_available(r, true);
	assert_true(audit_is_available(r));
	assert_int_equal(audit_intent(r, &e), CAGE_OK);
	audit_ring_set_available(r, false);
	assert_int_equal(audit_intent(r, &e), CAGE_ELIMIT);
	audit_result(r, &e);
	ring_free_memory(r);
}

static void event_over_the_limit_is_refused(void **state)
{
	(void)state;
	struct audit_ring *r = ring_new();
	char *path = malloc(LIMIT_LOG_RECORD);
	struct audit_event e = {.kind = AUDIT_REQUEST, .conn = 1};
	memset(path, 'a', LIMIT_LOG_RECORD);
	e.path = slice_of(path, LIMIT_LOG_RECORD);
	assert_int_equal(audit_intent(r, &e), CAGE_ELIMIT);
	assert_int_equal(audit_note(r, &e), CAGE_ELIMIT);
	assert_int_equal(audit_ring_lost(r), 1);
	assert_int_equal(audit_ring_pending(r), 0);
	/* The longest that fits: header of 32 bytes, and the three keys. */
	e.path.len =
		LIMIT_LOG_RECORD - 32 - strlen("\"event\":\"request\",\"conn\":\"0000000000000001\",\"path\":\"\"");
	assert_int_equal(audit_intent(r, &e), CAGE_OK);
	assert_int_equal(audit_ring_pending(r), LIMIT_LOG_RECORD);
	e.path.len++;
	assert_int_equal(audit_note(r, &e), CAGE_ELIMIT);
	free(path);
	ring_free_memory(r);
}

/* Records of changing lengths pass the end of the data many times. */
static void wrap_around(void **state)
{
	(void)state;
	struct audit_ring *r = ring_new();
	static char path[20000];
	uint64_t bytes = 0;
	memset(path, 'p', sizeof(path));
	for (uint64_t i = 1; bytes < 3 * LIMIT_LOG_RING; i++) {
		struct audit_event e = {.ts_us = i, .kind = AUDIT_REQUEST, .conn = i, .path = {path, i * 7919 % 20000}};
		struct audit_record rec;
		bool broken;
		assert_int_equal(audit_note(r, &e), CAGE_OK);
		bytes += audit_ring_pending(r);
		assert_true(take(r, &rec, &broken));
		assert_int_equal(rec.conn, i);
		assert_true(rec.body.len > e.path.len && rec.body.len < e.path.len + 96);
	}
	ring_free_memory(r);
}

/* With no result open, a full ring has room for one result and no more. */
static void full_of_notes(void **state)
{
	(void)state;
	struct audit_ring *r = ring_new();
	struct audit_event e = sample_note(1);
	size_t n = 0;
	while (audit_note(r, &e) == CAGE_OK)
		n++;
	size_t one = audit_ring_pending(r) / n;
	assert_int_equal(audit_ring_lost(r), 1);
	assert_true(LIMIT_LOG_RING - audit_ring_pending(r) >= LIMIT_LOG_RESULT);
	assert_true(LIMIT_LOG_RING - audit_ring_pending(r) < LIMIT_LOG_RESULT + one);
	assert_false(audit_is_available(r));
	e = sample_intent(1, 1);
	assert_int_equal(audit_intent(r, &e), CAGE_ELIMIT);
	assert_int_equal(audit_ring_lost(r), 1);
	assert_int_equal(take_all(r), n);
	assert_int_equal(audit_intent(r, &e), CAGE_OK);
	ring_free_memory(r);
}

/* As many intents as a ring can have: each has its place, also when notes fill the rest. */
static void intents_keep_their_places(void **state)
{
	(void)state;
	struct audit_ring *r = ring_new();
	size_t n = 0;
	for (struct audit_event e = sample_intent(1, 1); audit_intent(r, &e) == CAGE_OK; e.txn++) {
		n++;
		take_all(r);
	}
	assert_int_equal(n, AUDIT_OPEN_MAX);
	struct audit_event note = sample_note(1);
	while (audit_note(r, &note) == CAGE_OK)
		;
	for (size_t i = 1; i <= n; i++) {
		struct audit_event e = sample_result(1, i);
		audit_result(r, &e);
	}
	assert_true(take_all(r) > n);
	ring_free_memory(r);
}

/* A result that takes all of its place, or less by `spare` bytes. */
static void put_wide_result(struct audit_ring *r, uint64_t txn, size_t spare)
{
	static char wide[LIMIT_LOG_RESULT], buf[LIMIT_LOG_RESULT];
	struct audit_event e = sample_result(1, txn);
	struct text t = text_in(buf, sizeof(buf));
	memset(wide, 'h', sizeof(wide));
	e.host = slice_of(wide, 1);
	audit_event_write(&t, &e);
	e.host.len += LIMIT_LOG_RESULT - 32 - t.len - spare;
	audit_result(r, &e);
}

/* A ring as full as it gets, nobody reading, and all results at their largest: none is lost, wherever the end of the
 * data falls. */
static void results_are_never_lost(void **state)
{
	(void)state;
	struct audit_ring *r = ring_new();
	static char path[512];
	memset(path, 'p', sizeof(path));
	srandom(7);
	for (size_t round = 0; round < 60; round++) {
		size_t n = 0, results = 0;
		struct audit_record rec;
		bool broken;
		struct audit_event e = sample_intent(1, 1);
		for (;;) {
			e.path = slice_of(path, (size_t)random() % sizeof(path));
			if (audit_intent(r, &e) != CAGE_OK)
				break;
			n++;
			if (round % 2)
				take(r, &rec, &broken);
		}
		for (size_t i = 1; i <= n; i++)
			put_wide_result(r, i, round % 3 ? 0 : (size_t)random() % 1000);
		while (take(r, &rec, &broken)) {
			results += rec.kind == AUDIT_RECORD_RESULT;
			assert_true(rec.kind != AUDIT_RECORD_RESULT || slice_has(rec.body, "\"host\""));
		}
		assert_false(broken);
		assert_int_equal(results, n);
	}
	ring_free_memory(r);
}

/* What escaping blows up is left out until the result fits; the facts stay. */
static void wide_result_is_shortened(void **state)
{
	(void)state;
	struct audit_ring *r = ring_new();
	char wild[LIMIT_HOST];
	memset(wild, 1, sizeof(wild));
	struct audit_event e = sample_intent(1, 1);
	struct audit_record rec;
	bool broken;
	assert_int_equal(audit_intent(r, &e), CAGE_OK);
	assert_true(take(r, &rec, &broken));
	e = sample_result(1, 1);
	e.host = slice_of(wild, sizeof(wild));
	e.sandbox = e.rule = slice_of(wild, 64);
	audit_result(r, &e);
	assert_true(take(r, &rec, &broken));
	assert_true(rec.body.len <= LIMIT_LOG_RESULT - 32);
	assert_false(slice_has(rec.body, "\"host\""));
	assert_true(slice_has(rec.body, "\"sandbox\""));
	assert_true(slice_has(rec.body, "\"status\":200,\"bytes_out\":10"));
	ring_free_memory(r);
}

/* Nothing but the numbers fits, and they always do. */
static void widest_result_fits(void **state)
{
	(void)state;
	struct audit_ring *r = ring_new();
	static char wild[LIMIT_LOG_RECORD];
	struct slice w = slice_of(wild, sizeof(wild));
	struct addr a = {.family = ADDR_V6};
	struct audit_event e = sample_intent(1, 1);
	struct audit_finding f = {w, DECISION_BLOCK, REASON_SECRET_DETECTED, w, w, w, UINT64_MAX, UINT64_MAX};
	struct audit_finding findings[] = {f, f};
	struct slice ids[LIMIT_LOG_SECRETS];
	for (size_t i = 0; i < LIMIT_LOG_SECRETS; i++)
		ids[i] = w;
	struct audit_record rec;
	bool broken;
	memset(a.bytes, 0xfd, sizeof(a.bytes));
	assert_int_equal(audit_intent(r, &e), CAGE_OK);
	assert_true(take(r, &rec, &broken));
	e = (struct audit_event){UINT64_MAX,
				 AUDIT_RESPONSE,
				 w,
				 w,
				 UINT64_MAX,
				 UINT64_MAX,
				 DECISION_BLOCK,
				 false,
				 REASON_UPSTREAM_UNREACHABLE,
				 STAGE_UPSTREAM,
				 w,
				 w,
				 w,
				 w,
				 UINT16_MAX,
				 w,
				 w,
				 &a,
				 INT32_MAX,
				 true,
				 UINT64_MAX,
				 UINT64_MAX,
				 UINT64_MAX,
				 UINT64_MAX,
				 true,
				 UINT64_MAX,
				 UINT64_MAX,
				 UINT64_MAX,
				 UINT64_MAX,
				 UINT64_MAX,
				 findings,
				 2,
				 ids,
				 ids,
				 LIMIT_LOG_SECRETS,
				 LIMIT_LOG_SECRETS};
	audit_result(r, &e);
	assert_true(take(r, &rec, &broken));
	assert_true(slice_has(rec.body, "\"reason\":\"upstream.unreachable\""));
	ring_free_memory(r);
}

/* The worker's account is wrong: it dies, here in a process of its own. */
static void result_without_intent_traps(void **state)
{
	(void)state;
	struct audit_ring *r = ring_new();
	int status;
	pid_t pid = fork();
	if (pid == 0) {
		struct audit_event e = sample_result(1, 1);
		signal(SIGILL, SIG_DFL);
		signal(SIGTRAP, SIG_DFL);
		audit_result(r, &e);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
	assert_int_equal(audit_ring_pending(r), 0);
	ring_free_memory(r);
}

static void wakeup_once_until_the_writer_looks(void **state)
{
	(void)state;
	struct audit_ring *r = ring_new();
	struct audit_event e = sample_note(1);
	assert_false(audit_ring_wants_wakeup(r));
	assert_int_equal(audit_note(r, &e), CAGE_OK);
	assert_true(audit_ring_wants_wakeup(r));
	assert_int_equal(audit_note(r, &e), CAGE_OK);
	assert_false(audit_ring_wants_wakeup(r));
	while (audit_ring_pending(r) <= LIMIT_LOG_RING / 4)
		assert_int_equal(audit_note(r, &e), CAGE_OK);
	assert_true(audit_ring_wants_wakeup(r));
	assert_false(audit_ring_wants_wakeup(r));
	audit_ring_look(r);
	take_all(r);
	assert_false(audit_ring_wants_wakeup(r));
	assert_int_equal(audit_note(r, &e), CAGE_OK);
	assert_true(audit_ring_wants_wakeup(r));
	ring_free_memory(r);
}

static void new_worker_starts_without_old_intents(void **state)
{
	(void)state;
	struct audit_ring *r = ring_new();
	for (struct audit_event e = sample_intent(1, 1); audit_intent(r, &e) == CAGE_OK; e.txn++)
		take_all(r);
	audit_ring_adopt(r);
	struct audit_event e = sample_intent(2, 1);
	assert_int_equal(audit_intent(r, &e), CAGE_OK);
	ring_free_memory(r);
}

#define STREAMED 100000

/* Gives up, and ends, when nobody reads for long. */
static _Noreturn void stream_records(struct audit_ring *r)
{
	static char path[300];
	int waits = 0;
	memset(path, 'x', sizeof(path));
	for (uint64_t i = 1; i <= STREAMED; i++) {
		struct audit_event e = {.ts_us = i * 3, .kind = AUDIT_REQUEST, .conn = i, .path = {path, i % 300}};
		while (audit_note(r, &e) != CAGE_OK) {
			if (++waits > 100000)
				_exit(1);
			usleep(50);
		}
	}
	_exit(0);
}

static void two_processes(void **state)
{
	(void)state;
	struct audit_ring *r = ring_new();
	uint64_t next = 1;
	int status = -1;
	pid_t pid = fork();
	if (pid == 0)
		stream_records(r);
	for (bool ended = false; next <= STREAMED;) {
		struct audit_record rec;
		bool broken;
		if (!take(r, &rec, &broken)) {
			assert_false(broken);
			assert_false(ended);
			ended = waitpid(pid, &status, WNOHANG) == pid;
			continue;
		}
		char tail[64];
		snprintf(tail, sizeof(tail), "\"event\":\"request\",\"conn\":\"%016llx\"", (unsigned long long)next);
		assert_true(slice_starts(rec.body, slice_str(tail)));
		assert_int_equal(rec.conn, next);
		assert_int_equal(rec.ts_us, next * 3);
		next++;
	}
	if (status == -1)
		assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(audit_ring_pending(r), 0);
	ring_free_memory(r);
}

/* Each byte of a ring with two records is changed in turn: the reader may say broken or read other records, and never
 * leaves the ring or runs on for ever. */
static void changed_bytes_do_no_harm(void **state)
{
	(void)state;
	struct audit_ring *r = ring_new();
	size_t size = audit_ring_size(), n_broken = 0;
	struct audit_event e = sample_note(1);
	assert_int_equal(audit_note(r, &e), CAGE_OK);
	assert_int_equal(audit_note(r, &e), CAGE_OK);
	unsigned char *bytes = (unsigned char *)r;
	size_t data = size - LIMIT_LOG_RING, used = audit_ring_pending(r);
	for (size_t i = 0; i < data + used; i == 255 ? i = data : i++) {
		static const unsigned char values[] = {0, 1, 7, 8, 0x80, 0xff};
		unsigned char was = bytes[i];
		for (size_t v = 0; v < sizeof(values); v++) {
			uint64_t at;
			struct audit_record rec;
			bool broken = false;
			size_t reads = 0;
			bytes[i] = values[v];
			at = audit_ring_read_position(r);
			while (audit_ring_next(r, &at, &rec, &broken)) {
				assert_in_range(rec.body.len, 0, LIMIT_LOG_RECORD);
				assert_true((const unsigned char *)rec.body.ptr >= bytes + data);
				assert_true((const unsigned char *)rec.body.ptr + rec.body.len <= bytes + size);
				assert_in_range(++reads, 1, LIMIT_LOG_RING / 32);
			}
			n_broken += broken;
		}
		bytes[i] = was;
	}
	assert_true(n_broken > 100);
	ring_free_memory(r);
}

static void broken_ring_is_seen_and_reset(void **state)
{
	(void)state;
	struct audit_ring *r = ring_new();
	struct audit_event e = sample_note(1);
	struct audit_record rec;
	bool broken;
	uint64_t at = audit_ring_read_position(r);
	assert_int_equal(audit_note(r, &e), CAGE_OK);
	assert_true(audit_ring_next(r, &at, &rec, &broken));
	((char *)(uintptr_t)rec.body.ptr)[-32] = AUDIT_RECORD_RESULT + 1; /* the kind, at the start of the record */
	assert_false(take(r, &rec, &broken));
	assert_true(broken);
	audit_ring_reset(r);
	assert_false(take(r, &rec, &broken));
	assert_false(broken);
	assert_int_equal(audit_note(r, &e), CAGE_OK);
	assert_true(take(r, &rec, &broken));
	ring_free_memory(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(record_comes_through),
		cmocka_unit_test(unavailable_takes_no_intent_but_notes),
		cmocka_unit_test(event_over_the_limit_is_refused),
		cmocka_unit_test(wrap_around),
		cmocka_unit_test(full_of_notes),
		cmocka_unit_test(intents_keep_their_places),
		cmocka_unit_test(results_are_never_lost),
		cmocka_unit_test(wide_result_is_shortened),
		cmocka_unit_test(widest_result_fits),
		cmocka_unit_test(result_without_intent_traps),
		cmocka_unit_test(wakeup_once_until_the_writer_looks),
		cmocka_unit_test(new_worker_starts_without_old_intents),
		cmocka_unit_test(two_processes),
		cmocka_unit_test(changed_bytes_do_no_harm),
		cmocka_unit_test(broken_ring_is_seen_and_reset),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
