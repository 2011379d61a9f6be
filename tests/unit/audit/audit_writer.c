/* The writer: the chain, restarts and kills, full disks, reopening, and the closing of what a dead worker left. */
#include "tests/unit/audit/support.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/sha.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/audit/chain.h"
#include "core/audit/writer.h"
#include "core/base/limits.h"

#define RINGS 2

static char dir[] = "/tmp/cage-audit-XXXXXX";
static char path[64], path2[64];

struct fixture {
	struct audit_ring *rings[RINGS];
	struct audit_writer_shared *shared;
	struct audit_writer *w;
};

/* ---- a write() that fails or kills, in place of libc's ---- */

enum trouble { NO_TROUBLE, KILL_BEFORE, KILL_AFTER, KILL_HALFWAY, DISK_FULL_HALFWAY };

static enum trouble trouble;

ssize_t write(int fd, const void *buf, size_t n)
{
	enum trouble now = fd > 2 ? trouble : NO_TROUBLE;
	if (now == KILL_BEFORE)
		raise(SIGKILL);
	if (now == KILL_HALFWAY || now == DISK_FULL_HALFWAY)
		n = (n + 1) / 2;
	if (now == DISK_FULL_HALFWAY && n < 20) {
		errno = ENOSPC;
		return -1;
	}
	ssize_t done = syscall(SYS_write, fd, buf, n);
	if (now == KILL_AFTER || now == KILL_HALFWAY)
		raise(SIGKILL);
	return done;
}

/* ---- set up ---- */

static void open_writer(struct fixture *f)
{
	f->w = audit_writer_new(path, f->shared, f->rings, RINGS);
	assert_non_null(f->w);
}

static int setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));
	trouble = NO_TROUBLE;
	unlink(path);
	unlink(path2);
	for (size_t i = 0; i < RINGS; i++)
		f->rings[i] = audit_ring_init(shared_memory(audit_ring_size()));
	f->shared = shared_memory(sizeof(*f->shared));
	open_writer(f);
	assert_false(audit_is_available(f->rings[0])); /* nobody knows yet whether it can write */
	assert_int_equal(audit_writer_flush(f->w), CAGE_OK);
	assert_true(audit_is_available(f->rings[0]));
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;
	audit_writer_free(&f->w);
	for (size_t i = 0; i < RINGS; i++)
		ring_free_memory(f->rings[i]);
	munmap(f->shared, sizeof(*f->shared));
	free(f);
	return 0;
}

static void note(struct fixture *f, size_t ring, uint64_t conn)
{
	struct audit_event e = sample_note(conn);
	assert_int_equal(audit_note(f->rings[ring], &e), CAGE_OK);
}

static void intent(struct fixture *f, size_t ring, uint64_t conn, uint64_t txn)
{
	struct audit_event e = sample_intent(conn, txn);
	assert_int_equal(audit_intent(f->rings[ring], &e), CAGE_OK);
}

static void result(struct fixture *f, size_t ring, uint64_t conn, uint64_t txn)
{
	struct audit_event e = sample_result(conn, txn);
	audit_result(f->rings[ring], &e);
}

static void flush(struct fixture *f)
{
	assert_int_equal(audit_writer_flush(f->w), CAGE_OK);
}

/* ---- reading back ---- */

static struct slice read_file(const char *name)
{
	int fd = open(name, O_RDONLY);
	struct stat st;
	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	char *buf = malloc((size_t)st.st_size + 1);
	assert_int_equal(read(fd, buf, (size_t)st.st_size), st.st_size);
	close(fd);
	return slice_of(buf, (size_t)st.st_size);
}

static void put_file(const char *name, struct slice s)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC, 0640);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, s.ptr, s.len), (ssize_t)s.len);
	close(fd);
}

/* Where a check of the chain stands. */
struct check {
	uint64_t seq;
	char prev[65];
};

static struct check check_start(void)
{
	struct check c = {.seq = 1};
	memset(c.prev, '0', 64);
	return c;
}

