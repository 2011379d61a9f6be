/* Following output: events with text for stdout and stderr, and at last one that says how it ended. */
#include <signal.h>
#include <unistd.h>

#include "core/base/say.h"
#include "orchestrator/client/api.h"
#include "orchestrator/client/sse.h"
#include "orchestrator/client/watch.h"
#include "core/base/write_all.h"

#define EXIT_TIMED_OUT 124
#define EXIT_BY_SIGNAL 128

int ending_exit_code(const json_t *ending)
{
	const char *state = json_text(ending, "state");
	const json_t *code = json_object_get(ending, "exit_code");
	if (strcmp(state, "timed_out") == 0)
		return EXIT_TIMED_OUT;
	if (json_is_integer(code))
		return (int)json_integer_value(code) & 0xff;
	if (strcmp(state, "succeeded") == 0)
		return 0;
	return strcmp(state, "killed") == 0 ? EXIT_BY_SIGNAL + SIGKILL : 1;
}

enum following { FOLLOWING, FOLLOWED_TO_END, FOLLOWING_FAILED };

struct follow {
	enum following state;
	json_t *ending;
};

static bool copy_text(struct follow *f, int fd, const json_t *text)
{
	if (write_all(fd, json_string_value(text), json_string_length(text)))
		return true;
	if (fd == STDOUT_FILENO)
		say_stdout();
	f->state = FOLLOWING_FAILED;
	return false;
}

static bool take_event(void *arg, struct slice name, struct slice data)
{
	struct follow *f = arg;
	json_t *value = json_loadb(data.ptr, data.len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	bool goes_on = true;
	if (slice_eq(name, SLICE("end")) && json_is_object(value)) {
		f->ending = json_incref(value);
		f->state = FOLLOWED_TO_END;
		goes_on = false;
	} else if (json_is_string(value)) {
		goes_on = copy_text(f, slice_eq(name, SLICE("stderr")) ? STDERR_FILENO : STDOUT_FILENO, value);
	}
	json_decref(value);
	return goes_on;
}

static void read_events(struct client *c, struct sse *events, struct follow *f)
{
	struct slice piece;
	enum cage_status st = CAGE_OK;
	while (st == CAGE_OK && http_read(&c->http, LIMIT_CLIENT_FOLLOW_MS, &piece) == CAGE_OK)
		st = sse_feed(events, piece, take_event, f);
	if (st == CAGE_ELIMIT)
		say("the service sent more at once than can be taken");
	else if (f->state == FOLLOWING)
		say("the service ended before the sandbox did: cage output -f shows it again");
}

bool follow_output(struct client *c, const char *id, const char *stream, json_t **ending)
{
	struct target t;
	struct sse events;
	struct follow f = {.state = FOLLOWING};
	*ending = NULL;
	target_sandbox(&t, id, "output");
	target_query(&t, "follow", "true");
	target_query(&t, "stream", stream);
	struct http_request r = api_request("GET", &t);
	if (!api_open(c, &r) || !sse_init(&events))
		return false;
	read_events(c, &events, &f);
	sse_free(&events);
	*ending = f.ending;
	return f.state == FOLLOWED_TO_END;
}
