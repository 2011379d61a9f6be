/* The networks and users that sandboxes are given of: how they are written, in serve.yaml as on the command line of cage-pod. */
#ifndef CAGE_POD_POOL_H
#define CAGE_POD_POOL_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#define POD_POOL_EXPECTED "expected NETWORK/BITS, 8 to 27 bits, such as 10.213.0.0/16"
#define POD_UIDS_EXPECTED "expected a number, 1000 to 2000000000"

/* "10.213.0.0/16": there must be room for networks of eight addresses. */
bool pod_pool_parse(const char *text, struct in_addr *first, unsigned *bits);

/* The first of users: there are four million at most, so that the last one is a user too. */
bool pod_uids_parse(const char *text, uint32_t *first);

#endif
