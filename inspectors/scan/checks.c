/* Each check is a pure function of the value. None of them is there to be generous: a format that names a check has
 * values that all fulfil it, so that a failure means "only looks like one". */
#include "inspectors/scan/checks.h"

#include <math.h>

#define JWT_HEAD 1024 /* bytes of a token's decoded head that are looked at */
#define CRC_DIGITS 6
#define CRC_POLYNOMIAL 0xedb88320u

struct slice format_check_text(enum format_check check)
{
	switch (check) {
	case CHECK_JWT:
		return SLICE("jwt");
	case CHECK_CRC32:
		return SLICE("crc32");
	case CHECK_LUHN:
		return SLICE("luhn");
	case CHECK_BASE64:
		return SLICE("base64");
	case CHECK_NONE:
	case CHECK_COUNT:
		break;
	}
	return SLICE("");
}

double value_entropy(struct slice value)
{
	unsigned counts[256] = {0};
	double sum = 0;
	for (size_t i = 0; i < value.len; i++)
		counts[(unsigned char)value.ptr[i]]++;
	for (size_t i = 0; i < 256; i++)
		if (counts[i] > 0)
			sum += counts[i] * log2(counts[i]);
	return value.len ? log2((double)value.len) - sum / (double)value.len : 0;
}

/* ---- base64 ---- */

/* Decodes what fits into room; padding is not expected. False: no base64, or its last digit says more than a byte. */
static bool base64_decode(struct slice digits, char *out, size_t room, size_t *len)
{
	unsigned held = 0, bits = 0;
	*len = 0;
	for (size_t i = 0; i < digits.len; i++) {
		int digit = ascii_base64((unsigned char)digits.ptr[i]);
		if (digit < 0)
			return false;
		held = held << 6 | (unsigned)digit;
		bits += 6;
		if (bits < 8)
			continue;
		bits -= 8;
		if (*len < room)
			out[(*len)++] = (char)(held >> bits);
		held &= (1u << bits) - 1;
	}
	return bits < 6 && held == 0;
}

static bool is_base64(struct slice value)
{
	size_t pad = 0, len;
	while (pad < 2 && pad < value.len && value.ptr[value.len - 1 - pad] == '=')
		pad++;
	if (pad > 0 && value.len % 4 != 0)
		return false;
	return value.len > pad && base64_decode(slice_head(value, value.len - pad), NULL, 0, &len);
}

/* ---- the others ---- */

static bool has_alg(struct slice json)
{
	const struct slice alg = SLICE("\"alg\"");
	return json.len > 0 && json.ptr[0] == '{' && memmem(json.ptr, json.len, alg.ptr, alg.len);
}

static bool is_jwt(struct slice value)
{
	char head[JWT_HEAD];
	size_t len;
	struct slice first = slice_cut(&value, '.');
	struct slice second = slice_cut(&value, '.');
	if (second.len == 0 || value.len == 0 || slice_find(value, '.') != value.len)
		return false;
	return base64_decode(first, head, sizeof(head), &len) && has_alg(slice_of(head, len));
}

static uint32_t crc32_of(struct slice s)
{
	uint32_t crc = UINT32_MAX;
	for (size_t i = 0; i < s.len; i++) {
		crc ^= (unsigned char)s.ptr[i];
		for (int bit = 0; bit < 8; bit++)
			crc = (crc >> 1) ^ (crc & 1 ? CRC_POLYNOMIAL : 0);
	}
	return ~crc;
}

static bool has_crc32(struct slice value)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	size_t prefix = slice_rfind(value, '_');
	struct slice rest = prefix < value.len ? slice_from(value, prefix + 1) : value;
	if (rest.len <= CRC_DIGITS)
		return false;
	uint32_t crc = crc32_of(slice_head(rest, rest.len - CRC_DIGITS));
	for (size_t i = 1; i <= CRC_DIGITS; i++, crc /= 62)
		if (rest.ptr[rest.len - i] != digits[crc % 62])
			return false;
	return true;
}

/* Spaces and dashes may stand between the digits. */
static bool is_luhn(struct slice value)
{
	unsigned sum = 0, n = 0;
	for (size_t i = value.len; i > 0; i--) {
		char c = value.ptr[i - 1];
		if (c == ' ' || c == '-')
			continue;
		if (!ascii_is_digit((unsigned char)c))
			return false;
		unsigned digit = (unsigned)(c - '0') << (n % 2);
		sum += digit > 9 ? digit - 9 : digit;
		n++;
	}
	return n > 1 && sum % 10 == 0;
}

static bool passes_check(enum format_check check, struct slice value)
{
	switch (check) {
	case CHECK_NONE:
		return true;
	case CHECK_JWT:
		return is_jwt(value);
	case CHECK_CRC32:
		return has_crc32(value);
	case CHECK_LUHN:
		return is_luhn(value);
	case CHECK_BASE64:
		return is_base64(value);
	case CHECK_COUNT:
		break;
	}
	return true; /* an unknown check takes nothing away */
}

bool value_passes(const struct format *format, struct slice value)
{
	if (format->min_entropy > 0 && value_entropy(value) < format->min_entropy)
		return false;
	return passes_check(format->check, value);
}
