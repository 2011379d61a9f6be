/* Files below one directory. Nothing that leads out of it is followed: not "..", not an absolute path, not a link to such a
 * place. All give -1 with errno. */
#ifndef CAGE_INSIDE_BENEATH_H
#define CAGE_INSIDE_BENEATH_H

#include <dirent.h>
#include <sys/types.h>

/* A regular file to be read, or a directory to be listed. */
int beneath_open_file(int root, const char *path);
int beneath_open_dir(int root, const char *path);

/* The file, where no link leads to it: neither its own name is one, nor that of a directory on the way. */
int beneath_open_plain(int root, const char *path);

/* A file that is being written: nobody sees it before beneath_keep(), and then all of it. Directories on the way are made. */
struct beneath_file {
	int fd, dir; /* -1: none */
	char part[40], name[256];
};

int beneath_create(int root, const char *path, struct beneath_file *out);
int beneath_keep(struct beneath_file *f);
void beneath_drop(struct beneath_file *f);

#endif
