/* Directories that are read to their end, or not at all: readdir() gives NULL for an error too. */
#ifndef CAGE_GATE_NEXT_NAME_H
#define CAGE_GATE_NEXT_NAME_H

#include <dirent.h>
#include <errno.h>

/* NULL with errno 0: that was all. NULL with another: not all of it could be read. */
static inline struct dirent *next_name(DIR *dir)
{
	errno = 0;
	return readdir(dir);
}

#endif
