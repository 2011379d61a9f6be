/* Random bits that nobody else can know, for ids and spelling. */
#ifndef CAGE_DNS_RANDOM_H
#define CAGE_DNS_RANDOM_H

#include <stddef.h>
#include <stdint.h>

uint16_t dns_random_u16(void);

/* Gives each letter among the bytes a random case. */
void dns_random_case(char *bytes, size_t n);

#endif
