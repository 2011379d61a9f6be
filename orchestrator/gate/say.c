/* One line at a time, written with one call, so that lines of parent and child never mix. */
#include "orchestrator/gate/say.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/base/printable.h"

void say(const char *format, ...)
{
	char line[512] = "cage-gate: ";
	const size_t start = strlen(line);
	va_list args;
	va_start(args, format);
	int n = vsnprintf(line + start, sizeof(line) - start - 1, format, args);
	va_end(args);
	size_t len = start + (n < 0 ? 0 : (size_t)n);
	if (len > sizeof(line) - 2)
		len = sizeof(line) - 2;
	make_printable(line, len);
	line[len++] = '\n';
	if (write(STDERR_FILENO, line, len) < 0)
		return; /* nobody reads it */
}

int say_errno(const char *what)
{
	say("%s: %s", what, strerror(errno));
	return -1;
}
