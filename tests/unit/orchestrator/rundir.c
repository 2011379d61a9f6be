/* Removing trees that somebody else has made. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "orchestrator/tree_whole.h"

enum { DEEP = 5000, FEW_DESCRIPTORS = 24, KEPT = 200, SWAPPED = 8, ROUNDS = 10 };

static char top[64];

static int set_up(void **state)
{
	(void)state;
	snprintf(top, sizeof(top), "/tmp/cage-rundir.XXXXXX");
	return mkdtemp(top) && chdir(top) == 0 && mkdir("tree", 0755) == 0 && mkdir("outside", 0755) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	if (chdir("/") != 0)
		return -1;
	tree_remove(top);
	return 0;
}

static void make_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static void make_kept(void)
{
	char path[64];
	for (int i = 0; i < KEPT; i++) {
		snprintf(path, sizeof(path), "outside/%d", i);
		make_file(path);
	}
}

static void assert_kept(void)
{
	char path[64];
	for (int i = 0; i < KEPT; i++) {
		snprintf(path, sizeof(path), "outside/%d", i);
		assert_int_equal(access(path, F_OK), 0);
	}
}

static void everything_goes(void **state)
{
	(void)state;
	make_kept();
	mkdir("tree/a", 0700);
	mkdir("tree/a/b", 0700);
	make_file("tree/a/b/file");
	make_file("tree/file");
	assert_int_equal(symlink("../outside", "tree/link"), 0);
	assert_int_equal(symlink("nothing", "tree/a/dangling"), 0);
	assert_int_equal(mkfifo("tree/a/pipe", 0600), 0);
	chmod("tree/a/b", 0);
	tree_remove("tree");
	assert_int_equal(access("tree", F_OK), -1);
	assert_kept();
}

static void what_is_no_directory(void **state)
{
	(void)state;
	make_kept();
	assert_int_equal(symlink("outside", "link"), 0);
	tree_remove("link");
	assert_int_equal(faccessat(AT_FDCWD, "link", F_OK, AT_SYMLINK_NOFOLLOW), -1);
	tree_remove("absent");
	assert_kept();
}

/* Deeper than there are descriptors, and than any path may be long. */
static void deep_trees(void **state)
{
	(void)state;
	struct rlimit before, few;
	assert_int_equal(chdir("tree"), 0);
	for (int i = 0; i < DEEP; i++)
		assert_true(mkdir("directory", 0700) == 0 && chdir("directory") == 0);
	make_file("file");
	assert_int_equal(chdir(top), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = FEW_DESCRIPTORS;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	tree_remove("tree");
	setrlimit(RLIMIT_NOFILE, &before);
	assert_int_equal(access("tree", F_OK), -1);
}

/* Directories become links to others and back, until it is killed. */
static _Noreturn void swap_forever(void)
{
	char path[64];
	if (chdir("tree") != 0)
		_exit(1);
	for (unsigned i = 0;; i = (i + 1) % SWAPPED) {
		snprintf(path, sizeof(path), "%u/below", i);
		(void)!rename(path, "away");
		(void)!symlink("../../outside", path);
		unlink(path);
		(void)!rename("away", path);
	}
}

static void fill_tree(void)
{
	char path[64];
	mkdir("tree", 0755);
	for (int i = 0; i < SWAPPED; i++) {
		snprintf(path, sizeof(path), "tree/%d", i);
		mkdir(path, 0700);
		snprintf(path, sizeof(path), "tree/%d/below", i);
		mkdir(path, 0700);
		for (int n = 0; n < KEPT; n++) {
			snprintf(path, sizeof(path), "tree/%d/below/%d", i, n);
			make_file(path);
		}
	}
}

static void swapped_while_it_is_removed(void **state)
{
	(void)state;
	make_kept();
	for (int round = 0; round < ROUNDS; round++) {
		fill_tree();
		pid_t child = fork();
		if (child == 0)
			swap_forever();
		assert_true(child > 0);
		usleep(1000);
		tree_remove("tree");
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		assert_kept();
		tree_remove("tree");
		assert_int_equal(access("tree", F_OK), -1);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(everything_goes, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_no_directory, set_up, tear_down),
		cmocka_unit_test_setup_teardown(deep_trees, set_up, tear_down),
		cmocka_unit_test_setup_teardown(swapped_while_it_is_removed, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
