/* Which part of a name somebody can buy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "core/base/limits.h"
#include "inspectors/registrable.h"

/* The name lies at the end of its memory: reading beyond it would be seen. */
static void expect_domain(const char *name, const char *domain)
{
	size_t len = strlen(name);
	char *copy = malloc(len);
	assert_non_null(copy);
	memcpy(copy, name, len);
	struct host host = {.kind = HOST_NAME, .text = slice_of(copy, len)};
	struct slice got = registrable_domain(&host);
	if (!slice_eq(got, slice_str(domain)))
		fail_msg("%s: %.*s", name, SLICE_FMT(got));
	assert_true(got.ptr + got.len == copy + len);
	free(copy);
}

static void names(void **state)
{
	(void)state;
	expect_domain("example.com", "example.com");
	expect_domain("a.b.example.com", "example.com");
	expect_domain("a.b.example.co.uk", "example.co.uk");
	expect_domain("_x.example.com", "example.com");
	expect_domain("a.xn--55qx5d.cn", "a.xn--55qx5d.cn");
	expect_domain("b.a.xn--55qx5d.cn", "a.xn--55qx5d.cn");
	/* rules with a star, and exceptions to them */
	expect_domain("c.a.b.ck", "a.b.ck");
	expect_domain("x.www.ck", "www.ck");
	/* a domain that no list knows */
	expect_domain("a.b.corp", "b.corp");
	expect_domain("x.y.test", "y.test");
}

static void names_that_nobody_can_buy(void **state)
{
	(void)state;
	expect_domain("co.uk", "co.uk");
	expect_domain("com", "com");
	expect_domain("localhost", "localhost");
}

static void addresses(void **state)
{
	(void)state;
	struct host host = {.kind = HOST_ADDRESS, .text = SLICE("192.0.2.7")};
	assert_true(slice_eq(registrable_domain(&host), host.text));
	host.text = SLICE("2001:db8::1");
	assert_true(slice_eq(registrable_domain(&host), host.text));
}

static void the_longest_name(void **state)
{
	(void)state;
	char name[LIMIT_HOST + 2];
	for (size_t i = 0; i < sizeof(name); i++)
		name[i] = i % 2 ? '.' : 'a';
	struct host host = {.kind = HOST_NAME, .text = slice_of(name, LIMIT_HOST)};
	assert_true(slice_eq(registrable_domain(&host), SLICE("a.a")));
	host.text.len++;
	assert_int_equal(registrable_domain(&host).len, LIMIT_HOST + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(names_that_nobody_can_buy),
		cmocka_unit_test(addresses),
		cmocka_unit_test(the_longest_name),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
