/* What the files of changes have of each other. */
#ifndef CAGE_GATEWAY_CHANGE_PRIVATE_H
#define CAGE_GATEWAY_CHANGE_PRIVATE_H

#include "orchestrator/gateway/change.h"

/* change.c: alone changes a state. */
void change_enter(struct change *c, enum change_state next);

/* It is done. detail: static; NULL: it is good. */
void change_end(struct change *c, int status, const char *detail);

/* The first of the queue, if there is one. */
void change_begin_first(struct gateway *g);

/* change_check.c: cage-proxy says what it thinks of its policy, or its placeholders. False: it can't be asked now. */
bool change_check(struct change *c);
bool change_print(struct change *c);

/* change_queue.c: the first one is over. */
void change_drop_first(struct gateway *g);

/* The next one is a reload, however many wait: who was shut is not to have what it had meanwhile. is_again: as in struct change. */
void change_reload_behind(struct change *c, bool is_again);

/* start.c: with each turn of the clock, until the proxy answers. */
void start_look(struct gateway *g);

#endif
