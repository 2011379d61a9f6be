/* What content is, by its bytes. Text is tried first, since the short signatures of binary formats ("BM", "MZ") are
 * words too; what is left is known by a signature or, where that is weak, by the fields behind it. */
#include "inspectors/sniff.h"

#define GRPC_MESSAGE (64u << 20) /* no message is taken to be larger */
#define PKT_HEAD 4               /* hex digits of a pkt-line's length */

/* The bytes as they come, never as they are signed. */
static unsigned byte_at(struct slice s, size_t i)
{
	return i < s.len ? (unsigned char)s.ptr[i] : 0;
}

static uint32_t be32(struct slice s, size_t i)
{
	return (uint32_t)byte_at(s, i) << 24 | byte_at(s, i + 1) << 16 | byte_at(s, i + 2) << 8 | byte_at(s, i + 3);
}

static uint32_t le32(struct slice s, size_t i)
{
	return (uint32_t)byte_at(s, i + 3) << 24 | byte_at(s, i + 2) << 16 | byte_at(s, i + 1) << 8 | byte_at(s, i);
}

static bool has_at(struct slice s, size_t i, struct slice what)
{
	return slice_starts(slice_from(s, i), what);
}

/* Is start only the first part of something longer? */
static bool is_cut(struct slice start)
{
	return start.len >= SNIFF_BYTES;
}

/* ---- text ---- */

/* Tab, LF, FF, CR and ESC, which terminals' output is full of. */
static bool is_control(unsigned c)
{
	return c == 0x7f || (c < 0x20 && c != '\t' && c != '\n' && c != '\f' && c != '\r' && c != 0x1b);
}

#define EACH(byte) (0x0101010101010101u * (byte)) /* the same in every byte of a word */

/* Does a word have a byte that is not printable ASCII? */
static bool has_odd_byte(uint64_t w)
{
	return ((w | (w - EACH(0x20)) | (w + EACH(0x01))) & EACH(0x80)) != 0;
}

/* Eight bytes at a time, as long as they are printable. */
static bool is_plain_ascii(struct slice s)
{
	size_t i = 0;
	while (i < s.len) {
		uint64_t w = EACH(0x80);
		if (i + sizeof(w) <= s.len)
			memcpy(&w, s.ptr + i, sizeof(w));
		size_t end = i + sizeof(w) < s.len ? i + sizeof(w) : s.len;
		for (; has_odd_byte(w) && i < end; i++)
			if (byte_at(s, i) >= 0x80 || is_control(byte_at(s, i)))
				return false;
		i = end;
	}
	return true;
}

/* Bytes of the sequence that begins with c (above 0x7f), and the least value that needs so many; 0: none does. */
static size_t utf8_length(unsigned c, uint32_t *least)
{
	size_t n = c < 0xc2 || c > 0xf4 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
	*least = n == 2 ? 0x80 : n == 3 ? 0x800 : 0x10000;
	return n;
}

/* The length of the sequence at the front of s, which may be more than there is; 0: it is not good. */
static size_t utf8_step(struct slice s)
{
	static const unsigned char lead_mask[] = {0, 0, 0x1f, 0x0f, 0x07};
	uint32_t least;
	size_t n = utf8_length(byte_at(s, 0), &least);
	uint32_t value = byte_at(s, 0) & lead_mask[n];
	for (size_t i = 1; i < n && i < s.len; i++) {
		if ((byte_at(s, i) & 0xc0) != 0x80)
			return 0;
		value = value << 6 | (byte_at(s, i) & 0x3f);
	}
	if (n > s.len)
		return n;
	return value >= least && value <= 0x10ffff && (value < 0xd800 || value > 0xdfff) ? n : 0;
}

static bool is_utf8(struct slice s)
{
	bool cut = is_cut(s);
	while (s.len > 0) {
		bool is_ascii = byte_at(s, 0) < 0x80;
		size_t n = is_ascii ? 1 : utf8_step(s);
		if (n == 0 || (is_ascii && is_control(byte_at(s, 0))) || (n > s.len && !cut))
			return false;
		s = slice_from(s, n);
	}
	return true;
}

