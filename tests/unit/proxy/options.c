/* The command line: defaults, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <getopt.h>
#include <unistd.h>

#include "proxy/options.h"

static enum options_action parse(struct options *o, const char *const *args)
{
	char words[48][64];
	char *argv[48] = {(char[]){"cage-proxy"}};
	int argc = 1;
	for (; args[argc - 1]; argc++) {
		strncpy(words[argc], args[argc - 1], sizeof(words[0]) - 1);
		words[argc][sizeof(words[0]) - 1] = '\0';
		argv[argc] = words[argc];
	}
	optind = 0; /* getopt starts anew */
	return options_parse(argc, argv, o);
}

#define ARGS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void defaults(void **state)
{
	(void)state;
	struct options o;
	assert_int_equal(parse(&o, ARGS("--policy", "p.yaml")), OPTIONS_RUN);
	assert_int_equal(o.n_listen, 1);
	assert_int_equal(o.listen[0].at.port, 8080);
	assert_true(o.has_admin);
	assert_int_equal(o.admin.at.port, 8081);
	assert_int_equal(o.workers, 1);
	assert_string_equal(o.log, "-");
}

static void what_is_given(void **state)
{
	(void)state;
	struct options o;
	assert_int_equal(parse(&o, ARGS("--policy", "p", "--listen", "127.0.0.1:1", "--listen", "unix:/tmp/s",
					"--admin", "off", "--workers", "3", "--check")),
			 OPTIONS_CHECK);
	assert_int_equal(o.n_listen, 2);
	assert_int_equal(o.listen[1].kind, LISTEN_UNIX);
	assert_false(o.has_admin);
	assert_int_equal(o.workers, 3);
	assert_int_equal(parse(&o, ARGS("--policy", "p", "--check")), OPTIONS_CHECK);
	assert_int_equal(o.n_listen, 0); /* pins are compared with those that were given */
	assert_int_equal(parse(&o, ARGS("--policy", "p", "--print-env", "--sandbox", "a")), OPTIONS_PRINT_ENV);
	assert_string_equal(o.bindings, "");
	assert_int_equal(parse(&o, ARGS("--policy", "p", "--bindings", "unix:/tmp/b")), OPTIONS_RUN);
	assert_string_equal(o.bindings, "/tmp/b");
	assert_int_equal(parse(&o, ARGS("--help")), OPTIONS_EXIT_OK);
	assert_int_equal(parse(&o, ARGS("--version")), OPTIONS_EXIT_OK);
}

static void other_entrances(void **state)
{
	(void)state;
	struct options o;
	assert_int_equal(parse(&o, ARGS("--policy", "p", "--socks", "unix:/tmp/s", "--auth", "f")), OPTIONS_RUN);
	assert_int_equal(o.n_listen, 1); /* and no other one, that nobody asked for */
	assert_int_equal(o.entrances[0], ENTRANCE_SOCKS);
	assert_int_equal(parse(&o, ARGS("--policy", "p", "--transparent", "[::1]:443", "--listen", "127.0.0.1:1",
					"--socks", "fd:3", "--transparent", "fd:4")),
			 OPTIONS_RUN);
	assert_int_equal(o.n_listen, 4);
	assert_int_equal(o.entrances[0], ENTRANCE_CAPTURED);
	assert_int_equal(o.entrances[1], ENTRANCE_PROXY);
	assert_int_equal(o.entrances[2], ENTRANCE_SOCKS);
	assert_int_equal(o.entrances[3], ENTRANCE_CAPTURED);
	assert_int_equal(o.listen[3].fd, 4);
	assert_int_equal(o.watch, -1);
	assert_int_equal(dup2(2, 7), 7);
	assert_int_equal(parse(&o, ARGS("--policy", "p", "--watch", "fd:7")), OPTIONS_RUN);
	assert_int_equal(o.watch, 7);
	close(7);
	assert_int_equal(parse(&o, ARGS("--policy", "p", "--watch", "fd:7")), OPTIONS_EXIT_USAGE);
}

