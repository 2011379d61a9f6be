/* What the command lines of all programs have in common. What is wrong is said here, with the option that it is about. */
#ifndef CAGE_PROC_COMMAND_LINE_H
#define CAGE_PROC_COMMAND_LINE_H

#include <getopt.h>

#include "core/base/limits.h"
#include "core/net/listener.h"

enum options_action { OPTIONS_RUN, OPTIONS_CHECK, OPTIONS_PRINT_ENV, OPTIONS_EXIT_OK, OPTIONS_EXIT_USAGE };

/* Takes one option. OPTIONS_RUN: go on; one that exits ends the reading; any other is what is done at last. */
typedef enum options_action options_taker(void *options, int opt, const char *value);

/* Gives each option of the command line to take; all must be among known. */
enum options_action options_read(int argc, char **argv, const struct option *known, options_taker *take, void *options);

/* OPTIONS_EXIT_USAGE, once it was said. */
enum options_action options_usage_error(const char *option, const char *why);

/* Values of options. OPTIONS_RUN, or OPTIONS_EXIT_USAGE once it was said what is wrong. */
enum options_action options_read_admin(const char *text, bool *has_admin, struct listen_spec *out);
enum options_action options_read_bindings(const char *text, struct listen_spec *out);
enum options_action options_read_descriptor(const char *option, const char *text, int *out); /* fd:N */
enum options_action options_read_log_max(const char *text, uint64_t *out);
enum options_action options_read_sandbox(const char *text, const char **out);

/* Adds a listener to list[LIMIT_LISTENERS]. */
enum options_action options_add_listener(const char *option, const char *text, bool may_be_unix,
					 struct listen_spec *list, size_t *n);

#endif
