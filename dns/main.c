/* cage-dns: the DNS filter of the cage. */
#include "core/base/say.h"
#include "core/base/usage.h"
#include "core/proc/process.h"
#include "dns/master.h"

int main(int argc, char **argv)
{
	static struct options options;
	say_as("cage-dns");
	process_harden();
	switch (options_parse(argc, argv, &options)) {
	case OPTIONS_RUN:
		return dns_run(&options);
	case OPTIONS_CHECK:
		return dns_check(&options);
	case OPTIONS_EXIT_OK:
		return usage_printed();
	case OPTIONS_PRINT_ENV: /* no option of ours */
	case OPTIONS_EXIT_USAGE:
		return 2;
	}
	return 2;
}
