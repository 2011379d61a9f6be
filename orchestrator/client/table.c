/* Tables: all rows are known before the first is written, since the widest value makes the column. */
#include "orchestrator/client/table.h"

#include <stdio.h>

#include "core/base/limits.h"
#include "core/base/say.h"
#include "orchestrator/client/client.h"
#include "orchestrator/client/shown.h"

void table_begin(struct table *t, const char *const *names)
{
	*t = (struct table){0};
	for (; names[t->columns] && t->columns < LIMIT_CLIENT_COLUMNS; t->columns++)
		words_add(&t->cells, "%s", names[t->columns]);
}

void table_cell(struct table *t, const char *value)
{
	char safe[LIMIT_CLIENT_CELL];
	words_add(&t->cells, "%s", value && value[0] ? shown(value, safe, sizeof(safe)) : "-");
}

void table_number(struct table *t, const char *format, double n)
{
	char digits[64];
	snprintf(digits, sizeof(digits), format, n);
	table_cell(t, digits);
}

static void print_row(const struct table *t, size_t row, const size_t *widths)
{
	char *const *cells = t->cells.list + row * t->columns;
	for (size_t i = 0; i + 1 < t->columns; i++)
		printf("%s%*s", cells[i], (int)(widths[i] - shown_width(cells[i]) + 2), "");
	printf("%s\n", cells[t->columns - 1]);
}

bool table_end(struct table *t)
{
	size_t widths[LIMIT_CLIENT_COLUMNS] = {0};
	bool ok = !t->cells.failed;
	for (size_t i = 0; ok && i < t->cells.n; i++) {
		size_t width = shown_width(t->cells.list[i]);
		if (width > widths[i % t->columns])
			widths[i % t->columns] = width;
	}
	for (size_t row = 0; ok && row < t->cells.n / t->columns; row++)
		print_row(t, row, widths);
	if (!ok) {
		say("no memory");
	} else if (fflush(stdout) != 0) {
		say_stdout();
		ok = false;
	}
	words_free(&t->cells);
	return ok;
}
