/* The list, and nothing else: it is linked into two programs. */
#include "orchestrator/gate/machine.h"

#include <stddef.h>

const char *const machine_trees[] = {"/bin",
				     "/sbin",
				     "/lib",
				     "/lib32",
				     "/lib64",
				     "/libx32",
				     "/usr",
				     MACHINE_ETC,
				     "/opt",
				     "/nix/store",
				     "/nix/var/nix/profiles",
				     "/gnu/store",
				     NULL};
