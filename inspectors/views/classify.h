/* The fast pass: which bytes of a text are of a kind that an encoding is made of, 64 at a time, as bits; and in which of
 * these blocks an encoding may start. Others cost nothing more. */
#ifndef CAGE_INSPECTORS_VIEWS_CLASSIFY_H
#define CAGE_INSPECTORS_VIEWS_CLASSIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BLOCK 64  /* bytes */
#define BLOCKS 32 /* classified at once */

enum byte_kind {
	KIND_BASE64, /* [A-Za-z0-9+/_=-] */
	KIND_HEX,    /* [0-9A-Fa-f] */
	KIND_PERCENT,
	KIND_BACKSLASH,
	KIND_ESCAPE, /* [ux/]: behind a backslash, an escape that hides a plain character */
	KIND_ZERO,
	KINDS
};

/* Several blocks. Bit i of a mask is about byte i of its block. */
struct masks {
	uint64_t of[KINDS][1 + BLOCKS]; /* the first one is that of the block before these */
	uint64_t stretches[BLOCKS];     /* not 0: digits stand close together in that block, see hex_stretches() */
	uint64_t runs[BLOCKS];          /* not 0: base64 characters, or digits with gaps, are in that block */
	uint64_t starts[BLOCKS];        /* not 0: some other encoding may start in that block */
};

/* What tells base64 from words, for any 64 bytes. */
struct chars {
	/* What the first, second and third of four characters can be when they decode to ASCII, or to NUL as in
	 * UTF-16. */
	uint64_t first, second, third;
	uint64_t upper, lower, digit; /* but for some lower-case letters */
	uint64_t base64;
};

/* What tells hex of text from ids and numbers, for any 64 bytes; of bytes that are no digits it says nothing. */
struct digits {
	uint64_t high;   /* [2-7]: what the first digit of a printable character is */
	uint64_t letter; /* [A-Fa-f] */
};

/* Up to BLOCKS blocks. Only the masks of these mean something afterwards. */
typedef void classify_blocks(const unsigned char *bytes, size_t n_blocks, struct masks *m);
typedef struct chars classify_chars(const unsigned char bytes[BLOCK]);
typedef struct digits classify_digits(const unsigned char bytes[BLOCK]);

struct classifier {
	classify_blocks *blocks;
	classify_blocks *words; /* base64 characters alone: that kind, and of runs what is about it */
	classify_chars *chars;
	classify_digits *digits;
};

/* In plain C, for any processor; and the fastest one that this processor can run. */
extern const struct classifier classify_plain;
const struct classifier *classify_best(void);

/* Is there base64 in these bytes that is more than words and paths, which are far more frequent? It is where twelve
 * characters decode to text (any text of eleven bytes has them, at any alignment), and where sixteen have letters of
 * both cases and digits, as those of other bytes are likely to have. */
bool chars_are_likely(const struct chars *c);

/* Is there hex of text among these digits, with whatever gaps? */
bool digits_are_likely(const struct digits *d, uint64_t hex);

/* ---- bits ---- */

#define EACH 0x0101010101010101u /* one bit in each byte of a word */

/* Bits of the bytes of a block. */
union found {
	unsigned char bytes[BLOCK];
	uint64_t words[BLOCK / 8];
};

/* The bytes that have one of the wanted bits. */
uint64_t found_mask(const union found *found, unsigned char wanted);

/* How many bits from the lowest one up, or from the highest one down, are set. */
static inline unsigned ones_low(uint64_t m)
{
	return ~m ? (unsigned)__builtin_ctzll(~m) : 64;
}

static inline unsigned ones_high(uint64_t m)
{
	return ~m ? (unsigned)__builtin_clzll(~m) : 64;
}

/* Where n (16 to 32) set bits begin. */
static inline uint64_t runs_of(uint64_t m, unsigned n)
{
	m &= m >> 1;
	m &= m >> 2;
	m &= m >> 4;
	m &= m >> 8;
	return m & m >> (n - 16);
}

/* The bits from bit n (0 to 64) up. */
static inline uint64_t bits_from(unsigned n)
{
	return n < 64 ? UINT64_MAX << n : 0;
}

/* ---- where encodings start: from the masks of a block, and of the one before it ---- */

#define BASE64_RUN 20 /* characters in a row that count as base64 */
#define HEX_RUN 24    /* digits */
#define UTF16_RUN 16  /* bytes */

/* The end of the last block and the beginning of this one. */
static inline uint64_t over_border(uint64_t now, uint64_t last)
{
	return now << BASE64_RUN | last >> (64 - BASE64_RUN);
}

/* Runs in this block, or over the border to it. */
static inline uint64_t base64_starts(uint64_t now, uint64_t last)
{
	return runs_of(now, BASE64_RUN) | runs_of(over_border(now, last), BASE64_RUN);
}

static inline uint64_t six_groups(uint64_t groups, unsigned distance)
{
	uint64_t three = groups & groups >> distance & groups >> 2 * distance;
	return three & three >> 3 * distance;
}

/* Where six groups of digits begin that have the same distance of 3 to 6 bytes. Of any twelve such groups, six lie in
 * one block. */
static inline uint64_t hex_starts(uint64_t hex)
{
	uint64_t groups = hex & hex >> 1 & ~(hex << 1);
	return six_groups(groups, 3) | six_groups(groups, 4) | six_groups(groups, 5) | six_groups(groups, 6);
}

/* The highest bit of each eight that are not all 0; the others mean nothing. */
static inline uint64_t eights_set(uint64_t m)
{
	return ((m & 0x7f * EACH) + 0x7f * EACH) | m;
}

/* Of each eight bytes, as the highest of their bits: does a pair of digits end in them, and nowhere two other characters
 * of words that stand side by side or with one byte between? Digits with gaps are so, whatever stands in the gaps, and
 * words are not. What is escaped, as in "\n0x41", is no word. */
static inline uint64_t hex_eights(uint64_t hex, uint64_t base64, uint64_t backslash)
{
	uint64_t others = base64 & ~hex & ~(backslash << 1);
	return eights_set(hex & hex << 1) & ~eights_set(others & (others << 1 | others << 2)) & 0x80 * EACH;
}

/* The last ones of three such in a row: any stretch of 31 bytes has them. */
static inline uint64_t hex_stretches(uint64_t now, uint64_t last)
{
	return now & (now << 8 | last >> 56) & (now << 16 | last >> 48);
}

/* Digits without gaps, in this block or over the border to it. They are a run of base64 too, so this need not be asked
 * for most blocks. */
static inline bool hex_run_starts(uint64_t now, uint64_t last)
{
	return runs_of(now, HEX_RUN) || (now & 1 && ones_high(last) + ones_low(now) >= HEX_RUN);
}

/* The last bytes of "%XX". */
static inline uint64_t percent_escapes(uint64_t percent, uint64_t last_percent, uint64_t hex, uint64_t last_hex)
{
	return (percent << 2 | last_percent >> 62) & (hex << 1 | last_hex >> 63) & hex;
}

/* The second bytes of "\u", "\x" and "\/". */
static inline uint64_t json_escapes(uint64_t backslash, uint64_t last_backslash, uint64_t escape)
{
	return (backslash << 1 | last_backslash >> 63) & escape;
}

/* Four times a NUL with one other byte between them: half of the shortest run, so one block has it. */
static inline uint64_t utf16_starts(uint64_t zero)
{
	uint64_t one = zero & ~(zero << 1);
	uint64_t two = one & one >> 2;
	return two & two >> 4;
}

#endif
