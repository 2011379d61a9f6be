/* cage-azure: the program behind `cage azure`. deploy.h says how it goes. */
#include <jansson.h>
#include <stdlib.h>

#include "core/base/option_table.h"
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
	say_as("cage azure");
	process_harden();
	json_set_alloc_funcs(malloc, wipe_free); /* parameters may be secrets */
	int code = deploy_options_parse(argc, argv, &options);
	if (code == OPTIONS_GO_ON)
		code = run(&options);
	deploy_options_free(&options);
	return code;
}
