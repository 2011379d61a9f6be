/* The life of a query:
 *
 *	parse -> class and type -> the policy on its name -> pin | cache | what the name carries -> log -> upstream -> vet -> answer
 *
 * What is refused is answered here and never resolved (THREATS T14). One line of the log for each decision, before
 * anything leaves; a second one when the answer to what was allowed is refused or does not come. Without a log nothing is
 * answered but SERVFAIL. */
#ifndef CAGE_DNS_QUERY_H
#define CAGE_DNS_QUERY_H

#include "dns/worker.h"

/* For struct dns_server_cb, with the worker as arg. */
void query_arrived(void *worker, const struct dns_client *c, struct slice packet);
bool query_has_room(void *worker);
void query_connection_refused(void *worker, enum reason why, const struct addr *from);

/* Some were not answered, over the rate of their senders: one line for all of them, so that a flood does not fill the log. */
void query_rate_limited(struct worker *w);

/* The policy is another now: asks for all who waited under the old one. */
void query_ask_again(struct worker *w);

#endif
