/* Between the files of worker.h:
 *
 *	worker.c	what comes in, what the master says, the end
 *	worker_seats.c	who may come, and under which policy
 */
#ifndef CAGE_PROXY_WORKER_PRIVATE_H
#define CAGE_PROXY_WORKER_PRIVATE_H

#include "core/proc/control.h"
#include "proxy/worker.h"

/* What the master says of a seat. fd: of its policy; the caller's. */
void worker_adopt_seat(struct worker *w, const struct control *msg, int fd);

/* Looks which seats are taken. */
void worker_count_seats(struct worker *w);

/* Now and then: lets go of what was built for those who have not asked for anything for a while. */
void worker_rest(struct worker *w);

/* Ends a connection at once, with whatever it does. */
void worker_abandon(struct conn *c, enum reason reason);

_Noreturn void worker_give_up(const char *what);

#endif
