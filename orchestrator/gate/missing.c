/* The kernel says "no such file" of a link that leads nowhere, and of a program whose interpreter is missing, too. */
#include "orchestrator/gate/missing.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "orchestrator/gate/say.h"

/* Is there something of that name? Then it is said what it lacks. */
static bool explain_file(const char *path)
{
	struct stat st;
	char target[PATH_MAX];
	if (lstat(path, &st) < 0)
		return false;
	if (stat(path, &st) == 0) {
		say("%s is there, but the program that runs it (its first line, or its loader) is not in the room",
		    path);
		return true;
	}
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	if (n < 0)
		return false;
	target[n] = '\0';
	say("%s is a link to %s, which the room does not have: show that too, with --bind-ro", path, target);
	return true;
}

/* As execvp() looks for it. */
static bool explain_in_path(const char *command)
{
	const char *at = getenv("PATH");
	while (at) {
		char path[PATH_MAX];
		const size_t len = strcspn(at, ":");
		int n = snprintf(path, sizeof(path), "%.*s/%s", (int)len, at, command);
		if (n < (int)sizeof(path) && explain_file(path))
			return true;
		at = at[len] ? at + len + 1 : NULL;
	}
	return false;
}

void missing_explain(const char *command)
{
	if (strchr(command, '/') ? explain_file(command) : explain_in_path(command))
		return;
	say("a room has the programs of /usr, /opt and the like, and no home: --bind-ro DIR shows others, --env PATH "
	    "lets them be "
	    "found, and --workspace DIR shows a project");
}
