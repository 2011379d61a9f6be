/* Frames out: heads, masking, and the payload of a close. */
#include "core/http/ws_private.h"

static void put_number(struct text *t, uint64_t v, unsigned bytes)
{
	while (bytes-- > 0)
		text_put_char(t, (char)(v >> 8 * bytes & 0xff));
}

void ws_write_head(struct text *t, enum ws_opcode opcode, bool is_final, uint64_t len, const unsigned char *key)
{
	unsigned mask = key ? WS_BIT_MASKED : 0;
	put_number(t, (is_final ? WS_BIT_FINAL : 0) | (unsigned)opcode, 1);
	if (len < WS_LEN_16) {
		put_number(t, mask | len, 1);
	} else if (len <= UINT16_MAX) {
		put_number(t, mask | WS_LEN_16, 1);
		put_number(t, len, 2);
	} else {
		put_number(t, mask | WS_LEN_64, 1);
		put_number(t, len, 8);
	}
	if (key)
		text_put(t, slice_of(key, WS_KEY_BYTES));
}

/* Eight bytes at a time, with the key laid out twice from where the offset is in it. */
void ws_mask(char *out, struct slice in, const unsigned char key[WS_KEY_BYTES], uint64_t offset)
{
	unsigned char twice[2 * WS_KEY_BYTES];
	uint64_t mask, word;
	size_t i = 0;
	for (size_t k = 0; k < sizeof(twice); k++)
		twice[k] = key[(offset + k) % WS_KEY_BYTES];
	memcpy(&mask, twice, sizeof(mask));
	for (; in.len - i >= sizeof(word); i += sizeof(word)) {
		memcpy(&word, in.ptr + i, sizeof(word));
		word ^= mask;
		memcpy(out + i, &word, sizeof(word));
	}
	for (; i < in.len; i++)
		out[i] = (char)((unsigned char)in.ptr[i] ^ twice[i % sizeof(twice)]);
}

/* The longest start of the reason that fits and is whole characters. */
static struct slice cut_reason(struct slice reason)
{
	struct utf8 utf8 = {0};
	reason = slice_head(reason, WS_REASON_MAX);
	reason.len = utf8_span(&utf8, reason);
	if (utf8_is_whole(&utf8))
		return reason;
	while (((unsigned char)reason.ptr[reason.len - 1] & 0xc0) == 0x80)
		reason.len--;
	reason.len--; /* the first byte of the character that was cut */
	return reason;
}

void ws_write_close(struct text *t, unsigned code, struct slice reason)
{
	if (code == WS_CODE_NONE)
		return;
	put_number(t, code, 2);
	text_put(t, cut_reason(reason));
}
