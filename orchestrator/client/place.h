/* Where the service is: a unix socket of this machine, or an address with a token. */
#ifndef CAGE_CLIENT_PLACE_H
#define CAGE_CLIENT_PLACE_H

#include <limits.h>
#include <stdbool.h>
#include <sys/socket.h>

#include "core/base/limits.h"

/* As it was asked for; NULL: it was not. */
struct place_options {
	const char *socket, *url, *token_file;
};

struct place {
	struct sockaddr_storage address;
	socklen_t address_len;
	char name[PATH_MAX]; /* for people: a path, or a URL */
	char host[80];       /* what the Host field says */
	char token[LIMIT_CLIENT_TOKEN + 1];
};

/* --url, else --socket, else $CAGE_SOCKET, else the socket in the state directory. False with a message. */
bool place_find(const struct place_options *o, struct place *out);

/* A descriptor of which no call waits, or -1 with a message. */
int place_connect(const struct place *p);

#endif
