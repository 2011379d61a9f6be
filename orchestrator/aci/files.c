/* Files that the agent begins with: what the keeper says of them before it asks for the command, kept as it came. It goes to the agent's
 * container in a secret volume, where cage-inside --enter does with it what it would have done in a room. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/base/wipe.h"
#include "orchestrator/aci/aci.h"

static bool keep(struct aci *a, const struct frame *f)
{
	const size_t len = FRAME_HEADER + f->payload.len;
	char *bigger = a->n_files + len <= LIMIT_ACI_FILES ? malloc(a->n_files + len) : NULL;
	if (!bigger)
		return false;
	if (a->files)
		memcpy(bigger, a->files, a->n_files);
	wipe_free(a->files); /* realloc() would leave them where they were */
	a->files = bigger;
	frame_header(a->files + a->n_files, f->kind, f->id, f->payload.len);
	memcpy(a->files + a->n_files + FRAME_HEADER, f->payload.ptr, f->payload.len);
	a->n_files += len;
	return true;
}

/* An answer for each file: at its end, or when it is too much. Nothing is kept behind that. */
void files_take(struct aci *a, const struct frame *f)
{
	if (a->state != ACI_WAITS && f->kind == FRAME_WRITE) {
		keeper_refuse(f->id, EOPNOTSUPP);
	} else if (a->state != ACI_WAITS || (a->has_too_much && f->kind != FRAME_WRITE)) {
		return;
	} else if (a->has_too_much || !keep(a, f)) {
		a->has_too_much = true;
		keeper_refuse(f->id, EFBIG);
	} else if (f->kind == FRAME_END) {
		keeper_say(FRAME_DONE, f->id, SLICE("exit 0"));
	}
}

void files_free(struct aci *a)
{
	wipe_free(a->files);
	a->files = NULL;
}

/* The agent's volume, and where it sees it. */
void files_add(const struct aci *a, json_t *volumes, json_t *mounts)
{
	json_t *bytes = a->n_files > 0 ? group_encoded(a->files, a->n_files) : NULL;
	if (!bytes)
		return;
	json_array_append_new(volumes, json_pack("{s:s, s:{s:o}}", "name", "files", "secret", ACI_FILES_NAME, bytes));
	json_array_append_new(mounts,
			      json_pack("{s:s, s:s, s:b}", "name", "files", "mountPath", ACI_FILES, "readOnly", 1));
}
