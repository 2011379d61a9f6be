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

/* Connects to `to` on the port of a listener at `where`; the accepted end. */
static int reach(const char *where, const char *to, int *listener, int *client, uint16_t *port)
{
	struct listen_spec spec;
	const char *why;
	struct addr_port at;
	struct sockaddr_storage ss;
	assert_true(listen_spec_parse(where, &spec, &why));
	*listener = listen_open(&spec, false);
	assert_true(*listener >= 0 && listen_address(*listener, &at));
	*port = at.port;
	assert_true(addr_parse(slice_str(to), &at.addr));
	socklen_t len = addr_to_sockaddr(&at.addr, at.port, &ss);
	*client = socket(ss.ss_family, SOCK_STREAM, 0);
	assert_int_equal(connect(*client, (struct sockaddr *)&ss, len), 0);
	int fd = accept(*listener, NULL, NULL);
	assert_true(fd >= 0);
	return fd;
}

static void assert_original(const char *where, const char *to)
{
	int listener, client;
	uint16_t port;
	int fd = reach(where, to, &listener, &client, &port);
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
	assert_original("127.0.0.1:0", "127.0.0.1");
	assert_original("0.0.0.0:0", "127.0.9.9");
}

static void over_ipv6(void **state)
{
	(void)state;
	struct listen_spec spec;
	const char *why;
	assert_true(listen_spec_parse("[::1]:0", &spec, &why));
	int fd = listen_open(&spec, false);
	if (fd < 0)
		skip(); /* a machine without IPv6 */
	close(fd);
	assert_original("[::1]:0", "::1");
	assert_original("[::]:0", "::1");
	assert_original("[::]:0", "127.0.9.9"); /* comes as a mapped address */
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
