/* The token of TCP listeners. Only its hash is kept. */
#ifndef CAGE_SERVICE_ACCESS_H
#define CAGE_SERVICE_ACCESS_H

#include <stdbool.h>

/* Makes a new one, which is printed on stdout once; the old one is good no more. False with a message. */
bool access_new_token(const char *state);

/* Is there one? */
bool access_has_token(const char *state);

#endif
