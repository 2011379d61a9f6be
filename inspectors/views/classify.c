/* Two ways to the same bits: in plain C, and with AVX2, 32 bytes in each step. A test holds both to what the header says. */
#include "inspectors/views/classify.h"

#include <endian.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

/* ---- what may start where ---- */

#define LANES 4 /* blocks: as many as a compiler takes at once */
#define INLINE __attribute__((always_inline)) static inline

INLINE uint64_t find_run(const struct masks *m, size_t i)
{
	return base64_starts(m->of[KIND_BASE64][i + 1], m->of[KIND_BASE64][i]) | m->stretches[i];
}

INLINE uint64_t find_start(const struct masks *m, size_t i)
{
	uint64_t hex = m->of[KIND_HEX][i + 1];
	return percent_escapes(m->of[KIND_PERCENT][i + 1], m->of[KIND_PERCENT][i], hex, m->of[KIND_HEX][i]) |
	       json_escapes(m->of[KIND_BACKSLASH][i + 1], m->of[KIND_BACKSLASH][i], m->of[KIND_ESCAPE][i + 1]) |
	       utf16_starts(m->of[KIND_ZERO][i + 1]);
}

INLINE uint64_t block_eights(const struct masks *m, size_t i)
{
	return hex_eights(m->of[KIND_HEX][i], m->of[KIND_BASE64][i], m->of[KIND_BACKSLASH][i]);
}

/* For a few more blocks than there are, so that the compiler may take several at once. */
INLINE void find_starts(size_t n_blocks, struct masks *m)
{
	for (size_t i = 0; i < n_blocks; i += LANES) {
		for (size_t lane = 0; lane < LANES; lane++)
			m->starts[i + lane] = find_start(m, i + lane);
		for (size_t lane = 0; lane < LANES; lane++)
			m->runs[i + lane] = find_run(m, i + lane);
	}
}

INLINE void find_words(size_t n_blocks, struct masks *m)
{
	const uint64_t *base64 = m->of[KIND_BASE64];
	for (size_t i = 0; i < n_blocks; i += LANES)
		for (size_t lane = 0; lane < LANES; lane++)
			m->runs[i + lane] = base64_starts(base64[i + lane + 1], base64[i + lane]);
}

/* ---- words or not ---- */

/* Of masks that are not exact for bytes that are no base64, and where `first` lacks [P-Z]. */
INLINE struct chars chars_of(uint64_t first, uint64_t second, uint64_t third, uint64_t p_z, uint64_t digit,
			     uint64_t bit5, uint64_t base64)
{
	uint64_t letters = (first | second | third | p_z) & base64 & ~digit;
	return (struct chars){
		.first = (first | (p_z & ~bit5)) & base64,
		.second = second & base64,
		.third = third & base64,
		.upper = letters & ~bit5,
		.lower = letters & bit5,
		.digit = digit,
		.base64 = base64,
	};
}

/* Three times four characters in a row that decode to text. */
static uint64_t find_text(const struct chars *c)
{
	uint64_t four = c->first & c->second >> 1 & c->third >> 2 & c->base64 >> 3;
	return four & four >> 4 & four >> 8;
}

/* Is one of the next sixteen bits set? */
static uint64_t in_sixteen(uint64_t m)
{
	m |= m >> 1;
	m |= m >> 2;
	m |= m >> 4;
	return m | m >> 8;
}

/* Sixteen characters among which are an upper-case letter, a lower-case letter and a digit. */
static uint64_t find_mix(const struct chars *c)
{
	return in_sixteen(c->upper) & in_sixteen(c->lower) & in_sixteen(c->digit) & runs_of(c->base64, 16);
}

bool chars_are_likely(const struct chars *c)
{
	return find_text(c) || (c->digit && c->upper && find_mix(c));
}

/* Digits with letters among them, of which every other one, eight times, begins a printable character. */
bool digits_are_likely(const struct digits *d, uint64_t hex)
{
	uint64_t high = 0;
	if (!(hex & d->letter))
		return false;
	for (unsigned from = 0, n = 0; from < BLOCK && hex >> from;) {
		from += (unsigned)__builtin_ctzll(hex >> from);
		unsigned group = ones_low(hex >> from);
		high |= (d->high >> from & ~bits_from(group)) << n;
		from += group;
		n += group;
	}
	high &= high >> 2;
	high &= high >> 4;
	return high & high >> 8;
}

