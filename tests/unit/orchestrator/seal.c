/* Sealed values: what was written is read again, and nothing that somebody changed is. */
#include "orchestrator/service/seal.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "orchestrator/tree_whole.h"

static char state[64];
static struct seal_value got;

static int make_state(void **unused)
{
	(void)unused;
	snprintf(state, sizeof(state), "/tmp/cage-seal.XXXXXX");
	return mkdtemp(state) ? 0 : -1;
}

static int remove_state(void **unused)
{
	(void)unused;
	tree_remove(state);
	return 0;
}

static void must_read(const char *name, struct slice value)
{
	assert_int_equal(seal_read(state, name, &got), SEAL_FOUND);
	assert_true(slice_eq(slice_of(got.bytes, got.len), value));
}

static void values_are_read_again(void **unused)
{
	static char largest[LIMIT_SECRET_VALUE];
	(void)unused;
	memset(largest, 'x', sizeof(largest));
	assert_int_equal(seal_read(state, "a", &got), SEAL_NONE);
	assert_true(seal_write(state, "a", SLICE("the first value")));
	assert_true(seal_write(state, "b", slice_of(largest, sizeof(largest))));
	must_read("a", SLICE("the first value"));
	must_read("b", slice_of(largest, sizeof(largest)));
	assert_true(seal_write(state, "a", SLICE("the second value")));
	must_read("a", SLICE("the second value"));
	assert_int_equal(seal_remove(state, "a"), SEAL_FOUND);
	assert_int_equal(seal_remove(state, "a"), SEAL_NONE);
	assert_int_equal(seal_read(state, "a", &got), SEAL_NONE);
}

static void wrong_values_and_names(void **unused)
{
	(void)unused;
	static char large[LIMIT_SECRET_VALUE + 1];
	memset(large, 'x', sizeof(large));
	assert_false(seal_write(state, "a", SLICE("1234567")));
	assert_false(seal_write(state, "a", SLICE("1234\0005678")));
	assert_false(seal_write(state, "a", slice_of(large, sizeof(large))));
	assert_false(seal_write(state, "", SLICE("12345678")));
	assert_false(seal_write(state, "../a", SLICE("12345678")));
	assert_int_equal(seal_read(state, "../a", &got), SEAL_NONE);
	assert_int_equal(seal_remove(state, "a/b"), SEAL_NONE);
}

static void path_of(const char *name, char out[128])
{
	snprintf(out, 128, "%s/" SEAL_DIR "/%s.sealed", state, name);
}

static void flip(const char *path, off_t at)
{
	char byte;
	int fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte = (char)(byte ^ 1);
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

static void changed_files_do_not_open(void **unused)
{
	char path[128], other[128];
	struct stat st;
	(void)unused;
	assert_true(seal_write(state, "a", SLICE("12345678")));
	path_of("a", path);
	path_of("b", other);
	assert_int_equal(stat(path, &st), 0);
	for (off_t at = 0; at < st.st_size; at++) {
		flip(path, at);
		assert_int_equal(seal_read(state, "a", &got), SEAL_FAILED);
		flip(path, at);
	}
	must_read("a", SLICE("12345678"));
	assert_int_equal(rename(path, other), 0); /* another name */
	assert_int_equal(seal_read(state, "b", &got), SEAL_FAILED);
	assert_int_equal(truncate(other, 20), 0);
	assert_int_equal(seal_read(state, "b", &got), SEAL_FAILED);
	assert_int_equal(truncate(other, 1 << 20), 0);
	assert_int_equal(seal_read(state, "b", &got), SEAL_FAILED);
}

static void another_key_opens_nothing(void **unused)
{
	char key[128];
	(void)unused;
	assert_true(seal_write(state, "a", SLICE("12345678")));
	snprintf(key, sizeof(key), "%s/" SEAL_KEY, state);
	flip(key, 0);
	assert_int_equal(seal_read(state, "a", &got), SEAL_FAILED);
}

static void add_name(void *arg, const char *name, int64_t changed_s)
{
	char *all = arg;
	assert_true(changed_s > 0);
	strcat(all, name);
	strcat(all, " ");
}

static void names_are_listed(void **unused)
{
	char all[64] = "", other[128];
	(void)unused;
	assert_true(seal_list(state, add_name, all));
	assert_string_equal(all, "");
	assert_true(seal_write(state, "b", SLICE("12345678")) && seal_write(state, "a.sealed", SLICE("12345678")));
	snprintf(other, sizeof(other), "%s/" SEAL_DIR "/part.1", state);
	assert_int_equal(mkdir(other, 0700), 0);
	assert_true(seal_list(state, add_name, all));
	assert_string_equal(all, "a.sealed b ");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_state, remove_state)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(values_are_read_again), TEST(wrong_values_and_names),
					   TEST(changed_files_do_not_open), TEST(another_key_opens_nothing),
					   TEST(names_are_listed)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
