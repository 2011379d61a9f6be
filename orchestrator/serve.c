/* cage serve: a program of its own, so that nobody else loads what it needs. */
#include "orchestrator/serve.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/launch.h"

int cmd_serve(int argc, char **argv)
{
	char path[4200];
	(void)argc;
	if (!launch_path("cage-serve", path, sizeof(path))) {
		say("cage-serve: can't be found beside this program");
		return 1;
	}
	argv[0] = "cage-serve";
	execv(path, argv);
	say("%s: %s%s", path, strerror(errno), errno == ENOENT ? ": it is not built, which ./dev build does" : "");
	return 1;
}