/* ---- sets of bytes ---- */

/* A byte is in those that both its halves are in. Such sets are squares, so a kind takes several.
 * First: 1 [A-Oa-o], 2 [P-Zp-z], 4 [0-9], 8 [+/], 0x10 [=-], 0x20 [_], 0x40 [A-Fa-f], 0x80 [%].
 * Second: 3 first (but for [P-Z]), 0x4c second, 0xb0 third of struct chars; and some bytes that are not base64. */
struct sets {
	unsigned char low[16], high[16];
};

static const struct sets kind_sets = {
	{0x06, 0x47, 0x47, 0x47, 0x47, 0xc7, 0x47, 0x07, 0x07, 0x07, 0x03, 0x09, 0x01, 0x11, 0x01, 0x29},
	{0x00, 0x00, 0x98, 0x14, 0x41, 0x22, 0x41, 0x02}};
static const struct sets char_sets = {
	{0xe0, 0xd7, 0x53, 0x67, 0xa7, 0x96, 0x16, 0x2c, 0xa4, 0x99, 0x19, 0x29, 0x29, 0x19, 0x19, 0x21},
	{0x00, 0x00, 0x00, 0xc0, 0x15, 0x14, 0x2a, 0x28}};

#define IN_BASE64 0x3f
#define IN_HEX 0x44
#define IN_PERCENT 0x80
#define IN_P_Z 0x02
#define IN_DIGIT 0x04
#define IN_FIRST 0x03
#define IN_SECOND 0x4c
#define IN_THIRD 0xb0

/* ---- plain ---- */

#define WORDS (BLOCK / 8)

#define FOUND_BACKSLASH 1
#define FOUND_ESCAPE 2
#define FOUND_ZERO 4
#define FOUND_BIT5 0x20
#define FOUND_HIGH 1
#define FOUND_BIT6 0x40

static void look_up(const unsigned char *bytes, const struct sets *sets, union found *found)
{
	for (unsigned i = 0; i < BLOCK; i++)
		found->bytes[i] = sets->low[bytes[i] & 15] & sets->high[bytes[i] >> 4];
}

static void compare(const unsigned char *bytes, union found *found)
{
	for (unsigned i = 0; i < BLOCK; i++) {
		unsigned char c = bytes[i];
		int escape = (c == 'u') | (c == 'x') | (c == '/');
		found->bytes[i] = (unsigned char)((c == '\\') | escape << 1 | (c == 0) << 2 | (c & FOUND_BIT5));
	}
}

/* Of eight bytes at a time, the bit that says so is multiplied into one byte. */
uint64_t found_mask(const union found *found, unsigned char wanted)
{
	uint64_t mask = 0;
	for (unsigned i = 0; i < WORDS; i++) {
		uint64_t bits = le64toh(found->words[i]) & wanted * EACH;
		bits = ((bits & 0x7f * EACH) + 0x7f * EACH) | bits;
		mask |= (bits >> 7 & EACH) * 0x0102040810204080u >> 56 << (8 * i);
	}
	return mask;
}

static void plain_stretches(size_t n_blocks, struct masks *m)
{
	uint64_t last = block_eights(m, 0);
	for (size_t i = 0; i < n_blocks; i++) {
		uint64_t now = block_eights(m, i + 1);
		m->stretches[i] = hex_stretches(now, last);
		last = now;
	}
}

static void plain_blocks(const unsigned char *bytes, size_t n_blocks, struct masks *m)
{
	for (size_t i = 1; i <= n_blocks; i++, bytes += BLOCK) {
		union found sets, others;
		look_up(bytes, &kind_sets, &sets);
		compare(bytes, &others);
		m->of[KIND_BASE64][i] = found_mask(&sets, IN_BASE64);
		m->of[KIND_HEX][i] = found_mask(&sets, IN_HEX);
		m->of[KIND_PERCENT][i] = found_mask(&sets, IN_PERCENT);
		m->of[KIND_BACKSLASH][i] = found_mask(&others, FOUND_BACKSLASH);
		m->of[KIND_ESCAPE][i] = found_mask(&others, FOUND_ESCAPE);
		m->of[KIND_ZERO][i] = found_mask(&others, FOUND_ZERO);
	}
	plain_stretches(n_blocks, m);
	find_starts(n_blocks, m);
}

