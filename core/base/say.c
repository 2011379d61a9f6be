/* One line at a time: several processes share stderr. Names of files in it were made by others, agents among them. */
#include "core/base/say.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "core/base/printable.h"

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
	make_printable(line, strlen(line));
	fprintf(stderr, "%s: %s\n", program, line);
}
