/* The client's side of HTTP/1.1. An answer that comes while the request is still being sent ends the sending: the service has
 * refused it, and says why. */
#include "orchestrator/client/http.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/say.h"

/* ---- waiting ---- */

static enum cage_status wait_for(int fd, short events, int ms)
{
	struct pollfd p = {.fd = fd, .events = events};
	int n;
	do
		n = poll(&p, 1, ms);
	while (n < 0 && errno == EINTR);
	if (n > 0)
		return CAGE_OK;
	return n == 0 ? CAGE_ETIMEOUT : CAGE_ESYS;
}

/* ---- out ---- */

enum sending { SENDING, SENT_ALL, ANSWERED_EARLY, SENDING_FAILED, READING_FAILED /* of the file */ };

/* All of it, unless the answer is there already or nobody listens any more, which may have left an answer too. */
static enum sending send_bytes(int fd, struct slice s)
{
	while (s.len > 0) {
		struct pollfd p = {.fd = fd, .events = POLLIN | POLLOUT};
		int ready = poll(&p, 1, LIMIT_CLIENT_IDLE_MS);
		if (ready < 0 && errno == EINTR)
			continue;
		if (ready <= 0) {
			errno = ready == 0 ? ETIMEDOUT : errno;
			return SENDING_FAILED;
		}
		if (p.revents & (POLLIN | POLLHUP | POLLERR))
			return ANSWERED_EARLY;
		ssize_t n = write(fd, s.ptr, s.len);
		if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
			return ANSWERED_EARLY;
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return SENDING_FAILED;
		s = slice_from(s, n > 0 ? (size_t)n : 0);
	}
	return SENDING;
}

static void add_field(struct message *m, const char *name, struct slice value)
{
	m->fields[m->n_fields++] = (struct field){.name = slice_str(name), .value = value};
}

#define OWN_FIELDS 5

/* How the body's end is known: of a file by its size, of a pipe by the last chunk. */
static enum body_framing framing_of(const struct http_request *r, uint64_t *length)
{
	struct stat st;
	*length = r->body.len;
	if (!r->type)
		return BODY_NONE;
	if (!r->from_file)
		return BODY_LENGTH;
	if (fstat(r->fd, &st) != 0 || !S_ISREG(st.st_mode))
		return BODY_CHUNKED;
	off_t at = lseek(r->fd, 0, SEEK_CUR);
	*length = at >= 0 && at < st.st_size ? (uint64_t)(st.st_size - at) : 0;
	return BODY_LENGTH;
}

static bool write_head(struct text *t, const struct place *p, const struct http_request *r, struct h1_out *o)
{
	struct field fields[OWN_FIELDS];
	char bearer[sizeof(p->token) + sizeof("Bearer ")];
	struct message m = {.method = slice_str(r->method), .version = HTTP_11, .fields = fields};
	*o = (struct h1_out){.target = r->target, .host = slice_str(p->host), .close = true};
	o->framing = framing_of(r, &o->content_length);
	o->declare_length = o->framing == BODY_LENGTH;
	add_field(&m, "User-Agent", SLICE("cage/" CAGE_VERSION));
	if (r->type)
		add_field(&m, "Content-Type", slice_str(r->type));
	if (r->key)
		add_field(&m, "Idempotency-Key", slice_str(r->key));
	snprintf(bearer, sizeof(bearer), "Bearer %s", p->token);
	if (p->token[0])
		add_field(&m, "Authorization", slice_str(bearer));
	h1_write_request(t, &m, o);
	return text_ok(t);
}

static enum sending send_chunk(int fd, struct slice piece)
{
	char head[H1_CHUNK_HEAD];
	struct text t = text_in(head, sizeof(head));
	h1_write_chunk_head(&t, piece.len);
	enum sending s = send_bytes(fd, text_slice(&t));
	if (s == SENDING)
		s = send_bytes(fd, piece);
	return s == SENDING ? send_bytes(fd, SLICE("\r\n")) : s;
}

/* A file that has become shorter meanwhile can't be sent as it was announced. */
static enum sending send_file(int to, int from, const struct h1_out *o)
{
	char piece[LIMIT_CLIENT_PIECE];
	uint64_t left = o->framing == BODY_LENGTH ? o->content_length : UINT64_MAX;
	enum sending s = SENDING;
	while (s == SENDING && left > 0) {
		ssize_t n = read(from, piece, left < sizeof(piece) ? (size_t)left : sizeof(piece));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0 && (n < 0 || o->framing == BODY_LENGTH)) {
			errno = n < 0 ? errno : ENODATA;
			return READING_FAILED;
		}
		if (n == 0)
			return send_bytes(to, SLICE("0\r\n\r\n"));
		struct slice bytes = slice_of(piece, (size_t)n);
		s = o->framing == BODY_LENGTH ? send_bytes(to, bytes) : send_chunk(to, bytes);
		left -= (size_t)n;
	}
	return s;
}

static enum sending send_request(int fd, const struct place *p, const struct http_request *r)
{
	char head[LIMIT_CLIENT_TARGET + 2048];
	struct text t = text_in(head, sizeof(head));
	struct h1_out o;
	if (!write_head(&t, p, r, &o)) {
		errno = ENAMETOOLONG;
		return SENDING_FAILED;
	}
	enum sending s = send_bytes(fd, text_slice(&t));
	if (s == SENDING && o.framing != BODY_NONE)
		s = r->from_file ? send_file(fd, r->fd, &o) : send_bytes(fd, r->body);
	return s == SENDING ? SENT_ALL : s;
}

