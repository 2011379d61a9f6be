/* Frames that are whole or not there. */
#include "orchestrator/keeper/output.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "orchestrator/keeper/result.h"

bool output_open(struct output *o, uint64_t limit)
{
	*o = (struct output){.fd = open("output", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600),
			     .limit = limit};
	return o->fd >= 0;
}

static bool write_frame(struct output *o, enum frame_kind kind, struct slice bytes)
{
	char header[FRAME_HEADER];
	frame_header(header, kind, 0, bytes.len);
	struct iovec parts[] = {{header, sizeof(header)}, {(void *)bytes.ptr, bytes.len}};
	const size_t all = sizeof(header) + bytes.len;
	if (pwritev(o->fd, parts, 2, (off_t)o->size) == (ssize_t)all) {
		o->size += all;
		return true;
	}
	if (ftruncate(o->fd, (off_t)o->size) != 0) /* the disk is full, or worse */
		o->limit = 0;
	return false;
}

/* Of a command that writes byte by byte most of the file would be headers. */
static bool fits(const struct output *o, size_t n)
{
	return o->size + FRAME_HEADER + n <= 2 * o->limit + FRAME_HEADER;
}

void output_put(struct output *o, enum frame_kind kind, struct slice bytes, struct result *r)
{
	const uint64_t left = o->limit > r->output_bytes ? o->limit - r->output_bytes : 0;
	struct slice kept = slice_head(bytes, (size_t)left);
	if (kept.len > 0 && !(fits(o, kept.len) && write_frame(o, kind, kept)))
		kept.len = 0;
	r->output_bytes += kept.len;
	r->output_lost += bytes.len - kept.len;
}
