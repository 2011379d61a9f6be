/* Numbers in network order, and the bits of the header, for the files of the wire format. The caller has looked at the
 * bounds. */
#ifndef CAGE_DNS_OCTETS_H
#define CAGE_DNS_OCTETS_H

#include <stdint.h>

enum {
	DNS_BIT_QR = 0x8000,
	DNS_BITS_OPCODE = 0x7800,
	DNS_BIT_AA = 0x0400,
	DNS_BIT_TC = 0x0200,
	DNS_BIT_RD = 0x0100,
	DNS_BIT_RA = 0x0080,
	DNS_BIT_Z = 0x0040,
	DNS_BIT_CD = 0x0010,
	DNS_BITS_RCODE = 0x000f,
	DNS_BIT_DO = 0x8000 /* of the OPT record */
};

static inline uint16_t octets_get16(const char *p)
{
	return (uint16_t)((uint8_t)p[0] << 8 | (uint8_t)p[1]);
}

static inline uint32_t octets_get32(const char *p)
{
	return (uint32_t)octets_get16(p) << 16 | octets_get16(p + 2);
}

static inline void octets_put16(char *p, uint16_t v)
{
	p[0] = (char)(v >> 8);
	p[1] = (char)(v & 0xff);
}

static inline void octets_put32(char *p, uint32_t v)
{
	octets_put16(p, (uint16_t)(v >> 16));
	octets_put16(p + 2, (uint16_t)(v & 0xffff));
}

#endif
