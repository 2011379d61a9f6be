/* Words over a socket. */
#include "orchestrator/control.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/slice.h"

bool control_open(struct control *c, const char *text)
{
	uint64_t n = 0;
	int type = 0;
	socklen_t len = sizeof(type);
	if (strncmp(text, "fd:", 3) != 0 || !slice_to_u64(slice_str(text + 3), 1023, &n))
		return false;
	*c = (struct control){.fd = (int)n};
	return getsockopt(c->fd, SOL_SOCKET, SO_TYPE, &type, &len) == 0 && type == SOCK_SEQPACKET &&
	       fcntl(c->fd, F_SETFD, FD_CLOEXEC) == 0;
}

enum control_word control_take(const struct control *c)
{
	char word[16];
	ssize_t n = recv(c->fd, word, sizeof(word), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return CONTROL_NOTHING;
	if (n == 6 && memcmp(word, "reload", 6) == 0)
		return CONTROL_RELOAD;
	if (n == 3 && memcmp(word, "end", 3) == 0)
		return CONTROL_END;
	return n <= 0 ? CONTROL_GONE : CONTROL_NOTHING;
}

/* Whoever does not listen is told nothing. */
void control_say(struct control *c, const char *word)
{
	if (c->fd >= 0)
		send(c->fd, word, strlen(word), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void control_say_usage(struct control *c, const struct handoff_usage *u)
{
	char line[160];
	snprintf(line, sizeof(line), "usage cpu_us=%" PRIu64 " memory_peak=%" PRIu64 " oom=%" PRIu64 " pids=%" PRIu64,
		 u->cpu_us, u->memory_peak, u->killed, u->refused);
	control_say(c, line);
}

void control_begin_reload(struct control *c, unsigned programs)
{
	c->awaited = programs;
	c->is_refused = programs == 0;
	if (programs == 0)
		control_say(c, "refused");
}

void control_hear(struct control *c, unsigned program, bool is_loaded)
{
	if (!(c->awaited & program))
		return;
	c->awaited &= ~program;
	c->is_refused |= !is_loaded;
	if (c->awaited == 0)
		control_say(c, c->is_refused ? "refused" : "reloaded");
}

void control_close(struct control *c)
{
	if (c->fd >= 0)
		close(c->fd);
	c->fd = -1;
}
