/* Addresses: spellings, ranges, which are special in every wrapping, and names that spell one (THREATS T07, T08). */
#include "core/base/addr.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

#define EACH(table, i) for (size_t i = 0; i < sizeof(table) / sizeof((table)[0]); i++)

static struct addr parsed(const char *text)
{
	struct addr a;
	if (!addr_parse(slice_str(text), &a))
		fail_msg("%s must parse", text);
	return a;
}

static struct addr_range range(const char *text)
{
	struct addr_range r;
	const char *why = "";
	if (!addr_range_parse(slice_str(text), &r, &why))
		fail_msg("%s must parse: %s", text, why);
	return r;
}

static void parse_and_format(void **state)
{
	(void)state;
	static const char *const same[] = {"0.0.0.0",
					   "1.2.3.4",
					   "255.255.255.255",
					   "::",
					   "::1",
					   "2001:db8::1",
					   "2001:db8:0:1:1:1:1:1",
					   "1:2:3:4:5:6:7:8",
					   "::ffff:1.2.3.4",
					   "fe80::1:0:0:1",
					   "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"};
	char out[ADDR_TEXT];
	EACH(same, i)
	{
		struct addr a = parsed(same[i]);
		struct slice text = addr_format(&a, out);
		assert_string_equal(text.ptr, same[i]);
		assert_int_equal(text.len, strlen(same[i]));
	}
	struct addr a = parsed("2001:DB8:0:0::0001"), b = parsed("2001:db8::1"), c = parsed("::ffff:127.0.0.1");
	assert_true(addr_eq(&a, &b));
	assert_int_equal(c.bytes[12], 127);
}

static void t07_only_canonical_spellings(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",
		".",
		"1",
		"1.2.3",
		"127.1",
		"1.2.3.4.",
		"1.2.3.4.5",
		"1.2.3.04",
		"01.2.3.4",
		"0x7f.0.0.1",
		"2130706433",
		"1.2.3.256",
		"1.2.3.-4",
		" 1.2.3.4",
		"1.2.3.4 ",
		"1..2.3",
		"+1.2.3.4",
		"0177.0.0.1",
		":",
		":::",
		"1::2::3",
		"[::1]",
		"::1%eth0",
		"::1%25lo",
		"1:2:3:4:5:6:7",
		"::12345",
		"1:2:3:4:5:6:7:8:9",
		"::1.2.3",
		"::1.2.3.04",
		"1:2:3:4:5:6:7:8:",
		":1:2:3:4:5:6:7:8",
		"::g",
		"1.2.3.4/8",
		"1111:1111:1111:1111:1111:1111:1111:1111:1111:1111",
	};
	struct addr a;
	EACH(bad, i)
	if (addr_parse(slice_str(bad[i]), &a))
		fail_msg("'%s' must not parse", bad[i]);
	assert_false(addr_parse(SLICE("1.2.3.4\0"), &a));
	assert_false(addr_parse(SLICE("1.2\0.3.4"), &a));
	assert_false(addr_parse(SLICE_NONE, &a));
	/* Only the bytes of the slice count. */
	assert_true(addr_parse(slice_head(SLICE("10.0.0.123"), 8), &a));
	assert_int_equal(a.bytes[3], 1);
}

static void ranges(void **state)
{
	(void)state;
	struct addr_range ten = range("10.0.0.0/8"), one = range("10.1.2.3"), all = range("0.0.0.0/0");
	struct addr_range odd = range("172.16.0.0/12"), fd = range("fd00::/8");
	struct addr in = parsed("10.255.0.1"), out = parsed("11.0.0.0"), edge = parsed("172.31.255.255");
	struct addr past = parsed("172.32.0.0"), v6 = parsed("fdff::1"), mapped = parsed("::ffff:10.0.0.1");
	assert_int_equal(one.prefix, 32);
	assert_true(addr_range_contains(&ten, &in));
	assert_false(addr_range_contains(&ten, &out));
	assert_false(addr_range_contains(&ten, &mapped));
	assert_true(addr_range_contains(&all, &out));
	assert_false(addr_range_contains(&all, &v6));
	assert_true(addr_range_contains(&odd, &edge));
	assert_false(addr_range_contains(&odd, &past));
	assert_true(addr_range_contains(&fd, &v6));
}

