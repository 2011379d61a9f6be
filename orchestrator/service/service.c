/* What all parts of the service know: where a sandbox has its files. */
#include "orchestrator/service/service.h"

#include <stdio.h>

void service_dir(const struct service *s, const char *id, char out[BACKEND_PATH])
{
	snprintf(out, BACKEND_PATH, "%s/sandboxes/%s", s->config.state, id);
}
