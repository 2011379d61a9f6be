/* cage-azure: the program behind `cage azure`. deploy.h says how it goes. */
#include <jansson.h>
#include <stdlib.h>

#include "core/base/say.h"
#include "core/base/usage.h"
#include "core/base/wipe.h"
#include "core/proc/process.h"
#include "orchestrator/deploy/deploy.h"

static int obey(struct deploy *d)
{
	switch (d->options->verb) {
	case DEPLOY_UP:
		return deploy_up(d);
	case DEPLOY_PLAN:
		return deploy_plan(d);
	case DEPLOY_DOWN:
		return deploy_down(d);
	}
	return EXIT_WRONG;
}

static int run(const struct deploy_options *o)
{
	static struct deploy d;
	const int code = session_open(&d, o) ? obey(&d) : EXIT_FAILED;
	session_close(&d);
	return code ? code : usage_printed();
}

int main(int argc, char **argv)
{
	struct deploy_options options;
	int code = EXIT_WRONG;
	say_as("cage azure");
	process_harden();
	json_set_alloc_funcs(malloc, wipe_free); /* parameters may be secrets */
	switch (deploy_options_parse(argc, argv, &options)) {
	case OPTIONS_RUN:
		code = run(&options);
		break;
	case OPTIONS_EXIT_OK:
		code = usage_printed();
		break;
	case OPTIONS_EXIT_USAGE:
		break;
	}
	deploy_options_free(&options);
	return code;
}