/* As an auditor would, without the code under test. */
static void check_line(struct check *c, struct slice line)
{
	char start[96], end[256];
	unsigned char sum[SHA256_DIGEST_LENGTH];
	snprintf(start, sizeof(start),
		 "{\"schema\":\"cage.log/1\",\"ts\":\"2026-11-16T04:03:41.123456Z\",\"seq\":%llu,\"event\":",
		 (unsigned long long)c->seq);
	if (!slice_has(line, "worker.died") && !slice_has(line, "internal.error") &&
	    !slice_has(line, "log.unavailable"))
		assert_true(slice_starts(line, slice_str(start)));
	snprintf(end, sizeof(end), ",\"prev\":\"%s\"", c->prev);
	struct slice covered = slice_head(line, line.len - 75);
	assert_true(slice_ends(covered, slice_str(end)));
	char *plain = malloc(covered.len + 1);
	memcpy(plain, covered.ptr, covered.len);
	plain[covered.len] = '}';
	SHA256((unsigned char *)plain, covered.len + 1, sum);
	free(plain);
	for (size_t i = 0; i < sizeof(sum); i++)
		snprintf(c->prev + 2 * i, 3, "%02x", sum[i]);
	snprintf(end, sizeof(end), ",\"hash\":\"%s\"}", c->prev);
	assert_true(slice_eq(slice_from(line, covered.len), slice_str(end)));
	c->seq++;
}

/* Checks the whole file; returns how many lines it has, and how many contain `part`. */
static size_t check_file(const char *name, struct check *c, const char *part, size_t *with_part)
{
	struct slice all = read_file(name), rest = all;
	size_t n = 0;
	*with_part = 0;
	assert_true(all.len == 0 || all.ptr[all.len - 1] == '\n');
	while (rest.len > 0) {
		struct slice line = slice_cut(&rest, '\n');
		check_line(c, line);
		*with_part += slice_has(line, part);
		n++;
	}
	free((char *)(uintptr_t)all.ptr);
	return n;
}

static void assert_lines(const char *name, size_t n)
{
	struct check c = check_start();
	size_t part;
	assert_int_equal(check_file(name, &c, "x", &part), n);
}

/* Each of the n notes (conn 1..n) is there once and in order. */
static void assert_conns_in_order(const char *name, uint64_t n)
{
	struct slice all = read_file(name), rest = all;
	for (uint64_t conn = 1; conn <= n; conn++) {
		char key[48];
		snprintf(key, sizeof(key), "\"conn\":\"%016llx\",", (unsigned long long)conn);
		assert_true(slice_has(slice_cut(&rest, '\n'), key));
	}
	assert_int_equal(rest.len, 0);
	free((char *)(uintptr_t)all.ptr);
}

/* ---- the chain ---- */

static void lines_are_chained(void **state)
{
	struct fixture *f = *state;
	flush(f);
	assert_lines(path, 0);
	intent(f, 0, 1, 1);
	note(f, 1, 2);
	flush(f);
	result(f, 0, 1, 1);
	flush(f);
	assert_lines(path, 3);
	assert_int_equal(audit_ring_pending(f->rings[0]) + audit_ring_pending(f->rings[1]), 0);
}

static void many_batches(void **state)
{
	struct fixture *f = *state;
	for (uint64_t i = 1; i <= 5000; i++)
		note(f, 0, i);
	flush(f);
	assert_lines(path, 5000);
	assert_conns_in_order(path, 5000);
}

static void file_mode_and_type(void **state)
{
	(void)state;
	struct stat st;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0137, 0);
	assert_true(S_ISREG(st.st_mode));
}

static void restart_goes_on(void **state)
{
	struct fixture *f = *state;
	note(f, 0, 1);
	flush(f);
	audit_writer_free(&f->w);
	memset(f->shared, 0, sizeof(*f->shared));
	open_writer(f);
	note(f, 0, 2);
	flush(f);
	assert_lines(path, 2);
}

/* The last line is cut at every length: it is dropped, and the chain goes on from the one before. */
static void torn_line_is_cut_off(void **state)
{
	struct fixture *f = *state;
	note(f, 0, 1);
	note(f, 0, 2);
	flush(f);
	audit_writer_free(&f->w);
	struct slice all = read_file(path);
	size_t first = slice_find(all, '\n') + 1;
	for (size_t len = 1; len < all.len; len++) {
		put_file(path, slice_head(all, len));
		memset(f->shared, 0, sizeof(*f->shared));
		open_writer(f);
		note(f, 0, 3);
		flush(f);
		audit_writer_free(&f->w);
		assert_lines(path, len < first ? 1 : 2);
	}
	free((char *)(uintptr_t)all.ptr);
}

