/* Answers: JSON, problems, files and streams. A request is over with the last byte that we give to its connection. */
#include <errno.h>
#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "orchestrator/service/http_private.h"

void add_header(struct request *r, const char *name, const char *value)
{
	evbuffer_add_printf(r->fields, "%s: %s\r\n", name, value);
}

static const char *title_of(int status)
{
	static const struct {
		int status;
		const char *title;
	} titles[] = {{200, "OK"},
		      {201, "Created"},
		      {202, "Accepted"},
		      {204, "No Content"},
		      {400, "Bad Request"},
		      {401, "Unauthorized"},
		      {403, "Forbidden"},
		      {404, "Not Found"},
		      {405, "Method Not Allowed"},
		      {409, "Conflict"},
		      {410, "Gone"},
		      {413, "Content Too Large"},
		      {415, "Unsupported Media Type"},
		      {422, "Unprocessable Content"},
		      {429, "Too Many Requests"},
		      {431, "Request Header Fields Too Large"},
		      {502, "Bad Gateway"},
		      {503, "Service Unavailable"},
		      {504, "Gateway Timeout"},
		      {507, "Insufficient Storage"}};
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		if (titles[i].status == status)
			return titles[i].title;
	return "Internal Server Error";
}

/* ---- heads ---- */

enum length { LENGTH_NONE, LENGTH_KNOWN, LENGTH_OPEN };

static bool keeps(const struct request *r)
{
	return r->head.keep_alive && r->head.version == HTTP_11;
}

static void send_head(struct request *r, int status, enum length how, size_t length)
{
	struct evbuffer *out = bufferevent_get_output(r->conn->bev);
	r->chunked = how == LENGTH_OPEN && r->head.version == HTTP_11;
	if (how == LENGTH_OPEN && !r->chunked)
		r->head.keep_alive = false;
	r->bare = slice_eq(r->head.method, SLICE("HEAD"));
	evbuffer_add_printf(out, "HTTP/1.1 %d %s\r\nX-Request-Id: %s\r\n", status, title_of(status), r->id);
	evbuffer_add_buffer(out, r->fields);
	if (how == LENGTH_KNOWN)
		evbuffer_add_printf(out, "Content-Length: %zu\r\n", length);
	if (r->chunked)
		evbuffer_add_printf(out, "Transfer-Encoding: chunked\r\n");
	evbuffer_add_printf(out, "%s\r\n", keeps(r) ? "" : "Connection: close\r\n");
}

static void leave(struct request *r)
{
	struct conn *c = r->conn;
	bool keep = keeps(r);
	request_drop(r);
	conn_answered(c, keep);
}

/* ---- whole ones ---- */

static void send_bytes(struct request *r, int status, const char *type, struct slice bytes)
{
	add_header(r, "Content-Type", type);
	send_head(r, status, LENGTH_KNOWN, bytes.len);
	if (!r->bare && bytes.len > 0)
		bufferevent_write(r->conn->bev, bytes.ptr, bytes.len);
	leave(r);
}

static void send_json(struct request *r, int status, struct slice text)
{
	if (status == 503 || status == 429)
		add_header(r, "Retry-After", "1");
	send_bytes(r, status, status < 400 ? "application/json" : "application/problem+json", text);
}

void answer_json(struct request *r, int status, json_t *value)
{
	char *text = value ? json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(12)) : NULL;
	json_decref(value);
	if (!text) {
		answer_problem(r, 503, "there is no memory for the answer");
		return;
	}
	send_json(r, status, slice_str(text));
	free(text);
}

void answer_nothing(struct request *r)
{
	send_head(r, 204, LENGTH_NONE, 0);
	leave(r);
}

void answer_text(struct request *r, const char *type, struct slice text)
{
	send_bytes(r, 200, type, text);
}

void answer_again(struct request *r, const struct answer *a)
{
	if (a->location)
		add_header(r, "Location", a->location);
	send_json(r, a->status, slice_str(a->body));
}

/* ---- problems ---- */

json_t *problem_json(const struct problem *p, const char *instance)
{
	json_t *out = json_pack("{s:s, s:s, s:i, s:s}", "type", p->type ? p->type : "about:blank", "title",
				title_of(p->status), "status", p->status, "instance", instance);
	if (out && p->detail)
		json_object_set_new(out, "detail", json_string(p->detail));
	if (out && p->reason)
		json_object_set_new(out, "reason", json_string(p->reason));
	return out;
}

