/* The server_name extension, byte by byte (THREATS T01, T09). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "proxy/tls.h"

#define EXT(lit) SLICE(lit)

static void one_name(void **state)
{
	(void)state;
	struct slice name;
	assert_int_equal(tls_sni_parse(EXT("\0\x09\0\0\x06"
					   "a.test"),
				       &name),
			 CAGE_OK);
	assert_true(slice_eq(name, SLICE("a.test")));
}

/* The bytes are handed on as they are: the host parser is what refuses a NUL. */
static void t01_nul_is_part_of_the_name(void **state)
{
	(void)state;
	struct slice name;
	assert_int_equal(tls_sni_parse(EXT("\0\x06\0\0\x03"
					   "a\0b"),
				       &name),
			 CAGE_OK);
	assert_int_equal(name.len, 3);
}

static void malformed(void **state)
{
	(void)state;
	struct slice name;
	const struct slice bad[] = {
		EXT(""),
		EXT("\0"),
		EXT("\0\0"),
		EXT("\0\x03\0\0\0"), /* empty name */
		EXT("\0\x09\x01\0\x06"
		    "a.test"), /* not a host name */
		EXT("\0\x08\0\0\x06"
		    "a.test"), /* list shorter than what is there */
		EXT("\0\x0a\0\0\x06"
		    "a.test"), /* list longer */
		EXT("\0\x09\0\0\x05"
		    "a.test"), /* name shorter: a rest remains */
		EXT("\0\x09\0\0\x07"
		    "a.test"), /* name longer */
		EXT("\0\x12\0\0\x06"
		    "a.test"
		    "\0\0\x06"
		    "b.test"), /* two names */
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(tls_sni_parse(bad[i], &name), CAGE_EPROTO);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_name),
		cmocka_unit_test(t01_nul_is_part_of_the_name),
		cmocka_unit_test(malformed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
