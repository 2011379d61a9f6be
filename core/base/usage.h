/* What every program says of its command line in the same words, whatever it is linked with. */
#ifndef CAGE_BASE_USAGE_H
#define CAGE_BASE_USAGE_H

#include <getopt.h>

#include "core/base/limits.h"

#define USAGE_WORD LIMIT_OPTION_WORD

/* The next option, as getopt_long has it; what is wrong is left to usage_fault. short_options begins with ':', or with "+:" where
 * the first word that is no option ends them. */
int usage_next(int argc, char **argv, const char *short_options, const struct option *known, int *which);

/* What is wrong, when that was ':' or '?'; word gets the option that it is about. */
const char *usage_fault(int opt, char **argv, const struct option *known, char word[USAGE_WORD]);

/* The exit code of who was asked for a text and has printed it: 0, or 1 after it was said that it could not be written. */
int usage_printed(void);

#endif
