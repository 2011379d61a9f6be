/* Which addresses of an answer may be dialled (THREATS T07, T08, T18, T36). */
#include "core/net/vet.h"

#include <ifaddrs.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

#define MAX 8
#define PORT 443
#define OWN_PORT 8080

static struct addr parsed(const char *text)
{
	struct addr a;
	if (!addr_parse(slice_str(text), &a))
		fail_msg("%s must parse", text);
	return a;
}

/* Vets the addresses in text, separated by spaces, and checks what is left of them, and the reason. */
static void check(const struct vet *v, uint16_t port, const char *text, const char *want, enum reason want_why)
{
	struct addr in[MAX], out[MAX];
	size_t n_in = 0, n_out = 0;
	struct slice rest = slice_str(text), wanted = slice_str(want);
	while (rest.len > 0)
		assert_true(n_in < MAX && addr_parse(slice_cut(&rest, ' '), &in[n_in++]));
	while (wanted.len > 0)
		assert_true(n_out < MAX && addr_parse(slice_cut(&wanted, ' '), &out[n_out++]));

	enum reason why = REASON_INTERNAL;
	size_t kept = vet_addresses(v, port, in, n_in, &why);
	if (kept != n_out || why != want_why)
		fail_msg("%s: kept %zu of %zu, %s", text, kept, n_in, reason_code(why).ptr);
	for (size_t i = 0; i < kept; i++)
		assert_true(addr_eq(&in[i], &out[i]));
}

static void public_only_without_ranges(void **state)
{
	(void)state;
	struct vet v = {0};
	check(&v, PORT, "1.1.1.1 2606:4700::1111 8.8.8.8", "1.1.1.1 2606:4700::1111 8.8.8.8", REASON_NONE);
	check(&v, PORT, "10.0.0.1", "", REASON_ADDRESS_PRIVATE);
	check(&v, PORT, "127.0.0.1 ::1 fe80::1 0.0.0.0", "", REASON_ADDRESS_PRIVATE);
	check(&v, PORT, "::ffff:1.1.1.1 2002:101:101::1", "", REASON_ADDRESS_PRIVATE);
	check(&v, PORT, "", "", REASON_ADDRESS_PRIVATE);
}

static void t18_private_among_public_is_dropped(void **state)
{
	(void)state;
	struct vet v = {0};
	check(&v, PORT, "10.0.0.1 1.1.1.1 ::1 8.8.8.8 fd00::1", "1.1.1.1 8.8.8.8", REASON_NONE);
}

static void t18_with_ranges_every_address_is_inside(void **state)
{
	(void)state;
	struct addr_range ranges[] = {{parsed("10.4.0.0"), 16}, {parsed("fd12::"), 16}};
	struct vet v = {.ranges = ranges, .n_ranges = 2};
	check(&v, PORT, "10.4.0.1 fd12::1 10.4.255.255", "10.4.0.1 fd12::1 10.4.255.255", REASON_NONE);
	check(&v, PORT, "10.4.0.1 10.5.0.1", "", REASON_ADDRESS_OUTSIDE);
	check(&v, PORT, "1.1.1.1", "", REASON_ADDRESS_OUTSIDE);
	check(&v, PORT, "10.4.0.1 1.1.1.1", "", REASON_ADDRESS_OUTSIDE);
	check(&v, PORT, "::ffff:10.4.0.1", "", REASON_ADDRESS_OUTSIDE);
}

static void t08_metadata_beats_every_range(void **state)
{
	(void)state;
	struct addr_range all[] = {{parsed("0.0.0.0"), 0}, {parsed("::"), 0}};
	struct vet none = {0}, wide = {.ranges = all, .n_ranges = 2};
	static const char *const answers[] = {"169.254.169.254",           "1.1.1.1 169.254.169.254",
					      "1.1.1.1 168.63.129.16",     "1.1.1.1 fd00:ec2::254",
					      "1.1.1.1 100.100.100.200",   "1.1.1.1 ::ffff:169.254.169.254",
					      "1.1.1.1 64:ff9b::a9fe:a9fe"};
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		check(&none, PORT, answers[i], "", REASON_ADDRESS_PRIVATE);
		check(&wide, PORT, answers[i], "", REASON_ADDRESS_PRIVATE);
	}
	check(&wide, PORT, "10.0.0.1 1.1.1.1", "10.0.0.1 1.1.1.1", REASON_NONE);
}

