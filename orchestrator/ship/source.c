/* One file that is followed. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/ship/ship.h"

#define TAIL (SHIP_HASH + 3) /* the hash at the end of a line, and "}\n behind it */

struct source *source_new(struct ship *s, uint64_t dev, uint64_t ino, const char *path)
{
	struct source *f = calloc(1, sizeof(*f)), **bucket = &s->buckets[ino % SHIP_BUCKETS];
	if (!f)
		return NULL;
	*f = (struct source){.dev = dev, .ino = ino, .path = strdup(path), .fd = -1, .same_bucket = *bucket};
	if (!f->path) {
		free(f);
		return NULL;
	}
	*bucket = f;
	place_load(s, f);
	return f;
}

static void shut(struct ship *s, struct source *f)
{
	if (f->fd >= 0) {
		close(f->fd);
		s->n_open--;
	}
	f->fd = -1;
}

void source_free(struct ship *s, struct source **f)
{
	struct source **at = &s->buckets[(*f)->ino % SHIP_BUCKETS];
	while (*at != *f)
		at = &(*at)->same_bucket;
	*at = (*f)->same_bucket;
	shut(s, *f);
	free((*f)->path);
	free((*f)->kept);
	free(*f);
	*f = NULL;
}

/* ---- is it what it was? ---- */

/* The last line that was shipped ends with its hash, which no other line has. */
static bool is_same(const struct source *f)
{
	char tail[TAIL];
	if (f->size < f->place.offset)
		return false;
	if (f->place.hash_at == 0)
		return true;
	return f->place.hash_at >= TAIL && pread(f->fd, tail, TAIL, (off_t)(f->place.hash_at - TAIL)) == TAIL &&
	       memcmp(tail, f->place.hash, SHIP_HASH) == 0 && memcmp(tail + SHIP_HASH, "\"}\n", 3) == 0;
}

static void begin_again(struct ship *s, struct source *f)
{
	s->counts.restarted++;
	say("%s: was cut, or is another file than the one that was shipped up to byte %llu: it is begun again; what "
	    "was in it behind "
	    "that is lost",
	    f->path, (unsigned long long)f->place.offset);
	f->place = f->reached = (struct place){0};
	f->skips = false;
	place_drop(s, f->dev, f->ino);
}

/* ---- open ---- */

/* A name may lead to another file meanwhile, until the next scan. */
static bool look(struct ship *s, struct source *f)
{
	struct stat st;
	if (fstat(f->fd, &st) != 0 || !S_ISREG(st.st_mode) || (uint64_t)st.st_dev != f->dev ||
	    (uint64_t)st.st_ino != f->ino) {
		shut(s, f);
		return false;
	}
	if ((uint64_t)st.st_size < f->size)
		f->is_checked = false;
	f->size = (uint64_t)st.st_size;
	return true;
}

bool source_open(struct ship *s, struct source *f)
{
	if (f->fd < 0) {
		f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
		if (f->fd < 0) {
			if (errno != ENOENT)
				ship_trouble(s, "%s: can't be read: %s", f->path, strerror(errno));
			return false;
		}
		s->n_open++;
		f->is_checked = false;
	}
	if (!look(s, f))
		return false;
	if (!source_has_moved(f) && (!f->is_checked || f->size != f->place.offset) && !is_same(f))
		begin_again(s, f);
	f->is_checked = true;
	return true;
}

/* A file that is open is read to its end, whatever becomes of its name. */
void source_rest(struct ship *s, struct source *f)
{
	if (s->n_open > LIMIT_SHIP_OPEN)
		shut(s, f);
}
