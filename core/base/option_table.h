/* A command line as a table: what each option is, and one loop that reads them. -h, --help and --version are options of all. What is
 * wrong is said here, with the option that it is about. */
#ifndef CAGE_BASE_OPTION_TABLE_H
#define CAGE_BASE_OPTION_TABLE_H

#include <stdbool.h>
#include <stddef.h>

#define OPTIONS_GO_ON (-1) /* no exit code: the program goes on */

enum option_kind {
	OPTION_TEXT, /* its value is put into a const char * */
	OPTION_FLAG, /* it has no value, and sets a bool */
	OPTION_TAKEN /* its value is given to a function */
};

/* NULL, or what was expected. */
typedef const char *option_taker(void *place, const char *value);

struct option_row {
	const char *name;
	enum option_kind kind;
	size_t at; /* the place of it in the options of the program; 0 is all of them */
	option_taker *take;
};

struct option_table {
	const char *program, *help; /* the first is what --version says */
	const char *more;           /* said after what is wrong; NULL: nothing */
	const struct option_row *rows;
	size_t n_rows;
	bool ends_at_word; /* the first word that is no option ends them */
};

/* Fills the program's options; optind is then the first word that is no option. OPTIONS_GO_ON, or an exit code. */
int option_table_read(const struct option_table *t, int argc, char **argv, void *options);

/* What is wrong is said; the exit code. */
int option_table_wrong(const struct option_table *t, const char *option, const char *why);

/* The value of a row of OPTION_TEXT. */
const char *option_text(const struct option_row *row, const void *options);

#endif
