/* The files of sealed values: what is written is whole, or not there. Names are good ones (seal_name_is_good). */
#ifndef CAGE_SERVICE_SEAL_FILE_H
#define CAGE_SERVICE_SEAL_FILE_H

#include "orchestrator/service/seal.h"

/* False with a message. */
bool seal_file_write(const char *state_dir, const char *name, struct slice sealed) MUST_CHECK;

/* SEAL_FAILED with a message: also when it has more bytes than room. */
enum seal_result seal_file_read(const char *state_dir, const char *name, char *out, size_t room,
				size_t *len) MUST_CHECK;

enum seal_result seal_file_remove(const char *state_dir, const char *name) MUST_CHECK;

#endif