/* ---- in ---- */

/* Reads once what there is. */
static enum cage_status read_more(struct http *h, int ms)
{
	if (h->at > 0) {
		memmove(h->in, h->in + h->at, h->len - h->at);
		h->len -= h->at;
		h->at = 0;
	}
	if (h->len == sizeof(h->in))
		return CAGE_ELIMIT;
	ssize_t n;
	do {
		enum cage_status st = wait_for(h->fd, POLLIN, ms);
		if (st != CAGE_OK)
			return st;
		n = read(h->fd, h->in + h->len, sizeof(h->in) - h->len);
	} while (n < 0 && (errno == EAGAIN || errno == EINTR));
	if (n <= 0)
		return n == 0 ? CAGE_EOF : CAGE_ESYS;
	h->len += (size_t)n;
	return CAGE_OK;
}

static struct slice waiting(const struct http *h)
{
	return slice_of(h->in + h->at, h->len - h->at);
}

static enum cage_status read_head(struct http *h, struct slice method, int ms)
{
	struct h1_gate gate = {.kind = H1_GATE_RESPONSE};
	struct h1_error err;
	size_t head_len = 0;
	enum cage_status st;
	while ((st = h1_gate(&gate, waiting(h), &head_len)) == CAGE_AGAIN) {
		st = read_more(h, ms);
		if (st == CAGE_EOF)
			return CAGE_TRUNCATED;
		if (st != CAGE_OK)
			return st;
	}
	if (st != CAGE_OK)
		return st;
	struct slice head = arena_dup(&h->arena, slice_head(waiting(h), head_len));
	h->at += head_len;
	return head.ptr ? h1_parse_response(head, method, &h->arena, &h->head, &err) : CAGE_ENOMEM;
}

/* Those with 1xx say only that there will be another. */
static enum cage_status read_answer(struct http *h, struct slice method, int ms)
{
	for (int i = 0; i <= LIMIT_INTERIM; i++) {
		enum cage_status st = read_head(h, method, ms);
		if (st != CAGE_OK || h->head.status >= 200)
			return st;
	}
	return CAGE_EPROTO;
}

static const char *what_failed(enum cage_status st)
{
	switch (st) {
	case CAGE_ETIMEOUT:
		return "it does not answer in time";
	case CAGE_EOF:
	case CAGE_TRUNCATED:
		return "it ended the connection before its answer was whole";
	case CAGE_EPROTO:
		return "what it says is no HTTP";
	case CAGE_ELIMIT:
		return "its answer has more than can be taken";
	case CAGE_ENOMEM:
		return "no memory";
	case CAGE_OK:
	case CAGE_AGAIN:
	case CAGE_EVERIFY:
	case CAGE_ESYS:
		break;
	}
	return strerror(errno);
}

static enum http_result broken(const struct place *p, const char *what)
{
	say("the service at %s: %s", p->name, what);
	return HTTP_BROKEN;
}

enum http_result http_ask(struct http *h, const struct place *p, const struct http_request *r)
{
	http_close(h);
	arena_init(&h->arena, LIMIT_TXN_ARENA);
	h->at = h->len = 0;
	h->fd = place_connect(p);
	if (h->fd < 0)
		return HTTP_FAILED;
	enum sending sent = send_request(h->fd, p, r);
	if (sent == READING_FAILED) {
		say("%s: %s", r->name, errno == ENODATA ? "it became shorter while it was sent" : strerror(errno));
		return HTTP_FAILED;
	}
	if (sent == SENDING_FAILED)
		return broken(p, strerror(errno));
	enum cage_status st = read_answer(h, slice_str(r->method), (int)(LIMIT_CLIENT_ANSWER_MS + r->answer_ms));
	if (st != CAGE_OK)
		return broken(p, what_failed(st));
	if (h->head.framing == BODY_CLOSE) /* half of it would look like all of it */
		return broken(p, "its answer does not say where it ends");
	h1_body_init(&h->body, &h->head);
	return HTTP_ANSWERED;
}

static enum cage_status take_body(struct http *h, struct slice *piece)
{
	size_t used;
	enum cage_status st = h1_body_feed(&h->body, waiting(h), &h->arena, &used, piece);
	h->at += used;
	return st;
}

enum cage_status http_read(struct http *h, int idle_ms, struct slice *piece)
{
	enum cage_status st = CAGE_EOF;
	*piece = SLICE_NONE;
	while (!h1_body_is_done(&h->body)) {
		st = take_body(h, piece);
		if (piece->len > 0 && st != CAGE_EPROTO && st != CAGE_ELIMIT)
			return CAGE_OK;
		if (st == CAGE_AGAIN)
			st = read_more(h, idle_ms);
		if (st == CAGE_EOF && !h1_body_is_done(&h->body))
			st = h1_body_end_of_input(&h->body);
		if (st == CAGE_EOF)
			break;
		if (st != CAGE_OK) {
			say("the service: %s", what_failed(st));
			return st;
		}
	}
	return CAGE_EOF;
}

void http_close(struct http *h)
{
	if (h->arena.limit == 0)
		return; /* it was never used */
	if (h->fd >= 0)
		close(h->fd);
	arena_free(&h->arena);
	*h = (struct http){.fd = -1};
}
