/* The frame head as it is on the wire, for those who read and write it. */
#ifndef CAGE_HTTP_WS_PRIVATE_H
#define CAGE_HTTP_WS_PRIVATE_H

#include "core/http/ws.h"

/* The first byte */
#define WS_BIT_FINAL 0x80
#define WS_BIT_RESERVED 0x70 /* three bits that only extensions use */

/* The second */
#define WS_BIT_MASKED 0x80
#define WS_LEN_BITS 0x7f
#define WS_LEN_16 126 /* the length follows in two bytes */
#define WS_LEN_64 127 /* the length follows in eight bytes */

#define WS_HEAD_MIN 2 /* bytes that every head has */

#endif