static void bad_ranges_say_why(void **state)
{
	(void)state;
	static const struct {
		const char *text, *why;
	} bad[] = {
		{"10.0.0.1/8", "bits"},     {"10.0.0.0/33", "prefix"},
		{"10.0.0.0/", "prefix"},    {"10.0.0.0/08", "prefix"},
		{"10.0.0.0/-1", "prefix"},  {"10.0.0/8", "address"},
		{"/8", "address"},          {"", "address"},
		{"fd00::/129", "prefix"},   {"fd00::1/64", "bits"},
		{"10.0.0.0/8/8", "prefix"}, {"10.0.0.0/8 ", "prefix"},
		{"1.2.3.4/0", "bits"},
	};
	struct addr_range r;
	EACH(bad, i)
	{
		const char *why = "";
		assert_false(addr_range_parse(slice_str(bad[i].text), &r, &why));
		if (!strstr(why, bad[i].why))
			fail_msg("%s: %s", bad[i].text, why);
	}
}

static void check_class(const char *text, enum addr_class want)
{
	struct addr a = parsed(text);
	if (addr_classify(&a) != want)
		fail_msg("%s is class %d, wanted %d", text, addr_classify(&a), want);
}

static void t07_special_ranges(void **state)
{
	(void)state;
	static const char *const special[] = {
		"0.0.0.0",
		"0.255.255.255",
		"10.0.0.0",
		"10.255.255.255",
		"100.64.0.0",
		"100.127.255.255",
		"127.0.0.1",
		"127.255.255.255",
		"169.254.0.1",
		"169.254.255.255",
		"172.16.0.0",
		"172.31.255.255",
		"192.0.0.8",
		"192.0.2.1",
		"192.88.99.1",
		"192.168.0.0",
		"192.168.255.255",
		"198.18.0.0",
		"198.19.255.255",
		"198.51.100.7",
		"203.0.113.255",
		"224.0.0.1",
		"239.255.255.255",
		"240.0.0.1",
		"255.255.255.255",
		"::",
		"::1",
		"::2",
		"::8.8.8.8",
		"::ffff:8.8.8.8",
		"::ffff:10.0.0.1",
		"::ffff:0:8.8.8.8",
		"64:ff9b::10.0.0.1",
		"64:ff9b::127.0.0.1",
		"64:ff9b:1::8.8.8.8",
		"64:ff9b:2::1",
		"100::1",
		"2001::1",
		"2001:0:808:808::f7f7:f7f7",
		"2001:1ff::1",
		"2001:db8::1",
		"2002:808:808::1",
		"2002:7f00:1::",
		"3fff::1",
		"3fff:fff::1",
		"5f00::1",
		"4000::1",
		"1fff::1",
		"fc00::1",
		"fdff::1",
		"fe80::1",
		"febf::1",
		"fec0::1",
		"feff::1",
		"ff02::1",
		"ffff::",
	};
	static const char *const public[] = {
		"1.0.0.0",          "1.1.1.1",         "8.8.8.8",     "9.255.255.255",
		"11.0.0.0",         "100.63.255.255",  "100.128.0.0", "126.255.255.255",
		"128.0.0.0",        "169.253.255.255", "169.255.0.0", "172.15.255.255",
		"172.32.0.0",       "192.0.1.0",       "192.0.3.0",   "192.167.255.255",
		"192.169.0.0",      "198.17.255.255",  "198.20.0.0",  "223.255.255.255",
		"168.63.129.15",    "2000::1",         "2001:200::1", "2001:4860:4860::8888",
		"2606:4700::1111",  "2003::1",         "3ffe::1",     "3fff:1000::1",
		"64:ff9b::8.8.8.8",
	};
	EACH(special, i)
	check_class(special[i], ADDR_SPECIAL);
	EACH(public, i)
	check_class(public[i], ADDR_PUBLIC);
}

