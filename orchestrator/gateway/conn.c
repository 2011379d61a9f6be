/* A connection of the intake, from its first byte to the answer. conn_enter() alone changes its state. */
#include <openssl/sha.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "orchestrator/gateway/intake.h"

struct gateway *conn_gateway(const struct conn *c)
{
	return c->intake->gateway;
}

static void conn_enter(struct conn *c, enum conn_state next)
{
	if (!conn_may_follow(c->state, next))
		abort();
	c->state = next;
}

/* ---- ends ---- */

static void take_out(struct conn *c)
{
	struct conn **at = &c->intake->conns;
	while (*at && *at != c)
		at = &(*at)->next;
	if (*at)
		*at = c->next;
	c->intake->n_conns--;
}

static void conn_free(struct conn *c)
{
	take_out(c);
	if (c->change)
		change_forget(c->change);
	request_free(&c->request);
	free(c);
}

void conn_close(struct conn *c)
{
	stream_close(&c->stream);
	conn_free(c);
}

void conn_answer(struct conn *c, int status, const char *type, const char *fields, struct slice body)
{
	char head[1024];
	int n = snprintf(head, sizeof(head),
			 "HTTP/1.1 %d \r\nContent-Type: %s\r\nContent-Length: %zu\r\n%sCache-Control: no-store\r\n"
			 "Connection: close\r\n\r\n",
			 status, type, body.len, fields);
	if (status == 204)
		n = snprintf(head, sizeof(head), "HTTP/1.1 204 \r\nConnection: close\r\n\r\n");
	stream_write(c->stream, slice_of(head, (size_t)n));
	if (status != 204)
		stream_write(c->stream, body);
	conn_enter(c, c->state == CONN_STRANGER ? CONN_DISMISSED : CONN_OVER);
	stream_set_deadline(c->stream, c->state == CONN_DISMISSED ? LIMIT_LINGER_MS : LIMIT_GATEWAY_SEND_MS);
	stream_end(c->stream);
}

void conn_answer_json(struct conn *c, int status, const char *type, json_t *value)
{
	char *text = value ? json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
	json_decref(value);
	if (text)
		conn_answer(c, status, type, "", slice_str(text));
	else
		conn_answer(c, 503, "text/plain", "", SLICE("no memory\n"));
	free(text);
}

void conn_problem(struct conn *c, int status, const char *detail)
{
	conn_answer_json(c, status, "application/problem+json",
			 json_pack("{s:i, s:s}", "status", status, "detail", detail));
}

/* ---- changes ---- */

static json_t *list_of(const struct words *w)
{
	json_t *list = json_array();
	for (size_t i = 0; i < w->n && list; i++)
		json_array_append_new(list, json_string(w->list[i]));
	return list;
}

static void on_changed(void *arg, const struct change *change)
{
	struct conn *c = arg;
	c->change = NULL;
	if (change->status == 204)
		conn_answer(c, 204, "", "", SLICE_NONE);
	else if (change->status < 300)
		conn_answer_json(
			c, change->status, "application/json",
			json_pack("{s:s, s:O, s:s}", "id", change->id, "env", change->env, "log", change->log));
	else
		conn_answer_json(c, change->status, "application/problem+json",
				 json_pack("{s:i, s:s, s:o}", "status", change->status, "detail", change->detail,
					   "errors", list_of(&change->errors)));
}

void conn_await(struct conn *c, struct change *change)
{
	change->done = on_changed;
	change->arg = c;
	c->change = change;
	conn_enter(c, CONN_WAITS);
	stream_set_deadline(c->stream, LIMIT_GATEWAY_ANSWER_MS);
	if (change_ask(change))
		return; /* it may be answered, and gone, already */
	c->change = NULL;
	change_free(change);
	conn_problem(c, 503, "too many changes wait already");
}

/* ---- requests ---- */

static bool token_is_good(const struct conn *c)
{
	unsigned char given[SHA256_DIGEST_LENGTH];
	const struct field *f = message_field(&c->request.head, SLICE("authorization"));
	if (!f || f->value.len < 7 || !slice_ieq(slice_head(f->value, 7), SLICE("Bearer ")))
		return false;
	struct slice token = slice_from(f->value, 7);
	SHA256((const unsigned char *)token.ptr, token.len, given);
	return slice_eq_secret(slice_of(given, sizeof(given)), slice_of(c->intake->token, sizeof(c->intake->token)));
}

/* False: it was answered, and is gone. */
static bool admit(struct conn *c)
{
	const struct message *head = &c->request.head;
	if (token_is_good(c)) {
		conn_enter(c, CONN_KNOWN);
	} else if (!slice_eq(head->target, SLICE("/v1/healthz"))) {
		conn_problem(c, 401, "a token is needed: Authorization: Bearer TOKEN");
		return false;
	}
	request_go_on(&c->request);
	if (c->request.state == REQUEST_BODY && head->expect_continue && !h1_body_is_done(&c->request.framing))
		stream_write(c->stream, SLICE("HTTP/1.1 100 Continue\r\n\r\n"));
	return true;
}

/* False: nothing more can be done with what is there, or the connection is gone. */
static bool read_some(struct conn *c)
{
	const enum request_state before = c->request.state;
	const size_t used = request_take(&c->request, stream_input(c->stream));
	stream_consume(c->stream, used);
	switch (c->request.state) {
	case REQUEST_HEADED:
		return admit(c);
	case REQUEST_WHOLE:
		api_handle(c);
		return false;
	case REQUEST_BAD:
		conn_problem(c, c->request.status, c->request.why);
		return false;
	case REQUEST_HEAD:
	case REQUEST_BODY:
	case REQUEST_STATES:
		break;
	}
	return used > 0 || c->request.state != before;
}

static void on_data(struct stream *s, void *arg)
{
	struct conn *c = arg;
	switch (c->state) {
	case CONN_STRANGER:
	case CONN_KNOWN:
		while (read_some(c))
			;
		break;
	case CONN_DISMISSED:
	case CONN_OVER:
		stream_consume(s, stream_input(s).len); /* until it goes */
		break;
	case CONN_WAITS:
	case CONN_STATES:
		break;
	}
}

static void on_end(struct stream *s, enum cage_status why, void *arg)
{
	(void)s, (void)why;
	conn_close(arg); /* who ends it does not wait for an answer any more */
}

static void on_nothing(struct stream *s, void *arg)
{
	(void)s, (void)arg;
}

static const struct stream_cb callbacks = {
	.on_ready = on_nothing, .on_data = on_data, .on_drained = on_nothing, .on_end = on_end};

/* ---- the beginning ---- */

void conn_open(struct intake *in, int fd, SSL *ssl)
{
	struct conn *c = calloc(1, sizeof(*c));
	if (c)
		c->stream = stream_new(in->gateway->loop, fd, &callbacks, c);
	else
		close(fd);
	if (!c || !c->stream) {
		SSL_free(ssl);
		free(c);
		return;
	}
	request_init(&c->request);
	c->intake = in;
	c->next = in->conns;
	in->conns = c;
	in->n_conns++;
	stream_cleanse_input(c->stream);
	stream_set_deadline(c->stream, LIMIT_GATEWAY_ASK_MS);
	stream_start_tls(c->stream, ssl, true);
}
