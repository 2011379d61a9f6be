/* cage-relay: listeners and the loop. relay.h says what it is for. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/base/option_table.h"
#include "core/base/say.h"
#include "core/proc/process.h"
#include "orchestrator/relay/relay.h"

#define LOOK_MS 1000 /* between looks at clocks */

static struct link links[LIMIT_RELAY_LINKS];

/* ---- listeners ---- */

static bool open_listener(struct carry *c)
{
	const int on = 1;
	char text[ADDR_TEXT];
	struct sockaddr_storage at;
	const socklen_t len = addr_to_sockaddr(&c->from, c->from_port, &at);
	c->listener = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (c->listener < 0 || setsockopt(c->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0 ||
	    bind(c->listener, (const struct sockaddr *)&at, len) != 0 || listen(c->listener, SOMAXCONN) != 0) {
		say("%.*s port %u: %s", SLICE_FMT(addr_format(&c->from, text)), c->from_port, strerror(errno));
		return false;
	}
	socklen_t bound = sizeof(at);
	uint16_t port = c->from_port;
	if (getsockname(c->listener, (struct sockaddr *)&at, &bound) == 0)
		addr_from_sockaddr((const struct sockaddr *)&at, &c->from, &port);
	say("listening on %.*s port %u", SLICE_FMT(addr_format(&c->from, text)), port);
	return true;
}

static struct link *free_link(void)
{
	for (size_t i = 0; i < LIMIT_RELAY_LINKS; i++)
		if (links[i].state == LINK_FREE)
			return &links[i];
	return NULL;
}

/* One for each event: the others are told again. */
static void accept_one(const struct relay *r, struct carry *c)
{
	struct link *place = free_link();
	int fd = place ? accept4(c->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK) : -1;
	if (fd < 0)
		return;
	if (r->has_budget && r->out_left == 0)
		close(fd);
	else
		link_begin(place, c, fd);
}

/* ---- the loop ---- */

struct watched {
	struct pollfd signals, listeners[LIMIT_RELAY_CARRIES], links[2 * LIMIT_RELAY_LINKS];
};

static void watch(const struct relay *r, int signals, struct watched *w)
{
	const bool has_place = free_link() != NULL;
	w->signals = (struct pollfd){.fd = signals, .events = POLLIN};
	for (size_t i = 0; i < LIMIT_RELAY_CARRIES; i++)
		w->listeners[i] = (struct pollfd){.fd = has_place && i < r->n_carries ? r->carries[i].listener : -1,
						  .events = POLLIN};
	for (size_t i = 0; i < LIMIT_RELAY_LINKS; i++)
		link_wants(&links[i], &w->links[2 * i]);
}

/* False: it is the end. */
static bool pass(struct relay *r, int signals)
{
	static struct watched w;
	watch(r, signals, &w);
	if (poll((struct pollfd *)&w, sizeof(w) / sizeof(struct pollfd), LOOK_MS) < 0)
		return errno == EINTR;
	for (size_t i = 0; i < LIMIT_RELAY_LINKS; i++)
		link_go_on(&links[i], r, &w.links[2 * i]);
	for (size_t i = 0; i < r->n_carries; i++)
		if (w.listeners[i].revents)
			accept_one(r, &r->carries[i]);
	return w.signals.revents == 0;
}

static int open_signals(void)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	signal(SIGPIPE, SIG_IGN);
	return sigprocmask(SIG_BLOCK, &set, NULL) == 0 ? signalfd(-1, &set, SFD_CLOEXEC) : -1;
}

int main(int argc, char **argv)
{
	static struct relay relay;
	say_as("cage-relay");
	process_harden();
	const int code = relay_options(argc, argv, &relay);
	if (code != OPTIONS_GO_ON)
		return code;
	const int signals = open_signals();
	if (signals < 0) {
		say("%s", strerror(errno));
		return 1;
	}
	for (size_t i = 0; i < relay.n_carries; i++)
		if (!open_listener(&relay.carries[i]))
			return 1;
	say("ready");
	while (pass(&relay, signals))
		;
	return 0;
}
