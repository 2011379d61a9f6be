/* Messages about options. Those of getopt have the name by which the program was called, and stay silent here. */
#include "core/base/usage.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

int usage_next(int argc, char **argv, const char *short_options, const struct option *known, int *which)
{
	opterr = 0;
	return getopt_long(argc, argv, short_options, known, which);
}

static bool is_known(const struct option *known, int value)
{
	for (; known->name; known++)
		if (known->val == value)
			return true;
	return false;
}

/* Of how many options it is the beginning. */
static size_t count_begun(const struct option *known, const char *name, size_t len)
{
	size_t n = 0;
	for (; known->name; known++)
		n += strncmp(known->name, name, len) == 0;
	return n;
}

/* optopt is the letter of a short option, the value of a long one that is known, or 0. */
const char *usage_fault(int opt, char **argv, const struct option *known, char word[USAGE_WORD])
{
	if (optopt != 0 && !is_known(known, optopt)) {
		snprintf(word, USAGE_WORD, "-%c", optopt > ' ' && optopt <= '~' ? optopt : '?');
		return "there is no such option";
	}
	const char *asked = argv[optind - 1];
	const size_t len = strcspn(asked, "=");
	snprintf(word, USAGE_WORD, "%.*s", (int)len, asked);
	if (opt == ':')
		return "expected a value behind it";
	if (optopt != 0)
		return "takes no value";
	return len > 2 && count_begun(known, asked + 2, len - 2) > 1 ? "could be one of several options"
								     : "there is no such option";
}

int usage_printed(void)
{
	errno = 0; /* of what could not be written earlier it is long lost */
	if (fflush(stdout) == 0 && !ferror(stdout))
		return 0;
	fprintf(stderr, "%s: stdout: %s\n", program_invocation_short_name,
		errno ? strerror(errno) : "not all could be written");
	return 1;
}

int usage_print_help(const char *text)
{
	fputs(text, stdout);
	return usage_printed();
}

int usage_print_version(const char *program)
{
	printf("%s " CAGE_VERSION "\n", program);
	return usage_printed();
}

int usage_asked(int argc, char **argv, const char *program, const char *help)
{
	const char *word = argc == 2 ? argv[1] : "";
	if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0)
		return usage_print_help(help);
	return strcmp(word, "--version") == 0 ? usage_print_version(program) : -1;
}
