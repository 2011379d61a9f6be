/* Short times, for cage-ship-small, which is cage-ship otherwise: so that hundreds of troubles can be waited for. */
#ifndef CAGE_TESTS_SMALL_SHIP_H
#define CAGE_TESTS_SMALL_SHIP_H

#include "tests/integration/limits/small_azure.h"

#undef LIMIT_ARM_CALL_MS
#undef LIMIT_ARM_TRIES
#undef LIMIT_SHIP_LOOK_MS
#undef LIMIT_SHIP_SCAN_MS
#undef LIMIT_SHIP_STORE_MS
#undef LIMIT_SHIP_STATUS_MS
#undef LIMIT_SHIP_LOGS
#undef LIMIT_SHIP_OPEN
#define LIMIT_ARM_CALL_MS 2000
#define LIMIT_ARM_TRIES 4
#define LIMIT_SHIP_LOOK_MS 10
#define LIMIT_SHIP_SCAN_MS 30
#define LIMIT_SHIP_STORE_MS 50
#define LIMIT_SHIP_STATUS_MS 30
#define LIMIT_SHIP_LOGS 40
#define LIMIT_SHIP_OPEN 8

#endif
