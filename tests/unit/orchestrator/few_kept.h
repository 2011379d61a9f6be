/* Small limits of what is kept, so that a test reaches them: included before pull.c, which is as it is otherwise. */
#ifndef CAGE_TESTS_FEW_KEPT_H
#define CAGE_TESTS_FEW_KEPT_H

#include "core/base/limits.h"

#undef LIMIT_KEEPER_KEPT
#undef LIMIT_KEEPER_KEPT_BYTES
#undef LIMIT_KEEPER_KEPT_BLOCK
#undef LIMIT_KEEPER_KEPT_DEPTH
#define LIMIT_KEEPER_KEPT 8
#define LIMIT_KEEPER_KEPT_BYTES 20
#define LIMIT_KEEPER_KEPT_BLOCK 4
#define LIMIT_KEEPER_KEPT_DEPTH 3

#endif
