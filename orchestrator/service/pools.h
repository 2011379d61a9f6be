/* Groups that stand ready in Azure, for profiles with `warm` whose backend is aci: cage-aci makes the standby pools what the configuration
 * wants, at the start of the service, and removes what an earlier one wanted. It is tried again until all is so. Creates that come
 * before a pool is known are started as without one. */
#ifndef CAGE_SERVICE_POOLS_H
#define CAGE_SERVICE_POOLS_H

#include "orchestrator/service/service.h"

/* Does that profile want such a pool, rather than rooms of the service's own (warm.h)? */
bool pools_has(const struct config *c, const char *profile);

/* Are there any? */
bool pools_are_wanted(const struct config *c);

/* False: no memory. */
bool pools_start(struct service *s);
void pools_free(struct service *s);

#endif
