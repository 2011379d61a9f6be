/* Where a packet was going. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "proxy/watch.h"

enum { V4 = 24, V6 = 44 };

static const unsigned char tcp4[V4] = {0x45, [9] = 6, [16] = 203, 0, 113, 9, 0x80, 1, 0, 22};
static const unsigned char udp6[V6] = {0x60, [6] = 17, [24] = 0x20, 1, 0xd, 0xb8, [39] = 9, 0x80, 1, 0x12, 0x34};

static bool parse(const unsigned char *packet, size_t len, struct addr *to, uint16_t *port)
{
	return watch_parse(slice_of(packet, len), to, port);
}

static void both_families(void **state)
{
	struct addr to;
	uint16_t port;
	char text[ADDR_TEXT];
	(void)state;
	assert_true(parse(tcp4, V4, &to, &port));
	assert_true(slice_eq(addr_format(&to, text), SLICE("203.0.113.9")));
	assert_int_equal(port, 22);
	assert_true(parse(udp6, V6, &to, &port));
	assert_true(slice_eq(addr_format(&to, text), SLICE("2001:db8::9")));
	assert_int_equal(port, 0x1234);
}

static void cut_anywhere(void **state)
{
	struct addr to;
	uint16_t port;
	(void)state;
	for (size_t len = 0; len < V4; len++)
		assert_false(parse(tcp4, len, &to, &port));
	for (size_t len = 0; len < V6; len++)
		assert_false(parse(udp6, len, &to, &port));
}

static void neither_tcp_nor_udp(void **state)
{
	unsigned char packet[V4];
	struct addr to;
	uint16_t port;
	(void)state;
	memcpy(packet, tcp4, V4);
	packet[9] = 1;
	assert_false(parse(packet, V4, &to, &port));
	packet[9] = 6;
	packet[0] = 0x44; /* a header that is too short */
	assert_false(parse(packet, V4, &to, &port));
	packet[0] = 0x46; /* options that are not there */
	assert_false(parse(packet, V4, &to, &port));
	packet[0] = 0x55;
	assert_false(parse(packet, V4, &to, &port));
}

static void only_packet_sockets(void **state)
{
	(void)state;
	assert_false(watch_is_usable(-1));
	assert_false(watch_is_usable(0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_families),
		cmocka_unit_test(cut_anywhere),
		cmocka_unit_test(neither_tcp_nor_udp),
		cmocka_unit_test(only_packet_sockets),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
