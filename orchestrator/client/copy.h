/* Answers that are passed on as they come. */
#ifndef CAGE_CLIENT_COPY_H
#define CAGE_CLIENT_COPY_H

#include "orchestrator/client/client.h"

/* All of the body of an answer to fd. False: it was said. */
bool copy_body(struct client *c, int fd) MUST_CHECK;

/* cp.c: the answer to a request as a file of this machine, which may be a directory, where it gets the last name of path, or "-" for
 * stdout. False: it was said. */
bool copy_to(struct client *c, const struct http_request *r, const char *path, const char *file) MUST_CHECK;

#endif
