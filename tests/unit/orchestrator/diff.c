/* The bounds of the program that writes diff.patch, with others in its place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/limits.h"
#include "orchestrator/diff.h"
#include "orchestrator/tree_whole.h"

static const struct diff_bounds wide = {MIB(1), 10000, MIB(1024)};

/* Of a shell script: how it ended, and what it wrote. */
static enum diff_end run(const char *script, const struct diff_bounds *bounds, char *out, size_t room)
{
	const char *const argv[] = {"/bin/sh", "-c", script, NULL};
	int fd = memfd_create("out", MFD_CLOEXEC);
	assert_true(fd >= 0);
	enum diff_end end = diff_run(argv, "/", fd, bounds);
	ssize_t n = pread(fd, out, room - 1, 0);
	assert_true(n >= 0);
	out[n] = '\0';
	close(fd);
	return end;
}

static void ends(void **state)
{
	(void)state;
	char out[64];
	assert_int_equal(run("echo same", &wide, out, sizeof(out)), DIFF_WHOLE);
	assert_string_equal(out, "same\n");
	assert_int_equal(run("echo differs; exit 1", &wide, out, sizeof(out)), DIFF_WHOLE);
	assert_int_equal(run("echo part; exit 2", &wide, out, sizeof(out)), DIFF_TROUBLE);
	assert_string_equal(out, "part\n");
	assert_int_equal(run("kill -9 $$", &wide, out, sizeof(out)), DIFF_TROUBLE);
	const char *const none[] = {"/no/such/program", NULL};
	assert_int_equal(diff_run(none, "/", -1, &wide), DIFF_NONE);
}

static void bytes(void **state)
{
	(void)state;
	char out[64];
	struct diff_bounds b = wide;
	b.bytes = 10;
	assert_int_equal(run("printf 0123456789", &b, out, sizeof(out)), DIFF_WHOLE);
	assert_string_equal(out, "0123456789");
	assert_int_equal(run("while :; do printf 01234567890; done", &b, out, sizeof(out)), DIFF_CUT);
	assert_string_equal(out, "0123456789");
}

static void milliseconds(void **state)
{
	(void)state;
	char out[64];
	struct diff_bounds b = wide;
	b.ms = 200;
	uint64_t started = clock_mono_us();
	assert_int_equal(run("echo begun; exec sleep 60", &b, out, sizeof(out)), DIFF_CUT);
	assert_string_equal(out, "begun\n");
	assert_int_equal(run("while :; do :; done", &b, out, sizeof(out)), DIFF_CUT);
	assert_true(clock_mono_us() - started < 20000000);
}

static void memory(void **state)
{
	(void)state;
	char out[64];
	struct diff_bounds b = wide;
	assert_int_equal(run("ulimit -v", &b, out, sizeof(out)), DIFF_WHOLE);
	assert_string_equal(out, "1048576\n");
}

/* It has an environment of one variable, nothing to read, and nobody hears what it says. */
static void surroundings(void **state)
{
	(void)state;
	char out[64];
	setenv("GREP_COLORS", "x", 1);
	assert_int_equal(run("echo loud >&2; cat; pwd; echo $LC_ALL$GREP_COLORS; ls /proc/self/fd | wc -l", &wide, out,
			     sizeof(out)),
			 DIFF_WHOLE);
	assert_string_equal(out, "/\nC\n4\n"); /* 0, 1, 2, and the one of ls */
}

/* Links and files have one bound together. */
static void links(void **state)
{
	(void)state;
	static const char end[] = "The rest is left out here: it is too much. All changes are in base and files.\n";
	char top[] = "/tmp/cage-diff.XXXXXX", path[64], target[4000], last[sizeof(end)];
	struct stat st;
	memset(target, 1, sizeof(target) - 1); /* shown as six bytes each */
	target[sizeof(target) - 1] = '\0';
	assert_non_null(mkdtemp(top));
	snprintf(path, sizeof(path), "%s/files", top);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/files/link", top);
	assert_int_equal(symlink(target, path), 0);
	for (size_t i = 0; i < LIMIT_DIFF / (6 * sizeof(target)) + 2; i++)
		diff_add_link(top, "link");
	diff_add_files(top);
	snprintf(path, sizeof(path), "%s/diff.patch", top);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_size, LIMIT_DIFF + sizeof(end) - 1);
	assert_int_equal(pread(fd, last, sizeof(last), LIMIT_DIFF), sizeof(last) - 1);
	assert_memory_equal(last, end, sizeof(last) - 1);
	close(fd);
	tree_remove(top);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ends),   cmocka_unit_test(bytes),        cmocka_unit_test(milliseconds),
		cmocka_unit_test(memory), cmocka_unit_test(surroundings), cmocka_unit_test(links),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