static const char *const metadata_texts[] = {
	"169.254.169.254",
	"100.100.100.200",
	"168.63.129.16",
	"169.254.170.2",
	"169.254.170.23",
	"fd00:ec2::254",
	"fd00:ec2::23",
	"fd20:ce::254",
	/* mapped, compatible, translated, NAT64 */
	"::ffff:169.254.169.254",
	"::168.63.129.16",
	"::ffff:0:169.254.169.254",
	"64:ff9b::168.63.129.16",
	/* NAT64 of local use: under a /48, /56, /64 and /96 */
	"64:ff9b:1:a9fe:a9:fe00::",
	"64:ff9b:1:77a9:fe:a9fe::",
	"64:ff9b:1:7777:a9:fea9:fe00:0",
	"64:ff9b:1:7:7:7:a9fe:a9fe",
	/* 6to4; Teredo's client and server */
	"2002:a9fe:a9fe::1",
	"2002:a83f:8110:1:2:3:4:5",
	"2001:0:808:808:0:1234:5601:5601",
	"2001:0:a9fe:a9fe::1",
};

static void t07_metadata_in_every_wrapping(void **state)
{
	(void)state;
	EACH(metadata_texts, i)
	{
		check_class(metadata_texts[i], ADDR_METADATA);
		struct addr_range only = range(metadata_texts[i]);
		assert_true(addr_range_has_metadata(&only));
	}
}

static void t08_ranges_that_hold_metadata(void **state)
{
	(void)state;
	static const char *const with[] = {
		"0.0.0.0/0",     "169.254.0.0/16",         "169.254.169.254/31",
		"100.64.0.0/10", "168.63.0.0/16",          "::/0",
		"fd00::/8",      "fd00:ec2::/32",          "fd20:ce::/64",
		"::ffff:0:0/96", "::ffff:169.254.0.0/112", "64:ff9b::/96",
		"2002::/16",     "2002:a9fe::/32",         "2002:a9fe:a9fe:1::/64",
		"2001::/32",     "2001:0:102:304::/64",
	};
	static const char *const without[] = {
		"10.0.0.0/8",          "169.254.0.0/17", "169.254.169.255/32", "127.0.0.0/8", "192.168.0.0/16",
		"172.16.0.0/12",       "fd12::/16",      "fe80::/10",          "::1",         "2002:7f00::/24",
		"::ffff:10.0.0.0/104", "2001:db8::/32",
	};
	EACH(with, i)
	{
		struct addr_range r = range(with[i]);
		if (!addr_range_has_metadata(&r))
			fail_msg("%s holds metadata", with[i]);
	}
	EACH(without, i)
	{
		struct addr_range r = range(without[i]);
		if (addr_range_has_metadata(&r))
			fail_msg("%s holds no metadata", without[i]);
	}
}

static void sockaddr_round_trip(void **state)
{
	(void)state;
	static const char *const texts[] = {"1.2.3.4", "2001:db8::7"};
	EACH(texts, i)
	{
		struct sockaddr_storage ss;
		struct addr a = parsed(texts[i]), b;
		uint16_t port = 0;
		assert_true(addr_to_sockaddr(&a, 8443, &ss) > 0);
		assert_true(addr_from_sockaddr((struct sockaddr *)&ss, &b, &port));
		assert_true(addr_eq(&a, &b));
		assert_int_equal(port, 8443);
	}
	struct sockaddr un = {.sa_family = AF_UNIX};
	struct addr a;
	uint16_t port;
	assert_false(addr_from_sockaddr(&un, &a, &port));
}

static void with_port(void **state)
{
	(void)state;
	static const char *const bad[] = {
		"",
		"1.2.3.4",
		"1.2.3.4:",
		":80",
		"1.2.3.4:65536",
		"1.2.3.4:080",
		"1.2.3.4:-1",
		"::1:80",
		"[::1]",
		"[::1]80",
		"[::1:80",
		"[1.2.3.4]:80",
		"[]:80",
		"[[::1]]:80",
		"1.2.3.4:80 ",
		"host:80",
		"1.2.3.4:8:0",
		"[::1]:",
		"1.2.3.4:99999999999999999999",
	};
	struct addr a, want4 = parsed("127.0.0.1"), want6 = parsed("::1");
	uint16_t port;
	assert_true(addr_parse_with_port(SLICE("127.0.0.1:65535"), &a, &port));
	assert_true(addr_eq(&a, &want4) && port == 65535);
	assert_true(addr_parse_with_port(SLICE("[::1]:0"), &a, &port));
	assert_true(addr_eq(&a, &want6) && port == 0);
	EACH(bad, i)
	if (addr_parse_with_port(slice_str(bad[i]), &a, &port))
		fail_msg("'%s' must not parse", bad[i]);
}

