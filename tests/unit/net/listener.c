/* Listening sockets on loopback and in a temporary directory: specs, opening, accepting, and running out of
 * descriptors (THREATS T38). */
#include "core/net/listener.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/limits.h"

#define MANY (LIMIT_ACCEPTS_PER_WAKEUP + 6)

static struct listen_spec spec_of(const char *text)
{
	struct listen_spec s;
	const char *why = "";
	if (!listen_spec_parse(text, &s, &why))
		fail_msg("%s: %s", text, why);
	return s;
}

static void specs(void **state)
{
	(void)state;
	struct listen_spec s = spec_of("127.0.0.1:8080");
	assert_int_equal(s.kind, LISTEN_TCP);
	assert_int_equal(s.at.port, 8080);
	assert_int_equal(s.at.addr.family, ADDR_V4);
	s = spec_of("[::1]:0");
	assert_int_equal(s.at.addr.family, ADDR_V6);
	s = spec_of("unix:/run/cage.sock");
	assert_int_equal(s.kind, LISTEN_UNIX);
	assert_string_equal(s.path, "/run/cage.sock");
	s = spec_of("fd:3");
	assert_int_equal(s.kind, LISTEN_FD);
	assert_int_equal(s.fd, 3);
}

static void bad_specs(void **state)
{
	(void)state;
	char long_path[5 + 108 + 1];
	memset(long_path, 'x', sizeof(long_path));
	memcpy(long_path, "unix:", 5);
	long_path[sizeof(long_path) - 1] = '\0';
	const char *const bad[] = {"",      "8080",  ":8080",   "localhost:8080", "127.0.0.1",      "127.0.0.1:",
				   "unix:", "fd:",   "fd:-1",   "fd:x",           "fd:99999999999", "::1:80",
				   "tcp:1", "fd: 3", long_path, "127.0.0.1:65536"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct listen_spec s;
		const char *why = NULL;
		if (listen_spec_parse(bad[i], &s, &why))
			fail_msg("'%s' must not parse", bad[i]);
		assert_non_null(why);
	}
	long_path[5 + 107] = '\0';
	spec_of(long_path);
}

