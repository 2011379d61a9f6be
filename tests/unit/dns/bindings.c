/* cage-dns tells and a proxy's worker hears, on one loop; and the pool of addresses that stand for names. */
#include "dns/bindings.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/net/listener.h"
#include "proxy/bindings.h"

#define PASSES 1000 /* of the loop, at most, for anything to happen */

struct rig {
	char dir[32];
	struct loop *loop;
	struct listen_spec spec;
	int listen_fd;
	struct dns_bindings *dns;
	struct bindings *proxy;
};

static struct rig rig_new(void)
{
	struct rig r = {.dir = "/tmp/cage-bind-XXXXXX", .loop = loop_new(), .spec = {.kind = LISTEN_UNIX}};
	assert_non_null(mkdtemp(r.dir));
	snprintf(r.spec.path, sizeof(r.spec.path), "%s/s", r.dir);
	r.listen_fd = listen_open(&r.spec, false);
	assert_true(r.listen_fd >= 0);
	r.dns = dns_bindings_new(r.loop, r.listen_fd, 7);
	assert_non_null(r.dns);
	return r;
}

static void rig_free(struct rig *r)
{
	bindings_free(&r->proxy);
	dns_bindings_free(&r->dns);
	loop_free(&r->loop);
	close(r->listen_fd);
	unlink(r->spec.path);
	rmdir(r->dir);
}

static void wait_for_peers(struct rig *r, size_t n)
{
	struct timeval soon = loop_ms(5);
	for (int i = 0; i < PASSES && dns_bindings_peers(r->dns) != n; i++) {
		event_base_loopexit(loop_base(r->loop), &soon);
		loop_once(r->loop);
	}
	assert_int_equal(dns_bindings_peers(r->dns), n);
}

static struct addr address(const char *text)
{
	struct addr a;
	assert_true(addr_parse(slice_str(text), &a));
	return a;
}

static void tell(struct rig *r, const char *name, const char *addr)
{
	struct addr a = address(addr);
	assert_true(dns_bindings_tell(r->dns, slice_str(name), &a, 1, 5));
}

static size_t heard(struct rig *r, const char *name)
{
	struct addr out[LIMIT_ANSWERS];
	return bindings_addresses(r->proxy, slice_str(name), out);
}

static void told_before_and_after_it_came(void **state)
{
	(void)state;
	struct rig r = rig_new();
	tell(&r, "before.test", "192.0.2.1");
	r.proxy = bindings_new(r.loop, r.spec.path);
	wait_for_peers(&r, 1);
	tell(&r, "after.test", "2001:db8::1");
	/* no pass of the loop in between: what lies in the socket is read when it matters */
	assert_int_equal(heard(&r, "before.test"), 1);
	assert_int_equal(heard(&r, "after.test"), 1);
	assert_int_equal(heard(&r, "never.test"), 0);
	assert_true(dns_bindings_tell(r.dns, SLICE("none.test"), NULL, 0, 5));
	assert_int_equal(heard(&r, "none.test"), 0);
	rig_free(&r);
}

static void connects_again_and_hears_all(void **state)
{
	(void)state;
	struct rig r = rig_new();
	r.proxy = bindings_new(r.loop, r.spec.path);
	wait_for_peers(&r, 1);
	tell(&r, "a.test", "192.0.2.1");
	assert_int_equal(heard(&r, "a.test"), 1);
	dns_bindings_free(&r.dns);
	assert_int_equal(heard(&r, "a.test"), 1); /* what was told holds */
	r.dns = dns_bindings_new(r.loop, r.listen_fd, 7);
	tell(&r, "b.test", "192.0.2.1");
	wait_for_peers(&r, 1);
	assert_int_equal(heard(&r, "b.test"), 1);
	rig_free(&r);
}

static void nobody_tells(void **state)
{
	(void)state;
	struct addr a = address("100.64.0.1"), out[LIMIT_ANSWERS];
	assert_int_equal(bindings_addresses(NULL, SLICE("a.test"), out), 0);
	assert_false(bindings_has_given(NULL, SLICE("a.test")));
	assert_int_equal(bindings_name(NULL, &a).len, 0);
	struct loop *l = loop_new();
	struct bindings *b = bindings_new(l, "/nowhere/at/all");
	assert_non_null(b);
	assert_int_equal(bindings_addresses(b, SLICE("a.test"), out), 0);
	bindings_free(&b);
	loop_free(&l);
}

