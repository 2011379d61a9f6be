/* Logs and outputs. Both are files that grow: they are read piece by piece as the client takes it, and with `follow` looked at
 * again and again until the sandbox has ended. */
#include <event2/buffer.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/net/loop.h"
#include "orchestrator/service/api.h"
#include "orchestrator/service/sandbox.h"
#include "orchestrator/service/utf8.h"

enum stream_kind { STREAM_LINES, STREAM_FRAMES };

struct follower {
	struct request *request;
	struct service *service;
	enum stream_kind kind;
	bool follows;              /* as server-sent events */
	bool wants_out, wants_err; /* STREAM_FRAMES */
	char id[STORE_ID];
	char path[BACKEND_PATH + 32];
	int fd; /* -1: the file is not there yet */
	struct event *timer;
	struct evbuffer *line; /* STREAM_LINES: what is not a whole line yet */
	struct frame_reader *frames;
	struct utf8_rest rest[2];
	uint64_t beat_us; /* when something was sent last */
};

static size_t followers; /* of the process */

static void follower_free(void *work)
{
	struct follower *f = work;
	followers--;
	if (f->fd >= 0)
		close(f->fd);
	if (f->timer)
		event_free(f->timer);
	if (f->line)
		evbuffer_free(f->line);
	free(f->frames);
	free(f);
}

/* ---- what is sent ---- */

static void send_text(struct follower *f, struct slice text)
{
	stream_add(f->request, text);
	f->beat_us = clock_mono_us();
}

static void send_lines(struct follower *f)
{
	char *line;
	size_t n;
	while ((line = evbuffer_readln(f->line, &n, EVBUFFER_EOL_LF))) {
		struct evbuffer *event = evbuffer_new();
		if (event) {
			evbuffer_add_printf(event, "data: %s\n\n", line);
			send_text(f, slice_of(evbuffer_pullup(event, -1), evbuffer_get_length(event)));
			evbuffer_free(event);
		}
		free(line);
	}
}

static void send_event(struct follower *f, bool is_err, struct evbuffer *text)
{
	size_t n = evbuffer_get_length(text);
	json_t *data = n ? json_stringn((const char *)evbuffer_pullup(text, -1), n) : NULL;
	char *json = data ? json_dumps(data, JSON_ENCODE_ANY | JSON_COMPACT) : NULL;
	struct evbuffer *event = json ? evbuffer_new() : NULL;
	if (event) {
		evbuffer_add_printf(event, "event: %s\ndata: %s\n\n", is_err ? "stderr" : "stdout", json);
		send_text(f, slice_of(evbuffer_pullup(event, -1), evbuffer_get_length(event)));
		evbuffer_free(event);
	}
	json_decref(data);
	free(json);
}

static void send_frame(struct follower *f, const struct frame *frame)
{
	const bool is_err = frame->kind == FRAME_ERR;
	if (frame->payload.len == 0 || !(is_err ? f->wants_err : f->wants_out && frame->kind == FRAME_OUT))
		return;
	if (!f->follows) {
		send_text(f, frame->payload);
		return;
	}
	struct evbuffer *text = evbuffer_new();
	if (!text)
		return;
	utf8_add(text, &f->rest[is_err], frame->payload);
	send_event(f, is_err, text);
	evbuffer_free(text);
}

/* ---- reading ---- */

/* False: there is nothing more now. */
static bool read_lines(struct follower *f)
{
	char bytes[LIMIT_SERVE_PIECE];
	ssize_t n = read(f->fd, bytes, sizeof(bytes));
	if (n <= 0)
		return false;
	if (!f->follows) {
		send_text(f, slice_of(bytes, (size_t)n));
		return true;
	}
	evbuffer_add(f->line, bytes, (size_t)n);
	send_lines(f);
	if (evbuffer_get_length(f->line) > LIMIT_SERVE_LINE)
		evbuffer_drain(f->line, evbuffer_get_length(f->line));
	return true;
}

static bool read_frames(struct follower *f)
{
	size_t room;
	struct frame frame;
	enum frame_result result;
	char *to = frame_room(f->frames, &room);
	ssize_t n = read(f->fd, to, room);
	if (n <= 0)
		return false;
	frame_arrived(f->frames, (size_t)n);
	while ((result = frame_take(f->frames, &frame)) == FRAME_TAKEN)
		send_frame(f, &frame);
	return result == FRAME_PARTIAL;
}

static bool read_more(struct follower *f)
{
	if (f->fd < 0)
		f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (f->fd < 0)
		return false;
	return f->kind == STREAM_LINES ? read_lines(f) : read_frames(f);
}

/* ---- the end ---- */

static void send_rests(struct follower *f)
{
	for (int i = 0; i < 2; i++) {
		struct evbuffer *text = evbuffer_new();
		if (!text)
			return;
		utf8_end(text, &f->rest[i]);
		send_event(f, i == 1, text);
		evbuffer_free(text);
	}
}

