/* Dialling on loopback: who wins, in what time, what is reported, and that no descriptor is left behind. Different
 * addresses of 127.0.0.0/8 on one port stand for the addresses of a name. */
#include "core/net/dial.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/base/clock.h"
#include "core/base/limits.h"

#define FILL 16 /* connections that surely fill the shortest queue */

struct outcome {
	struct loop *loop;
	struct dial *dial;
	struct outcome *cancels; /* another dial that the callback cancels */
	int calls, fd, error;
	enum cage_status st;
	struct addr used;
};

static struct addr parsed(const char *text)
{
	struct addr a;
	assert_true(addr_parse(slice_str(text), &a));
	return a;
}

static int count_fds(void)
{
	int n = 0;
	DIR *dir = opendir("/proc/self/fd");
	assert_non_null(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n;
}

/* A listening socket; *port 0 picks one. */
static int open_listener(const char *text, uint16_t *port, int backlog)
{
	struct sockaddr_storage ss;
	struct addr a = parsed(text);
	socklen_t len = addr_to_sockaddr(&a, *port, &ss);
	int fd = socket(ss.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&ss, len), 0);
	assert_int_equal(listen(fd, backlog), 0);
	len = sizeof(ss);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&ss, &len), 0);
	assert_true(addr_from_sockaddr((struct sockaddr *)&ss, &a, port));
	return fd;
}

/* A port on which nobody listens at any loopback address. */
static uint16_t free_port(void)
{
	uint16_t port = 0;
	close(open_listener("0.0.0.0", &port, 1));
	return port;
}

static void on_outcome(void *arg, enum cage_status st, int fd, const struct addr *used)
{
	struct outcome *o = arg;
	o->error = errno;
	o->calls++;
	o->st = st;
	o->fd = fd;
	if (used)
		o->used = *used;
	if (o->cancels)
		dial_cancel(&o->cancels->dial);
	dial_cancel(&o->dial); /* of no effect in its own callback */
	loop_stop(o->loop);
}

static void start(struct outcome *o, struct loop *l, const char *const *texts, size_t n, uint16_t port)
{
	struct addr addrs[16];
	for (size_t i = 0; i < n; i++)
		addrs[i] = parsed(texts[i]);
	*o = (struct outcome){.loop = l, .fd = -1};
	o->dial = dial_start(l, addrs, n, port, on_outcome, o);
	assert_non_null(o->dial);
	assert_int_equal(o->calls, 0);
}

static struct outcome dial_all(const char *const *texts, size_t n, uint16_t port)
{
	struct loop *l = loop_new();
	struct outcome o;
	start(&o, l, texts, n, port);
	loop_run(l);
	assert_int_equal(o.calls, 1);
	loop_free(&l);
	return o;
}

