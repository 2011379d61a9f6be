/* Short times, so that a thousand groups can come and go while somebody waits: included before every source of cage-aci-small, which
 * is cage-aci otherwise. The real ones come first; including them again changes nothing. */
#ifndef CAGE_TESTS_SMALL_AZURE_H
#define CAGE_TESTS_SMALL_AZURE_H

#include "core/base/limits.h"

#undef LIMIT_ARM_WAIT_MS
#undef LIMIT_ARM_POLL_MS
#undef LIMIT_ARM_AZ_MS
#undef LIMIT_ARM_CHECK_MS
#undef LIMIT_ACI_LOOK_MS
#undef LIMIT_ACI_PASS_MS
#undef LIMIT_ACI_PAGES
#undef LIMIT_METRICS_MS
#undef LIMIT_BENCH_LOOK_MS
#undef LIMIT_DEPLOY_LOOK_MS
#undef LIMIT_DEPLOY_ROUND_MS
#undef LIMIT_DEPLOY_CANCEL_MS
#define LIMIT_ARM_WAIT_MS 100
#define LIMIT_ARM_POLL_MS 30
#define LIMIT_ARM_AZ_MS 3000
#define LIMIT_ARM_CHECK_MS 5000
#define LIMIT_ACI_LOOK_MS 50
#define LIMIT_ACI_PASS_MS 20
#define LIMIT_ACI_PAGES 100
#define LIMIT_METRICS_MS 200
#define LIMIT_BENCH_LOOK_MS 50
#define LIMIT_DEPLOY_LOOK_MS 50
#define LIMIT_DEPLOY_ROUND_MS 50
#define LIMIT_DEPLOY_CANCEL_MS 1000

#endif