static int plain_client(const struct rig *r)
{
	struct sockaddr_un un = {.sun_family = AF_UNIX};
	memcpy(un.sun_path, r->spec.path, strlen(r->spec.path));
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&un, sizeof(un)), 0);
	return fd;
}

static void a_peer_that_speaks_is_cut_off(void **state)
{
	(void)state;
	struct rig r = rig_new();
	int fd = plain_client(&r);
	wait_for_peers(&r, 1);
	assert_int_equal(write(fd, "x", 1), 1);
	wait_for_peers(&r, 0);
	close(fd);
	rig_free(&r);
}

static void a_peer_that_does_not_read_is_cut_off(void **state)
{
	(void)state;
	struct rig r = rig_new();
	int fd = plain_client(&r);
	wait_for_peers(&r, 1);
	for (size_t i = 0; i < LIMIT_BINDING_QUEUE / 10 && dns_bindings_peers(r.dns) > 0; i++)
		tell(&r, "a.test", "192.0.2.1");
	assert_int_equal(dns_bindings_peers(r.dns), 0);
	close(fd);
	rig_free(&r);
}

/* What is said on stderr from now on is read from here. */
struct stderr_copy {
	int pipe[2], before;
};

static struct stderr_copy stderr_begin(void)
{
	struct stderr_copy c = {.before = dup(STDERR_FILENO)};
	assert_int_equal(pipe2(c.pipe, O_CLOEXEC | O_NONBLOCK), 0);
	assert_true(dup2(c.pipe[1], STDERR_FILENO) >= 0);
	return c;
}

/* How many lines there were. */
static size_t stderr_end(struct stderr_copy *c)
{
	char buf[4096];
	size_t lines = 0;
	assert_true(dup2(c->before, STDERR_FILENO) >= 0);
	ssize_t n = read(c->pipe[0], buf, sizeof(buf));
	for (ssize_t i = 0; i < n; i++)
		lines += buf[i] == '\n';
	close(c->pipe[0]);
	close(c->pipe[1]);
	close(c->before);
	return lines;
}

static void only_so_many_peers(void **state)
{
	(void)state;
	struct rig r = rig_new();
	struct stderr_copy copy = stderr_begin();
	int fds[LIMIT_BINDING_PEERS + 2];
	char byte;
	for (size_t i = 0; i < LIMIT_BINDING_PEERS; i++)
		fds[i] = plain_client(&r);
	wait_for_peers(&r, LIMIT_BINDING_PEERS);
	for (size_t i = LIMIT_BINDING_PEERS; i < LIMIT_BINDING_PEERS + 2; i++) {
		fds[i] = plain_client(&r);
		loop_once(r.loop);
		assert_int_equal(read(fds[i], &byte, 1), 0);
	}
	assert_int_equal(stderr_end(&copy), 1); /* said once */
	for (size_t i = 0; i < LIMIT_BINDING_PEERS + 2; i++)
		close(fds[i]);
	rig_free(&r);
}

/* A server of another version is not believed. */
static void another_version(void **state)
{
	(void)state;
	struct rig r = rig_new();
	struct binding b = {.kind = BINDING_V4, .name = SLICE("a.test"), .life_s = 60, .n = 1};
	unsigned char frame[BINDING_FRAME];
	dns_bindings_free(&r.dns);
	r.proxy = bindings_new(r.loop, r.spec.path);
	int fd = accept(r.listen_fd, NULL, NULL);
	assert_true(fd >= 0);
	b.addrs[0] = address("192.0.2.1");
	assert_int_equal(write(fd, "cage-bd\002", 8), 8);
	size_t len = binding_write(&b, frame);
	assert_int_equal(write(fd, frame, len), len);
	assert_int_equal(heard(&r, "a.test"), 0);
	close(fd);
	rig_free(&r);
}

/* A worker connects, and hears these words. */
static void speak(struct rig *r, const char *words)
{
	struct timeval soon = loop_ms(LIMIT_BINDING_RETRY_MS + 100);
	int fd = -1;
	for (int i = 0; i < 20 && (fd = accept(r->listen_fd, NULL, NULL)) < 0; i++) {
		event_base_loopexit(loop_base(r->loop), &soon);
		loop_once(r->loop);
	}
	assert_true(fd >= 0);
	assert_int_equal(write(fd, words, 8), 8);
	assert_int_equal(heard(r, "a.test"), 0);
	close(fd);
	assert_int_equal(heard(r, "a.test"), 0);
}

