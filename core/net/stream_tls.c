/* The TLS table of a stream. "TLS wants to read" becomes "try again" here, so that nobody above knows TLS. */
#include <openssl/err.h>

#include "core/base/limits.h"
#include "core/net/stream_internal.h"

/* Our BIO reads first what arrived before TLS began, then the socket. */
static int bio_read(BIO *bio, char *buf, int room)
{
	struct stream *s = BIO_get_data(bio);
	BIO_clear_retry_flags(bio);
	if (room <= 0)
		return 0;
	size_t have = s->pre.end - s->pre.start;
	if (have > 0) {
		size_t n = have < (size_t)room ? have : (size_t)room;
		memcpy(buf, s->pre.data + s->pre.start, n);
		s->pre.start += n;
		stream_buffer_release(&s->pre);
		s->socket_filled = true;
		return (int)n;
	}
	enum cage_status st = CAGE_OK;
	size_t n = stream_recv(s, buf, (size_t)room, &st);
	s->socket_filled = n == (size_t)room;
	if (n > 0)
		return (int)n;
	if (st == CAGE_AGAIN) {
		BIO_set_retry_read(bio);
		return -1;
	}
	return st == CAGE_EOF ? 0 : -1;
}

static int bio_write(BIO *bio, const char *buf, int len)
{
	struct stream *s = BIO_get_data(bio);
	enum cage_status st = CAGE_OK;
	BIO_clear_retry_flags(bio);
	if (len <= 0)
		return 0;
	size_t n = stream_send(s, buf, (size_t)len, &st);
	if (n > 0)
		return (int)n;
	if (st == CAGE_AGAIN)
		BIO_set_retry_write(bio);
	return -1;
}

static long bio_ctrl(BIO *bio, int cmd, long num, void *ptr)
{
	(void)bio, (void)num, (void)ptr;
	return cmd == BIO_CTRL_FLUSH ? 1 : 0;
}

static BIO_METHOD *bio_method(void)
{
	static BIO_METHOD *m;
	if (m)
		return m;
	m = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "cage stream");
	if (!m || !BIO_meth_set_read(m, bio_read) || !BIO_meth_set_write(m, bio_write) ||
	    !BIO_meth_set_ctrl(m, bio_ctrl)) {
		BIO_meth_free(m);
		m = NULL;
	}
	return m;
}

/* After every record: a client may be silent for long. The other side does it when it is told to, see stream_rest(). */
static bool gives_back_buffers(const struct stream *s)
{
	return SSL_is_server(s->ssl);
}

bool stream_tls_attach(struct stream *s, SSL *ssl)
{
	BIO_METHOD *m = bio_method();
	BIO *bio = m ? BIO_new(m) : NULL;
	if (!bio)
		return false;
	BIO_set_data(bio, s);
	BIO_set_init(bio, 1);
	SSL_set_bio(ssl, bio, bio);
	SSL_set_mode(ssl, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
	if (gives_back_buffers(s))
		SSL_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
	SSL_set_read_ahead(ssl, 1);
	return true;
}

/* What a failed SSL call means; *on is the event to wait for with CAGE_AGAIN. */
static enum cage_status tls_status(struct stream *s, int ret, short *on)
{
	switch (SSL_get_error(s->ssl, ret)) {
	case SSL_ERROR_WANT_READ:
		*on = EV_READ;
		return CAGE_AGAIN;
	case SSL_ERROR_WANT_WRITE:
		*on = EV_WRITE;
		return CAGE_AGAIN;
	case SSL_ERROR_WANT_CLIENT_HELLO_CB:
		*on = 0;
		return CAGE_AGAIN;
	case SSL_ERROR_ZERO_RETURN:
		return CAGE_EOF;
	case SSL_ERROR_SSL:
		if (ERR_GET_REASON(ERR_peek_error()) == SSL_R_UNEXPECTED_EOF_WHILE_READING)
			return CAGE_TRUNCATED;
		return CAGE_EPROTO;
	default:
		return CAGE_TRUNCATED;
	}
}

/* Errors of earlier calls would be taken for those of the next. Mostly there are none, and looking is cheaper. */
static void forget_errors(void)
{
	if (ERR_peek_error() != 0)
		ERR_clear_error();
}

static enum cage_status tls_handshake(struct stream *s)
{
	forget_errors();
	int ret = SSL_do_handshake(s->ssl);
	if (ret == 1)
		return CAGE_OK;
	enum cage_status st = tls_status(s, ret, &s->handshake_on);
	if (st == CAGE_EPROTO && !SSL_is_server(s->ssl) && SSL_get_verify_result(s->ssl) != X509_V_OK)
		return CAGE_EVERIFY;
	return st == CAGE_EOF ? CAGE_TRUNCATED : st;
}

static size_t tls_read(struct stream *s, void *buf, size_t room, enum cage_status *st)
{
	size_t n = 0;
	s->read_on = EV_READ;
	forget_errors();
	int ret = SSL_read_ex(s->ssl, buf, room, &n);
	if (ret != 1)
		*st = tls_status(s, ret, &s->read_on);
	if (gives_back_buffers(s))
		SSL_free_buffers(
			s->ssl); /* a ticket on the way makes it take one for writing, too, which it would keep */
	return n;
}

static size_t tls_write(struct stream *s, const void *buf, size_t len, enum cage_status *st)
{
	size_t n = 0;
	s->write_on = EV_WRITE;
	forget_errors();
	int ret = SSL_write_ex(s->ssl, buf, len, &n);
	if (ret == 1)
		return n;
	*st = tls_status(s, ret, &s->write_on);
	return 0;
}

/* close_notify; without it the session could not be resumed either. A full socket loses it, which the peer sees as
 * truncation. */
static void tls_end(struct stream *s)
{
	if (!SSL_is_init_finished(s->ssl))
		return;
	forget_errors();
	SSL_shutdown(s->ssl);
}

static bool tls_maybe_more(const struct stream *s)
{
	return SSL_has_pending(s->ssl) || s->socket_filled;
}

static void tls_free(struct stream *s)
{
	SSL_free(s->ssl);
	s->ssl = NULL;
	stream_close_socket(s);
}

const struct stream_ops stream_tls_ops = {
	.high = LIMIT_OUT_HIGH,
	.low = LIMIT_OUT_LOW,
	.handshake = tls_handshake,
	.read = tls_read,
	.write = tls_write,
	.end = tls_end,
	.shut = stream_shut_socket,
	.maybe_more = tls_maybe_more,
	.unsent = stream_socket_unsent,
	.harden = stream_harden_socket,
	.free = tls_free,
};
