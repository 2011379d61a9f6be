/* Whether everybody may read what is in a directory of /etc. An agent may have more rights than others outside (its uid, and
 * for an ordinary user his groups), and a mount shows what these open. */
#ifndef CAGE_GATE_ETC_SCAN_H
#define CAGE_GATE_ETC_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

enum etc_seen {
	ETC_OPEN,     /* everybody, and everything */
	ETC_PARTLY,   /* there is something that others may not read */
	ETC_TOO_MUCH, /* to be looked at */
};

/* Of one thing, whatever is in it. */
bool etc_is_open(const struct stat *st);

/* Of a directory, and all below it. depth: its own, below /etc. left: names that may still be looked at, and are counted. */
enum etc_seen etc_scan(int dir, unsigned depth, size_t *left);

#endif
