/* Lines on a terminal are moved back to and written again, none of them longer than the terminal is wide: one that is broken in two
 * would be counted as one. */
#include "orchestrator/deploy/progress.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/limits.h"
#include "orchestrator/client/format.h"
#include "orchestrator/client/shown.h"

static struct winsize size_of(FILE *out)
{
	struct winsize size = {0};
	if (ioctl(fileno(out), TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
		size = (struct winsize){.ws_row = 24, .ws_col = 80};
	return size;
}

void progress_open(struct progress *p, FILE *out)
{
	*p = (struct progress){.out = out, .is_live = isatty(fileno(out)), .began_us = clock_mono_us()};
	const char *term = getenv("TERM");
	if (!term || strcmp(term, "dumb") == 0)
		p->is_live = false;
}

static struct progress_row *row_of(struct progress *p, const char *name)
{
	for (size_t i = 0; i < p->n; i++)
		if (strcmp(p->rows[i].name, name) == 0)
			return &p->rows[i];
	if (p->n >= LIMIT_DEPLOY_ROWS)
		return NULL;
	struct progress_row *more = reallocarray(p->rows, p->n + 1, sizeof(*more));
	if (!more)
		return NULL;
	p->rows = more;
	more[p->n] = (struct progress_row){.name = strdup(name)};
	return more[p->n].name ? &more[p->n++] : NULL;
}

void progress_set(struct progress *p, const char *name, const char *state)
{
	char safe[LIMIT_CLIENT_CELL], word[sizeof(p->rows->state)];
	struct progress_row *row = row_of(p, shown(name, safe, sizeof(safe)));
	shown(state, word, sizeof(word));
	if (!row || strcmp(row->state, word) == 0)
		return;
	memcpy(row->state, word, sizeof(word));
	p->drawn_us = 0;
	if (!p->is_live) {
		fprintf(p->out, "%-10s %s\n", word, safe);
		fflush(p->out);
	}
}

static void draw_row(const struct progress *p, const char *state, const char *name, int columns)
{
	fprintf(p->out, "\r\x1b[K%-10.10s %.*s\n", state, columns > 12 ? columns - 12 : 1, name);
}

/* More of them than there are lines can't be written over: then each change is a line, from here on. */
static bool fits(struct progress *p, const struct winsize *size)
{
	if (p->n + 2 <= size->ws_row)
		return true;
	p->is_live = false;
	return false;
}

static bool is_due(const struct progress *p)
{
	return p->is_live && p->n > 0 && clock_mono_us() - p->drawn_us >= LIMIT_DEPLOY_DRAW_MS * 1000ull;
}

void progress_draw(struct progress *p)
{
	char time[FORMAT_TEXT];
	const struct winsize size = size_of(p->out);
	if (!is_due(p) || !fits(p, &size))
		return;
	if (p->drawn > 0)
		fprintf(p->out, "\x1b[%zuA", p->drawn);
	for (size_t i = 0; i < p->n; i++)
		draw_row(p, p->rows[i].state, p->rows[i].name, size.ws_col);
	const uint64_t now = clock_mono_us();
	const uint64_t seconds = (now - p->began_us) / 1000000;
	draw_row(p, "", format_seconds((double)seconds, time), size.ws_col);
	fflush(p->out);
	p->drawn = p->n + 1;
	p->drawn_us = now;
}

void progress_below(struct progress *p)
{
	p->drawn = 0;
}

void progress_end(struct progress *p)
{
	p->drawn_us = 0;
	progress_draw(p);
	for (size_t i = 0; i < p->n; i++)
		free(p->rows[i].name);
	p->n = p->drawn = 0;
}

void progress_close(struct progress *p)
{
	progress_end(p);
	free(p->rows);
	p->rows = NULL;
}
