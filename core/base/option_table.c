/* The loop over a table of options. */
#include "core/base/option_table.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/say.h"
#include "core/base/usage.h"

enum { OPT_VERSION = 256, OPT_FIRST }; /* above all letters; the second is what getopt says of the first row */

int option_table_wrong(const struct option_table *t, const char *option, const char *why)
{
	say("%s: %s", option, why);
	if (t->more)
		say("%s", t->more);
	return USAGE_WRONG;
}

const char *option_text(const struct option_row *row, const void *options)
{
	return *(const char *const *)((const char *)options + row->at);
}

/* As getopt wants to have it; owned by the caller. */
static struct option *known(const struct option_table *t)
{
	struct option *list = calloc(t->n_rows + 3, sizeof(*list));
	if (!list)
		return NULL;
	for (size_t i = 0; i < t->n_rows; i++) {
		const int value = t->rows[i].kind == OPTION_FLAG ? no_argument : required_argument;
		list[i] = (struct option){t->rows[i].name, value, NULL, OPT_FIRST + (int)i};
	}
	list[t->n_rows] = (struct option){"help", no_argument, NULL, 'h'};
	list[t->n_rows + 1] = (struct option){"version", no_argument, NULL, OPT_VERSION};
	return list;
}

static int take_row(const struct option_table *t, const struct option_row *row, void *options, const char *value)
{
	void *place = (char *)options + row->at;
	char option[USAGE_WORD];
	const char *why = NULL;
	switch (row->kind) {
	case OPTION_TEXT:
		*(const char **)place = value;
		break;
	case OPTION_FLAG:
		*(bool *)place = true;
		break;
	case OPTION_TAKEN:
		why = row->take(place, value);
		break;
	}
	if (!why)
		return OPTIONS_GO_ON;
	snprintf(option, sizeof(option), "--%s", row->name);
	return option_table_wrong(t, option, why);
}

static int take(const struct option_table *t, int opt, const struct option *list, char **argv, void *options)
{
	char word[USAGE_WORD];
	switch (opt) {
	case 'h':
		return usage_print_help(t->help);
	case OPT_VERSION:
		return usage_print_version(t->program);
	case '?':
	case ':': {
		const char *why = usage_fault(opt, argv, list, word);
		return option_table_wrong(t, word, why);
	}
	default:
		return take_row(t, &t->rows[opt - OPT_FIRST], options, optarg);
	}
}

int option_table_read(const struct option_table *t, int argc, char **argv, void *options)
{
	struct option *list = known(t);
	int opt, code = OPTIONS_GO_ON;
	if (!list) {
		say("no memory");
		return 1;
	}
	while (code == OPTIONS_GO_ON &&
	       (opt = usage_next(argc, argv, t->ends_at_word ? "+:h" : ":h", list, NULL)) != -1)
		code = take(t, opt, list, argv, options);
	free(list);
	return code;
}
