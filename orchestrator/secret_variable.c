/* Variables are emptied where the kernel has put them. */
#include "orchestrator/secret_variable.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* If it is there several times, each of them. */
void secret_variable_wipe(const char *name)
{
	const size_t n = strlen(name);
	for (char **entry = environ; entry && *entry; entry++)
		if (strncmp(*entry, name, n) == 0 && (*entry)[n] == '=')
			explicit_bzero(*entry + n + 1, strlen(*entry + n + 1));
	unsetenv(name);
}

char *secret_variable_take(const char *name, size_t most)
{
	const char *value = getenv(name);
	const size_t len = value ? strlen(value) : 0;
	char *out = len > 0 && len <= most ? strdup(value) : NULL;
	secret_variable_wipe(name);
	return out;
}
