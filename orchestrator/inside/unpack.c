/* The file has what a keeper would have said (frame.h): FRAME_WRITE, FRAME_DATA and FRAME_END, of one file after the other. The same is
 * done with it. */
#include "orchestrator/inside/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "orchestrator/inside/job.h"

static int failed; /* errno; 0: nothing has */

/* "exit 0", or "error N". */
static void hear(enum frame_kind kind, uint16_t id, struct slice payload)
{
	uint64_t number = EIO;
	struct slice rest = payload, word = slice_cut(&rest, ' ');
	(void)id;
	if (kind == FRAME_DONE && !slice_eq(word, SLICE("exit")))
		failed = slice_to_u64(rest, INT32_MAX, &number) ? (int)number : EIO;
}

static void take(struct job *job, const struct frame *f, int root)
{
	if (f->kind == FRAME_WRITE && job->state == JOB_FREE)
		job_begin(job, f, root, hear);
	else if ((f->kind == FRAME_DATA || f->kind == FRAME_END) && job->state == JOB_TAKING)
		job_go_on(job, f, hear);
	else if (failed == 0)
		failed = EPROTO;
}

/* False: it ends in the middle of a frame, or is none. */
static bool take_all(int fd, int root)
{
	static struct frame_reader in;
	static struct job job;
	struct frame f;
	size_t room;
	ssize_t n = 1;
	enum frame_result result = FRAME_PARTIAL;
	while (n > 0 && result == FRAME_PARTIAL && failed == 0) {
		char *to = frame_room(&in, &room);
		n = read(fd, to, room);
		if (n > 0)
			frame_arrived(&in, (size_t)n);
		while (failed == 0 && (result = frame_take(&in, &f)) == FRAME_TAKEN)
			take(&job, &f, root);
	}
	return n == 0 && result == FRAME_PARTIAL && in.len == in.taken && job.state == JOB_FREE;
}

bool unpack(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int root = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
	const bool is_open = fd >= 0 && root >= 0;
	int why = is_open ? 0 : errno;
	if (is_open && !take_all(fd, root))
		why = failed ? failed : EPROTO;
	if (fd >= 0)
		close(fd);
	if (root >= 0)
		close(root);
	errno = why;
	return why == 0;
}
