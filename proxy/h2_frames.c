/* Reading the heads of frames. */
#include "proxy/h2_frames.h"

void h2_frames_init(struct h2_frames *f, bool has_preface)
{
	*f = (struct h2_frames){.skip = has_preface ? NGHTTP2_CLIENT_MAGIC_LEN : 0};
}

static bool is_counted(size_t len, uint8_t type)
{
	return type != NGHTTP2_DATA || len == 0;
}

static void head_has_come(struct h2_frames *f)
{
	size_t len = (size_t)f->head[0] << 16 | (size_t)f->head[1] << 8 | f->head[2];
	f->have = 0;
	f->skip = len;
	if (is_counted(len, f->head[3]))
		f->come++;
}

void h2_frames_come(struct h2_frames *f, struct slice input)
{
	while (input.len > 0) {
		size_t want = f->skip > 0 ? f->skip : H2_FRAME_HEAD - f->have;
		size_t n = want < input.len ? want : input.len;
		if (f->skip > 0) {
			f->skip -= n;
		} else {
			memcpy(f->head + f->have, input.ptr, n);
			f->have += n;
		}
		input = slice_from(input, n);
		if (f->have == H2_FRAME_HEAD)
			head_has_come(f);
	}
}

void h2_frames_told(struct h2_frames *f, const nghttp2_frame_hd *hd)
{
	if (is_counted(hd->length, hd->type) && f->come > 0)
		f->come--;
}

size_t h2_frames_passed_over(struct h2_frames *f)
{
	size_t n = f->come;
	f->come = 0;
	return n;
}
