/* The backend of Podman's containers (docs/podman.md): what the configuration says of it. */
#ifndef CAGE_SERVICE_BACKEND_PODMAN_H
#define CAGE_SERVICE_BACKEND_PODMAN_H

#include "orchestrator/service/maker.h"

extern struct maker podman_maker;

#endif