void answer_told(struct request *r, const struct problem *p)
{
	json_t *out = problem_json(p, r->id);
	answer_json(r, p->status, out ? out : json_object());
}

void answer_refusal(struct request *r, int status, const char *reason, json_t *errors, const char *detail)
{
	json_t *out = problem_json(&(struct problem){status, NULL, reason, detail}, r->id);
	if (out && errors)
		json_object_set(out, "errors", errors);
	json_decref(errors);
	answer_json(r, status, out ? out : json_object());
}

void answer_problem(struct request *r, int status, const char *format, ...)
{
	char detail[LIMIT_SERVE_PROBLEM];
	va_list args;
	va_start(args, format);
	vsnprintf(detail, sizeof(detail), format, args);
	va_end(args);
	answer_refusal(r, status, NULL, NULL, detail);
}

void answer_store(struct request *r, enum store_result result)
{
	switch (result) {
	case STORE_NONE:
		answer_problem(r, 404, "there is no such sandbox");
		return;
	case STORE_REFUSED:
		answer_problem(r, 409, "it is not in a state for that");
		return;
	case STORE_FULL:
		answer_refusal(r, 507, "disk.full", NULL, "the disk of the service is full");
		return;
	case STORE_OK:
	case STORE_FAILED:
		break;
	}
	answer_problem(r, 503, "the state of the service can't be read or written now");
}

/* ---- in pieces ---- */

void stream_begin(struct request *r, const char *type)
{
	add_header(r, "Content-Type", type);
	add_header(r, "Cache-Control", "no-store");
	r->state = REQUEST_STREAMING;
	send_head(r, 200, LENGTH_OPEN, 0);
}

void stream_add(struct request *r, struct slice bytes)
{
	struct evbuffer *out = bufferevent_get_output(r->conn->bev);
	if (r->bare || bytes.len == 0)
		return;
	if (r->chunked)
		evbuffer_add_printf(out, "%zx\r\n", bytes.len);
	evbuffer_add(out, bytes.ptr, bytes.len);
	if (r->chunked)
		evbuffer_add(out, "\r\n", 2);
}

size_t stream_unsent(const struct request *r)
{
	return evbuffer_get_length(bufferevent_get_output(r->conn->bev));
}

void stream_end(struct request *r)
{
	if (r->chunked && !r->bare)
		bufferevent_write(r->conn->bev, "0\r\n\r\n", 5);
	leave(r);
}

/* ---- files: as the client reads, piece by piece, so that no more than one is in memory ---- */

struct sending {
	struct request *request;
	int fd;
	size_t left;
};

static void sending_free(void *work)
{
	struct sending *s = work;
	close(s->fd);
	free(s);
}

/* A file that has become shorter can't be answered to its end: the client sees that from the length. */
static void send_piece(void *work)
{
	struct sending *s = work;
	struct request *r = s->request;
	char bytes[LIMIT_SERVE_PIECE];
	ssize_t n = s->left > 0 && !r->bare ? read(s->fd, bytes, s->left < sizeof(bytes) ? s->left : sizeof(bytes)) : 0;
	if (n > 0) {
		s->left -= (size_t)n;
		bufferevent_write(r->conn->bev, bytes, (size_t)n);
		return;
	}
	if (s->left > 0 && !r->bare)
		r->head.keep_alive = false;
	r->drained = NULL;
	r->gone = NULL;
	sending_free(s);
	leave(r);
}

void answer_file(struct request *r, int fd, size_t size)
{
	struct sending *s = calloc(1, sizeof(*s));
	if (!s) {
		close(fd);
		answer_problem(r, 503, "there is no memory for the answer");
		return;
	}
	*s = (struct sending){r, fd, size};
	r->gone = sending_free;
	r->drained = send_piece;
	r->work = s;
	r->state = REQUEST_STREAMING;
	add_header(r, "Content-Type", "application/octet-stream");
	add_header(r, "Cache-Control", "no-store");
	send_head(r, 200, LENGTH_KNOWN, size);
	send_piece(s);
}
