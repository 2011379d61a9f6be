/* Commands that are programs of their own, so that nobody else loads what they need. */
#include "orchestrator/serve.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/launch.h"

static int become(char *name, char **argv)
{
	char path[4200];
	if (!launch_path(name, path, sizeof(path))) {
		say("%s: can't be found beside this program", name);
		return 1;
	}
	argv[0] = name;
	execv(path, argv);
	say("%s: %s%s", path, strerror(errno), errno == ENOENT ? ": it is not built, which ./dev build does" : "");
	return 1;
}

int cmd_serve(int argc, char **argv)
{
	(void)argc;
	return become("cage-serve", argv);
}

int cmd_azure(int argc, char **argv)
{
	(void)argc;
	return become("cage-azure", argv);
}
