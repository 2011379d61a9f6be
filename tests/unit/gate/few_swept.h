/* Small limits of the sweep, so that a test reaches them: included before sweep.c, which is as it is otherwise. */
#ifndef CAGE_TESTS_FEW_SWEPT_H
#define CAGE_TESTS_FEW_SWEPT_H

#include "core/base/limits.h"

#undef LIMIT_SWEPT
#undef LIMIT_SWEEP_S
#define LIMIT_SWEPT 4
#define LIMIT_SWEEP_S 1

#endif
