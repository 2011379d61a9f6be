/* The vault: which values are current, which are still known, and when they are gone. Time is a number here. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "proxy/vault.h"

#define KEEP 100
#define NONE ((const uint64_t[VAULT_WORDS]){0})
#define ALL all_places()

static struct vault *v;

static const uint64_t *all_places(void)
{
	static uint64_t all[VAULT_WORDS];
	memset(all, 0xff, sizeof(all));
	return all;
}

static int setup(void **state)
{
	(void)state;
	v = vault_new();
	return v ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	vault_forget(&v);
	return v ? -1 : 0;
}

static unsigned slot_of(const char *source)
{
	unsigned slot;
	assert_true(vault_slot(v, SECRET_ENV, slice_str(source), &slot));
	return slot;
}

static void put(unsigned slot, const char *value, uint64_t now)
{
	assert_int_equal(vault_put(v, slot, slice_str(value), KEEP, now), CAGE_OK);
}

/* NULL: none. */
static void expect_current(unsigned slot, const char *value)
{
	struct slice got;
	assert_int_equal(vault_get(v, slot, &got), value != NULL);
	if (value)
		assert_true(slice_eq(got, slice_str(value)));
}

static size_t count_known(unsigned slot)
{
	struct slice values[LIMIT_SECRET_VERSIONS];
	return vault_known(v, slot, values);
}

static bool is_known(unsigned slot, const char *value)
{
	struct slice values[LIMIT_SECRET_VERSIONS];
	size_t n = vault_known(v, slot, values);
	for (size_t i = 0; i < n; i++)
		if (slice_eq(values[i], slice_str(value)))
			return true;
	return false;
}

static void slots_belong_to_sources(void **state)
{
	(void)state;
	unsigned a = slot_of("A"), b = slot_of("B"), file;
	assert_int_not_equal(a, b);
	assert_int_equal(slot_of("A"), a);
	assert_true(vault_slot(v, SECRET_FILE, SLICE("A"), &file));
	assert_int_not_equal(file, a);
	expect_current(a, NULL);
	assert_int_equal(count_known(a), 0);
}

static void rotation(void **state)
{
	(void)state;
	unsigned s = slot_of("A");
	struct slice values[LIMIT_SECRET_VERSIONS];
	put(s, "first-value", 1000);
	uint64_t version = vault_version(v);
	put(s, "first-value", 1001);
	assert_int_equal(vault_version(v), version);
	put(s, "second-value", 1002);
	assert_true(vault_version(v) > version);
	expect_current(s, "second-value");
	assert_int_equal(vault_known(v, s, values), 2);
	assert_true(slice_eq(values[0], SLICE("second-value"))); /* the current one first */
	vault_expire(v, ALL, 1002 + KEEP - 1);
	assert_true(is_known(s, "first-value"));
	version = vault_version(v);
	vault_expire(v, ALL, 1002 + KEEP);
	assert_false(is_known(s, "first-value"));
	assert_true(vault_version(v) > version);
	expect_current(s, "second-value");
}

static void an_old_value_comes_back(void **state)
{
	(void)state;
	unsigned s = slot_of("A");
	put(s, "first-value", 1000);
	put(s, "second-value", 1001);
	put(s, "first-value", 1002);
	expect_current(s, "first-value");
	assert_int_equal(count_known(s), 2);
	vault_expire(v, ALL, 1002 + KEEP);
	expect_current(s, "first-value");
	assert_int_equal(count_known(s), 1);
}

static void lost_and_found(void **state)
{
	(void)state;
	unsigned s = slot_of("A");
	put(s, "the-value", 1000);
	uint64_t version = vault_version(v);
	vault_lose(v, s, KEEP, 1000);
	assert_true(vault_version(v) > version);
	expect_current(s, NULL);
	assert_true(is_known(s, "the-value"));
	version = vault_version(v);
	vault_lose(v, s, KEEP, 1050); /* lost already: its time goes on */
	assert_int_equal(vault_version(v), version);
	put(s, "the-value", 1060);
	expect_current(s, "the-value");
	vault_lose(v, s, KEEP, 1070);
	vault_expire(v, ALL, 1070 + KEEP);
	assert_int_equal(count_known(s), 0);
	put(s, "the-value", 2000);
	expect_current(s, "the-value");
}

/* Nothing is forgotten early: a fifth value has to wait. */
static void full_of_old_values(void **state)
{
	(void)state;
	unsigned s = slot_of("A");
	char value[] = "value-0";
	for (unsigned i = 0; i < LIMIT_SECRET_VERSIONS; i++, value[6]++)
		put(s, value, 1000 + i);
	assert_int_equal(vault_put(v, s, SLICE("one-too-many"), KEEP, 1010), CAGE_ELIMIT);
	expect_current(s, "value-3");
	assert_int_equal(count_known(s), LIMIT_SECRET_VERSIONS);
	put(s, "one-too-many", 1001 + KEEP); /* the first went when the second came */
	expect_current(s, "one-too-many");
	assert_false(is_known(s, "value-0"));
}

