/* poll(), with functions. */
#include "orchestrator/keeper/polls.h"

#include <stdlib.h>
#include <unistd.h>

#include "orchestrator/keeper/keeper.h"

void polls_add(struct polls *p, int fd, short events, polled *ready, void *arg)
{
	if (fd < 0 || events == 0)
		return;
	if (p->n == LIMIT_KEEPER_POLLED)
		abort(); /* the bounds of all parts together are smaller */
	p->fds[p->n] = (struct pollfd){.fd = fd, .events = events};
	p->who[p->n].ready = ready;
	p->who[p->n++].arg = arg;
}

void polls_wait(struct keeper *k, int ms)
{
	struct polls *p = &k->polls;
	if (poll(p->fds, p->n, ms) <= 0)
		return;
	for (nfds_t i = 0; i < p->n; i++)
		if (p->fds[i].revents)
			p->who[i].ready(k, p->who[i].arg, p->fds[i].fd, p->fds[i].revents);
}

void fd_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}
