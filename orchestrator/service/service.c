/* What all parts of the service know: where sandboxes have their files. */
#include "orchestrator/service/service.h"

#include <fcntl.h>
#include <stdio.h>

void service_dir(const struct service *s, const char *id, char out[BACKEND_PATH])
{
	snprintf(out, BACKEND_PATH, "%s/sandboxes/%s", s->config.state, id);
}

int service_spool(const struct service *s)
{
	char path[BACKEND_PATH];
	snprintf(path, sizeof(path), "%s/sandboxes", s->config.state);
	return open(path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
}
