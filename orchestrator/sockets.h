/* The room's sockets, as the gate hands them over. We keep them: when a program that serves them is gone, those who
 * connect must be told so, and not wait in a queue that nobody looks at. */
#ifndef CAGE_ORCHESTRATOR_SOCKETS_H
#define CAGE_ORCHESTRATOR_SOCKETS_H

#include <stdbool.h>

#include "core/base/limits.h"
#include "orchestrator/gate/handoff.h"

struct room_socket {
	enum handoff_kind kind;
	int fd;
};

struct room_sockets {
	struct room_socket all[LIMIT_LAUNCH_FDS];
	size_t n;
};

enum sockets_step { SOCKETS_MORE, SOCKETS_ALL, SOCKETS_BROKEN };

/* Takes one message of the gate. SOCKETS_BROKEN: it is gone, or says something else. */
enum sockets_step sockets_take(struct room_sockets *s, int handoff);

/* Whoever connects to a socket of that kind is refused from now on. The ports stay taken. */
void sockets_refuse(const struct room_sockets *s, enum handoff_kind kind);

/* Answers what waits on a socket of DNS questions: refused. */
void sockets_refuse_question(int fd);

void sockets_close(struct room_sockets *s);

#endif
