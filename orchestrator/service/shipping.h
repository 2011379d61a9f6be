/* Copies of decision logs on their way to Azure: one cage-ship for all sandboxes. It reads the logs where they are. Those of a sandbox
 * that is removed get another name before that, STATE/ship/kept/ID-NAME, under which cage-ship goes on with them and removes them when they
 * are shipped. What is kept there has a bound in bytes and in time; what is given up for it is an alert, not_shipped. */
#ifndef CAGE_SERVICE_SHIPPING_H
#define CAGE_SERVICE_SHIPPING_H

#include "orchestrator/service/service.h"

/* Nothing, where the configuration has no `ship`. */
bool shipping_start(struct service *s);
void shipping_free(struct service *s);

/* Before the directory of a sandbox goes. NULL: its logs are kept, or need not be; else why not: then it may not go. */
const char *shipping_keep(const struct service *s, const char *id, const char *dir);

/* shipping_trim.c, in a process of its own: removes what is over the bounds of a struct config, the oldest first, and writes to stdout how
 * many bytes that were. An exit code. */
int shipping_trim(const char *dir, const void *config);

#endif