static void too_many_listeners(void **state)
{
	(void)state;
	struct options o;
	const char *args[2 + 2 * (LIMIT_LISTENERS + 1) + 1] = {"--policy", "p"};
	for (size_t i = 0; i <= LIMIT_LISTENERS; i++) {
		args[2 + 2 * i] = i % 2 ? "--socks" : "--listen";
		args[3 + 2 * i] = "127.0.0.1:1";
	}
	assert_int_equal(parse(&o, args), OPTIONS_EXIT_USAGE);
	args[2 + 2 * LIMIT_LISTENERS] = NULL;
	assert_int_equal(parse(&o, args), OPTIONS_RUN);
	assert_int_equal(o.n_listen, LIMIT_LISTENERS);
}

static void too_many_that_are_never_dialled(void **state)
{
	(void)state;
	struct options o;
	const char *args[2 + 2 * (LIMIT_NEVER + 1) + 1] = {"--policy", "p"};
	for (size_t i = 0; i <= LIMIT_NEVER; i++) {
		args[2 + 2 * i] = "--never";
		args[3 + 2 * i] = i % 2 ? "[::1]:1" : "0.0.0.0:1";
	}
	assert_int_equal(parse(&o, args), OPTIONS_EXIT_USAGE);
	args[2 + 2 * LIMIT_NEVER] = NULL;
	assert_int_equal(parse(&o, args), OPTIONS_RUN);
	assert_int_equal(o.n_never, LIMIT_NEVER);
	assert_int_equal(o.never[1].port, 1);
	assert_int_equal(parse(&o, ARGS("--policy", "p", "--never", "127.0.0.1:0")), OPTIONS_EXIT_USAGE);
	assert_int_equal(parse(&o, ARGS("--policy", "p", "--never", "unix:/tmp/s")), OPTIONS_EXIT_USAGE);
	assert_int_equal(parse(&o, ARGS("--policy", "p", "--never", "name:1")), OPTIONS_EXIT_USAGE);
}

static void wrong_usage(void **state)
{
	(void)state;
	struct options o;
	assert_int_equal(parse(&o, ARGS("--workers", "1")), OPTIONS_EXIT_USAGE); /* no policy */
	assert_int_equal(parse(&o, ARGS("--policy", "p", "extra")), OPTIONS_EXIT_USAGE);
	assert_int_equal(parse(&o, ARGS("--policy", "p", "--listen", "nonsense")), OPTIONS_EXIT_USAGE);
	assert_int_equal(parse(&o, ARGS("--policy", "p", "--workers", "0")), OPTIONS_EXIT_USAGE);
	assert_int_equal(parse(&o, ARGS("--policy", "p", "--workers", "65")), OPTIONS_EXIT_USAGE);
	assert_int_equal(parse(&o, ARGS("--policy", "p", "--sandbox", "a b")), OPTIONS_EXIT_USAGE);
	assert_int_equal(parse(&o, ARGS("--policy", "p", "--socks", "nonsense")), OPTIONS_EXIT_USAGE);
	assert_int_equal(parse(&o, ARGS("--policy", "p", "--bindings", "127.0.0.1:1")), OPTIONS_EXIT_USAGE);
	assert_int_equal(parse(&o, ARGS("--policy", "p", "--bindings", "/tmp/b")), OPTIONS_EXIT_USAGE);
	assert_int_equal(parse(&o, ARGS("--policy", "p", "--transparent", "unix:/tmp/s")), OPTIONS_EXIT_USAGE);
	assert_int_equal(parse(&o, ARGS("--policy", "p", "--transparent", "127.0.0.1:1", "--auth", "f")),
			 OPTIONS_EXIT_USAGE);
	assert_int_equal(parse(&o, ARGS("--policy", "p", "--watch", "127.0.0.1:1")), OPTIONS_EXIT_USAGE);
	assert_int_equal(parse(&o, ARGS("--policy", "p", "--watch", "7")), OPTIONS_EXIT_USAGE);
	assert_int_equal(parse(&o, ARGS("--policy", "p", "--unknown")), OPTIONS_EXIT_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),
		cmocka_unit_test(what_is_given),
		cmocka_unit_test(other_entrances),
		cmocka_unit_test(too_many_listeners),
		cmocka_unit_test(too_many_that_are_never_dialled),
		cmocka_unit_test(wrong_usage),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
