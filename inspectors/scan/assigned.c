/* Blocks of 64 bytes; where the processor can, without a branch. */
#include "inspectors/scan/assigned.h"

#include <endian.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#define BLOCK 64
#define READ (BLOCK + ASSIGNED_WORD - 1) /* bytes that are read to judge a block */
#define NAME_REST 20                     /* of a name behind the beginning of the word */
#define BETWEEN 32                       /* quotes, brackets and blanks between name, sign and value */

_Static_assert(NAME_REST + 2 * BETWEEN + 2 + ASSIGNED_LEAST <= ASSIGNED_BEHIND, "what is looked at behind a word");

/* ---- behind a word ---- */

/* Sets of bytes, one bit each. */
struct bytes {
	uint64_t below[2]; /* 0 to 63, 64 to 127 */
};

static const struct bytes names = {{0x03ff000000000000, 0x07fffffe87fffffe}};    /* [A-Za-z0-9_] */
static const struct bytes ends = {{0x0000008500003e00, 0}};                      /* blanks and quotes */
static const struct bytes betweens = {{0x0000008500003e00, 0x0000000030000000}}; /* and [\\\]] */

static bool is_in(const struct bytes *set, unsigned char c)
{
	return c < 128 && set->below[c >> 6] >> (c & 63) & 1;
}

static bool is_between(unsigned char c, unsigned char before)
{
	return is_in(&betweens, c) || (before == '\\' && (c == 'n' || c == 'r' || c == 't'));
}

static size_t skip_name(struct slice text, size_t at)
{
	size_t end = at + NAME_REST < text.len ? at + NAME_REST : text.len;
	while (at < end && is_in(&names, (unsigned char)text.ptr[at]))
		at++;
	return at;
}

static size_t skip_between(struct slice text, size_t at)
{
	size_t end = at + BETWEEN < text.len ? at + BETWEEN : text.len;
	while (at < end && is_between((unsigned char)text.ptr[at], (unsigned char)text.ptr[at - 1]))
		at++;
	return at;
}

static bool value_may_follow(struct slice text, size_t at)
{
	size_t start = skip_between(text, at);
	for (size_t i = start; i < text.len && i < start + ASSIGNED_LEAST; i++)
		if (is_in(&ends, (unsigned char)text.ptr[i]))
			return false;
	return true;
}

/* A word begins there: is its name assigned something? */
static bool may_be_assigned(struct slice text, size_t at)
{
	size_t sign = skip_between(text, skip_name(text, at));
	if (sign + 1 >= text.len)
		return true;
	char c = text.ptr[sign], next = text.ptr[sign + 1];
	if (c != ':' && c != '=')
		return false;
	bool is_double = c == ':' ? next == '=' : next == '>';
	return value_may_follow(text, sign + 1 + is_double);
}

/* Bytes of the name before the word; names also have [.-] in them. At the start of the text it may have begun before. */
static size_t name_before(struct slice text, size_t at)
{
	size_t n = 0;
	while (n < ASSIGNED_NAME && n < at) {
		char c = text.ptr[at - n - 1];
		if (!is_in(&names, (unsigned char)c) && c != '.' && c != '-')
			return n;
		n++;
	}
	return ASSIGNED_NAME;
}

/* ---- words ---- */

#define FOUR(a, b, c, d) ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)
#define THREE(a, b, c) FOUR(a, b, c, 0)

static bool word_starts(const char word[ASSIGNED_WORD])
{
	uint32_t w;
	memcpy(&w, word, sizeof(w));
	w = (le32toh(w) | THREE(0x20, 0x20, 0x20)) & THREE(0xff, 0xff, 0xff);
	return w == THREE('k', 'e', 'y') || w == THREE('t', 'o', 'k') || w == THREE('s', 'e', 'c') ||
	       w == THREE('p', 'a', 's') || w == THREE('p', 'w', 'd');
}

static uint64_t plain_words(const char bytes[READ])
{
	uint64_t found = 0;
	for (unsigned i = 0; i < BLOCK; i++)
		found |= (uint64_t)word_starts(bytes + i) << i;
	return found;
}

#ifdef __x86_64__

#define AVX2 __attribute__((target("avx2")))

AVX2 static inline __m256i letters(const char *bytes)
{
	return _mm256_or_si256(_mm256_loadu_si256((const __m256i *)bytes), _mm256_set1_epi8(0x20));
}

AVX2 static inline __m256i is(__m256i v, char c)
{
	return _mm256_cmpeq_epi8(v, _mm256_set1_epi8(c));
}

AVX2 static inline __m256i three(__m256i a, __m256i b, __m256i c)
{
	return _mm256_and_si256(_mm256_and_si256(a, b), c);
}

AVX2 static inline uint32_t avx2_half(const char *bytes)
{
	__m256i a = letters(bytes), b = letters(bytes + 1), c = letters(bytes + 2);
	__m256i e = is(b, 'e'), p = is(a, 'p');
	__m256i key = three(is(a, 'k'), e, is(c, 'y')), tok = three(is(a, 't'), is(b, 'o'), is(c, 'k'));
	__m256i sec = three(is(a, 's'), e, is(c, 'c')), pas = three(p, is(b, 'a'), is(c, 's'));
	__m256i pwd = three(p, is(b, 'w'), is(c, 'd'));
	__m256i any = _mm256_or_si256(_mm256_or_si256(key, tok), _mm256_or_si256(sec, _mm256_or_si256(pas, pwd)));
	return (uint32_t)_mm256_movemask_epi8(any);
}

AVX2 static uint64_t avx2_words(const char bytes[READ])
{
	return avx2_half(bytes) | (uint64_t)avx2_half(bytes + BLOCK / 2) << 32;
}

#endif

typedef uint64_t find_words(const char bytes[READ]);

static find_words *best(void)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2"))
		return avx2_words;
#endif
	return plain_words;
}

/* ---- all of it ---- */

static bool tell(struct slice text, size_t block, uint64_t words, assigned_found *found, void *arg)
{
	for (; words; words &= words - 1) {
		size_t at = block + (unsigned)__builtin_ctzll(words);
		if (may_be_assigned(text, at) && !found(arg, at, name_before(text, at)))
			return false;
	}
	return true;
}

/* What is left at the end, less than can be read as a block. */
static bool find_rest(struct slice text, size_t at, assigned_found *found, void *arg)
{
	for (; at + ASSIGNED_WORD <= text.len; at++)
		if (word_starts(text.ptr + at) && !tell(text, at, 1, found, arg))
			return false;
	return true;
}

bool assigned_find(struct slice text, assigned_found *found, void *arg)
{
	find_words *words = best();
	size_t at = 0;
	for (; at + READ <= text.len; at += BLOCK)
		if (!tell(text, at, words(text.ptr + at), found, arg))
			return false;
	return find_rest(text, at, found, arg);
}
