/* A keeper whose room is this test: what it keeps of a workspace at most, and what it does with frames that nobody should send. */
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

#include "orchestrator/keeper/keeper.h"
#include "orchestrator/tree_whole.h"

static struct keeper k;
static int room; /* where the room writes */
static char top[32];

static int set_up(void **state)
{
	(void)state;
	int ends[2];
	memset(&k, 0, sizeof(k));
	k.signals = k.output.fd = k.room.control = k.client.listening = k.client.fd = -1;
	k.fill.fd = k.pull.fd = k.tools.fd = -1;
	for (size_t i = 0; i < LIMIT_KEEPER_PUBLISHED; i++)
		k.publish.listening[i] = -1;
	snprintf(top, sizeof(top), "/tmp/cage-keeper.XXXXXX");
	if (!mkdtemp(top) || chdir(top) != 0 || pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0)
		return -1;
	wire_open(&k.wire, open("/dev/null", O_WRONLY | O_CLOEXEC), ends[0]);
	room = ends[1];
	keeper_enter(&k, KEEPER_STARTING);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	close(room);
	wire_close(&k.wire);
	spec_free(&k.spec);
	if (chdir("/") != 0)
		return -1;
	tree_remove(top);
	return 0;
}

/* The room says that of the job that is under way. */
static void say(enum frame_kind kind, uint16_t id, struct slice payload)
{
	char header[FRAME_HEADER];
	frame_header(header, kind, id, payload.len);
	assert_int_equal(write(room, header, sizeof(header)), sizeof(header));
	assert_int_equal(write(room, payload.ptr, payload.len), payload.len);
	wire_drain(&k);
}

static uint16_t job(void)
{
	for (size_t i = 0; i < LIMIT_INSIDE_JOBS; i++)
		if (k.wire.tasks[i].heard)
			return k.wire.tasks[i].id;
	return 0;
}

static void answer(struct slice payload)
{
	uint16_t id = job();
	assert_int_not_equal(id, 0);
	if (payload.len > 0)
		say(FRAME_OUT, id, payload);
	say(FRAME_DONE, id, SLICE("exit 0"));
}

/* ---- what is kept ---- */

static void begin_to_keep(const char *disk)
{
	k.spec.keep = true;
	words_add(&k.spec.run, "--tmpfs");
	words_add(&k.spec.run, "/workspace:%s", disk);
	keeper_enter(&k, KEEPER_RUNNING);
	k.result.state = RESULT_SUCCEEDED;
	keeper_enter(&k, KEEPER_PULLING);
	pull_begin(&k);
}

static size_t names_below(const char *path)
{
	struct stat st;
	size_t n = 0;
	char name[64];
	for (int c = 'a'; c <= 'z'; c++) {
		snprintf(name, sizeof(name), "%s/%c", path, c);
		n += stat(name, &st) == 0;
	}
	return n;
}

static void assert_missing(const char *number)
{
	char text[LIMIT_KEEPER_MESSAGE];
	pull_end(&k);
	snprintf(text, sizeof(text), "the workspace is not kept as a whole: %s files or directories are missing",
		 number);
	assert_string_equal(k.result.message, text);
}

static void more_names_than_are_kept(void **state)
{
	(void)state;
	begin_to_keep("1G");
	answer(SLICE("f 0 a\0f 0 b\0f 0 c\0f 0 d\0f 0 e\0f 0 f\0f 0 g\0f 0 h\0f 0 i\0"));
	while (k.state == KEEPER_PULLING)
		answer(SLICE_NONE);
	assert_int_equal(names_below("kept"), 7); /* the workspace is one of them */
	assert_missing("2");
}

static bool is_kept(const char *path, off_t size)
{
	struct stat st;
	return stat(path, &st) == 0 && st.st_size == size;
}

/* In blocks of four, of which there are five whatever the disk. What was begun and does not fit is not left. */
static void more_bytes_than_are_kept(void **state)
{
	(void)state;
	begin_to_keep("1G");
	answer(SLICE("f 6 a\0f 6 b\0f 6 c\0f 21 d\0"));
	answer(SLICE("123456"));
	answer(SLICE("123456"));
	uint16_t id = job();
	say(FRAME_OUT, id, SLICE("123456"));
	assert_true(k.state > KEEPER_PULLING);
	assert_true(is_kept("kept/a", 6) && is_kept("kept/b", 6));
	assert_int_equal(names_below("kept"), 2);
	assert_missing("2");
}

/* One that has grown since it was listed makes no room for others, and does not keep them out. */
static void more_bytes_than_the_disk_had(void **state)
{
	(void)state;
	begin_to_keep("8");
	answer(SLICE("f 9 a\0f 1 b\0f 1 c\0f 1 d\0f 1 e\0"));
	uint16_t id = job();
	say(FRAME_OUT, id, SLICE("123456789"));
	say(FRAME_DONE, id, SLICE("error 125"));
	answer(SLICE("1"));
	id = job();
	say(FRAME_OUT, id, SLICE("12"));
	say(FRAME_DONE, id, SLICE("error 5"));
	answer(SLICE("1"));
	assert_true(k.state > KEEPER_PULLING);
	assert_true(is_kept("kept/c", 1) && is_kept("kept/e", 1));
	assert_int_equal(names_below("kept"), 2);
	assert_missing("3");
}

