/* Reading trees that somebody else has made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "orchestrator/tree_whole.h"
#include "orchestrator/walk.h"

enum { DEEP = 3000 };

static char top[64];

static int set_up(void **state)
{
	(void)state;
	snprintf(top, sizeof(top), "/tmp/cage-tree.XXXXXX");
	return mkdtemp(top) && chdir(top) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	tree_remove(top);
	return chdir("/");
}

static void make_file(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static void all_of_it(void **state)
{
	static const char *const names[] = {"a", "a/b", "a/b/file", "a-", "file", "link", "z"};
	struct tree t;
	(void)state;
	assert_true(mkdir("a", 0700) == 0 && mkdir("a/b", 0700) == 0 && mkdir("z", 0700) == 0);
	make_file("a/b/file");
	make_file("file");
	make_file("a-");
	assert_true(symlink("a", "link") == 0 && mkfifo("pipe", 0600) == 0);
	assert_true(tree_read(&t, top, TREE_OF_ALL));
	assert_int_equal(t.n, 7);
	for (size_t i = 0; i < t.n; i++) { /* sorted as bytes are, and each of them once */
		bool known = false;
		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
			known = known || strcmp(names[k], t.list[i].path) == 0;
		assert_true(known && (i == 0 || strcmp(t.list[i - 1].path, t.list[i].path) < 0));
	}
	tree_free(&t);
}

/* A path of them is too long for any name. */
static void too_deep(void **state)
{
	struct tree t;
	(void)state;
	for (int i = 0; i < DEEP; i++)
		assert_true(mkdir("directory", 0700) == 0 && chdir("directory") == 0);
	assert_int_equal(chdir(top), 0);
	assert_false(tree_read(&t, top, TREE_OF_ALL));
	assert_true(t.n == 0 && !t.list);
}

/* Few files with long names need as much room as many with short ones. */
static void too_many_names(void **state)
{
	enum { N = LIMIT_TREE_NAMES / LIMIT_WORKSPACE_PATH };
	char path[LIMIT_WORKSPACE_PATH];
	const struct stat st = {.st_mode = S_IFREG};
	struct tree t;
	(void)state;
	memset(path, 'x', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_true(tree_begin(&t, top));
	for (int i = 0; i < N; i++)
		assert_int_equal(tree_add(&t, path, &st), 0);
	assert_int_equal(tree_add(&t, "", &st), ENOMEM);
	tree_free(&t);
}

struct seen {
	char text[256];
};

static int note(struct seen *seen, const char *mark, const struct walk_at *at)
{
	strncat(seen->text, mark, sizeof(seen->text) - strlen(seen->text) - 1);
	strncat(seen->text, at->path, sizeof(seen->text) - strlen(seen->text) - 1);
	return strcmp(at->name, "passed") == 0 ? WALK_PASS : 0;
}

static int before(void *arg, const struct walk_at *at)
{
	return note(arg, " +", at);
}

static int after(void *arg, const struct walk_at *at)
{
	note(arg, " -", at);
	return 0;
}

static int stop(void *arg, const struct walk_at *at)
{
	(void)arg;
	(void)at;
	return 4711;
}

/* A directory comes before what is in it, and only then the next one. */
static void order_of_a_walk(void **state)
{
	struct seen seen = {""};
	const struct walk walk = {.before = before, .after = after, .arg = &seen, .prefix = "p"};
	const struct walk stopped = {.before = stop};
	(void)state;
	assert_true(mkdir("a", 0700) == 0 && mkdir("a/b", 0700) == 0 && mkdir("a/passed", 0700) == 0);
	make_file("a/passed/x");
	make_file("a/f");
	assert_int_equal(walk_tree(top, &walk), 0);
	assert_true(strncmp(seen.text, " +p/a +p/a/f -p/a/f +p/a/", 25) == 0);
	assert_non_null(strstr(seen.text, " +p/a/b -p/a/b"));
	assert_non_null(strstr(seen.text, " +p/a/passed -p/a/passed"));
	assert_string_equal(seen.text + strlen(seen.text) - 5, " -p/a");
	assert_int_equal(walk_tree(top, &stopped), 4711);
}

static int closed(void *arg, int error)
{
	*(int *)arg = error;
	return 0;
}

static int pass_by(void *arg, const struct walk_at *at)
{
	(void)arg;
	(void)at;
	return 0;
}

/* It can be listed, but not looked into: for who is not root, who may do both. */
static void half_closed(void **state)
{
	int error = 0;
	struct seen seen = {""};
	const struct walk telling = {.before = pass_by, .closed = closed, .arg = &error};
	const struct walk plain = {.before = before, .arg = &seen};
	(void)state;
	assert_true(mkdir("half", 0700) == 0 && mkdir("half/in", 0700) == 0 && chmod(top, 0755) == 0);
	make_file("half/file");
	assert_int_equal(chmod("half", 0444), 0);
	assert_true(geteuid() != 0 || seteuid(65534) == 0);
	int walked = walk_tree(top, &plain), at_top = walk_tree("half", &plain);
	int told = walk_tree(top, &telling);
	assert_true(getuid() != 0 || seteuid(0) == 0);
	assert_true(walked == 0 && at_top == EACCES && told == 0 && error == EACCES);
	assert_string_equal(seen.text, " +half");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_of_it, set_up, tear_down),
		cmocka_unit_test_setup_teardown(too_deep, set_up, tear_down),
		cmocka_unit_test_setup_teardown(too_many_names, set_up, tear_down),
		cmocka_unit_test_setup_teardown(half_closed, set_up, tear_down),
		cmocka_unit_test_setup_teardown(order_of_a_walk, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
