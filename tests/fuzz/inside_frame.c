/* What comes out of a sandbox, in pieces whose size is the first byte. Promises: the same frames, whatever the pieces are, and
 * none after what is broken. */
#include "orchestrator/inside/frame.h"
#include "tests/fuzz/fuzz.h"

struct story {
	uint64_t frames, bytes, sum;
	enum frame_result result;
};

static void tell(struct story *s, const struct frame *f)
{
	PROMISE(f->payload.len <= LIMIT_INSIDE_FRAME);
	s->frames++;
	s->bytes += f->payload.len;
	s->sum = s->sum * 31 + (uint64_t)f->kind + f->id;
	for (size_t i = 0; i < f->payload.len; i++)
		s->sum = s->sum * 31 + (unsigned char)f->payload.ptr[i];
}

static struct story read_all(struct slice input, size_t piece)
{
	static struct frame_reader r;
	struct story s = {.result = FRAME_PARTIAL};
	struct frame f;
	r.len = r.taken = 0;
	while (input.len > 0 && s.result == FRAME_PARTIAL) {
		size_t room;
		char *to = frame_room(&r, &room);
		PROMISE(room > 0);
		struct slice part = slice_head(input, piece < room ? piece : room);
		memcpy(to, part.ptr, part.len);
		frame_arrived(&r, part.len);
		input = slice_from(input, part.len);
		while ((s.result = frame_take(&r, &f)) == FRAME_TAKEN)
			tell(&s, &f);
	}
	return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	struct slice input = slice_of(data + 1, size - 1);
	struct story whole = read_all(input, SIZE_MAX), pieces = read_all(input, 1 + (size_t)data[0]);
	PROMISE(whole.frames == pieces.frames && whole.sum == pieces.sum && whole.result == pieces.result);
	return 0;
}
