/* Borrowed bytes: pointer and length. Nothing that comes from outside is ever handled as a C string. */
#ifndef CAGE_BASE_SLICE_H
#define CAGE_BASE_SLICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Never freed through this type; never NUL-terminated. */
struct slice {
	const char *ptr;
	size_t len;
};

#define SLICE(lit) ((struct slice){(lit), sizeof(lit) - 1})
#define SLICE_NONE ((struct slice){NULL, 0})

/* A slice of fixed text, for tables. */
#define WORD(lit)                      \
	{                              \
		(lit), sizeof(lit) - 1 \
	}

/* For printf: printf("%.*s", SLICE_FMT(s)). Only for text that we wrote or that passed a check. */
#define SLICE_FMT(s) (int)(s).len, (s).ptr

static inline struct slice slice_of(const void *ptr, size_t len)
{
	return (struct slice){ptr, len};
}

static inline struct slice slice_str(const char *cstr)
{
	return (struct slice){cstr, strlen(cstr)};
}

static inline bool slice_eq(struct slice a, struct slice b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

/* All of s from byte `from` on; empty when s is shorter. */
static inline struct slice slice_from(struct slice s, size_t from)
{
	if (from > s.len)
		from = s.len;
	if (from == 0)
		return s; /* also when there is nothing to point at */
	return (struct slice){s.ptr + from, s.len - from};
}

/* The first n bytes of s, or all of it. */
static inline struct slice slice_head(struct slice s, size_t n)
{
	return (struct slice){s.ptr, n < s.len ? n : s.len};
}

static inline bool slice_starts(struct slice s, struct slice prefix)
{
	return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

static inline bool slice_ends(struct slice s, struct slice suffix)
{
	return s.len >= suffix.len &&
	       (suffix.len == 0 || memcmp(s.ptr + s.len - suffix.len, suffix.ptr, suffix.len) == 0);
}

/* ASCII only: the locale has no say in what a name is. */
static inline unsigned char ascii_lower(unsigned char c)
{
	return (c >= 'A' && c <= 'Z') ? (unsigned char)(c + 32) : c;
}

static inline bool ascii_is_digit(unsigned char c)
{
	return c >= '0' && c <= '9';
}

/* The value of a hex digit, or -1. */
static inline int ascii_hex(unsigned char c)
{
	if (ascii_is_digit(c))
		return c - '0';
	c = ascii_lower(c);
	return (c >= 'a' && c <= 'f') ? c - 'a' + 10 : -1;
}

/* The six bits of a digit of base64 or base64url, or -1. */
static inline int ascii_base64(unsigned char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (ascii_is_digit(c))
		return c - '0' + 52;
	if (c == '+' || c == '-')
		return 62;
	return c == '/' || c == '_' ? 63 : -1;
}

/* Equal when ASCII case is ignored. */
bool slice_ieq(struct slice a, struct slice b);

/* Is it equal to one of the n in a table when ASCII case is ignored? */
bool slice_is_one_of(struct slice s, const struct slice *table, size_t n);

/* Index of the first c, or s.len. */
size_t slice_find(struct slice s, char c);

/* Index of the last c, or s.len when there is none. */
size_t slice_rfind(struct slice s, char c);

/* Without spaces and tabs at both ends (HTTP's OWS). */
struct slice slice_trim(struct slice s);

/* Cuts *rest at the first sep: returns what is before it and moves *rest behind it.
 * When there is no sep, returns all and leaves *rest empty. */
struct slice slice_cut(struct slice *rest, char sep);

/* Decimal digits only (no sign, no space), up to max. */
bool slice_to_u64(struct slice s, uint64_t max, uint64_t *out);

/* By their bytes, as memcmp() has it; of two that begin alike the shorter one first. */
int slice_compare(struct slice a, struct slice b);

/* Same time whatever the bytes, for equal lengths. */
bool slice_eq_secret(struct slice a, struct slice b);

#endif
