/* cage-door: the first program of every container of a sandbox. It takes what must be on no command line, and in nothing that
 * Podman keeps, from descriptors that cage-pod has given it, and becomes the program that the container is for. That of the agent
 * is run only after the network was found to be what it has to be. */
#ifndef CAGE_DOOR_H
#define CAGE_DOOR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define DOOR_WORDS \
	3 /* a pipe: NAME=VALUE words, each with a NUL, then an empty one, which means go; else nothing is run */
#define DOOR_SAID 4  /* becomes stderr */
#define DOOR_FIRST 5 /* for the agent stdin and stdout; a helper has all from here on as they are */

/* An agent that can be given no others has the first three: stdin is a socket, and becomes stdout too. */
#define DOOR_STDIO_WORDS 1
#define DOOR_STDIO_SAID 2

#define DOOR_UNLOCKED 78 /* as cage-gate has it */

/* The only network of an agent: what is in it, in the byte order of the network. */
struct door_network {
	struct in_addr own, helpers, first, mask;
};

/* checks.c: of what the kernel says. False after it was said what is wrong. */
bool door_has_no_rights(void);
bool door_has_no_other_way(const struct door_network *n);

/* ports.c: of what answers. */
bool door_reaches_only_helpers(const struct door_network *n);

#endif
