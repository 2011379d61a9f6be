/* What the launcher of a run, such as the keeper of a sandbox, and cage run say to each other over a SOCK_SEQPACKET socket
 * (--control fd:N), a word to a packet:
 *
 *	to cage run     reload      cage-proxy and cage-dns load the policy anew
 *	                end         an orderly end, at once; the end of file means the same: the launcher is gone
 *	to the launcher dir PATH    what is to be removed if this cage run is killed
 *	                began       CMD was let go
 *	                reloaded    both have, ...
 *	                refused     ... or one of them kept what it had
 *	                usage ...   what CMD has used, when it has ended (HANDOFF_USAGE); of cage-aci, again and again
 *	                            (orchestrator/keeper/result.h): the last one counts */
#ifndef CAGE_ORCHESTRATOR_CONTROL_H
#define CAGE_ORCHESTRATOR_CONTROL_H

#include <stdbool.h>

#include "orchestrator/gate/handoff.h"

struct control {
	int fd;           /* -1: nobody is there */
	unsigned awaited; /* a bit for each program that has not said yet what became of a reload */
	bool is_refused;  /* by one of them */
};

enum control_word { CONTROL_NOTHING, CONTROL_RELOAD, CONTROL_END, CONTROL_GONE };

/* "fd:N" of the command line: a socket that was inherited. False: it is none. */
bool control_open(struct control *c, const char *text);

/* What the launcher wants, after poll() said that there is something. */
enum control_word control_take(const struct control *c);

void control_say(struct control *c, const char *word);
void control_say_usage(struct control *c, const struct handoff_usage *u);

/* These programs were asked to reload: a bit for each. */
void control_begin_reload(struct control *c, unsigned programs);

/* What became of it in one of them; one that has ended has not. */
void control_hear(struct control *c, unsigned program, bool is_loaded);

void control_close(struct control *c);

#endif
