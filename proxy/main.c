/* cage-proxy: the forward proxy of the cage. */
#include "proxy/master.h"
#include "proxy/print_env.h"
#include "proxy/process.h"

int main(int argc, char **argv)
{
	static struct options options;
	process_harden();
	switch (options_parse(argc, argv, &options)) {
	case OPTIONS_RUN:
		return master_run(&options);
	case OPTIONS_CHECK:
		return master_check(&options);
	case OPTIONS_PRINT_ENV:
		return print_env(&options);
	case OPTIONS_EXIT_OK:
		return 0;
	case OPTIONS_EXIT_USAGE:
		return 2;
	}
	return 2;
}
