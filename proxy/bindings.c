/* A socket to cage-dns, and the table of what came over it.
 *
 *	DOWN -> CONNECTED -> UP -> DOWN ...     connected; the hello was read; lost
 *	CONNECTED, UP -> WRONG -> RECONNECTED   it said what it must not, which is told to the operator; tried again
 *	RECONNECTED -> WRONG or UP              once more, which is not; or it is mended
 */
#include "proxy/bindings.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/net/binding_table.h"

#define ROOM KIB(16) /* several of the longest frames */

_Static_assert(ROOM >= 4 * BINDING_FRAME, "a frame fits whatever stands before it");

enum bindings_state { BINDINGS_DOWN, BINDINGS_CONNECTED, BINDINGS_UP, BINDINGS_WRONG, BINDINGS_RECONNECTED };

struct bindings {
	struct loop *loop;
	struct sockaddr_un path;
	enum bindings_state state;
	int fd; /* not in DOWN and WRONG */
	struct event *readable, *retry;
	struct binding_table *table;
	size_t len; /* bytes in the buffer */
	char buf[ROOM];
};

static bool is_connected(const struct bindings *b)
{
	return b->state != BINDINGS_DOWN && b->state != BINDINGS_WRONG;
}

/* next: DOWN or WRONG. */
static void hang_up(struct bindings *b, enum bindings_state next)
{
	struct timeval tv = loop_ms(LIMIT_BINDING_RETRY_MS);
	if (b->readable)
		event_free(b->readable);
	b->readable = NULL;
	if (b->fd >= 0)
		close(b->fd);
	b->fd = -1;
	b->len = 0;
	b->state = next;
	event_add(b->retry, &tv);
}

static void complain(struct bindings *b)
{
	if (b->state != BINDINGS_RECONNECTED)
		say("--bindings: %s does not speak as cage-dns of this version does", b->path.sun_path);
	hang_up(b, BINDINGS_WRONG);
}

/* Lost, or not there. What was said about it still holds. */
static void lose(struct bindings *b)
{
	bool was_wrong = b->state == BINDINGS_WRONG || b->state == BINDINGS_RECONNECTED;
	hang_up(b, was_wrong ? BINDINGS_WRONG : BINDINGS_DOWN);
}

/* ---- reading ---- */

/* CAGE_AGAIN: all of it was taken. */
static enum cage_status take_frames(struct bindings *b, struct slice *input)
{
	struct binding what;
	enum cage_status st;
	while ((st = binding_read(input, &what)) == CAGE_OK) {
		/* What there is no room for is not known: the name is refused, or resolved and vetted as any other. */
		enum cage_status kept = binding_table_put(b->table, &what, loop_now_us(b->loop));
		(void)kept;
	}
	return st;
}

static enum cage_status take_hello(struct bindings *b, struct slice *input)
{
	struct slice hello = BINDING_HELLO;
	if (!slice_starts(*input, slice_head(hello, input->len)))
		return CAGE_EPROTO;
	if (input->len < hello.len)
		return CAGE_AGAIN;
	*input = slice_from(*input, hello.len);
	b->state = BINDINGS_UP;
	return CAGE_OK;
}

static bool take_input(struct bindings *b)
{
	struct slice input = slice_of(b->buf, b->len);
	enum cage_status st = b->state == BINDINGS_UP ? CAGE_OK : take_hello(b, &input);
	if (st == CAGE_OK)
		st = take_frames(b, &input);
	if (st != CAGE_AGAIN)
		return false;
	memmove(b->buf, input.ptr, input.len);
	b->len = input.len;
	return true;
}

/* False: nothing more is there now. */
static bool read_some(struct bindings *b)
{
	ssize_t n = recv(b->fd, b->buf + b->len, ROOM - b->len, 0);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		lose(b);
		return false;
	}
	b->len += (size_t)n;
	if (take_input(b))
		return true;
	complain(b);
	return false;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct bindings *b = arg;
	for (unsigned i = 0; i < LIMIT_READS_PER_WAKEUP && read_some(b); i++)
		;
}

/* What was told before the client got its answer lies in the socket at the latest when the client connects. */
static void catch_up(struct bindings *b)
{
	for (unsigned i = 0; i < LIMIT_BINDING_CATCH_UP && is_connected(b) && read_some(b); i++)
		;
}

/* ---- connecting ---- */

static bool watch(struct bindings *b)
{
	b->readable = event_new(loop_base(b->loop), b->fd, EV_READ | EV_PERSIST, on_readable, b);
	return b->readable && event_add(b->readable, NULL) == 0;
}

static void connect_now(struct bindings *b)
{
	b->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (b->fd >= 0 && connect(b->fd, (const struct sockaddr *)&b->path, sizeof(b->path)) == 0 && watch(b)) {
		b->state = b->state == BINDINGS_WRONG ? BINDINGS_RECONNECTED : BINDINGS_CONNECTED;
		return;
	}
	lose(b);
}

static void on_retry(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	connect_now(arg);
}

struct bindings *bindings_new(struct loop *l, const char *path)
{
	struct bindings *b = calloc(1, sizeof(*b));
	if (!b)
		return NULL;
	b->loop = l;
	b->fd = -1;
	b->path.sun_family = AF_UNIX;
	memcpy(b->path.sun_path, path, strnlen(path, sizeof(b->path.sun_path) - 1));
	b->table = binding_table_new(LIMIT_BINDINGS);
	b->retry = evtimer_new(loop_base(l), on_retry, b);
	if (b->table && b->retry)
		connect_now(b);
	else
		bindings_free(&b);
	return b;
}

void bindings_free(struct bindings **bp)
{
	struct bindings *b = *bp;
	if (!b)
		return;
	*bp = NULL;
	if (b->readable)
		event_free(b->readable);
	if (b->retry)
		event_free(b->retry);
	if (b->fd >= 0)
		close(b->fd);
	binding_table_free(&b->table);
	free(b);
}

/* ---- asking ---- */

size_t bindings_addresses(struct bindings *b, struct slice name, struct addr out[LIMIT_ANSWERS])
{
	if (!b)
		return 0;
	size_t n = binding_table_addresses(b->table, name, loop_now_us(b->loop), out);
	if (n > 0)
		return n;
	catch_up(b);
	return binding_table_addresses(b->table, name, loop_now_us(b->loop), out);
}

bool bindings_has_given(struct bindings *b, struct slice name)
{
	struct addr a;
	uint32_t life_s;
	if (!b)
		return false;
	if (binding_table_given(b->table, name, loop_now_us(b->loop), &a, &life_s))
		return true;
	catch_up(b);
	return binding_table_given(b->table, name, loop_now_us(b->loop), &a, &life_s);
}

/* An address may have gone to another name by now. */
struct slice bindings_name(struct bindings *b, const struct addr *given)
{
	if (!b)
		return SLICE_NONE;
	catch_up(b);
	return binding_table_name(b->table, given, loop_now_us(b->loop));
}
