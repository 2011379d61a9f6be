/* Packets put together piece by piece, for the tests of dns/. Behind cmocka.h. */
#ifndef CAGE_TESTS_DNS_PACKET_H
#define CAGE_TESTS_DNS_PACKET_H

#include "dns/wire.h"
#include "tests/unit/bytes.h"

#define ID 0x1234

static inline void add16(struct bytes *b, unsigned v)
{
	bytes_add_char(b, (char)(v >> 8));
	bytes_add_char(b, (char)(v & 0xff));
}

static inline void add32(struct bytes *b, uint32_t v)
{
	add16(b, v >> 16);
	add16(b, v & 0xffff);
}

static inline void add_header(struct bytes *b, unsigned flags, unsigned qd, unsigned an, unsigned ns, unsigned ar)
{
	add16(b, ID);
	add16(b, flags);
	add16(b, qd);
	add16(b, an);
	add16(b, ns);
	add16(b, ar);
}

/* Labels with dots between, case kept. */
static inline void add_labels(struct bytes *b, const char *text)
{
	struct slice rest = slice_str(text);
	while (rest.len > 0) {
		struct slice label = slice_cut(&rest, '.');
		bytes_add_char(b, (char)label.len);
		bytes_add(b, label);
	}
}

static inline void add_name(struct bytes *b, const char *text)
{
	add_labels(b, text);
	bytes_add_char(b, 0);
}

static inline void add_pointer(struct bytes *b, size_t to)
{
	add16(b, 0xc000u | (unsigned)to);
}

static inline void add_question(struct bytes *b, const char *name, unsigned type)
{
	add_name(b, name);
	add16(b, type);
	add16(b, DNS_CLASS_IN);
}

/* Behind the owner's name, before the data. */
static inline void add_record(struct bytes *b, unsigned type, uint32_t ttl, size_t size)
{
	add16(b, type);
	add16(b, DNS_CLASS_IN);
	add32(b, ttl);
	add16(b, (unsigned)size);
}

static inline void add_opt(struct bytes *b, unsigned size, unsigned version, unsigned flags, struct slice options)
{
	bytes_add_char(b, 0);
	add16(b, DNS_TYPE_OPT);
	add16(b, size);
	add16(b, version);
	add16(b, flags);
	add16(b, (unsigned)options.len);
	bytes_add(b, options);
}

/* rd is set, as all stubs do. */
static inline void add_query(struct bytes *b, const char *name, unsigned type)
{
	add_header(b, 0x0100, 1, 0, 0, 0);
	add_question(b, name, type);
}

static inline void assert_name(const struct dns_name *name, const char *wanted)
{
	if (!slice_eq(dns_name_text(name), slice_str(wanted)))
		fail_msg("got %.*s, wanted %s", name->len, name->text, wanted);
}

/* Bytes at the end of memory that is theirs alone, so that the sanitizer sees a read beyond them. */
static inline struct slice exact(struct bytes *b)
{
	if (b->len > 0) {
		b->ptr = realloc(b->ptr, b->len);
		assert_non_null(b->ptr);
		b->room = b->len;
	}
	return bytes_slice(b);
}

#endif