/* A refusal says so and leaves the file alone. */
static void assert_refused(struct fixture *f, struct slice content)
{
	put_file(path, content);
	memset(f->shared, 0, sizeof(*f->shared));
	assert_null(audit_writer_new(path, f->shared, f->rings, RINGS));
	struct slice after = read_file(path);
	assert_true(slice_eq(after, content));
	free((char *)(uintptr_t)after.ptr);
}

static void foreign_last_line_is_refused(void **state)
{
	struct fixture *f = *state;
	note(f, 0, 1);
	flush(f);
	audit_writer_free(&f->w);
	assert_refused(f, SLICE("hello\n"));
	assert_refused(f, SLICE("hello"));
	assert_refused(f, SLICE("\n"));
	assert_refused(f, SLICE("{\"schema\":\"cage.log/1\"}\n"));
	assert_refused(f, SLICE("{\"schema\":\"cage.log/2\",\"ts\":\"20"));
	char *big = malloc(MIB(1));
	memset(big, 'a', MIB(1));
	assert_refused(f, slice_of(big, MIB(1)));
	free(big);
}

/* Every byte of a line counts. */
static void changed_last_line_is_refused(void **state)
{
	struct fixture *f = *state;
	struct audit_hasher h;
	struct audit_chain after;
	note(f, 0, 1);
	flush(f);
	audit_writer_free(&f->w);
	struct slice all = read_file(path), line = slice_head(all, all.len - 1);
	char *bytes = (char *)(uintptr_t)all.ptr;
	assert_true(audit_hasher_init(&h));
	assert_true(audit_chain_read(&h, line, &after));
	assert_int_equal(after.next_seq, 2);
	for (size_t i = 0; i < line.len; i++) {
		bytes[i] ^= 1;
		assert_false(audit_chain_read(&h, line, &after));
		bytes[i] ^= 1;
		assert_false(audit_chain_read(&h, slice_head(line, i), &after));
	}
	bytes[line.len / 2] ^= 1;
	assert_refused(f, all);
	audit_hasher_free(&h);
	free(bytes);
}

static void symlink_and_second_writer_are_refused(void **state)
{
	struct fixture *f = *state;
	struct audit_writer_shared other = {0};
	assert_null(audit_writer_new(path, &other, f->rings, RINGS));
	audit_writer_free(&f->w);
	assert_int_equal(symlink(path, path2), 0);
	assert_null(audit_writer_new(path2, &other, f->rings, RINGS));
	assert_null(audit_writer_new(dir, &other, f->rings, RINGS));
	assert_null(audit_writer_new("/nowhere/at/all", &other, f->rings, RINGS));
}

/* ---- a writer that is killed ---- */

