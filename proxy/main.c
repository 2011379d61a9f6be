/* cage-proxy: the forward proxy of the cage. */
#include "core/base/say.h"
#include "core/base/usage.h"
#include "core/proc/process.h"
#include "proxy/master.h"
#include "proxy/print_env.h"

int main(int argc, char **argv)
{
	static struct options options;
	say_as("cage-proxy");
	process_harden();
	switch (options_parse(argc, argv, &options)) {
	case OPTIONS_RUN:
		return proxy_run(&options);
	case OPTIONS_CHECK:
		return proxy_check(&options);
	case OPTIONS_PRINT_ENV:
		return print_env(&options);
	case OPTIONS_EXIT_OK:
		return usage_printed();
	case OPTIONS_EXIT_USAGE:
		return 2;
	}
	return 2;
}