/* UTF-16 behind its mark. Random bytes don't get through: one unit in 32 of theirs is half a pair. */
static bool is_utf16(struct slice s)
{
	bool big = slice_starts(s, SLICE("\xfe\xff"));
	if ((!big && !slice_starts(s, SLICE("\xff\xfe"))) || s.len % 2 != 0)
		return false;
	bool in_pair = false;
	for (size_t i = 2; i < s.len; i += 2) {
		unsigned unit = big ? byte_at(s, i) << 8 | byte_at(s, i + 1) : byte_at(s, i + 1) << 8 | byte_at(s, i);
		bool is_low = unit >= 0xdc00 && unit < 0xe000;
		if (is_low != in_pair || is_control(unit) || unit >= 0xfffe)
			return false;
		in_pair = unit >= 0xd800 && unit < 0xdc00;
	}
	return !in_pair || is_cut(s);
}

static bool is_text(struct slice start)
{
	return is_plain_ascii(start) || is_utf8(start) || is_utf16(start);
}

static struct slice skip_blanks(struct slice s)
{
	while (s.len > 0 && (*s.ptr == ' ' || *s.ptr == '\t' || *s.ptr == '\r' || *s.ptr == '\n'))
		s = slice_from(s, 1);
	return s;
}

static bool starts_with_one_of(struct slice s, const char *bytes)
{
	return s.len > 0 && s.ptr[0] != '\0' && strchr(bytes, s.ptr[0]);
}

/* An object or a list with something in it that JSON has; "[section]" of a configuration is neither. */
static bool is_json(struct slice s)
{
	struct slice inside = skip_blanks(slice_from(s, 1));
	if (slice_starts(s, SLICE("{")))
		return inside.len == 0 || starts_with_one_of(inside, "\"}");
	return slice_starts(s, SLICE("[")) && (inside.len == 0 || starts_with_one_of(inside, "[]{\"-0123456789"));
}

static bool is_xml(struct slice s)
{
	unsigned c = ascii_lower((unsigned char)byte_at(s, 1));
	return slice_starts(s, SLICE("<")) && (c == '!' || c == '?' || (c >= 'a' && c <= 'z'));
}

/* A boundary line and the head of a part. Every part has fields whose names begin like this. */
static bool is_multipart(struct slice s)
{
	size_t end = slice_find(s, '\n');
	struct slice line = slice_head(s, end), next = slice_from(s, end + 1);
	if (slice_ends(line, SLICE("\r")))
		line.len--;
	return slice_starts(line, SLICE("--")) && line.len > 2 && line.len <= SNIFF_BOUNDARY &&
	       !slice_ends(line, SLICE(" ")) && slice_ieq(slice_head(next, 8), SLICE("content-"));
}

static enum content_kind text_kind(struct slice start)
{
	struct slice s = start;
	if (slice_starts(s, SLICE("\xef\xbb\xbf")))
		s = slice_from(s, 3);
	if (slice_starts(s, SLICE("#!")))
		return CONTENT_EXECUTABLE;
	s = skip_blanks(s);
	if (is_json(s))
		return CONTENT_JSON;
	return is_xml(s) ? CONTENT_XML : CONTENT_TEXT;
}

/* ---- everything else ---- */

struct signature {
	size_t at;
	struct slice bytes;
	enum content_kind kind;
};

/* clang-format off */
#define NAME(lit) {(lit), sizeof(lit) - 1}
#define SIGNATURE(at, lit, kind) {at, NAME(lit), kind}

/* What is so even when it could be read as text. */
static const struct signature plain_signatures[] = {
	SIGNATURE(0, "%PDF-", CONTENT_PDF),
	SIGNATURE(0, "# v2 git bundle\n", CONTENT_ARCHIVE),
	SIGNATURE(0, "# v3 git bundle\n", CONTENT_ARCHIVE),
};

