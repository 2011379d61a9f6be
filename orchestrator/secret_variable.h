/* Secrets that come in a variable: /proc shows the environment, and children get it, so they stay there no longer than until they are
 * read. */
#ifndef CAGE_SECRET_VARIABLE_H
#define CAGE_SECRET_VARIABLE_H

#include <stddef.h>

/* Its value, which the environment does not have any more, whatever it is. NULL: there is none, it is empty or of more than so many bytes,
 * or there is no memory. For wipe_free(). */
char *secret_variable_take(const char *name, size_t most);

/* The same without the value. */
void secret_variable_wipe(const char *name);

#endif