static void connects(void **state)
{
	(void)state;
	int before = count_fds(), one = 0;
	uint16_t port = 0;
	int listener = open_listener("127.0.0.1", &port, 8);
	struct outcome o = dial_all((const char *const[]){"127.0.0.1"}, 1, port);
	struct addr want = parsed("127.0.0.1");
	socklen_t len = sizeof(one);
	assert_int_equal(o.st, CAGE_OK);
	assert_true(addr_eq(&o.used, &want));
	assert_true(fcntl(o.fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(o.fd, F_GETFD) & FD_CLOEXEC);
	assert_int_equal(getsockopt(o.fd, IPPROTO_TCP, TCP_NODELAY, &one, &len), 0);
	assert_int_equal(one, 1);
	assert_int_equal(write(o.fd, "x", 1), 1);
	close(o.fd);
	close(listener);
	assert_int_equal(count_fds(), before);
}

static void connects_over_ipv6(void **state)
{
	(void)state;
	int probe = socket(AF_INET6, SOCK_STREAM, 0);
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	bool has_v6 = probe >= 0 && bind(probe, (struct sockaddr *)&in6, sizeof(in6)) == 0;
	if (probe >= 0)
		close(probe);
	if (!has_v6) {
		print_message("SKIPPED: this machine has no IPv6 loopback\n");
		skip();
	}
	uint16_t port = 0;
	int listener = open_listener("::1", &port, 8);
	struct outcome o = dial_all((const char *const[]){"::1"}, 1, port);
	assert_int_equal(o.st, CAGE_OK);
	close(o.fd);
	close(listener);
}

static void refused_starts_the_next_at_once(void **state)
{
	(void)state;
	uint16_t port = 0;
	int listener = open_listener("127.0.0.3", &port, 8);
	uint64_t before = clock_mono_us();
	struct outcome o = dial_all((const char *const[]){"127.0.0.1", "127.0.0.2", "127.0.0.3"}, 3, port);
	struct addr want = parsed("127.0.0.3");
	assert_int_equal(o.st, CAGE_OK);
	assert_true(addr_eq(&o.used, &want));
	assert_true(clock_mono_us() - before < LIMIT_DIAL_STAGGER_MS * 1000);
	close(o.fd);
	close(listener);
}

static void all_refused(void **state)
{
	(void)state;
	int before = count_fds();
	uint16_t port = free_port();
	struct outcome o = dial_all((const char *const[]){"127.0.0.1", "127.0.0.2"}, 2, port);
	assert_int_equal(o.st, CAGE_ESYS);
	assert_int_equal(o.error, ECONNREFUSED);
	assert_int_equal(o.fd, -1);
	assert_int_equal(count_fds(), before);
}

static void most_telling_error_is_reported(void **state)
{
	(void)state;
	uint16_t port = free_port();
	struct outcome o = dial_all((const char *const[]){"255.255.255.255", "127.0.0.1", "255.255.255.255"}, 3, port);
	assert_int_equal(o.error, ECONNREFUSED);
	o = dial_all((const char *const[]){"255.255.255.255"}, 1, port);
	assert_int_equal(o.st, CAGE_ESYS);
	assert_int_equal(o.error, ENETUNREACH);
	o = dial_all(NULL, 0, port);
	assert_int_equal(o.st, CAGE_ESYS);
	assert_int_equal(o.error, EADDRNOTAVAIL);
}

static void at_most_so_many_attempts(void **state)
{
	(void)state;
	static const char *const texts[] = {"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5",
					    "127.0.0.6", "127.0.0.7", "127.0.0.1"};
	_Static_assert(sizeof(texts) / sizeof(texts[0]) == LIMIT_DIAL_ATTEMPTS + 1, "one more than are tried");
	uint16_t port = 0;
	int listener = open_listener("127.0.0.1", &port, 8);
	struct outcome o = dial_all(texts, LIMIT_DIAL_ATTEMPTS + 1, port);
	assert_int_equal(o.error, ECONNREFUSED);
	o = dial_all(texts + 1, LIMIT_DIAL_ATTEMPTS, port);
	assert_int_equal(o.st, CAGE_OK);
	close(o.fd);
	close(listener);
}

/* A listener with a full queue: connects to it hang. */
struct hanging {
	uint16_t port;
	int listener, fill[FILL];
};

static void hanging_open(struct hanging *h, uint16_t port)
{
	struct sockaddr_storage ss;
	struct addr a = parsed("127.0.0.1");
	h->port = port;
	h->listener = open_listener("127.0.0.1", &h->port, 0);
	socklen_t len = addr_to_sockaddr(&a, h->port, &ss);
	for (size_t i = 0; i < FILL; i++) {
		h->fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		assert_true(connect(h->fill[i], (struct sockaddr *)&ss, len) == 0 || errno == EINPROGRESS);
	}
}

static void hanging_close(struct hanging *h)
{
	for (size_t i = 0; i < FILL; i++)
		close(h->fill[i]);
	close(h->listener);
}

static void hanging_address_is_overtaken(void **state)
{
	(void)state;
	int before_fds = count_fds();
	struct hanging h;
	hanging_open(&h, 0);
	int listener = open_listener("127.0.0.2", &h.port, 8);
	uint64_t before = clock_mono_us();
	struct outcome o = dial_all((const char *const[]){"127.0.0.1", "127.0.0.2"}, 2, h.port);
	struct addr want = parsed("127.0.0.2");
	assert_int_equal(o.st, CAGE_OK);
	assert_true(addr_eq(&o.used, &want));
	assert_true(clock_mono_us() - before >= (LIMIT_DIAL_STAGGER_MS - 10) * 1000);
	close(o.fd);
	close(listener);
	hanging_close(&h);
	assert_int_equal(count_fds(), before_fds);
}

static void times_out(void **state)
{
	(void)state;
	int before = count_fds();
	struct hanging h;
	hanging_open(&h, 0);
	struct outcome o = dial_all((const char *const[]){"127.0.0.1"}, 1, h.port);
	assert_int_equal(o.st, CAGE_ETIMEOUT);
	assert_int_equal(o.fd, -1);
	hanging_close(&h);
	assert_int_equal(count_fds(), before);
}

static void cancel_before_the_loop_runs(void **state)
{
	(void)state;
	uint16_t port = 0;
	int listener = open_listener("127.0.0.1", &port, 8), before = count_fds();
	struct loop *l = loop_new();
	struct outcome connecting, failed;
	start(&connecting, l, (const char *const[]){"127.0.0.1"}, 1, port);
	start(&failed, l, NULL, 0, port);
	dial_cancel(&connecting.dial);
	dial_cancel(&failed.dial);
	assert_null(connecting.dial);
	loop_once(l); /* nothing is left to wait for */
	assert_int_equal(connecting.calls + failed.calls, 0);
	loop_free(&l);
	assert_int_equal(count_fds(), before);
	close(listener);
}

/* Both connect in the same pass; the first to report cancels the other, whose descriptor is closed. */
static void cancel_of_a_decided_dial(void **state)
{
	(void)state;
	uint16_t port = 0;
	int listener = open_listener("127.0.0.1", &port, 8), before = count_fds();
	struct loop *l = loop_new();
	struct outcome a, b;
	start(&a, l, (const char *const[]){"127.0.0.1"}, 1, port);
	start(&b, l, (const char *const[]){"127.0.0.1"}, 1, port);
	a.cancels = &b;
	b.cancels = &a;
	loop_run(l);
	assert_int_equal(a.calls + b.calls, 1);
	close(a.calls ? a.fd : b.fd);
	loop_free(&l);
	assert_int_equal(count_fds(), before);
	close(listener);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(connects),
		cmocka_unit_test(connects_over_ipv6),
		cmocka_unit_test(refused_starts_the_next_at_once),
		cmocka_unit_test(all_refused),
		cmocka_unit_test(most_telling_error_is_reported),
		cmocka_unit_test(at_most_so_many_attempts),
		cmocka_unit_test(hanging_address_is_overtaken),
		cmocka_unit_test(times_out),
		cmocka_unit_test(cancel_before_the_loop_runs),
		cmocka_unit_test(cancel_of_a_decided_dial),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
