/* Limits in a directory of cgroup version 2, which is one of plain files here. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "orchestrator/gate/cgroup.h"
#include "orchestrator/gate/room_limits.h"

static const struct room_limits all = {.mem = 4096, .cpu = 1500, .pids = 7};

static int set_up(void **state)
{
	(void)state;
	char top[] = "/tmp/cage-cgroup.XXXXXX";
	return mkdtemp(top) && chdir(top) == 0 ? 0 : -1;
}

static int tear_down(void **state)
{
	static const char *const names[] = {"cgroup.type", "memory.max",    "memory.swap.max",    "cpu.max",
					    "pids.max",    "memory.events", "memory.oom_control", "pids.events"};
	char here[64];
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(names[i]);
	return getcwd(here, sizeof(here)) && chdir("/") == 0 && rmdir(here) == 0 ? 0 : -1;
}

static void put(const char *name, const char *text)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

static void assert_says(const char *name, const char *expected)
{
	char text[64] = "";
	int fd = open(name, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) >= 0);
	close(fd);
	assert_string_equal(text, expected);
}

static void everything_is_there(void **state)
{
	(void)state;
	struct cgroup group = {.n = 0};
	put("cgroup.type", "domain\n");
	put("memory.max", "");
	put("memory.swap.max", "");
	put("cpu.max", "");
	put("pids.max", "");
	assert_true(cgroup_limit_v2(&group, &all, "."));
	assert_true(group.holds_mem && group.holds_cpu && group.holds_pids);
	assert_says("memory.max", "4096");
	assert_says("memory.swap.max", "0");
	assert_says("cpu.max", "150000 100000");
	assert_says("pids.max", "7");
}

/* One controller that is missing does not lose the others; swap may not be counted at all. */
static void some_are_missing(void **state)
{
	(void)state;
	struct cgroup group = {.n = 0};
	put("memory.max", "");
	assert_true(cgroup_limit_v2(&group, &all, "."));
	assert_true(group.holds_mem && !group.holds_cpu && !group.holds_pids);
	assert_says("memory.max", "4096");
}

static void swap_that_can_not_be_limited(void **state)
{
	(void)state;
	struct cgroup group = {.n = 0};
	put("memory.max", "");
	assert_int_equal(mkdir("memory.swap.max", 0700), 0);
	assert_false(cgroup_limit_v2(&group, &all, "."));
	assert_false(group.holds_mem);
	rmdir("memory.swap.max");
}

static void a_group_without_processes(void **state)
{
	(void)state;
	struct cgroup group = {.n = 0};
	put("cgroup.type", "domain invalid\n");
	put("pids.max", "");
	assert_false(cgroup_limit_v2(&group, &all, "."));
	assert_false(group.holds_pids);
}

/* Version 2 counts in one directory, version 1 in one for each controller: what is not there counts nothing. */
static void limits_that_were_reached(void **state)
{
	(void)state;
	struct cgroup group = {.n = 1, .dirs = {"."}};
	struct cgroup_events none = cgroup_events(&group);
	assert_true(none.killed == 0 && none.refused == 0);
	put("memory.events", "low 0\nhigh 0\nmax 31\noom 2\noom_kill 3\noom_group_kill 9\n");
	put("pids.events", "max 12\n");
	struct cgroup_events some = cgroup_events(&group);
	assert_true(some.killed == 3 && some.refused == 12);
	unlink("memory.events");
	put("memory.oom_control", "oom_kill_disable 1\nunder_oom 1\noom_kill 4\n");
	assert_true(cgroup_events(&group).killed == 4);
}

/* A gate that was killed has left its own, and we have its number; so often, and no more. */
static void a_name_that_is_taken(void **state)
{
	(void)state;
	char last[CGROUP_PATH] = "";
	for (int i = 0; i < LIMIT_ROOM_CGROUPS; i++) {
		struct cgroup group = {.n = 0};
		assert_int_equal(cgroup_make_dir(&group, "."), 0);
		assert_int_equal(group.n, 1);
		assert_string_not_equal(group.dirs[0], last);
		memcpy(last, group.dirs[0], sizeof(last));
	}
	struct cgroup more = {.n = 0};
	assert_int_equal(cgroup_make_dir(&more, "."), -1);
	assert_int_equal(more.n, 0);
	snprintf(last, sizeof(last), "./cage-%d", (int)getpid());
	assert_int_equal(rmdir(last), 0);
	for (int i = 1; i < LIMIT_ROOM_CGROUPS; i++) {
		snprintf(last, sizeof(last), "./cage-%d-%d", (int)getpid(), i);
		assert_int_equal(rmdir(last), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(everything_is_there, set_up, tear_down),
		cmocka_unit_test_setup_teardown(some_are_missing, set_up, tear_down),
		cmocka_unit_test_setup_teardown(swap_that_can_not_be_limited, set_up, tear_down),
		cmocka_unit_test_setup_teardown(limits_that_were_reached, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_name_that_is_taken, set_up, tear_down),
		cmocka_unit_test_setup_teardown(a_group_without_processes, set_up, tear_down),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
