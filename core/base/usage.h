/* What every program says of its command line in the same words, whatever it is linked with. */
#ifndef CAGE_BASE_USAGE_H
#define CAGE_BASE_USAGE_H

#include <getopt.h>

#include "core/base/limits.h"

#define USAGE_WORD LIMIT_OPTION_WORD
#define USAGE_WRONG 2 /* the exit code of who was called in a wrong way */

/* The next option, as getopt_long has it; what is wrong is left to usage_fault. short_options begins with ':', or with "+:" where
 * the first word that is no option ends them. */
int usage_next(int argc, char **argv, const char *short_options, const struct option *known, int *which);

/* What is wrong, when that was ':' or '?'; word gets the option that it is about. */
const char *usage_fault(int opt, char **argv, const struct option *known, char word[USAGE_WORD]);

/* The exit code of who was asked for a text and has printed it: 0, or 1 after it was said that it could not be written. */
int usage_printed(void);

/* A text that was asked for, and the exit code. */
int usage_print_help(const char *text);
int usage_print_version(const char *program);

/* Of a program without options, the first word of which asks for one of these: the exit code. -1: it does not. */
int usage_asked(int argc, char **argv, const char *program, const char *help);

#endif