/* Directories take their place too, and their files with them. */
static void more_directories_than_the_disk_had(void **state)
{
	(void)state;
	begin_to_keep("8");
	answer(SLICE("d 0 a\0d 0 b\0d 0 c\0f 0 d\0"));
	answer(SLICE_NONE);
	answer(SLICE_NONE);
	answer(SLICE_NONE);
	assert_true(k.state > KEEPER_PULLING);
	assert_int_equal(names_below("kept"), 3);
	assert_missing("1");
}

/* Its time is over while a file is read. */
static void what_was_begun_is_not_left(void **state)
{
	(void)state;
	begin_to_keep("1G");
	answer(SLICE("f 6 a\0f 6 b\0"));
	say(FRAME_OUT, job(), SLICE("123"));
	keeper_time_is_over(&k);
	assert_missing("2");
	assert_int_equal(names_below("kept"), 0);
}

static void a_disk_of_which_nothing_is_known(void **state)
{
	(void)state;
	begin_to_keep("x");
	answer(SLICE("f 6 a\0"));
	assert_true(k.state > KEEPER_PULLING);
	assert_missing("1");
}

static void deeper_than_is_kept(void **state)
{
	(void)state;
	struct stat st;
	begin_to_keep("1G");
	for (int i = 0; i < 4 && k.state == KEEPER_PULLING; i++)
		answer(SLICE("d 0 a\0"));
	assert_true(k.state > KEEPER_PULLING);
	assert_true(stat("kept/a/a/a", &st) == 0 && stat("kept/a/a/a/a", &st) != 0);
	assert_missing("1");
}

/* Of a name that is there twice, or leads elsewhere, and of what is no file, nothing is made. */
static void names_that_nobody_has(void **state)
{
	(void)state;
	struct stat st;
	begin_to_keep("1G");
	answer(SLICE("f 0 a\0f 0 a\0f 0 ../x\0f 0 ..\0f 0 /etc/x\0l 0 b\0p 0 c\0s 0 d\0d -1 e\0"));
	while (k.state == KEEPER_PULLING)
		answer(SLICE_NONE);
	assert_int_equal(names_below("kept"), 1);
	assert_true(stat("x", &st) != 0 && stat("kept/x", &st) != 0);
	assert_missing("1");
}

/* ---- frames that are forged ---- */

static void run(void)
{
	keeper_enter(&k, KEEPER_RUNNING);
	k.result.began_us = 1;
}

static void assert_ended_for(const char *message)
{
	assert_true(k.state >= KEEPER_LEAVING);
	assert_string_equal(k.result.reason, "room.failed");
	assert_string_equal(k.result.message, message);
}

static void a_length_that_is_none(void **state)
{
	(void)state;
	char header[FRAME_HEADER];
	run();
	frame_header(header, FRAME_OUT, 1, LIMIT_INSIDE_FRAME + 1);
	assert_int_equal(write(room, header, sizeof(header)), sizeof(header));
	wire_drain(&k);
	assert_true(k.wire.in < 0 && k.wire.out < 0);
	assert_ended_for("cage-inside said what it never says");
}

static void a_kind_that_is_none(void **state)
{
	(void)state;
	run();
	assert_int_equal(write(room, "Xabcdefg", 8), 8);
	wire_drain(&k);
	assert_ended_for("cage-inside said what it never says");
}

/* Nobody has asked for them: neither the command's end nor a job's is to be had that way. */
static void ids_of_no_job(void **state)
{
	(void)state;
	run();
	for (unsigned id = 0; id < UINT16_MAX; id += 257) {
		say(FRAME_OUT, (uint16_t)id, SLICE("forged"));
		say(FRAME_DONE, (uint16_t)id, SLICE("exit 0"));
		say(FRAME_READY, (uint16_t)id, SLICE_NONE);
	}
	assert_int_equal(k.state, KEEPER_RUNNING);
	assert_int_equal(k.result.state, RESULT_NONE);
	assert_int_equal(k.result.output_bytes, 0);
}

/* What only the keeper says does nothing when it comes back. */
static void frames_of_the_keeper(void **state)
{
	(void)state;
	static const char kinds[] = "RGPLNDECKMFTH";
	run();
	for (const char *kind = kinds; *kind; kind++)
		say((enum frame_kind) * kind, 1, SLICE("asked"));
	assert_int_equal(k.state, KEEPER_RUNNING);
	assert_int_equal(k.wire.to.len, 0);
}

static void half_a_frame(void **state)
{
	(void)state;
	char header[FRAME_HEADER];
	run();
	frame_header(header, FRAME_DONE, 0, 100);
	assert_int_equal(write(room, header, sizeof(header)), sizeof(header));
	close(room);
	wire_drain(&k);
	assert_int_equal(k.state, KEEPER_RUNNING); /* the end of cage run, which follows, is what counts */
	assert_true(k.wire.out < 0);
	room = open("/dev/null", O_WRONLY | O_CLOEXEC);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {TEST(more_names_than_are_kept),
					   TEST(more_bytes_than_are_kept),
					   TEST(more_bytes_than_the_disk_had),
					   TEST(more_directories_than_the_disk_had),
					   TEST(what_was_begun_is_not_left),
					   TEST(a_disk_of_which_nothing_is_known),
					   TEST(deeper_than_is_kept),
					   TEST(names_that_nobody_has),
					   TEST(a_length_that_is_none),
					   TEST(a_kind_that_is_none),
					   TEST(ids_of_no_job),
					   TEST(frames_of_the_keeper),
					   TEST(half_a_frame)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
