/* Where accepted connections were going, without a firewall in between: to the address that they have reached. */
#include "core/net/original.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/net/listener.h"

static int open_at(const char *where)
{
	struct listen_spec spec;
	const char *why;
	assert_true(listen_spec_parse(where, &spec, &why));
	return listen_open(&spec, false);
}

/* For both versions at once: none of ours, but one may be given to us. */
static int open_for_both(void)
{
	const struct sockaddr_in6 any = {.sin6_family = AF_INET6};
	int off = 0, fd = socket(AF_INET6, SOCK_STREAM, 0);
	assert_int_equal(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)), 0);
	assert_int_equal(bind(fd, (const struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

/* Connects to `to` on the port of the listener; the accepted end. */
static int reach(int listener, const char *to, int *client, uint16_t *port)
{
	struct addr_port at;
	struct sockaddr_storage ss;
	assert_true(listener >= 0 && listen_address(listener, &at));
	*port = at.port;
	assert_true(addr_parse(slice_str(to), &at.addr));
	socklen_t len = addr_to_sockaddr(&at.addr, at.port, &ss);
	*client = socket(ss.ss_family, SOCK_STREAM, 0);
	assert_int_equal(connect(*client, (struct sockaddr *)&ss, len), 0);
	int fd = accept(listener, NULL, NULL);
	assert_true(fd >= 0);
	return fd;
}

static void assert_original(int listener, const char *to)
{
	int client;
	uint16_t port;
	int fd = reach(listener, to, &client, &port);
	struct addr_port got;
	struct addr wanted;
	assert_true(addr_parse(slice_str(to), &wanted));
	assert_true(original_destination(fd, &got));
	assert_true(addr_eq(&got.addr, &wanted));
	assert_int_equal(got.port, port);
	close(fd);
	close(client);
	close(listener);
}

static void where_it_has_arrived(void **state)
{
	(void)state;
	assert_original(open_at("127.0.0.1:0"), "127.0.0.1");
	assert_original(open_at("0.0.0.0:0"), "127.0.9.9");
}

static void over_ipv6(void **state)
{
	(void)state;
	int fd = open_at("[::1]:0");
	if (fd < 0)
		skip(); /* a machine without IPv6 */
	assert_original(fd, "::1");
	assert_original(open_at("[::]:0"), "::1");
	assert_original(open_for_both(), "127.0.9.9"); /* comes as a mapped address */
}

static void what_is_no_tcp(void **state)
{
	(void)state;
	int pair[2];
	struct addr_port got;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_false(original_destination(pair[0], &got));
	close(pair[0]);
	close(pair[1]);
	assert_false(original_destination(-1, &got));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(where_it_has_arrived),
		cmocka_unit_test(over_ipv6),
		cmocka_unit_test(what_is_no_tcp),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