static void a_wrong_peer_is_told_of_once_until_it_is_mended(void **state)
{
	(void)state;
	struct rig r = rig_new();
	dns_bindings_free(&r.dns);
	struct stderr_copy copy = stderr_begin();
	r.proxy = bindings_new(r.loop, r.spec.path);
	speak(&r, "cage-bd\002");
	speak(&r, "cage-bd\002");
	speak(&r, "cage-bd\001");
	speak(&r, "cage-bd\002");
	assert_int_equal(stderr_end(&copy), 2);
	rig_free(&r);
}

/* ---- the pool ---- */

static struct addr_range range(const char *text)
{
	struct addr_range r;
	const char *why;
	assert_true(addr_range_parse(slice_str(text), &r, &why));
	return r;
}

static void names_keep_their_addresses(void **state)
{
	(void)state;
	struct rig r = rig_new();
	struct addr_range pool = range("100.64.0.0/10");
	struct addr first, again, other;
	r.proxy = bindings_new(r.loop, r.spec.path);
	wait_for_peers(&r, 1);
	assert_int_equal(dns_bindings_give(r.dns, &pool, SLICE("a.test"), &first), CAGE_OK);
	assert_int_equal(dns_bindings_give(r.dns, &pool, SLICE("b.test"), &other), CAGE_OK);
	assert_int_equal(dns_bindings_give(r.dns, &pool, SLICE("a.test"), &again), CAGE_OK);
	assert_true(addr_eq(&first, &again));
	assert_false(addr_eq(&first, &other));
	assert_true(addr_range_contains(&pool, &first));
	assert_true(slice_eq(bindings_name(r.proxy, &first), SLICE("a.test")));
	assert_true(slice_eq(bindings_name(r.proxy, &other), SLICE("b.test")));
	assert_true(bindings_has_given(r.proxy, SLICE("a.test")));
	assert_false(bindings_has_given(r.proxy, SLICE("c.test")));

	/* the same seed, the same address */
	dns_bindings_free(&r.dns);
	r.dns = dns_bindings_new(r.loop, r.listen_fd, 7);
	assert_int_equal(dns_bindings_give(r.dns, &pool, SLICE("a.test"), &again), CAGE_OK);
	assert_true(addr_eq(&first, &again));

	/* another pool, another address */
	struct addr_range elsewhere = range("10.0.0.0/8");
	assert_int_equal(dns_bindings_give(r.dns, &elsewhere, SLICE("a.test"), &again), CAGE_OK);
	assert_int_equal(again.bytes[0], 10);
	rig_free(&r);
}

static void no_address_twice_and_none_left(void **state)
{
	(void)state;
	struct rig r = rig_new();
	struct addr_range pool = range("100.100.100.0/24"); /* one of them is a metadata service */
	bool used[256] = {false};
	size_t given = 0, refused = 0;
	for (int i = 0; i < 400; i++) {
		char name[32];
		struct addr a;
		snprintf(name, sizeof(name), "n%d.test", i);
		enum cage_status st = dns_bindings_give(r.dns, &pool, slice_str(name), &a);
		if (st == CAGE_OK) {
			assert_true(addr_range_contains(&pool, &a));
			assert_false(used[a.bytes[3]]);
			used[a.bytes[3]] = true;
			given++;
		} else {
			assert_int_equal(st, CAGE_ELIMIT);
			refused++;
		}
	}
	assert_false(used[0] || used[255] || used[200]);
	assert_true(given > 200 && given <= 253 && refused > 0);
	rig_free(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(told_before_and_after_it_came),
		cmocka_unit_test(connects_again_and_hears_all),
		cmocka_unit_test(nobody_tells),
		cmocka_unit_test(a_peer_that_speaks_is_cut_off),
		cmocka_unit_test(a_peer_that_does_not_read_is_cut_off),
		cmocka_unit_test(only_so_many_peers),
		cmocka_unit_test(another_version),
		cmocka_unit_test(a_wrong_peer_is_told_of_once_until_it_is_mended),
		cmocka_unit_test(names_keep_their_addresses),
		cmocka_unit_test(no_address_twice_and_none_left),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