static const struct signature binary_signatures[] = {
	SIGNATURE(0, "\x89PNG\r\n\x1a\n", CONTENT_IMAGE),
	SIGNATURE(0, "\xff\xd8\xff", CONTENT_IMAGE),             /* JPEG */
	SIGNATURE(0, "GIF87a", CONTENT_IMAGE),
	SIGNATURE(0, "GIF89a", CONTENT_IMAGE),
	SIGNATURE(0, "II*\0", CONTENT_IMAGE),                    /* TIFF */
	SIGNATURE(0, "MM\0*", CONTENT_IMAGE),
	SIGNATURE(0, "8BPS", CONTENT_IMAGE),                     /* Photoshop */
	SIGNATURE(0, "\0\0\0\x0cJXL \r\n", CONTENT_IMAGE),       /* JPEG XL */
	SIGNATURE(0, "\0\0\0\x0cjP  \r\n", CONTENT_IMAGE),       /* JPEG 2000 */
	SIGNATURE(8, "WEBP", CONTENT_IMAGE),
	SIGNATURE(8, "WAVE", CONTENT_MEDIA),
	SIGNATURE(8, "AVI ", CONTENT_MEDIA),
	SIGNATURE(0, "ID3", CONTENT_MEDIA),
	SIGNATURE(0, "OggS", CONTENT_MEDIA),
	SIGNATURE(0, "fLaC", CONTENT_MEDIA),
	SIGNATURE(0, "FLV\1", CONTENT_MEDIA),
	SIGNATURE(0, "MThd\0\0\0\6", CONTENT_MEDIA),             /* MIDI */
	SIGNATURE(0, "#!AMR", CONTENT_MEDIA),
	SIGNATURE(0, "\x1a\x45\xdf\xa3", CONTENT_MEDIA),         /* Matroska, WebM */
	SIGNATURE(0, "\0\0\1\xba", CONTENT_MEDIA),               /* MPEG */
	SIGNATURE(0, "wOFF", CONTENT_FONT),
	SIGNATURE(0, "wOF2", CONTENT_FONT),
	SIGNATURE(0, "OTTO\0", CONTENT_FONT),
	SIGNATURE(0, "ttcf\0", CONTENT_FONT),
	SIGNATURE(0, "PK\3\4", CONTENT_ARCHIVE),
	SIGNATURE(0, "PK\5\6", CONTENT_ARCHIVE),
	SIGNATURE(0, "PK\7\10", CONTENT_ARCHIVE),
	SIGNATURE(257, "ustar", CONTENT_ARCHIVE),
	SIGNATURE(0, "\x1f\x8b\x08", CONTENT_ARCHIVE),           /* gzip */
	SIGNATURE(0, "\x1f\x9d", CONTENT_ARCHIVE),               /* compress */
	SIGNATURE(0, "BZh", CONTENT_ARCHIVE),
	SIGNATURE(0, "\xfd""7zXZ\0", CONTENT_ARCHIVE),
	SIGNATURE(0, "\x5d\0\0\x80\0", CONTENT_ARCHIVE),         /* lzma */
	SIGNATURE(0, "LZIP\1", CONTENT_ARCHIVE),
	SIGNATURE(0, "\x28\xb5\x2f\xfd", CONTENT_ARCHIVE),       /* zstd */
	SIGNATURE(0, "\x04\x22\x4d\x18", CONTENT_ARCHIVE),       /* lz4 */
	SIGNATURE(0, "\xff\x06\0\0sNaPpY", CONTENT_ARCHIVE),
	SIGNATURE(0, "7z\xbc\xaf\x27\x1c", CONTENT_ARCHIVE),
	SIGNATURE(0, "Rar!\x1a\7", CONTENT_ARCHIVE),
	SIGNATURE(0, "MSCF\0", CONTENT_ARCHIVE),                 /* cab */
	SIGNATURE(0, "\xed\xab\xee\xdb", CONTENT_ARCHIVE),       /* rpm */
	SIGNATURE(0, "!<arch>\n", CONTENT_ARCHIVE),              /* ar, deb */
	SIGNATURE(0, "PAR1", CONTENT_ARCHIVE),                   /* Parquet: compressed columns */
	SIGNATURE(0, "PACK\0\0\0\2", CONTENT_ARCHIVE),           /* git */
	SIGNATURE(0, "PACK\0\0\0\3", CONTENT_ARCHIVE),
	SIGNATURE(0, "\x7f""ELF", CONTENT_EXECUTABLE),
	SIGNATURE(0, "MZ", CONTENT_EXECUTABLE),                  /* PE */
	SIGNATURE(0, "\xfe\xed\xfa\xce", CONTENT_EXECUTABLE),    /* Mach-O */
	SIGNATURE(0, "\xfe\xed\xfa\xcf", CONTENT_EXECUTABLE),
	SIGNATURE(0, "\xce\xfa\xed\xfe", CONTENT_EXECUTABLE),
	SIGNATURE(0, "\xcf\xfa\xed\xfe", CONTENT_EXECUTABLE),
	SIGNATURE(0, "\xca\xfe\xba\xbe", CONTENT_EXECUTABLE),    /* Mach-O for several processors, Java */
	SIGNATURE(0, "\0asm", CONTENT_EXECUTABLE),
	SIGNATURE(0, "dex\n0", CONTENT_EXECUTABLE),
	SIGNATURE(0, "#!/", CONTENT_EXECUTABLE),                 /* a script with binary data behind it */
};
/* clang-format on */

