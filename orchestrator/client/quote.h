/* Words for a shell. */
#ifndef CAGE_CLIENT_QUOTE_H
#define CAGE_CLIENT_QUOTE_H

/* One word as it is: it may be a script. More of them are quoted, so that the shell makes the same words of them. NULL: no memory,
 * or more than LIMIT_CLIENT_TEXT. Freed with free(). */
char *shell_quote(char *const *words);

#endif
