/* Counting what is not taken. */
#include "proxy/h2_windows.h"

#include "core/base/limits.h"

static size_t ahead; /* bytes of all connections of this worker */

static bool may_go_ahead(const struct h2_windows *w, size_t len)
{
	return w->ahead + len <= LIMIT_H2_AHEAD || ahead + len <= LIMIT_H2_UNTAKEN;
}

void h2_untaken_add(struct h2_untaken *u, struct h2_windows *w, size_t len)
{
	u->stream += len;
	if (!may_go_ahead(w, len)) {
		u->connection += len;
		w->closed += len;
		return;
	}
	w->ahead += len;
	ahead += len;
	nghttp2_session_consume_connection(w->session, len);
}

void h2_untaken_take(struct h2_untaken *u, struct h2_windows *w, int32_t id)
{
	nghttp2_session_consume_stream(w->session, id, u->stream);
	h2_untaken_forget(u, w);
}

void h2_untaken_forget(struct h2_untaken *u, struct h2_windows *w)
{
	size_t told = u->stream - u->connection;
	w->ahead -= told;
	ahead -= told;
	w->closed -= u->connection;
	nghttp2_session_consume_connection(w->session, u->connection);
	*u = (struct h2_untaken){0};
}

bool h2_windows_are_open(const struct h2_windows *w)
{
	return w->closed < LIMIT_H2_CONN_WINDOW / 4;
}
