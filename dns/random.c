/* The kernel's randomness, fetched in blocks: a system call for each message would cost more than the message's own. What was
 * used is overwritten. */
#include "dns/random.h"

#include <string.h>
#include <sys/random.h>

#include "core/base/slice.h"

static unsigned char block[256]; /* getrandom() gives so much in one piece always */
static size_t used = sizeof(block);

static unsigned char take(void)
{
	if (used == sizeof(block)) {
		if (getrandom(block, sizeof(block), 0) != (ssize_t)sizeof(block))
			__builtin_trap(); /* without randomness every answer could be forged */
		used = 0;
	}
	unsigned char byte = block[used];
	block[used++] = 0;
	return byte;
}

uint16_t dns_random_u16(void)
{
	unsigned high = take();
	return (uint16_t)(high << 8 | take());
}

static bool is_letter(char c)
{
	unsigned char low = (unsigned char)c | 0x20;
	return low >= 'a' && low <= 'z';
}

void dns_random_case(char *bytes, size_t n)
{
	unsigned bits = 1; /* a 1 above the bits that are left */
	for (size_t i = 0; i < n; i++) {
		if (!is_letter(bytes[i]))
			continue;
		if (bits == 1)
			bits = 0x100u | take();
		bytes[i] = (char)(bits & 1 ? bytes[i] | 0x20 : bytes[i] & ~0x20);
		bits >>= 1;
	}
}
