/* Messages as proxy/tools.h has them: a length and the words, and one byte for an answer. */
#include "orchestrator/keeper/tools.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "orchestrator/keeper/keeper.h"

static int dial(void)
{
	struct sockaddr_un at = {.sun_family = AF_UNIX, .sun_path = "tools"};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
		return fd;
	fd_close(&fd);
	return -1;
}

/* No log, no call: all that wait are refused. */
static void fail_all(struct keeper *k, int why)
{
	struct tools *t = &k->tools;
	fd_close(&t->fd);
	for (size_t i = 0; i < t->n; i++)
		client_refuse(k, t->waiting[i].of, why);
	t->n = 0;
}

/* The detail comes last, and the log cuts it anyway. */
static bool send_call(int fd, struct slice words)
{
	char message[sizeof(uint16_t) + LIMIT_TOOL_CALL];
	words = slice_head(words, LIMIT_TOOL_CALL);
	while (slice_ends(words, slice_of("", 1)))
		words.len--;
	uint16_t len = (uint16_t)words.len;
	memcpy(message, &len, sizeof(len));
	memcpy(message + sizeof(len), words.ptr, words.len);
	const size_t all = sizeof(len) + words.len;
	return words.len > 0 && send(fd, message, all, MSG_NOSIGNAL) == (ssize_t)all;
}

void tools_tell(struct keeper *k, const struct frame *f)
{
	struct tools *t = &k->tools;
	if (t->n == LIMIT_KEEPER_TOOLS) {
		client_refuse(k, f->id, EBUSY);
		return;
	}
	if (t->fd < 0)
		t->fd = dial();
	if (t->fd < 0 || !send_call(t->fd, f->payload)) {
		client_refuse(k, f->id, EPIPE);
		fail_all(k, EPIPE);
		return;
	}
	t->waiting[t->n++] = (struct tool_wait){f->id, clock_mono_us() + LIMIT_KEEPER_TOOL_MS * 1000ull};
}

static void take_answer(struct keeper *k, char answer)
{
	struct tools *t = &k->tools;
	uint16_t of = t->waiting[0].of;
	memmove(t->waiting, t->waiting + 1, --t->n * sizeof(t->waiting[0]));
	if (answer == 'y')
		client_answer(k, of, SLICE("exit 0"));
	else
		client_refuse(k, of, EIO);
}

static void read_answers(struct keeper *k, void *arg, int fd, short events)
{
	struct tools *t = arg;
	(void)events;
	while (t->fd == fd && t->n > 0) {
		char answer = 0;
		ssize_t n = recv(fd, &answer, 1, 0);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n == 1)
			take_answer(k, answer);
		else
			fail_all(k, EPIPE);
	}
}

void tools_watch(struct keeper *k)
{
	polls_add(&k->polls, k->tools.fd, k->tools.n > 0 ? POLLIN : 0, read_answers, &k->tools);
}

void tools_forget(struct tools *t)
{
	for (size_t i = 0; i < t->n; i++)
		t->waiting[i].of = 0;
}

int tools_patience(const struct tools *t)
{
	uint64_t now = clock_mono_us();
	if (t->n == 0)
		return -1;
	return t->waiting[0].until_us > now ? (int)((t->waiting[0].until_us - now) / 1000 + 1) : 0;
}

void tools_look(struct keeper *k)
{
	if (tools_patience(&k->tools) == 0)
		fail_all(k, ETIMEDOUT);
}
