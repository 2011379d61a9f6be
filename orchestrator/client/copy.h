/* Answers that are passed on as they come. */
#ifndef CAGE_CLIENT_COPY_H
#define CAGE_CLIENT_COPY_H

#include "orchestrator/client/client.h"

/* All of the body of an answer to fd. False: it was said. */
bool copy_body(struct client *c, int fd) MUST_CHECK;

#endif
