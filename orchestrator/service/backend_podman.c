/* Sandboxes of Podman's containers, made by cage-pod (orchestrator/pod). */
#include "orchestrator/service/backend_podman.h"

struct maker podman_maker = {.program = "cage-pod", .word = "pod="};

const struct backend backend_podman = MAKER_BACKEND("podman", &podman_maker);
