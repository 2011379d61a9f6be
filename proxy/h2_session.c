/* The beginning of a session: options that are made once, then SETTINGS and the window of the connection. */
#include "proxy/h2_session.h"

#include "core/base/limits.h"
#include "proxy/h2_mem.h"

#define MAX_SETTINGS 4

/* Windows are opened when bytes were taken, not when they came. */
static const nghttp2_option *options(enum h2_side side)
{
	static nghttp2_option *made[2];
	nghttp2_option **o = &made[side];
	if (*o || nghttp2_option_new(o) != 0)
		return *o;
	nghttp2_option_set_no_auto_window_update(*o, 1);
	nghttp2_option_set_max_outbound_ack(*o, LIMIT_H2_ACKS);
	nghttp2_option_set_max_send_header_block_length(*o, 2 * LIMIT_HEAD);
	if (side == H2_SERVER)
		nghttp2_option_set_no_closed_streams(*o, 1);
	else
		nghttp2_option_set_max_reserved_remote_streams(*o, 0);
	return *o;
}

static bool greet(enum h2_side side, nghttp2_session *session)
{
	nghttp2_settings_entry settings[MAX_SETTINGS] = {
		{NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, LIMIT_H2_WINDOW},
		{NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, LIMIT_HEAD},
	};
	size_t n = 2;
	if (side == H2_SERVER) {
		settings[n++] = (nghttp2_settings_entry){NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, LIMIT_H2_STREAMS};
		settings[n++] = (nghttp2_settings_entry){NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1};
	} else {
		settings[n++] = (nghttp2_settings_entry){NGHTTP2_SETTINGS_ENABLE_PUSH, 0};
	}
	return nghttp2_submit_settings(session, NGHTTP2_FLAG_NONE, settings, n) == 0 &&
	       nghttp2_session_set_local_window_size(session, NGHTTP2_FLAG_NONE, 0, LIMIT_H2_CONN_WINDOW) == 0;
}

nghttp2_session *h2_session_new(enum h2_side side, const nghttp2_session_callbacks *callbacks, void *arg)
{
	const nghttp2_option *o = options(side);
	nghttp2_session *session = NULL;
	if (!callbacks || !o)
		return NULL;
	int failed = side == H2_SERVER ? nghttp2_session_server_new3(&session, callbacks, arg, o, h2_mem())
				       : nghttp2_session_client_new3(&session, callbacks, arg, o, h2_mem());
	if (failed != 0)
		return NULL;
	if (greet(side, session))
		return session;
	nghttp2_session_del(session);
	return NULL;
}

bool h2_session_send(nghttp2_session *session, struct stream *s, void (*write)(struct stream *, struct slice))
{
	const uint8_t *bytes;
	ssize_t n = 0;
	while (!stream_is_clogged(s) && (n = nghttp2_session_mem_send(session, &bytes)) > 0)
		write(s, slice_of(bytes, (size_t)n));
	return n >= 0;
}

bool h2_session_is_over(nghttp2_session *session)
{
	return !nghttp2_session_want_read(session) && !nghttp2_session_want_write(session);
}

/* ---- frames ---- */

/* Padding is not of the body. */
void h2_session_earn(struct h2_budget *b, const nghttp2_frame *frame)
{
	if (frame->hd.type == NGHTTP2_DATA && frame->hd.length > frame->data.padlen)
		h2_budget_earn_data(b);
}
