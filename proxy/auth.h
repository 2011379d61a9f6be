/* Which sandbox a client is, by Proxy-Authorization or user and password of SOCKS5. Tokens are not kept: what was shown
 * comes to a proof, which is compared with those of all seats. */
#ifndef CAGE_PROXY_AUTH_H
#define CAGE_PROXY_AUTH_H

#include "core/base/reason.h"
#include "core/http/message.h"
#include "core/proc/seat.h"

/* Who sits at a seat: its id and the proof of its token. NULL, or what is wrong, without a byte of the token. */
const char *auth_seat(struct seat *out, struct slice id, struct slice token);

/* --auth: reads lines "sandbox:token" into the seats from the second on. false with a message on stderr that does not
 * contain a token. */
bool auth_read_file(const char *path, struct seat *seats, size_t n);

/* REASON_NONE: *seat is the client's. Else AUTH_REQUIRED or AUTH_FAILED. */
enum reason auth_check(const struct seat *seats, size_t n, const struct message *m, size_t *seat);

/* The same for a sandbox and a token as they come in SOCKS5: any bytes, up to 255 each. */
enum reason auth_check_pair(const struct seat *seats, size_t n, struct slice id, struct slice token, size_t *seat);

#endif