static void values_of_any_length(void **state)
{
	(void)state;
	static char big[LIMIT_SECRET_VALUE + 1];
	unsigned s = slot_of("A");
	struct slice got;
	memset(big, 'x', sizeof(big));
	assert_int_equal(vault_put(v, s, slice_of(big, sizeof(big)), KEEP, 1), CAGE_ELIMIT);
	assert_int_equal(vault_put(v, s, SLICE(""), KEEP, 1), CAGE_ELIMIT);
	assert_int_equal(vault_put(v, s, slice_of(big, LIMIT_SECRET_VALUE), KEEP, 1), CAGE_OK);
	assert_true(vault_get(v, s, &got));
	assert_true(slice_eq(got, slice_of(big, LIMIT_SECRET_VALUE)));
}

static void full_of_sources(void **state)
{
	(void)state;
	char name[16];
	unsigned slot, first = 0;
	for (unsigned i = 0; i < VAULT_SLOTS; i++) {
		snprintf(name, sizeof(name), "NAME%u", i);
		slot = slot_of(name);
		if (i > 0)
			continue;
		first = slot;
		put(slot, "value-of-it", 1000);
	}
	assert_false(vault_slot(v, SECRET_ENV, SLICE("MORE"), &slot));
	assert_int_equal(slot_of("NAME0"), first);
	uint64_t named[VAULT_WORDS];
	memcpy(named, ALL, sizeof(named));
	named[0]--; /* but the first */
	vault_expire(v, named, 1000);
	expect_current(first, NULL);
	assert_true(is_known(first, "value-of-it"));
	assert_false(vault_slot(v, SECRET_ENV, SLICE("MORE"), &slot)); /* it is still kept */
	vault_expire(v, named, 1000 + KEEP);
	assert_true(vault_slot(v, SECRET_ENV, SLICE("MORE"), &slot));
}

/* A policy that is still in use must never find the value of another secret. */
static void a_slot_that_another_source_has_now(void **state)
{
	(void)state;
	unsigned old = slot_of("OLD");
	put(old, "value-of-old", 1000);
	vault_expire(v, NONE, 1000);
	vault_expire(v, NONE, 1000 + KEEP);
	unsigned new = slot_of("NEW");
	assert_int_equal(VAULT_PLACE(new), VAULT_PLACE(old));
	put(new, "value-of-new", 2000);
	expect_current(new, "value-of-new");
	expect_current(old, NULL);
	assert_int_equal(count_known(old), 0);
}

static void what_is_forgotten_is_overwritten(void **state)
{
	(void)state;
	unsigned s = slot_of("A");
	struct slice value;
	put(s, "a-value-to-forget", 1000);
	assert_true(vault_get(v, s, &value));
	vault_lose(v, s, KEEP, 1000);
	assert_memory_equal(value.ptr, "a-value-to-forget",
			    value.len); /* who borrowed it has it until its time is up */
	vault_expire(v, ALL, 1000 + KEEP);
	assert_memory_not_equal(value.ptr, "a-value-to-forget", value.len);
}

/* Asks in a child that can only read. 0: it sees that value. */
static int child_sees(unsigned slot, const char *value, const int go[2])
{
	struct slice got;
	char byte;
	if (!vault_read_only(v) || read(go[0], &byte, 1) != 1)
		return 2;
	return vault_get(v, slot, &got) && slice_eq(got, slice_str(value)) ? 0 : 1;
}

static void a_worker_sees_what_comes_later(void **state)
{
	(void)state;
	unsigned s = slot_of("A");
	int go[2], status;
	assert_int_equal(pipe(go), 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(child_sees(s, "came-after-the-fork", go));
	put(s, "came-after-the-fork", 1000);
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	close(go[0]);
	close(go[1]);
}

static void a_worker_can_not_write(void **state)
{
	(void)state;
	unsigned s = slot_of("A");
	int status;
	put(s, "some-value", 1000);
	pid_t pid = fork();
	if (pid == 0) {
		struct slice value;
		signal(SIGSEGV, SIG_DFL); /* cmocka would go on with the next test */
		if (!vault_read_only(v) || !vault_get(v, s, &value))
			_exit(2);
		*(volatile char *)(uintptr_t)value.ptr = 'x';
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGSEGV);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(slots_belong_to_sources),
		TEST(rotation),
		TEST(an_old_value_comes_back),
		TEST(lost_and_found),
		TEST(full_of_old_values),
		TEST(values_of_any_length),
		TEST(full_of_sources),
		TEST(a_slot_that_another_source_has_now),
		TEST(what_is_forgotten_is_overwritten),
		TEST(a_worker_sees_what_comes_later),
		TEST(a_worker_can_not_write),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
