/* Small limits, so that tests reach them: included before every source of cage-proxy-small, which is cage-proxy otherwise.
 * The real ones come first; including them again changes nothing. */
#ifndef CAGE_TESTS_SMALL_LIMITS_H
#define CAGE_TESTS_SMALL_LIMITS_H

#include "core/base/limits.h"

/* Bodies */
#undef LIMIT_HOLD_DEFAULT
#undef LIMIT_HOLD_BUDGET
#define LIMIT_HOLD_DEFAULT KIB(128)
#define LIMIT_HOLD_BUDGET KIB(256)

/* WebSocket */
#undef LIMIT_WS_MESSAGE
#define LIMIT_WS_MESSAGE KIB(512)

/* Connections and caches of one worker */
#undef LIMIT_CONNS
#undef LIMIT_POOL_IDLE
#undef LIMIT_POOL_PER_ORIGIN
#undef LIMIT_MINT_RATE
#undef LIMIT_MINT_BURST
#undef LIMIT_MINT_WAITING
#define LIMIT_CONNS 160
#define LIMIT_POOL_IDLE 6
#define LIMIT_POOL_PER_ORIGIN 3
#define LIMIT_MINT_RATE 1
#define LIMIT_MINT_BURST 4
#define LIMIT_MINT_WAITING 3

/* Deadlines, milliseconds */
#undef LIMIT_HANDSHAKE_MS
#undef LIMIT_HEAD_MS
#undef LIMIT_IDLE_MS
#undef LIMIT_BODY_IDLE_MS
#undef LIMIT_RESPONSE_IDLE_MS
#undef LIMIT_WS_IDLE_MS
#undef LIMIT_WS_CLOSE_MS
#undef LIMIT_TOTAL_MS
#undef LIMIT_POOL_IDLE_MS
#undef LIMIT_POLICY_REST_MS
#undef LIMIT_RESOLVE_TRY_MS
#undef LIMIT_RESOLVE_MS
#undef LIMIT_CONNECT_MS
#undef LIMIT_STALL_MS
#undef LIMIT_LINGER_MS
#undef LIMIT_DRAIN_MS
#undef LIMIT_STOP_MS
#define LIMIT_HANDSHAKE_MS 1500
#define LIMIT_HEAD_MS 1500
#define LIMIT_IDLE_MS 3000
#define LIMIT_BODY_IDLE_MS 1500
#define LIMIT_RESPONSE_IDLE_MS 3000
#define LIMIT_WS_IDLE_MS 3000
#define LIMIT_WS_CLOSE_MS 1500
#define LIMIT_TOTAL_MS 5000
#define LIMIT_POOL_IDLE_MS 1500
#define LIMIT_POLICY_REST_MS 1500
#define LIMIT_RESOLVE_TRY_MS 300
#define LIMIT_RESOLVE_MS 1500
#define LIMIT_CONNECT_MS 1500
#define LIMIT_STALL_MS 1500
#define LIMIT_LINGER_MS 1500
#define LIMIT_DRAIN_MS 2000
#define LIMIT_STOP_MS 6000

/* Tokens that are got for secrets */
#undef LIMIT_TOKEN_MS
#undef LIMIT_TOKEN_FAILED_MS
#undef LIMIT_TOKEN_EARLY_S
#undef LIMIT_TOKEN_FRESH_MIN_S
#define LIMIT_TOKEN_MS 1500
#define LIMIT_TOKEN_FAILED_MS 500
#define LIMIT_TOKEN_EARLY_S 6
#define LIMIT_TOKEN_FRESH_MIN_S 1

/* Clients of DNS */
#undef LIMIT_DNS_RATE
#undef LIMIT_DNS_BURST
#undef LIMIT_DNS_CONNS
#undef LIMIT_DNS_PIPELINE
#undef LIMIT_DNS_UNSENT
#undef LIMIT_DNS_READ_MS
#undef LIMIT_DNS_IDLE_MS
#define LIMIT_DNS_RATE 1
#define LIMIT_DNS_BURST 10
#define LIMIT_DNS_CONNS 4
#define LIMIT_DNS_PIPELINE 5
#define LIMIT_DNS_UNSENT KIB(20)
#define LIMIT_DNS_READ_MS 1000
#define LIMIT_DNS_IDLE_MS 1500

/* Log */
#undef LIMIT_LOG_RING
#define LIMIT_LOG_RING KIB(256) /* 75 to 125 exchanges under way */

#endif