static enum content_kind by_signature(struct slice s, const struct signature *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (has_at(s, list[i].at, list[i].bytes))
			return list[i].kind;
	return CONTENT_BINARY;
}

/* MP4 and its kin: a first box of this type, with the brand in it. */
static enum content_kind base_media_kind(struct slice s)
{
	static const char images[][5] = {"avif", "avis", "heic", "heix", "mif1"};
	if (!has_at(s, 4, SLICE("ftyp")) || be32(s, 0) < 16)
		return CONTENT_BINARY;
	for (size_t i = 0; i < sizeof(images) / sizeof(images[0]); i++)
		if (has_at(s, 8, slice_of(images[i], 4)))
			return CONTENT_IMAGE;
	return CONTENT_MEDIA;
}

static bool is_bmp(struct slice s)
{
	return slice_starts(s, SLICE("BM")) && s.len > 26 && le32(s, 6) == 0 && le32(s, 10) >= 26 &&
	       le32(s, 10) <= 2048;
}

/* Icon or cursor whose first picture lies behind the directory, as it always does. */
static bool is_icon(struct slice s)
{
	unsigned n = byte_at(s, 4);
	return (slice_starts(s, SLICE("\0\0\1\0")) || slice_starts(s, SLICE("\0\0\2\0"))) && n > 0 &&
	       byte_at(s, 5) == 0 && byte_at(s, 9) == 0 && le32(s, 18) == 6 + 16 * n;
}

/* The search range of the table directory follows from the number of tables. */
static bool is_truetype(struct slice s)
{
	unsigned tables = byte_at(s, 4) << 8 | byte_at(s, 5), range = 16;
	while (range * 2 <= tables * 16)
		range *= 2;
	return slice_starts(s, SLICE("\0\1\0\0")) && tables > 0 && tables < 128 &&
	       (byte_at(s, 6) << 8 | byte_at(s, 7)) == range;
}

/* A frame of MPEG audio or AAC without a container, or packets of a transport stream. */
static bool is_bare_media(struct slice s)
{
	bool is_layer_3 = (byte_at(s, 1) & 0xe6) == 0xe2 && (byte_at(s, 2) & 0xf0) != 0xf0 &&
			  (byte_at(s, 2) & 0xf0) != 0 && (byte_at(s, 2) & 0x0c) != 0x0c;
	bool is_aac = (byte_at(s, 1) & 0xf6) == 0xf0 && (byte_at(s, 2) & 0x3c) <= 0x30;
	bool is_transport = byte_at(s, 0) == 0x47 && byte_at(s, 188) == 0x47 && byte_at(s, 376) == 0x47;
	return is_transport || (byte_at(s, 0) == 0xff && (is_layer_3 || is_aac));
}

/* Messages, each behind a flag and its length. The last one may reach over the end of what is known, but not end
 * elsewhere than the body does. */
