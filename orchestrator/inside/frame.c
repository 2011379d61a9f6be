/* Frames out of bytes. */
#include "orchestrator/inside/frame.h"

static bool is_kind(unsigned char c)
{
	return c != 0 && strchr("ARGPLNUDECKVMFTHBsroed", c) != NULL;
}

char *frame_room(struct frame_reader *r, size_t *n)
{
	memmove(r->bytes, r->bytes + r->taken, r->len - r->taken);
	r->len -= r->taken;
	r->taken = 0;
	*n = sizeof(r->bytes) - r->len;
	return r->bytes + r->len;
}

void frame_arrived(struct frame_reader *r, size_t n)
{
	r->len += n;
}

enum frame_result frame_take(struct frame_reader *r, struct frame *out)
{
	const char *at = r->bytes + r->taken;
	size_t ready = r->len - r->taken;
	uint32_t len;
	if (ready < FRAME_HEADER)
		return FRAME_PARTIAL;
	memcpy(&len, at + 4, sizeof(len));
	if (!is_kind((unsigned char)at[0]) || at[1] != 0 || len > LIMIT_INSIDE_FRAME)
		return FRAME_BROKEN;
	if (ready - FRAME_HEADER < len)
		return FRAME_PARTIAL;
	out->kind = (enum frame_kind)(unsigned char)at[0];
	memcpy(&out->id, at + 2, sizeof(out->id));
	out->payload = slice_of(at + FRAME_HEADER, len);
	r->taken += FRAME_HEADER + len;
	return FRAME_TAKEN;
}

void frame_header(char out[FRAME_HEADER], enum frame_kind kind, uint16_t id, size_t len)
{
	uint32_t n = (uint32_t)len;
	out[0] = (char)kind;
	out[1] = 0;
	memcpy(out + 2, &id, sizeof(id));
	memcpy(out + 4, &n, sizeof(n));
}

uint32_t frame_more(struct slice payload)
{
	uint32_t n = 0;
	if (payload.len == sizeof(n))
		memcpy(&n, payload.ptr, sizeof(n));
	return n;
}