static void t07_names_that_spell_an_address(void **state)
{
	(void)state;
	static const char *const spelled[] = {
		"169-254-169-254.nip.test",
		"10.0.0.1.nip.test",
		"10-0-0-1.x",
		"app-10-0-0-1.x",
		"a.b-127-0-0-1-c.d.test",
		"www.192.168.1.1.x.test",
		"ip-172-16-0-9.ec2.test",
		"168-63-129-16.x",
		"100-100-100-200.x",
		"010-000-000-001.x",
		"0a000001.x",
		"a.7f000001.x",
		"7F000001.x",
		"a9fea9fe.x",
		"2130706433.x",
		"x.2852039166.y",
		"167772161.x",
		"3232235777.x",
		"fd00-ec2--254.x",
		"--1.x",
		"a.fe80--1.b",
		"FE80--1.x",
		"fd12-3456-789a--1.x",
		"0-0-0-0-0-0-0-1.x",
		"--ffff-7f00-1.x",
		"64-ff9b--a9fe-a9fe.x",
		"2002-a00-1--.x",
		"10.0.0.1",
		"1-10-0-0-1.x",
		"10-0-0-1-1.x",
		"9-9-10-0-0-1-9-9.x",
		"1.10-0-0-1.2.x",
		"10-0.10.0.0.1.x",
		"0-0-0-0.x",
		"224-0-0-1.x",
	};
	static const char *const ordinary[] = {
		"",
		"example.com",
		"v1-2-3-4.example.com",
		"v10-0-0-1.x",
		"1-2-3-4.example.com",
		"8.8.8.8.x",
		"8-8-8-8.x",
		"10-0-0.x",
		"10.0.0.x",
		"10-0-0-256.x",
		"10-0-0-0001.x",
		"10-0.0-1.x",
		"1.10-0.0.x",
		"deadbeef.x",
		"ac0ffee1.x",
		"e0000001.x",
		"12345678.x",
		"0a000001a.x",
		"app-0a000001.x",
		"a0a000001.x",
		"99999999999.x",
		"4294967296.x",
		"0.x",
		"2024-10-12.x",
		"abc--123.x",
		"cafe--2.x",
		"1--1.x",
		"xn--fd00-1.x",
		"2001-4860--8888.x",
		"2606-4700--1111.x",
		"fd00ec2254.x",
		"3.2.1.10.in-addr.test",
		"s3-1.v2.api-3.x",
		"---",
		".",
		"..",
		"-.-",
		"10--0-0-1.x",
	};
	EACH(spelled, i)
	if (!addr_spelled_in_name(slice_str(spelled[i])))
		fail_msg("%s spells a special address", spelled[i]);
	EACH(ordinary, i)
	if (addr_spelled_in_name(slice_str(ordinary[i])))
		fail_msg("%s is an ordinary name", ordinary[i]);
	assert_false(addr_spelled_in_name(SLICE_NONE));
}

/* The slice ends where it says: nothing behind it is read. */
static void name_of_exact_length(void **state)
{
	(void)state;
	static const char text[] = "169-254-169-254.nip.test";
	for (size_t n = 0; n < sizeof(text); n++) {
		char *copy = malloc(n + 1);
		assert_non_null(copy);
		memcpy(copy, text, n);
		/* 169-254-169-2 is special by itself already. */
		assert_int_equal(addr_spelled_in_name(slice_of(copy, n)), n >= strlen("169-254-169-2"));
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_and_format),
		cmocka_unit_test(t07_only_canonical_spellings),
		cmocka_unit_test(ranges),
		cmocka_unit_test(bad_ranges_say_why),
		cmocka_unit_test(t07_special_ranges),
		cmocka_unit_test(t07_metadata_in_every_wrapping),
		cmocka_unit_test(t08_ranges_that_hold_metadata),
		cmocka_unit_test(sockaddr_round_trip),
		cmocka_unit_test(with_port),
		cmocka_unit_test(t07_names_that_spell_an_address),
		cmocka_unit_test(name_of_exact_length),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
