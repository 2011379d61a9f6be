/* encoded_blob: long runs of base64 or hex, and host labels that look encoded.
 *
 * Views decode such runs and everything is looked for inside of them; this one tells that something of that size was
 * encoded at all. Pictures, sound, documents, fonts and vectors of floats in JSON are what models are sent every day:
 * a run that begins as one of these is left alone. Keys: base64_length, hex_length. */
#include "inspectors/shannon.h"
#include "inspectors/sniff.h"
#include "inspectors/table.h"

#define LABEL_LENGTH 44 /* letters and digits of a label */
#define LABEL_BITS 3.3  /* per letter or digit: less than nearly all hex of that length has */
#define LABEL_CHANGES 8 /* from letter to digit or back, at least one in so many */
#define CAPITALS 5      /* at least one letter in so many */
#define FLOATS_LEAST 8  /* that make a vector */

struct blob_conf {
	uint64_t base64_length, hex_length; /* encoded bytes; longer runs are reported */
};

static const struct blob_conf conf_default = {.base64_length = 4096, .hex_length = 2048};

/* ---- runs ---- */

/* What the run begins with, decoded; line breaks are passed over. */
static size_t base64_start(struct slice start, char out[RUN_START])
{
	unsigned held = 0, bits = 0;
	size_t n = 0;
	for (size_t i = 0; i < start.len && i < RUN_START; i++) {
		int digit = ascii_base64((unsigned char)start.ptr[i]);
		if (digit < 0)
			continue;
		held = held << 6 | (unsigned)digit;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			out[n++] = (char)(held >> bits);
		}
	}
	return n;
}

/* Floats of four bytes, the lowest first, none of them far from 1: their signs and exponents are much alike. */
static bool is_vector(struct slice bytes)
{
	size_t n = bytes.len / 4;
	for (size_t i = 0; i < n; i++) {
		unsigned exponent = (unsigned char)bytes.ptr[4 * i + 3] & 0x7f;
		if (exponent < 0x36 || exponent > 0x41)
			return false;
	}
	return n >= FLOATS_LEAST;
}

static bool is_everyday(struct slice start)
{
	char bytes[RUN_START];
	struct slice decoded = slice_of(bytes, base64_start(start, bytes));
	switch (sniff(decoded)) {
	case CONTENT_IMAGE:
	case CONTENT_MEDIA:
	case CONTENT_FONT:
	case CONTENT_PDF:
		return true;
	case CONTENT_EMPTY:
	case CONTENT_TEXT:
	case CONTENT_JSON:
	case CONTENT_XML:
	case CONTENT_MULTIPART:
	case CONTENT_ARCHIVE:
	case CONTENT_EXECUTABLE:
	case CONTENT_GRPC:
	case CONTENT_BINARY:
		break;
	}
	return is_vector(decoded);
}

/* Lists of words and paths are runs of base64 too, lists of numbers are runs of hex. Of base64's letters half are
 * capitals, far more than words have; hex has letters at all. */
static bool is_encoded(enum view_kind kind, struct slice start)
{
	size_t capitals = 0, small = 0;
	for (size_t i = 0; i < start.len; i++) {
		unsigned char c = (unsigned char)start.ptr[i];
		capitals += c >= 'A' && c <= 'Z';
		small += c >= 'a' && c <= 'z' && c != 'x'; /* "0x41" */
	}
	if (kind == VIEW_HEX)
		return capitals + small > 0;
	return small > 0 && capitals * CAPITALS >= capitals + small;
}

static enum inspect_result on_run(struct inspection *i, enum view_kind kind, uint64_t length, const struct spot *spot,
				  struct slice start)
{
	const struct blob_conf *conf = inspection_conf(i);
	uint64_t most = kind == VIEW_HEX ? conf->hex_length : conf->base64_length;
	if (length <= most || !is_encoded(kind, start) || (kind == VIEW_BASE64 && is_everyday(start)))
		return INSPECT_PASS;
	inspection_report(i, REASON_ENCODED_BLOB, spot, SLICE_NONE, SLICE_NONE);
	return INSPECT_PASS;
}

/* ---- host labels ---- */

/* Letters and digits mixed as nobody names a host: hex, base32 or base64, whose case a name does not keep. */
static bool is_label_encoded(struct slice label)
{
	char plain[LIMIT_LABEL];
	size_t n = 0, changes = 0;
	for (size_t i = 0; i < label.len && n < sizeof(plain); i++)
		if (label.ptr[i] != '-' && label.ptr[i] != '_')
			plain[n++] = label.ptr[i];
	for (size_t i = 1; i < n; i++)
		changes += ascii_is_digit((unsigned char)plain[i]) != ascii_is_digit((unsigned char)plain[i - 1]);
	return n >= LABEL_LENGTH && changes * LABEL_CHANGES >= n && shannon(slice_of(plain, n)) >= LABEL_BITS;
}

static enum inspect_result on_name(struct inspection *i)
{
	const struct host *host = &inspection_subject(i)->target->host;
	struct slice rest = host->kind == HOST_NAME ? host->text : SLICE_NONE;
	while (rest.len > 0) {
		struct spot spot = {.place = PLACE_HOST, .offset = host->text.len - rest.len};
		if (is_label_encoded(slice_cut(&rest, '.'))) {
			inspection_report(i, REASON_ENCODED_BLOB, &spot, SLICE_NONE, SLICE_NONE);
			break;
		}
	}
	return INSPECT_PASS;
}

/* ---- policy ---- */

static void read_base64_length(struct loader *l, const struct node *value, void *out)
{
	struct blob_conf *conf = out;
	size_read(l, value, INT64_MAX, &conf->base64_length);
}

static void read_hex_length(struct loader *l, const struct node *value, void *out)
{
	struct blob_conf *conf = out;
	size_read(l, value, INT64_MAX, &conf->hex_length);
}

static const struct key keys[] = {
	{WORD("base64_length"), read_base64_length, KEY_OPTIONAL},
	{WORD("hex_length"), read_hex_length, KEY_OPTIONAL},
};

const struct inspector encoded_blob_inspector = {
	.name = WORD("encoded_blob"),
	.action = ACTION_FLAG,
	.conf_size = sizeof(struct blob_conf),
	.conf_default = &conf_default,
	.keys = keys,
	.n_keys = sizeof(keys) / sizeof(keys[0]),
	.on_name = on_name,
	.on_run = on_run,
};
