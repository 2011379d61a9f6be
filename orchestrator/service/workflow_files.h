/* Artifacts on the disk: STATE/workflows/ID/STEP/N. What takes long is done in a process of its own (child.h): they are taken from the
 * directory of the sandbox that made them, given to that of one that needs them, and removed. */
#ifndef CAGE_SERVICE_WORKFLOW_FILES_H
#define CAGE_SERVICE_WORKFLOW_FILES_H

#include "orchestrator/service/policies.h"
#include "orchestrator/service/service.h"

/* STATE/workflows/ID; STATE/workflows/ID/STEP/N */
void workflow_dir(const struct service *s, const char *id, char out[BACKEND_PATH]);
void workflow_file(const struct service *s, const char *id, size_t step, size_t n, char out[BACKEND_PATH]);

/* Takes n of them out of the directory of a sandbox. Done twice it comes to the same. False: not now. */
bool workflow_files_store(struct service *s, const char *id, size_t step, const char *sandbox, size_t n,
			  child_done *done, void *arg);

/* What became of it: a new list of {size, sha256}. NULL: *why is a reason. */
json_t *workflow_files_stored(int status, struct slice said, size_t n, const char **why);

/* Puts files below DIR/files: inputs is a list of {from, to, sha256}. False: not now. */
bool workflow_files_hand(struct service *s, const char *dir, const json_t *inputs, child_done *done, void *arg);

/* What became of it; status 0: all is there. 409: one of them is not what was stored. */
struct verdict workflow_files_verdict(int status, struct slice said);

/* Removes all of a workflow. done: the exit code is 0, or an errno. False: not now. */
bool workflow_files_remove(struct service *s, const char *id, child_done *done, void *arg);

#endif
