/* A table for people: columns as wide as they must be, each value without what would harm a terminal. */
#ifndef CAGE_CLIENT_TABLE_H
#define CAGE_CLIENT_TABLE_H

#include <stdbool.h>

#include "orchestrator/words.h"

struct table {
	size_t columns;     /* at most LIMIT_CLIENT_COLUMNS */
	struct words cells; /* row by row, the head first */
};

/* The names of the columns end with NULL. */
void table_begin(struct table *t, const char *const *names);

/* The next cell of the row; NULL and "" are shown as "-". */
void table_cell(struct table *t, const char *value);
void table_number(struct table *t, const char *format, double n) __attribute__((format(printf, 2, 0)));

/* On stdout. False: it could not be written, or there was no memory; it was said. */
bool table_end(struct table *t);

#endif