static void t36_own_listener(void **state)
{
	(void)state;
	struct addr_range all[] = {{parsed("0.0.0.0"), 0}, {parsed("::"), 0}};
	struct addr_port self[] = {{parsed("127.0.0.1"), OWN_PORT}, {parsed("192.0.2.9"), OWN_PORT + 1}};
	struct vet v = {all, 2, self, 2};
	check(&v, OWN_PORT, "127.0.0.1", "", REASON_ADDRESS_SELF);
	check(&v, OWN_PORT, "1.1.1.1 127.0.0.1", "", REASON_ADDRESS_SELF);
	check(&v, OWN_PORT, "::ffff:127.0.0.1", "", REASON_ADDRESS_SELF);
	check(&v, OWN_PORT, "0.0.0.0", "", REASON_ADDRESS_SELF);
	check(&v, OWN_PORT, "::", "", REASON_ADDRESS_SELF);
	check(&v, OWN_PORT, "::ffff:0.0.0.0", "", REASON_ADDRESS_SELF);
	check(&v, OWN_PORT + 1, "192.0.2.9", "", REASON_ADDRESS_SELF);
	check(&v, OWN_PORT, "127.0.0.2", "127.0.0.2", REASON_NONE);
	check(&v, OWN_PORT + 1, "127.0.0.1", "127.0.0.1", REASON_NONE);
	check(&v, PORT, "127.0.0.1", "127.0.0.1", REASON_NONE);
}

/* Every address of this machine, as the interfaces have them, is ours when a listener takes any. */
static void check_interfaces(const struct vet *v)
{
	struct ifaddrs *list;
	assert_int_equal(getifaddrs(&list), 0);
	for (const struct ifaddrs *i = list; i; i = i->ifa_next) {
		struct addr a;
		uint16_t port;
		char text[ADDR_TEXT];
		if (!i->ifa_addr || !addr_from_sockaddr(i->ifa_addr, &a, &port))
			continue;
		check(v, OWN_PORT, addr_format(&a, text).ptr, "", REASON_ADDRESS_SELF);
		check(v, PORT, text, text, REASON_NONE);
	}
	freeifaddrs(list);
}

static void t36_listener_on_any_address(void **state)
{
	(void)state;
	struct addr_range all[] = {{parsed("0.0.0.0"), 0}, {parsed("::"), 0}};
	struct addr_port any[] = {{{0}, OWN_PORT}, {parsed("0.0.0.0"), OWN_PORT}, {parsed("::"), OWN_PORT}};
	for (size_t i = 0; i < 3; i++) {
		struct vet v = {all, 2, &any[i], 1};
		check_interfaces(&v);
		check(&v, OWN_PORT, "127.0.0.1", "", REASON_ADDRESS_SELF);
		check(&v, OWN_PORT, "127.9.9.9", "", REASON_ADDRESS_SELF);
		check(&v, OWN_PORT, "::1", "", REASON_ADDRESS_SELF);
		check(&v, OWN_PORT, "0.0.0.0", "", REASON_ADDRESS_SELF);
		check(&v, OWN_PORT, "::ffff:127.0.0.1", "", REASON_ADDRESS_SELF);
		check(&v, OWN_PORT, "203.0.113.77", "203.0.113.77", REASON_NONE);
	}
}

static void pin(void **state)
{
	(void)state;
	struct addr_port self = {parsed("127.0.0.1"), OWN_PORT};
	struct vet v = {.self = &self, .n_self = 1};
	struct addr loopback = parsed("127.0.0.1"), metadata = parsed("169.254.169.254"), private = parsed("10.0.0.1");
	enum reason why;
	assert_int_equal(vet_pin(&v, 9443, &loopback, &why), 1);
	assert_int_equal(why, REASON_NONE);
	assert_int_equal(vet_pin(&v, PORT, &private, &why), 1);
	assert_int_equal(vet_pin(&v, OWN_PORT, &loopback, &why), 0);
	assert_int_equal(why, REASON_ADDRESS_SELF);
	assert_int_equal(vet_pin(&v, PORT, &metadata, &why), 0);
	assert_int_equal(why, REASON_ADDRESS_PRIVATE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(public_only_without_ranges),
		cmocka_unit_test(t18_private_among_public_is_dropped),
		cmocka_unit_test(t18_with_ranges_every_address_is_inside),
		cmocka_unit_test(t08_metadata_beats_every_range),
		cmocka_unit_test(t36_own_listener),
		cmocka_unit_test(t36_listener_on_any_address),
		cmocka_unit_test(pin),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
