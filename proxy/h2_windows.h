/* Windows of one HTTP/2 connection: how many bytes of bodies may come before those that came were taken.
 *
 * A stream's own window stays closed for what was not taken of it. That of the connection is opened at once, so that one
 * slow stream stalls nobody: for so much of each connection, which nobody can use up for it (LIMIT_H2_AHEAD), and for
 * more as long as all such bytes of the worker are within LIMIT_H2_UNTAKEN. Beyond that a slow stream closes the window
 * of its connection, too, and whoever has the choice puts no further request on that one. */
#ifndef CAGE_PROXY_H2_WINDOWS_H
#define CAGE_PROXY_H2_WINDOWS_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>

struct h2_windows {
	nghttp2_session *session;
	size_t ahead;  /* bytes that the peer was told to be taken before they were */
	size_t closed; /* bytes that keep the window of the connection closed */
};

/* Of one body: bytes that the peer was not yet told to be taken, by its own window and by that of the connection. */
struct h2_untaken {
	size_t stream, connection;
};

void h2_untaken_add(struct h2_untaken *u, struct h2_windows *w, size_t len);

/* All of them were taken. */
void h2_untaken_take(struct h2_untaken *u, struct h2_windows *w, int32_t id);

/* The stream is over: what it had is nobody's any more. */
void h2_untaken_forget(struct h2_untaken *u, struct h2_windows *w);

/* Is there room for the body of one more stream, whatever the others do? nghttp2 opens a window by the half, so less than
 * that must be closed. */
bool h2_windows_are_open(const struct h2_windows *w);

#endif
