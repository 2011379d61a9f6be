/* Messages in, lines out. What is said of a call may have a secret in it: then the line does not say it. */
#include "proxy/tools.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "inspectors/scan/scan.h"
#include "proxy/keyring.h"

enum { LENGTH = sizeof(uint16_t) };

struct tools_client {
	struct tools *tools;
	struct tools_client *next;
	struct event *event;
	int fd;
	size_t len;
	char bytes[LENGTH + LIMIT_TOOL_CALL];
};

struct tools {
	struct worker *worker;
	struct tools_client *clients;
	size_t n_clients;
};

/* ---- what a message says ---- */

static bool take_word(struct slice *rest, struct slice *word)
{
	const char *end = rest->len > 0 ? memchr(rest->ptr, '\0', rest->len) : NULL;
	if (!end)
		return false;
	*word = slice_head(*rest, (size_t)(end - rest->ptr));
	*rest = slice_from(*rest, word->len + 1);
	return true;
}

static bool find_reason(struct slice code, enum reason *out)
{
	static const enum reason known[] = {REASON_TOOL_NOT_ALLOWED, REASON_TOOL_COMMAND, REASON_TOOL_PATH,
					    REASON_TOOL_ARGUMENTS, REASON_LIMIT_TOOL};
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (slice_eq(code, reason_code(known[i]))) {
			*out = known[i];
			return true;
		}
	return false;
}

bool tool_call_parse(struct slice message, struct tool_call *out)
{
	struct slice decision, reason;
	*out = (struct tool_call){0};
	if (!take_word(&message, &decision) || !take_word(&message, &reason) || !take_word(&message, &out->tool))
		return false;
	out->detail = message;
	if (out->tool.len == 0 || memchr(message.ptr, '\0', message.len))
		return false;
	if (slice_eq(decision, SLICE("allow"))) {
		out->decision = DECISION_ALLOW;
		return reason.len == 0;
	}
	out->decision = DECISION_BLOCK;
	return slice_eq(decision, SLICE("block")) && find_reason(reason, &out->reason);
}

/* ---- what may be said of it ---- */

static void on_hit(void *found, const struct scan_hit *hit)
{
	(void)hit;
	*(bool *)found = true;
}

/* In doubt it has one. */
static bool looks_secret(struct slice text)
{
	bool found = false;
	struct scan *s = scan_catalogue() ? scan_new(scan_catalogue(), on_hit, &found) : NULL;
	bool looked = s && scan_feed(s, text) == CAGE_OK && scan_end(s) == CAGE_OK;
	scan_free(&s);
	return found || !looked;
}

static bool is_known(struct worker *w, struct slice text)
{
	struct keyring *k = w->current[0]->keyring;
	struct known_match m;
	return k && (!keyring_refresh(k) || known_find(keyring_values(k), text, 0, true, &m) != KNOWN_NONE);
}

static struct slice loggable(struct worker *w, struct slice text)
{
	if (is_known(w, text) || looks_secret(text))
		return SLICE("[redacted]");
	return slice_head(text, LIMIT_TOOL_DETAIL);
}

static bool log_call(struct worker *w, const struct tool_call *call)
{
	struct audit_event e;
	worker_event(&e, AUDIT_TOOL, w->current[0]);
	e.decision = call->decision;
	e.reason = call->reason;
	e.method = loggable(w, call->tool);
	e.path = loggable(w, call->detail);
	return audit_ring_is_written(w->config->ring) && worker_log_note(w, &e);
}

/* ---- connections ---- */

static void client_free(struct tools_client *c)
{
	struct tools_client **at = &c->tools->clients;
	while (*at != c)
		at = &(*at)->next;
	*at = c->next;
	c->tools->n_clients--;
	if (c->event)
		event_free(c->event);
	close(c->fd);
	free(c);
}

/* False: it has broken the form, or does not take its answer. */
static bool answer(struct tools_client *c, struct slice message)
{
	struct tool_call call;
	if (!tool_call_parse(message, &call))
		return false;
	const char word = log_call(c->tools->worker, &call) ? 'y' : 'n';
	return send(c->fd, &word, 1, MSG_NOSIGNAL | MSG_DONTWAIT) == 1;
}

/* False: it is to be cut off. */
static bool take_messages(struct tools_client *c)
{
	uint16_t len;
	size_t at = 0;
	for (; c->len - at >= LENGTH; at += LENGTH + len) {
		memcpy(&len, c->bytes + at, LENGTH);
		if (len > LIMIT_TOOL_CALL)
			return false;
		if (c->len - at - LENGTH < len)
			break;
		if (!answer(c, slice_of(c->bytes + at + LENGTH, len)))
			return false;
	}
	memmove(c->bytes, c->bytes + at, c->len - at);
	c->len -= at;
	return true;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	(void)what;
	struct tools_client *c = arg;
	ssize_t n = recv(fd, c->bytes + c->len, sizeof(c->bytes) - c->len, MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n > 0)
		c->len += (size_t)n;
	if (n <= 0 || !take_messages(c))
		client_free(c);
}

void tools_accept(struct tools *t, int fd)
{
	struct tools_client *c = t->n_clients < LIMIT_TOOL_CLIENTS ? calloc(1, sizeof(*c)) : NULL;
	if (!c) {
		close(fd);
		return;
	}
	*c = (struct tools_client){.tools = t, .next = t->clients, .fd = fd};
	t->clients = c;
	t->n_clients++;
	c->event = event_new(loop_base(t->worker->loop), fd, EV_READ | EV_PERSIST, on_readable, c);
	if (!c->event || event_add(c->event, NULL) != 0)
		client_free(c);
}

struct tools *tools_new(struct worker *w)
{
	struct tools *t = calloc(1, sizeof(*t));
	if (t)
		t->worker = w;
	return t;
}

void tools_free(struct tools **t)
{
	struct tools_client *next;
	for (struct tools_client *c = *t ? (*t)->clients : NULL; c; c = next) {
		next = c->next;
		client_free(c);
	}
	free(*t);
	*t = NULL;
}