static bool is_grpc(struct slice s)
{
	bool cut = is_cut(s);
	while (s.len >= 5) {
		uint32_t n = be32(s, 1);
		if (byte_at(s, 0) > 1 || n > GRPC_MESSAGE || (n > s.len - 5 && !cut))
			return false;
		s = slice_from(s, 5 + (size_t)n);
	}
	return s.len == 0 || (cut && byte_at(s, 0) <= 1);
}

static bool pkt_length(struct slice s, size_t *n)
{
	*n = 0;
	for (size_t i = 0; i < PKT_HEAD; i++) {
		int digit = i < s.len ? ascii_hex((unsigned char)s.ptr[i]) : -1;
		if (digit < 0)
			return false;
		*n = *n << 4 | (size_t)digit;
	}
	return *n == 0 || *n >= PKT_HEAD;
}

/* "OLD NEW ref": how each command of a push begins. */
static bool is_ref_update(struct slice s)
{
	size_t n = 0;
	while (n < s.len && ascii_hex((unsigned char)s.ptr[n]) >= 0)
		n++;
	return (n == 40 || n == 64) && has_at(s, n, SLICE(" ")) && has_at(s, 2 * n + 1, SLICE(" "));
}

/* What git pushes: commands in pkt-lines, a mark, and then a pack. It is text by what is known when the pack begins
 * further on. */
static enum content_kind push_kind(struct slice s)
{
	size_t n;
	if (!pkt_length(s, &n) || !is_ref_update(slice_from(s, PKT_HEAD)))
		return CONTENT_BINARY;
	while (s.len >= PKT_HEAD && pkt_length(s, &n))
		s = slice_from(s, n > 0 ? n : PKT_HEAD);
	if (slice_starts(s, SLICE("PACK")))
		return CONTENT_ARCHIVE;
	return s.len < PKT_HEAD ? CONTENT_TEXT : CONTENT_BINARY;
}

static enum content_kind binary_kind(struct slice s)
{
	enum content_kind kind =
		by_signature(s, binary_signatures, sizeof(binary_signatures) / sizeof(binary_signatures[0]));
	if (kind == CONTENT_BINARY)
		kind = base_media_kind(s);
	if (kind == CONTENT_BINARY)
		kind = push_kind(s);
	if (kind != CONTENT_BINARY)
		return kind;
	if (is_bmp(s) || is_icon(s))
		return CONTENT_IMAGE;
	if (is_truetype(s))
		return CONTENT_FONT;
	if (is_bare_media(s))
		return CONTENT_MEDIA;
	return is_grpc(s) ? CONTENT_GRPC : CONTENT_BINARY;
}

enum content_kind sniff(struct slice start)
{
	start = slice_head(start, SNIFF_BYTES);
	if (start.len == 0)
		return CONTENT_EMPTY;
	enum content_kind kind =
		by_signature(start, plain_signatures, sizeof(plain_signatures) / sizeof(plain_signatures[0]));
	if (kind != CONTENT_BINARY)
		return kind;
	if (is_multipart(skip_blanks(start))) /* whatever its parts are */
		return CONTENT_MULTIPART;
	return is_text(start) ? text_kind(start) : binary_kind(start);
}

struct slice content_kind_text(enum content_kind kind)
{
	static const struct slice names[] = {
		[CONTENT_EMPTY] = NAME("empty"),
		[CONTENT_TEXT] = NAME("text"),
		[CONTENT_JSON] = NAME("json"),
		[CONTENT_XML] = NAME("xml"),
		[CONTENT_MULTIPART] = NAME("multipart"),
		[CONTENT_IMAGE] = NAME("image"),
		[CONTENT_MEDIA] = NAME("media"),
		[CONTENT_FONT] = NAME("font"),
		[CONTENT_PDF] = NAME("pdf"),
		[CONTENT_ARCHIVE] = NAME("archive"),
		[CONTENT_EXECUTABLE] = NAME("executable"),
		[CONTENT_GRPC] = NAME("grpc"),
		[CONTENT_BINARY] = NAME("binary"),
	};
	return names[kind];
}
