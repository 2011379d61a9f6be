/* The id of a sandbox, wherever one is given: nothing that a log or a URL would have to escape. */
#ifndef CAGE_PROC_SANDBOX_ID_H
#define CAGE_PROC_SANDBOX_ID_H

#include "core/base/slice.h"

#define SANDBOX_ID "1 to 64 of letters, digits, '.', '_', '-'"

bool sandbox_id_is_good(struct slice id);

#endif