static void check_flags(int fd)
{
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

static void tcp_port_is_shared_only_when_asked(void **state)
{
	(void)state;
	struct listen_spec s = spec_of("127.0.0.1:0");
	struct addr_port at;
	int a = listen_open(&s, true);
	assert_true(a >= 0);
	check_flags(a);
	assert_true(listen_address(a, &at));
	assert_true(at.port > 0 && addr_eq(&at.addr, &s.at.addr));
	s.at.port = at.port;
	int b = listen_open(&s, true);
	assert_true(b >= 0);
	assert_int_equal(listen_open(&s, false), -1);
	assert_int_equal(errno, EADDRINUSE);
	close(a);
	close(b);
}

/* Each address is of its own family, so that both may have the same port. */
static void any_address_is_of_one_family(void **state)
{
	(void)state;
	struct listen_spec six = spec_of("[::]:0"), four = spec_of("0.0.0.0:0");
	struct addr_port at;
	int first = listen_open(&six, false);
	assert_true(first >= 0 && listen_address(first, &at));
	four.at.port = at.port;
	int second = listen_open(&four, false);
	assert_true(second >= 0);
	close(first);
	close(second);
}

struct place {
	char dir[32];
	struct listen_spec spec;
};

static void place_open(struct place *p)
{
	char text[64];
	strcpy(p->dir, "/tmp/cage-test-XXXXXX");
	assert_non_null(mkdtemp(p->dir));
	assert_true(snprintf(text, sizeof(text), "unix:%s/sock", p->dir) > 0);
	p->spec = spec_of(text);
}

static void place_close(struct place *p)
{
	unlink(p->spec.path);
	rmdir(p->dir);
}

static void unix_socket_replaces_a_stale_one_only(void **state)
{
	(void)state;
	struct place p;
	struct stat st;
	struct addr_port at;
	place_open(&p);
	mode_t before = umask(0);
	int fd = listen_open(&p.spec, false);
	assert_int_equal(umask(before), 0);
	assert_true(fd >= 0);
	check_flags(fd);
	assert_false(listen_address(fd, &at));
	assert_int_equal(stat(p.spec.path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0660);

	assert_int_equal(listen_open(&p.spec, false), -1);
	assert_int_equal(errno, EADDRINUSE);
	close(fd); /* the file stays: stale */
	fd = listen_open(&p.spec, false);
	assert_true(fd >= 0);
	close(fd);
	place_close(&p);
}

static void unix_socket_leaves_other_files_alone(void **state)
{
	(void)state;
	struct place p;
	struct stat st;
	place_open(&p);
	int file = open(p.spec.path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(file >= 0);
	close(file);
	assert_int_equal(listen_open(&p.spec, false), -1);
	assert_int_equal(errno, EADDRINUSE);
	assert_int_equal(stat(p.spec.path, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	place_close(&p);
}

static void descriptor_must_listen(void **state)
{
	(void)state;
	struct listen_spec s = {.kind = LISTEN_FD};
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	s.fd = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(listen_open(&s, false), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(bind(s.fd, (struct sockaddr *)&in, sizeof(in)), 0);
	assert_int_equal(listen(s.fd, 1), 0);
	assert_int_equal(listen_open(&s, false), s.fd);
	check_flags(s.fd);
	close(s.fd);
	assert_int_equal(listen_open(&s, false), -1);
	assert_int_equal(errno, EBADF);
	s.fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(listen_open(&s, false), -1);
	assert_int_equal(errno, ENOTSOCK);
	close(s.fd);
}

/* A listener with clients, and what its callback did. */
struct world {
	struct loop *loop;
	struct listener *listener;
	int listen_fd, clients[MANY], n_clients, n_accepted;
	bool frees; /* the callback frees the listener */
};

static void on_accept(void *arg, int fd)
{
	struct world *w = arg;
	int one = 0;
	socklen_t len = sizeof(one);
	check_flags(fd);
	assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, &len), 0);
	assert_int_equal(one, 1);
	close(fd);
	w->n_accepted++;
	if (w->frees)
		listener_free(&w->listener);
}

static void world_open(struct world *w)
{
	struct listen_spec s = spec_of("127.0.0.1:0");
	*w = (struct world){.loop = loop_new(), .listen_fd = listen_open(&s, false)};
	assert_true(w->listen_fd >= 0);
	w->listener = listener_new(w->loop, w->listen_fd, on_accept, w);
	assert_non_null(w->listener);
}

static void world_connect(struct world *w, int n)
{
	struct addr_port at;
	struct sockaddr_storage ss;
	assert_true(listen_address(w->listen_fd, &at));
	socklen_t len = addr_to_sockaddr(&at.addr, at.port, &ss);
	for (int i = 0; i < n; i++) {
		int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(fd, (struct sockaddr *)&ss, len), 0);
		w->clients[w->n_clients++] = fd;
	}
}

static void world_close(struct world *w)
{
	for (int i = 0; i < w->n_clients; i++)
		close(w->clients[i]);
	listener_free(&w->listener);
	close(w->listen_fd);
	loop_free(&w->loop);
}

static void accepts_in_batches(void **state)
{
	(void)state;
	struct world w;
	world_open(&w);
	world_connect(&w, MANY);
	loop_once(w.loop);
	assert_int_equal(w.n_accepted, LIMIT_ACCEPTS_PER_WAKEUP);
	loop_once(w.loop);
	assert_int_equal(w.n_accepted, MANY);
	world_close(&w);
}

static void wake_up(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
}

/* One pass that has something to do in any case. */
static void pass(struct loop *l)
{
	struct timeval now = {0, 0};
	assert_int_equal(event_base_once(loop_base(l), -1, EV_TIMEOUT, wake_up, NULL, &now), 0);
	loop_once(l);
}

static void freed_by_its_own_callback(void **state)
{
	(void)state;
	struct world w;
	world_open(&w);
	w.frees = true;
	world_connect(&w, 3);
	loop_once(w.loop);
	assert_int_equal(w.n_accepted, 1);
	assert_null(w.listener);
	pass(w.loop);
	assert_int_equal(w.n_accepted, 1);
	world_close(&w);
}

/* Allows no descriptor beyond those that are open. */
static struct rlimit exhaust_descriptors(void)
{
	struct rlimit before, none;
	int next = dup(0);
	assert_true(next >= 0);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = (rlim_t)next;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	return before;
}

static void t38_out_of_descriptors_rests_and_recovers(void **state)
{
	(void)state;
	struct world w;
	world_open(&w);
	world_connect(&w, 2);
	struct rlimit before = exhaust_descriptors();
	loop_once(w.loop);
	assert_int_equal(w.n_accepted, 0);
	uint64_t start = clock_mono_us();
	loop_once(w.loop); /* the clients still wait, but only the timer wakes us */
	assert_true(clock_mono_us() - start >= (LIMIT_ACCEPT_REST_MS - 10) * 1000);
	loop_once(w.loop);
	assert_int_equal(w.n_accepted, 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	loop_once(w.loop);
	loop_once(w.loop);
	assert_int_equal(w.n_accepted, 2);
	world_close(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(specs),
		cmocka_unit_test(bad_specs),
		cmocka_unit_test(tcp_port_is_shared_only_when_asked),
		cmocka_unit_test(any_address_is_of_one_family),
		cmocka_unit_test(unix_socket_replaces_a_stale_one_only),
		cmocka_unit_test(unix_socket_leaves_other_files_alone),
		cmocka_unit_test(descriptor_must_listen),
		cmocka_unit_test(accepts_in_batches),
		cmocka_unit_test(freed_by_its_own_callback),
		cmocka_unit_test(t38_out_of_descriptors_rests_and_recovers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