static void plain_words(const unsigned char *bytes, size_t n_blocks, struct masks *m)
{
	for (size_t i = 1; i <= n_blocks; i++, bytes += BLOCK) {
		union found sets;
		look_up(bytes, &kind_sets, &sets);
		m->of[KIND_BASE64][i] = found_mask(&sets, IN_BASE64);
	}
	find_words(n_blocks, m);
}

static struct chars plain_chars(const unsigned char bytes[BLOCK])
{
	union found kinds, chars, others;
	look_up(bytes, &kind_sets, &kinds);
	look_up(bytes, &char_sets, &chars);
	compare(bytes, &others);
	return chars_of(found_mask(&chars, IN_FIRST), found_mask(&chars, IN_SECOND), found_mask(&chars, IN_THIRD),
			found_mask(&kinds, IN_P_Z), found_mask(&kinds, IN_DIGIT), found_mask(&others, FOUND_BIT5),
			found_mask(&kinds, IN_BASE64));
}

static struct digits plain_digits(const unsigned char bytes[BLOCK])
{
	union found found;
	for (unsigned i = 0; i < BLOCK; i++) {
		unsigned char c = bytes[i];
		found.bytes[i] = (unsigned char)((c >= '2') & (c <= '7')) | (c & FOUND_BIT6);
	}
	return (struct digits){.high = found_mask(&found, FOUND_HIGH), .letter = found_mask(&found, FOUND_BIT6)};
}

const struct classifier classify_plain = {plain_blocks, plain_words, plain_chars, plain_digits};

/* ---- AVX2 ---- */

#ifdef __x86_64__

#define AVX2 __attribute__((target("avx2")))

/* A block. */
struct bytes {
	__m256i a, b;
};

AVX2 static inline struct bytes load(const unsigned char *bytes)
{
	return (struct bytes){_mm256_loadu_si256((const __m256i *)bytes),
			      _mm256_loadu_si256((const __m256i *)(bytes + BLOCK / 2))};
}

AVX2 static inline __m256i table(const unsigned char entries[16])
{
	return _mm256_broadcastsi128_si256(_mm_loadu_si128((const __m128i *)entries));
}

/* The low half is looked up as it is: for bytes from 0x80 on that gives nothing. */
AVX2 static inline __m256i sets_of_half(__m256i v, const struct sets *sets)
{
	__m256i high = _mm256_and_si256(_mm256_srli_epi16(v, 4), _mm256_set1_epi8(0x0f));
	return _mm256_and_si256(_mm256_shuffle_epi8(table(sets->low), v), _mm256_shuffle_epi8(table(sets->high), high));
}

AVX2 static inline struct bytes sets_of(struct bytes v, const struct sets *sets)
{
	return (struct bytes){sets_of_half(v.a, sets), sets_of_half(v.b, sets)};
}

/* The highest bits of all bytes. */
AVX2 static inline uint64_t top_bits(__m256i a, __m256i b)
{
	return (uint32_t)_mm256_movemask_epi8(a) | (uint64_t)(uint32_t)_mm256_movemask_epi8(b) << 32;
}

AVX2 static inline uint64_t in_sets(struct bytes sets, unsigned char wanted)
{
	__m256i these = _mm256_set1_epi8((char)wanted), none = _mm256_setzero_si256();
	return ~top_bits(_mm256_cmpeq_epi8(_mm256_and_si256(sets.a, these), none),
			 _mm256_cmpeq_epi8(_mm256_and_si256(sets.b, these), none));
}

AVX2 static inline __m256i is_byte(__m256i v, char c)
{
	return _mm256_cmpeq_epi8(v, _mm256_set1_epi8(c));
}

AVX2 static inline __m256i is_escape(__m256i v)
{
	return _mm256_or_si256(is_byte(v, '/'), _mm256_or_si256(is_byte(v, 'u'), is_byte(v, 'x')));
}

AVX2 static inline __m256i masks_at(const uint64_t *masks)
{
	return _mm256_loadu_si256((const __m256i *)masks);
}

