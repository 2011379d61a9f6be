/* --auth: which sandbox a client is, by Proxy-Authorization. */
#ifndef CAGE_PROXY_AUTH_H
#define CAGE_PROXY_AUTH_H

#include "core/base/reason.h"
#include "core/http/message.h"

struct auth;

/* Reads lines "sandbox:token". NULL with a message on stderr that does not contain a token. */
struct auth *auth_load(const char *path);
void auth_free(struct auth **a);

/* REASON_NONE: *sandbox is the sandbox's id, for the life of auth. Else AUTH_REQUIRED or AUTH_FAILED. */
enum reason auth_check(const struct auth *a, const struct message *m, struct slice *sandbox);

/* The same for a sandbox and a token as they come in SOCKS5: any bytes, up to 255 each. */
enum reason auth_check_pair(const struct auth *a, struct slice id, struct slice token, struct slice *sandbox);

#endif