/* Lets a child flush until its write kills it, then goes on with a new writer. */
static void flush_and_die(struct fixture *f, enum trouble how)
{
	int status;
	audit_writer_free(&f->w);
	pid_t pid = fork();
	if (pid == 0) {
		f->w = audit_writer_new(path, f->shared, f->rings, RINGS);
		trouble = how;
		_exit(f->w && audit_writer_flush(f->w) == CAGE_OK ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	open_writer(f);
}

static void killed_writer_neither_loses_nor_repeats(void **state)
{
	struct fixture *f = *state;
	static const enum trouble ways[] = {KILL_BEFORE, KILL_AFTER, KILL_HALFWAY};
	uint64_t conn = 0;
	for (size_t i = 0; i < 12; i++) {
		for (int k = 0; k < 7; k++)
			note(f, 0, ++conn);
		flush_and_die(f, ways[i % 3]);
		if (i % 2)
			note(f, 0, ++conn);
		flush(f);
		assert_int_equal(audit_ring_pending(f->rings[0]), 0);
	}
	assert_lines(path, conn);
	assert_conns_in_order(path, conn);
}

static void killed_writer_in_the_middle_of_many_batches(void **state)
{
	struct fixture *f = *state;
	for (uint64_t i = 1; i <= 4000; i++)
		note(f, 0, i);
	for (int i = 0; i < 3; i++) {
		flush_and_die(f, KILL_AFTER);
		flush_and_die(f, KILL_HALFWAY);
	}
	flush(f);
	assert_lines(path, 4000);
	assert_conns_in_order(path, 4000);
}

static void killed_twice_on_the_way_back(void **state)
{
	struct fixture *f = *state;
	note(f, 0, 1);
	flush_and_die(f, KILL_AFTER);
	audit_writer_free(&f->w);
	open_writer(f);
	note(f, 0, 2);
	flush(f);
	assert_lines(path, 2);
}

static void new_writer_knows_open_intents(void **state)
{
	struct fixture *f = *state;
	intent(f, 0, 1, 1);
	intent(f, 0, 1, 2);
	flush(f);
	intent(f, 0, 1, 3);
	result(f, 0, 1, 1);
	flush_and_die(f, KILL_AFTER);
	assert_int_equal(audit_writer_close_open(f->w, 0), CAGE_OK);
	struct check c = check_start();
	size_t died;
	assert_int_equal(check_file(path, &c, "\"reason\":\"worker.died\"", &died), 6);
	assert_int_equal(died, 2);
}

/* The file ends somewhere else than the log did while the writer was away. */
static void file_that_was_swapped_is_refused(void **state)
{
	struct fixture *f = *state;
	note(f, 0, 1);
	flush(f);
	struct slice old = read_file(path);
	note(f, 0, 2);
	flush(f);
	audit_writer_free(&f->w);
	put_file(path, old);
	assert_null(audit_writer_new(path, f->shared, f->rings, RINGS));
	free((char *)(uintptr_t)old.ptr);
}

/* ---- a disk that is full ---- */

static void assert_stopped(struct fixture *f)
{
	struct audit_event e = sample_intent(1, 1);
	assert_int_equal(audit_writer_flush(f->w), CAGE_ESYS);
	for (size_t i = 0; i < RINGS; i++) {
		assert_false(audit_is_available(f->rings[i]));
		assert_int_equal(audit_intent(f->rings[i], &e), CAGE_ELIMIT);
	}
}

static void full_disk_stops_and_recovers(void **state)
{
	struct fixture *f = *state;
	struct stat before, after;
	for (uint64_t i = 1; i <= 10; i++)
		note(f, 0, i);
	flush(f);
	assert_int_equal(stat(path, &before), 0);
	for (uint64_t i = 11; i <= 30; i++)
		note(f, 0, i);
	trouble = DISK_FULL_HALFWAY;
	assert_stopped(f);
	assert_int_equal(stat(path, &after), 0);
	assert_int_equal(before.st_size, after.st_size);
	note(f, 0, 31);
	assert_stopped(f);
	trouble = NO_TROUBLE;
	flush(f);
	assert_true(audit_is_available(f->rings[0]) && audit_is_available(f->rings[1]));
	assert_lines(path, 31);
	assert_conns_in_order(path, 31);
}

/* A limit of the system itself, with its partial write. */
static void file_size_limit_stops_and_recovers(void **state)
{
	struct fixture *f = *state;
	struct rlimit was, small = {.rlim_cur = 1000};
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	small.rlim_max = was.rlim_max;
	note(f, 0, 1);
	flush(f);
	for (uint64_t i = 2; i <= 9; i++)
		note(f, 0, i);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	enum cage_status st = audit_writer_flush(f->w);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	assert_int_equal(st, CAGE_ESYS);
	assert_lines(path, 1);
	assert_false(audit_is_available(f->rings[0]));
	flush(f);
	assert_lines(path, 9);
	assert_conns_in_order(path, 9);
}

static void full_disk_then_killed(void **state)
{
	struct fixture *f = *state;
	for (uint64_t i = 1; i <= 5; i++)
		note(f, 0, i);
	trouble = DISK_FULL_HALFWAY;
	assert_stopped(f);
	trouble = NO_TROUBLE;
	audit_writer_free(&f->w);
	open_writer(f);
	flush(f);
	assert_conns_in_order(path, 5);
}

/* ---- stdout ---- */

static int swap_stdout(int fd)
{
	fflush(stdout);
	int saved = dup(STDOUT_FILENO);
	dup2(fd, STDOUT_FILENO);
	return saved;
}

static void swap_back(int saved)
{
	dup2(saved, STDOUT_FILENO);
	close(saved);
}

static void pipe_that_is_full_goes_on_in_the_middle(void **state)
{
	struct fixture *f = *state;
	int fds[2];
	static char buf[MIB(1)];
	size_t have = 0;
	assert_int_equal(pipe(fds), 0);
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	audit_writer_free(&f->w);
	int saved = swap_stdout(fds[1]);
	f->w = audit_writer_new("-", f->shared, f->rings, RINGS);
	swap_back(saved);
	close(fds[1]);
	assert_non_null(f->w);
	for (uint64_t i = 1; i <= 500; i++)
		note(f, 0, i);
	size_t failures = 0;
	for (int i = 0; i < 20; i++) {
		enum cage_status st = audit_writer_flush(f->w);
		failures += st != CAGE_OK;
		assert_int_equal(audit_is_available(f->rings[0]), st == CAGE_OK);
		for (ssize_t n; (n = read(fds[0], buf + have, sizeof(buf) - have)) > 0;)
			have += (size_t)n;
		if (st == CAGE_OK)
			break;
	}
	assert_true(failures > 0);
	put_file(path2, slice_of(buf, have));
	assert_lines(path2, 500);
	assert_conns_in_order(path2, 500);
	close(fds[0]);
	note(f, 0, 501);
	assert_int_equal(audit_writer_flush(f->w), CAGE_ESYS);
	assert_int_equal(errno, EPIPE);
	assert_int_equal(audit_writer_reopen(f->w), CAGE_OK);
}

static void full_device_is_an_error(void **state)
{
	struct fixture *f = *state;
	audit_writer_free(&f->w);
	f->w = audit_writer_new("/dev/full", f->shared, f->rings, RINGS);
	assert_non_null(f->w);
	note(f, 0, 1);
	assert_stopped(f);
	assert_true(audit_ring_pending(f->rings[0]) > 0);
}

static off_t size_of(const char *name)
{
	struct stat st;
	assert_int_equal(stat(name, &st), 0);
	return st.st_size;
}

/* What is beyond it stays in the ring, and the last line says why; so it is after a restart, and until there is another file. */
static void a_bound_stops_everything(void **state)
{
	struct fixture *f = *state;
	size_t lines = 0;
	const off_t most = LIMIT_LOG_LEAST;
	audit_writer_bound(f->w, LIMIT_LOG_LEAST, false);
	for (uint64_t i = 1; i < 5000 && lines == 0; i++) {
		note(f, 0, i);
		if (audit_writer_flush(f->w) != CAGE_OK)
			lines = i; /* one that was not written, and the last one */
	}
	assert_true(lines > 100);
	assert_int_equal(errno, EFBIG);
	assert_false(audit_is_available(f->rings[0]));
	assert_true(audit_ring_pending(f->rings[0]) > 0);
	assert_lines(path, lines);
	const off_t full = size_of(path);
	assert_true(full <= most && full > most - 2 * (off_t)AUDIT_LINE_MAX);
	assert_stopped(f);
	assert_int_equal(size_of(path), full);
	audit_writer_free(&f->w);
	open_writer(f);
	audit_writer_bound(f->w, LIMIT_LOG_LEAST, false);
	assert_stopped(f);
	assert_true(size_of(path) <= most);
	assert_int_equal(rename(path, path2), 0);
	assert_int_equal(audit_writer_reopen(f->w), CAGE_OK);
	flush(f);
	assert_true(audit_is_available(f->rings[0]));
}

/* Nothing is refused and no line is lost: the chain goes on from the old file into the new one, and so it does each time. */
static void a_bound_that_turns(void **state)
{
	struct fixture *f = *state;
	const off_t most = LIMIT_LOG_TURN;
	char old[sizeof(path) + 8];
	struct check c = check_start();
	uint64_t id = 0;
	size_t part, lines = 0;
	snprintf(old, sizeof(old), "%s.old", path);
	audit_writer_bound(f->w, LIMIT_LOG_TURN, true);
	for (unsigned turns = 0; turns < 3; turns++) {
		do {
			note(f, 0, ++id);
			flush(f);
		} while (size_of(path) > most / 2 || id < 2 || access(old, F_OK) != 0);
		assert_true(audit_is_available(f->rings[0]));
		assert_true(size_of(old) <= most && size_of(old) > most / 2);
		lines += check_file(old, &c, "x", &part);
		while (size_of(path) <= most / 2) {
			note(f, 0, ++id);
			flush(f);
		}
	}
	assert_int_equal(lines + check_file(path, &c, "x", &part), id);
	unlink(old);
}

/* Where it can't be done it is as with any other bound, until it can. */
static void a_bound_that_can_not_turn(void **state)
{
	struct fixture *f = *state;
	const off_t most = LIMIT_LOG_TURN;
	char old[sizeof(path) + 8];
	struct check c = check_start();
	uint64_t id = 0;
	size_t part;
	snprintf(old, sizeof(old), "%s.old", path);
	assert_int_equal(mkdir(old, 0700), 0);
	audit_writer_bound(f->w, LIMIT_LOG_TURN, true);
	do
		note(f, 0, ++id);
	while (audit_writer_flush(f->w) == CAGE_OK);
	assert_stopped(f);
	assert_true(size_of(path) <= most);
	assert_int_equal(rmdir(old), 0);
	flush(f);
	assert_true(audit_is_available(f->rings[0]));
	assert_int_equal(check_file(old, &c, "x", &part), id); /* with the one that says why there are no more */
	assert_int_equal(check_file(path, &c, "x", &part), 1);
	unlink(old);
}

/* ---- reopening ---- */

static void reopen_goes_on_in_a_new_file(void **state)
{
	struct fixture *f = *state;
	struct check c = check_start();
	size_t part;
	note(f, 0, 1);
	flush(f);
	assert_int_equal(audit_writer_reopen(f->w), CAGE_OK);
	note(f, 0, 2);
	flush(f);
	assert_int_equal(rename(path, path2), 0);
	note(f, 0, 3);
	flush(f);
	assert_int_equal(audit_writer_reopen(f->w), CAGE_OK);
	note(f, 0, 4);
	flush(f);
	assert_int_equal(check_file(path2, &c, "x", &part), 3);
	assert_int_equal(check_file(path, &c, "x", &part), 1);
	/* The chain of an empty file goes on over a restart of the writer alone. */
	assert_int_equal(rename(path, path2), 0);
	assert_int_equal(audit_writer_reopen(f->w), CAGE_OK);
	audit_writer_free(&f->w);
	open_writer(f);
	note(f, 0, 5);
	flush(f);
	assert_int_equal(check_file(path, &c, "x", &part), 1);
}

static void reopen_keeps_the_old_file_when_it_must(void **state)
{
	struct fixture *f = *state;
	note(f, 0, 1);
	flush(f);
	assert_int_equal(rename(path, path2), 0);
	put_file(path, SLICE("something else\n"));
	assert_int_equal(audit_writer_reopen(f->w), CAGE_ESYS);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(audit_writer_reopen(f->w), CAGE_ESYS);
	assert_int_equal(rmdir(path), 0);
	note(f, 0, 2);
	flush(f);
	assert_lines(path2, 2);
}

static void reopen_with_a_batch_waiting(void **state)
{
	struct fixture *f = *state;
	note(f, 0, 1);
	note(f, 0, 2);
	trouble = DISK_FULL_HALFWAY;
	assert_stopped(f);
	trouble = NO_TROUBLE;
	assert_int_equal(rename(path, path2), 0);
	assert_int_equal(audit_writer_reopen(f->w), CAGE_OK);
	flush(f);
	assert_lines(path2, 0);
	assert_lines(path, 2);
}

/* ---- workers that die or lie ---- */

static void open_intents_are_closed(void **state)
{
	struct fixture *f = *state;
	for (uint64_t i = 1; i <= 100; i++)
		intent(f, 0, 7, i);
	intent(f, 1, 8, 1);
	for (uint64_t i = 1; i <= 100; i += 2)
		result(f, 0, 7, i);
	assert_int_equal(audit_writer_close_open(f->w, 0), CAGE_OK);
	assert_int_equal(audit_writer_close_open(f->w, 0), CAGE_OK);
	assert_int_equal(audit_writer_close_open(f->w, RINGS), CAGE_OK);
	struct check c = check_start();
	size_t died;
	assert_int_equal(check_file(path, &c,
				    "\"event\":\"error\",\"sandbox\":\"box\",\"policy\":\"coder\",\"gen\":2,"
				    "\"conn\":\"0000000000000007\",\"txn\":",
				    &died),
			 200);
	assert_int_equal(died, 50);
	audit_ring_adopt(f->rings[0]);
	intent(f, 0, 9, 1);
	result(f, 0, 9, 1);
	result(f, 1, 8, 1);
	flush(f);
	assert_lines(path, 204);
}

static void every_intent_a_ring_can_have_is_closed(void **state)
{
	struct fixture *f = *state;
	size_t n = 0, died;
	for (struct audit_event e = sample_intent(1, 1); audit_intent(f->rings[0], &e) == CAGE_OK; e.txn++) {
		n++;
		flush(f);
	}
	assert_int_equal(audit_writer_close_open(f->w, 0), CAGE_OK);
	struct check c = check_start();
	assert_int_equal(check_file(path, &c, "worker.died", &died), 2 * n);
	assert_int_equal(died, n);
	audit_ring_adopt(f->rings[0]);
	assert_true(audit_is_available(f->rings[0]));
}

static void closing_waits_for_the_disk(void **state)
{
	struct fixture *f = *state;
	intent(f, 0, 1, 1);
	flush(f);
	trouble = DISK_FULL_HALFWAY;
	assert_int_equal(audit_writer_close_open(f->w, 0), CAGE_ESYS);
	trouble = NO_TROUBLE;
	assert_int_equal(audit_writer_close_open(f->w, 0), CAGE_OK);
	assert_lines(path, 2);
}

static void assert_takes_nothing(struct fixture *f)
{
	for (size_t i = 0; i < RINGS; i++)
		assert_false(audit_ring_is_written(f->rings[i]));
}

/* Its worker may still live: nothing may open its ring to it again. */
static void a_closing_writer_takes_nothing_more(void **state)
{
	struct fixture *f = *state;
	intent(f, 0, 1, 1);
	intent(f, 1, 2, 1);
	audit_writer_take_no_more(f->w);
	assert_takes_nothing(f);
	trouble = DISK_FULL_HALFWAY;
	assert_stopped(f);
	trouble = NO_TROUBLE;
	flush(f);
	assert_takes_nothing(f);
	result(f, 0, 1, 1); /* what it still puts there is written */
	for (size_t i = 0; i < RINGS; i++)
		assert_int_equal(audit_writer_close_open(f->w, i), CAGE_OK);
	assert_takes_nothing(f);
	assert_lines(path, 4);
}

/* Finds the text in the ring's memory and changes it, as a worker that was taken over could. */
static void forge(struct audit_ring *r, const char *from, const char *to)
{
	char *at = memmem(r, audit_ring_size(), from, strlen(from));
	assert_non_null(at);
	assert_int_equal(strlen(from), strlen(to));
	memcpy(at, to, strlen(to));
}

static void forged_record_never_reaches_the_file(void **state)
{
	struct fixture *f = *state;
	static const char *const to[] = {
		"\"host\":\"evil.te\n}\"", /* a line of its own */
		"\"hash\":\"evil.test\"",  /* a key of the writer's */
		"\"host\":\"evil.tes\"}",  /* out of the object */
	};
	note(f, 1, 1);
	flush(f);
	for (size_t i = 0; i < sizeof(to) / sizeof(to[0]); i++) {
		note(f, 0, 2);
		note(f, 0, 3);
		forge(f->rings[0], "\"host\":\"evil.test\"", to[i]);
		flush(f);
		assert_false(audit_is_available(f->rings[0]));
		assert_true(audit_is_available(f->rings[1]));
		assert_true(audit_writer_distrusts(f->w, 0) && !audit_writer_distrusts(f->w, 1));
		/* Its worker is replaced. */
		assert_int_equal(audit_writer_close_open(f->w, 0), CAGE_OK);
		audit_ring_reset(f->rings[0]);
		memset((char *)f->rings[0] + audit_ring_size() - LIMIT_LOG_RING, 0, LIMIT_LOG_RING);
		audit_ring_adopt(f->rings[0]);
		assert_true(audit_is_available(f->rings[0]));
	}
	note(f, 1, 4);
	flush(f);
	struct check c = check_start();
	size_t internal;
	assert_int_equal(check_file(path, &c, "\"reason\":\"internal.error\",\"stage\":\"log\"", &internal), 5);
	assert_int_equal(internal, 3);
}

/* The worker of ring 1 says something; it is taken, or the worker is no longer trusted and nothing of it is written. */
static void assert_taken(struct fixture *f, const struct audit_event *e, bool taken)
{
	struct slice before = read_file(path);
	assert_int_equal(audit_note(f->rings[1], e), CAGE_OK);
	flush(f);
	assert_int_equal(audit_writer_distrusts(f->w, 1), !taken);
	struct slice after = read_file(path);
	assert_true(after.len > before.len);
	assert_int_equal(slice_has(slice_from(after, before.len), "internal.error"), !taken);
	assert_int_equal(audit_writer_close_open(f->w, 1), CAGE_OK);
	audit_ring_adopt(f->rings[1]);
	free((char *)(uintptr_t)before.ptr);
	free((char *)(uintptr_t)after.ptr);
}

static void a_worker_speaks_of_its_own_only(void **state)
{
	struct fixture *f = *state;
	static const enum audit_kind own[] = {AUDIT_CONNECT, AUDIT_REQUEST, AUDIT_RESPONSE, AUDIT_MESSAGE,
					      AUDIT_DNS,     AUDIT_TOOL,    AUDIT_ERROR};
	static const enum audit_kind masters[] = {AUDIT_START, AUDIT_POLICY, AUDIT_SECRET, AUDIT_STOP};
	struct audit_event e = {.ts_us = SAMPLE_TS, .conn = 1, .decision = DECISION_ERROR};
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++) {
		e.kind = own[i];
		assert_taken(f, &e, true);
	}
	for (size_t i = 0; i < sizeof(masters) / sizeof(masters[0]); i++) {
		e.kind = masters[i];
		assert_taken(f, &e, false);
		e.conn = 0;
		assert_int_equal(audit_note(f->rings[0], &e), CAGE_OK); /* the master's own ring */
	}
	flush(f);
	assert_false(audit_writer_distrusts(f->w, 0));
}

static void a_worker_uses_its_own_ids_only(void **state)
{
	struct fixture *f = *state;
	const uint64_t mine = (uint64_t)0xabcdef << AUDIT_ID_BITS, other = (uint64_t)0xabcdee << AUDIT_ID_BITS;
	f->shared->id_space[1] = 0xabcdef;
	struct audit_event e = sample_note(mine | 7);
	assert_taken(f, &e, true);
	e.txn = mine | 8;
	assert_taken(f, &e, true);
	e.txn = other | 8;
	assert_taken(f, &e, false);
	e = sample_note(other | 7);
	assert_taken(f, &e, false);
	e = sample_note(0); /* about no connection */
	assert_taken(f, &e, true);
}

/* What a record is accounted for is what its line says. */
static void the_line_has_the_ids_of_its_record(void **state)
{
	struct fixture *f = *state;
	intent(f, 1, 0x51, 0x52);
	flush(f);
	result(f, 1, 0x51, 0x52);
	forge(f->rings[1],
	      "\"event\":\"response\",\"sandbox\":\"box\",\"policy\":\"coder\",\"gen\":2,\"conn\":\"0000000000000051",
	      "\"event\":\"response\",\"sandbox\":\"box\",\"policy\":\"coder\",\"gen\":2,\"conn\":\"0000000000000053");
	flush(f);
	assert_true(audit_writer_distrusts(f->w, 1));
	assert_int_equal(audit_writer_close_open(f->w, 1), CAGE_OK);
	struct slice all = read_file(path);
	assert_false(slice_has(all, "0000000000000053"));
	assert_true(slice_has(all, "worker.died")); /* the intent is still open to the writer */
	free((char *)(uintptr_t)all.ptr);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(lines_are_chained),
		TEST(many_batches),
		TEST(file_mode_and_type),
		TEST(restart_goes_on),
		TEST(torn_line_is_cut_off),
		TEST(foreign_last_line_is_refused),
		TEST(changed_last_line_is_refused),
		TEST(symlink_and_second_writer_are_refused),
		TEST(killed_writer_neither_loses_nor_repeats),
		TEST(killed_writer_in_the_middle_of_many_batches),
		TEST(killed_twice_on_the_way_back),
		TEST(new_writer_knows_open_intents),
		TEST(file_that_was_swapped_is_refused),
		TEST(full_disk_stops_and_recovers),
		TEST(file_size_limit_stops_and_recovers),
		TEST(full_disk_then_killed),
		TEST(pipe_that_is_full_goes_on_in_the_middle),
		TEST(full_device_is_an_error),
		TEST(a_bound_stops_everything),
		TEST(a_bound_that_turns),
		TEST(a_bound_that_can_not_turn),
		TEST(reopen_goes_on_in_a_new_file),
		TEST(reopen_keeps_the_old_file_when_it_must),
		TEST(reopen_with_a_batch_waiting),
		TEST(open_intents_are_closed),
		TEST(every_intent_a_ring_can_have_is_closed),
		TEST(closing_waits_for_the_disk),
		TEST(a_closing_writer_takes_nothing_more),
		TEST(forged_record_never_reaches_the_file),
		TEST(a_worker_speaks_of_its_own_only),
		TEST(a_worker_uses_its_own_ids_only),
		TEST(the_line_has_the_ids_of_its_record),
	};
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/log", dir);
	snprintf(path2, sizeof(path2), "%s/log.1", dir);
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(path);
	unlink(path2);
	rmdir(dir);
	return failed;
}
