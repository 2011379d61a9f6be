/* The one table of what each byte may be; the gate walks over every byte of every head with it. */
#include "core/http/chars.h"

#define V CHAR_VALUE
#define P (V | CHAR_TARGET)
#define T (P | CHAR_TOKEN)
#define D (T | CHAR_DIGIT)
#define B (D | CHAR_BINARY)

/* clang-format off */
const unsigned char http_chars[256] = {
	0, 0, 0, 0, 0, 0, 0, 0, 0, V, 0, 0, 0, 0, 0, 0, /* 00 */
	0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, /* 10 */
	V, T, P, T, T, T, T, T, P, P, T, T, P, T, T, P, /* 20 */
	B, B, D, D, D, D, D, D, D, D, P, P, P, P, P, P, /* 30 */
	P, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, /* 40 */
	T, T, T, T, T, T, T, T, T, T, T, P, P, P, T, T, /* 50 */
	T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, T, /* 60 */
	T, T, T, T, T, T, T, T, T, T, T, P, T, P, T, 0, /* 70 */
	V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, /* 80 */
	V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, /* 90 */
	V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, /* a0 */
	V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, /* b0 */
	V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, /* c0 */
	V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, /* d0 */
	V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, /* e0 */
	V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, V, /* f0 */
};
/* clang-format on */
