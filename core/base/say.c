/* One line at a time: several processes share stderr. */
#include "core/base/say.h"

#include <stdarg.h>
#include <stdio.h>

#define LINE_ROOM 9000 /* two paths */

static const char *program = "cage";

void say_as(const char *name)
{
	program = name;
}

const char *say_name(void)
{
	return program;
}

void say(const char *format, ...)
{
	char line[LINE_ROOM];
	va_list args;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fprintf(stderr, "%s: %s\n", program, line);
}
