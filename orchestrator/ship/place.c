/* Up to where Azure has taken a file: STATE/places/DEV-INODE, one line. It is written beside itself, synced and renamed, so that there is
 * an old one or a new one. One that can't be read is as none: then lines come twice, and none is lost. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/base/write_all.h"
#include "orchestrator/ship/ship.h"

#define MAGIC "cage.ship/1"
#define NAME 48        /* two numbers of 16 hex digits, and what is between and behind them */
#define MOST INT64_MAX /* of an offset */

static void name_of(uint64_t dev, uint64_t ino, const char *end, char out[NAME])
{
	snprintf(out, NAME, "%llx-%llx%s", (unsigned long long)dev, (unsigned long long)ino, end);
}

/* ---- reading ---- */

static bool read_number(struct slice *rest, uint64_t *out)
{
	return slice_to_u64(slice_cut(rest, ' '), MOST, out);
}

static bool read_hash(struct slice text, struct place *out)
{
	if (text.len != SHIP_HASH)
		return false;
	for (size_t i = 0; i < text.len; i++)
		if (ascii_hex((unsigned char)text.ptr[i]) < 0)
			return false;
	memcpy(out->hash, text.ptr, SHIP_HASH);
	return true;
}

bool place_parse(struct slice text, uint64_t dev, uint64_t ino, struct place *out)
{
	uint64_t own_dev, own_ino;
	struct slice rest = text;
	*out = (struct place){0};
	if (!slice_ends(text, SLICE("\n")))
		return false;
	rest.len--;
	return slice_eq(slice_cut(&rest, ' '), SLICE(MAGIC)) &&
	       slice_to_u64(slice_cut(&rest, ' '), UINT64_MAX, &own_dev) &&
	       slice_to_u64(slice_cut(&rest, ' '), UINT64_MAX, &own_ino) && own_dev == dev && own_ino == ino &&
	       read_number(&rest, &out->offset) && read_number(&rest, &out->hash_at) && read_number(&rest, &out->seq) &&
	       out->hash_at <= out->offset && read_hash(rest, out);
}

void place_load(const struct ship *s, struct source *f)
{
	char name[NAME], text[LIMIT_SHIP_PLACE];
	struct place found;
	name_of(f->dev, f->ino, "", name);
	int fd = openat(s->places, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	const ssize_t n = fd >= 0 ? read(fd, text, sizeof(text)) : -1;
	const bool is_there = fd >= 0 || errno != ENOENT;
	if (fd >= 0)
		close(fd);
	if (n > 0 && place_parse(slice_of(text, (size_t)n), f->dev, f->ino, &found))
		f->place = found;
	else if (is_there)
		say("%s: how far it was shipped can't be read (%s/places/%s): it is begun again", f->path, s->dir,
		    name);
	f->reached = f->place;
}

/* ---- writing ---- */

static size_t print(const struct source *f, char out[LIMIT_SHIP_PLACE])
{
	static const char none[] = "0000000000000000000000000000000000000000000000000000000000000000";
	const struct place *p = &f->reached;
	return (size_t)snprintf(out, LIMIT_SHIP_PLACE, MAGIC " %llu %llu %llu %llu %llu %.*s\n",
				(unsigned long long)f->dev, (unsigned long long)f->ino, (unsigned long long)p->offset,
				(unsigned long long)p->hash_at, (unsigned long long)p->seq, SHIP_HASH,
				p->hash_at ? p->hash : none);
}

bool place_save(const struct ship *s, const struct source *f)
{
	char name[NAME], beside[NAME], text[LIMIT_SHIP_PLACE];
	name_of(f->dev, f->ino, "", name);
	name_of(f->dev, f->ino, ".new", beside);
	int fd = openat(s->places, beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	bool ok = write_all(fd, text, print(f, text)) && fsync(fd) == 0;
	const int why = errno;
	close(fd);
	errno = why;
	return ok && renameat(s->places, beside, s->places, name) == 0;
}

void place_drop(const struct ship *s, uint64_t dev, uint64_t ino)
{
	char name[NAME];
	name_of(dev, ino, "", name);
	unlinkat(s->places, name, 0);
}

/* ---- those of files that are gone ---- */

static void tidy_one(const struct ship *s, const char *name)
{
	char own[NAME], *end;
	const uint64_t dev = strtoull(name, &end, 16);
	const uint64_t ino = *end == '-' ? strtoull(end + 1, &end, 16) : 0;
	name_of(dev, ino, "", own);
	if (strcmp(own, name) != 0 || !source_find(s, dev, ino))
		unlinkat(s->places, name, 0);
}

void places_tidy(struct ship *s)
{
	int fd = openat(s->places, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	const struct dirent *e;
	size_t n = 0;
	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while (n++ < LIMIT_SHIP_ENTRIES && (e = readdir(d)))
		if (e->d_name[0] != '.')
			tidy_one(s, e->d_name);
	closedir(d);
}
