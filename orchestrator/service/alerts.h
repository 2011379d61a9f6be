/* Alerts: a line on stderr, and a webhook, when a sandbox ran out of memory or time, sent much or was refused much. */
#ifndef CAGE_SERVICE_ALERTS_H
#define CAGE_SERVICE_ALERTS_H

#include "orchestrator/service/service.h"

bool alerts_start(struct service *s);
void alerts_free(struct service *s);

/* One has ended, and was measured. */
void alerts_look(struct service *s, const struct row *row);

/* Something that is about no sandbox. */
void alerts_tell(struct service *s, const char *kind, json_int_t value);

#endif
