/* Settings of the kernel, which are files. */
#ifndef CAGE_GATE_WRITE_H
#define CAGE_GATE_WRITE_H

/* Writes text with one call into a file that is there. 0, or -1 with errno. */
int write_text(const char *path, const char *text);

#endif
