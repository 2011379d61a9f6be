/* Of two absolute paths without "." and "..": is one of them in the other? For all programs here, so it needs nothing. */
#ifndef CAGE_ORCHESTRATOR_BELOW_H
#define CAGE_ORCHESTRATOR_BELOW_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline bool path_is_at_or_below(const char *path, const char *dir)
{
	const size_t len = strcmp(dir, "/") == 0 ? 0 : strlen(dir);
	return strncmp(path, dir, len) == 0 && (path[len] == '/' || path[len] == '\0');
}

#endif