/* As block_eights, of four blocks; an eight that is wanted has all its bits. */
AVX2 static inline __m256i four_eights(const struct masks *m, size_t i)
{
	__m256i none = _mm256_setzero_si256(), hex = masks_at(&m->of[KIND_HEX][i]);
	__m256i escaped = _mm256_slli_epi64(masks_at(&m->of[KIND_BACKSLASH][i]), 1);
	__m256i others = _mm256_andnot_si256(_mm256_or_si256(hex, escaped), masks_at(&m->of[KIND_BASE64][i]));
	__m256i near = _mm256_or_si256(_mm256_slli_epi64(others, 1), _mm256_slli_epi64(others, 2));
	__m256i digits = _mm256_and_si256(hex, _mm256_slli_epi64(hex, 1)), words = _mm256_and_si256(others, near);
	return _mm256_andnot_si256(_mm256_cmpeq_epi8(digits, none), _mm256_cmpeq_epi8(words, none));
}

/* Eights are bytes of these vectors: those that stand one and two before are got by shifting over both. */
AVX2 static inline void avx2_stretches(size_t n_blocks, struct masks *m)
{
	__m256i last = _mm256_set_epi64x((int64_t)block_eights(m, 0), 0, 0, 0);
	for (size_t i = 0; i < n_blocks; i += LANES) {
		__m256i now = four_eights(m, i + 1);
		__m256i middle = _mm256_permute2x128_si256(last, now, 0x21);
		__m256i two =
			_mm256_and_si256(_mm256_alignr_epi8(now, middle, 15), _mm256_alignr_epi8(now, middle, 14));
		_mm256_storeu_si256((__m256i *)&m->stretches[i], _mm256_and_si256(now, two));
		last = now;
	}
}

AVX2 static void avx2_blocks(const unsigned char *bytes, size_t n_blocks, struct masks *m)
{
	for (size_t i = 1; i <= n_blocks; i++, bytes += BLOCK) {
		struct bytes v = load(bytes), sets = sets_of(v, &kind_sets);
		m->of[KIND_BASE64][i] = in_sets(sets, IN_BASE64);
		m->of[KIND_HEX][i] = in_sets(sets, IN_HEX);
		m->of[KIND_PERCENT][i] = top_bits(sets.a, sets.b);
		m->of[KIND_BACKSLASH][i] = top_bits(is_byte(v.a, '\\'), is_byte(v.b, '\\'));
		m->of[KIND_ESCAPE][i] = top_bits(is_escape(v.a), is_escape(v.b));
		m->of[KIND_ZERO][i] = top_bits(is_byte(v.a, 0), is_byte(v.b, 0));
	}
	avx2_stretches(n_blocks, m);
	find_starts(n_blocks, m);
}

AVX2 static void avx2_words(const unsigned char *bytes, size_t n_blocks, struct masks *m)
{
	for (size_t i = 1; i <= n_blocks; i++, bytes += BLOCK)
		m->of[KIND_BASE64][i] = in_sets(sets_of(load(bytes), &kind_sets), IN_BASE64);
	find_words(n_blocks, m);
}

AVX2 static struct chars avx2_chars(const unsigned char bytes[BLOCK])
{
	struct bytes v = load(bytes), kinds = sets_of(v, &kind_sets), chars = sets_of(v, &char_sets);
	uint64_t bit5 = top_bits(_mm256_slli_epi16(v.a, 2), _mm256_slli_epi16(v.b, 2));
	return chars_of(in_sets(chars, IN_FIRST), in_sets(chars, IN_SECOND), in_sets(chars, IN_THIRD),
			in_sets(kinds, IN_P_Z), in_sets(kinds, IN_DIGIT), bit5, in_sets(kinds, IN_BASE64));
}

AVX2 static inline __m256i is_high(__m256i v)
{
	return _mm256_and_si256(_mm256_cmpgt_epi8(v, _mm256_set1_epi8('1')),
				_mm256_cmpgt_epi8(_mm256_set1_epi8('8'), v));
}

AVX2 static struct digits avx2_digits(const unsigned char bytes[BLOCK])
{
	struct bytes v = load(bytes);
	return (struct digits){
		.high = top_bits(is_high(v.a), is_high(v.b)),
		.letter = top_bits(_mm256_slli_epi16(v.a, 1), _mm256_slli_epi16(v.b, 1)),
	};
}

static const struct classifier classify_avx2 = {avx2_blocks, avx2_words, avx2_chars, avx2_digits};

#endif

const struct classifier *classify_best(void)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx2"))
		return &classify_avx2;
#endif
	return &classify_plain;
}
