/* The backend of Podman's containers (docs/podman.md): what the configuration says of it. */
#ifndef CAGE_SERVICE_BACKEND_PODMAN_H
#define CAGE_SERVICE_BACKEND_PODMAN_H

#include <stdbool.h>

/* It is one of the backends from now on. */
void podman_use(void);

/* An option of cage-pod, "--image"; for all sandboxes that are started from now on. */
void podman_set(const char *option, const char *value);
void podman_forget(void);

/* Is Podman there, with the images? May take long. False after it was said why not. */
bool podman_check(void);

#endif