static void send_end(struct follower *f)
{
	struct row row = {0};
	char text[256], exit_code[32] = "";
	if (store_get(f->service->store, f->id, &row) == STORE_OK && row.has_exit)
		snprintf(exit_code, sizeof(exit_code), ",\"exit_code\":%d", row.exit_code);
	int n = snprintf(text, sizeof(text), "event: end\ndata: {\"state\":\"%s\",\"reason\":\"%s\"%s}\n\n",
			 state_name(row.state), row.reason, exit_code);
	send_text(f, slice_of(text, (size_t)n));
	row_free(&row);
}

static void finish(struct follower *f)
{
	struct request *r = f->request;
	if (f->follows && f->kind == STREAM_FRAMES) {
		send_rests(f);
		send_end(f);
	}
	follower_free(f);
	stream_end(r);
}

/* ---- steps ---- */

static void wait_ms(struct follower *f, unsigned ms)
{
	const struct timeval time = loop_ms(ms);
	evtimer_add(f->timer, &time);
}

static void step(evutil_socket_t fd, short what, void *arg)
{
	struct follower *f = arg;
	(void)fd, (void)what;
	/* Asked before the file is read: what it has then is all. */
	bool is_over = !f->follows || !sandbox_find(f->service, f->id);
	unsigned reads = 0;
	while (stream_unsent(f->request) < LIMIT_SERVE_UNSENT && reads++ < LIMIT_SERVE_READS)
		if (!read_more(f)) {
			if (is_over) {
				finish(f);
				return;
			}
			if (clock_mono_us() - f->beat_us > (uint64_t)LIMIT_SERVE_BEAT_MS * 1000)
				send_text(f, SLICE(":\n\n"));
			wait_ms(f, LIMIT_SERVE_FOLLOW_MS);
			return;
		}
	wait_ms(f, stream_unsent(f->request) < LIMIT_SERVE_UNSENT ? 0 : LIMIT_SERVE_UNREAD_MS);
}

/* ---- the beginning ---- */

static bool read_flag(struct request *r, const char *name, bool *out)
{
	const char *text = query_value(r, name);
	*out = text && strcmp(text, "true") == 0;
	return !text || *out || strcmp(text, "false") == 0;
}

static bool is_known(struct request *r)
{
	struct row row = {0};
	enum store_result result = store_get(r->service->store, r->sandbox, &row);
	enum state state = row.state;
	row_free(&row);
	if (result != STORE_OK)
		answer_store(r, result);
	else if (state == DELETED)
		answer_problem(r, 409, "it is deleted");
	return result == STORE_OK && state != DELETED;
}

static struct follower *follower_new(struct request *r, enum stream_kind kind, const char *name, bool follows)
{
	char dir[BACKEND_PATH];
	struct follower *f = followers < LIMIT_SERVE_FOLLOWERS ? calloc(1, sizeof(*f)) : NULL;
	if (!f)
		return NULL;
	followers++;
	*f = (struct follower){.request = r, .service = r->service, .kind = kind, .follows = follows, .fd = -1};
	service_dir(r->service, r->sandbox, dir);
	memcpy(f->id, r->sandbox, sizeof(f->id));
	snprintf(f->path, sizeof(f->path), "%s/%s", dir, name);
	f->timer = evtimer_new(r->service->base, step, f);
	f->line = kind == STREAM_LINES ? evbuffer_new() : NULL;
	f->frames = kind == STREAM_FRAMES ? calloc(1, sizeof(*f->frames)) : NULL;
	if (f->timer && (f->line || f->frames))
		return f;
	follower_free(f);
	return NULL;
}

static void begin(struct follower *f, const char *type)
{
	f->request->gone = follower_free;
	f->request->work = f;
	f->beat_us = clock_mono_us();
	stream_begin(f->request, f->follows ? "text/event-stream" : type);
	if (f->follows)
		send_text(f, SLICE(":\n\n"));
	step(-1, 0, f);
}

void api_logs(struct request *r)
{
	const char *source = query_value(r, "source");
	bool follows, is_dns = source && strcmp(source, "dns") == 0;
	if (!read_flag(r, "follow", &follows) || (source && !is_dns && strcmp(source, "proxy") != 0)) {
		answer_problem(r, 400, "expected source=proxy or dns, follow=true or false");
		return;
	}
	if (!is_known(r))
		return;
	struct follower *f = follower_new(r, STREAM_LINES, is_dns ? "log.jsonl.dns" : "log.jsonl", follows);
	if (f)
		begin(f, "application/jsonl");
	else
		answer_problem(r, 503, "too many follow logs or outputs");
}

void api_output(struct request *r)
{
	const char *stream = query_value(r, "stream");
	bool follows, both = !stream || strcmp(stream, "both") == 0;
	bool out = both || strcmp(stream, "stdout") == 0, err = both || strcmp(stream, "stderr") == 0;
	if (!read_flag(r, "follow", &follows) || (!out && !err)) {
		answer_problem(r, 400, "expected stream=stdout, stderr or both, follow=true or false");
		return;
	}
	if (!is_known(r))
		return;
	struct follower *f = follower_new(r, STREAM_FRAMES, "output", follows);
	if (!f) {
		answer_problem(r, 503, "too many follow logs or outputs");
		return;
	}
	f->wants_out = out;
	f->wants_err = err;
	begin(f, "application/octet-stream");
}
