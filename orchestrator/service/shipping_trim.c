/* The bound of what is kept until it is shipped. */
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "orchestrator/service/shipping.h"

struct kept {
	char name[NAME_MAX + 1];
	int64_t since_s;
	uint64_t bytes;
};

struct all {
	struct kept *list;
	size_t n;
	uint64_t bytes;
};

static int by_age(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;
	return (x->since_s > y->since_s) - (x->since_s < y->since_s);
}

static void add(struct all *all, int dir, const char *name)
{
	struct stat st;
	if (all->n == LIMIT_SERVE_SHIP_KEPT || fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
	    !S_ISREG(st.st_mode))
		return;
	struct kept *k = &all->list[all->n++];
	snprintf(k->name, sizeof(k->name), "%s", name);
	k->since_s = st.st_ctime; /* it changes with the name */
	k->bytes = (uint64_t)st.st_size;
	all->bytes += k->bytes;
}

/* What cage-ship has removed meanwhile was shipped. */
static uint64_t give_up(const struct all *all, int dir, const struct config *c)
{
	const int64_t oldest = clock_wall_s() - (int64_t)(c->ship.keep_us / 1000000);
	uint64_t left = all->bytes, gone = 0;
	for (size_t i = 0; i < all->n; i++) {
		const struct kept *k = &all->list[i];
		if (k->since_s >= oldest && left <= c->ship.keep_bytes)
			break;
		left -= k->bytes;
		if (unlinkat(dir, k->name, 0) == 0)
			gone += k->bytes;
	}
	return gone;
}

int shipping_trim(const char *dir, const void *config)
{
	struct all all = {.list = calloc(LIMIT_SERVE_SHIP_KEPT, sizeof(struct kept))};
	DIR *d = opendir(dir);
	const struct dirent *e;
	if (!all.list || !d) {
		if (d)
			closedir(d);
		free(all.list);
		return 1;
	}
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			add(&all, dirfd(d), e->d_name);
	qsort(all.list, all.n, sizeof(all.list[0]), by_age);
	printf("%" PRIu64 "\n", give_up(&all, dirfd(d), config));
	closedir(d);
	free(all.list);
	return fflush(stdout) == 0 ? 0 : 1;
}
