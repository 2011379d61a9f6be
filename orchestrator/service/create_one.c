/* A create for a backend whose sandboxes are one command (backend.h). What it can't have is told when it is asked for, and not when the
 * sandbox has failed. */
#include "orchestrator/service/create_one.h"

#include <stdio.h>
#include <string.h>

#include "orchestrator/inside/frame.h"
#include "orchestrator/service/create.h"

static void refuse(const struct backend *b, json_t *errors, const char *pointer, const char *what)
{
	char detail[200];
	snprintf(detail, sizeof(detail), "a sandbox of the backend %s is one command: %s", b->name, what);
	errors_add(errors, pointer, detail);
}

/* As the keeper sends them. */
static size_t bytes_of_files(const json_t *files)
{
	size_t all = 0;
	const char *path;
	json_t *text;
	json_object_foreach((json_t *)files, path, text)
	{
		const size_t len = json_string_length(text);
		all += strlen(path) + 1 + len + FRAME_HEADER * (3 + len / LIMIT_INSIDE_FRAME);
	}
	return all;
}

void create_check_one(const struct backend *b, const json_t *full, json_t *errors)
{
	if (json_array_size(json_object_get(full, "publish")) > 0)
		refuse(b, errors, "/publish", "it has no ports");
	if (json_array_size(json_object_get(full, "tools")) > 0)
		refuse(b, errors, "/tools", "it has no tools");
	if (json_is_true(json_object_get(full, "keep")))
		refuse(b, errors, "/keep", "nothing of its files is kept");
	if (bytes_of_files(json_object_get(full, "files")) > b->one_files)
		refuse(b, errors, "/files", "it begins with 1 MiB of files at most, their paths included");
}

bool create_has_command(const struct backend *b, const json_t *spec, json_t *errors)
{
	if (!b || b->one_files == 0 || json_object_get(spec, "command"))
		return true;
	refuse(b, errors, "/command", "it is missing");
	return false;
}

void create_check_one_step(const struct backend *b, const json_t *step, json_t *errors)
{
	if (b && b->one_files > 0 && json_array_size(json_object_get(step, "artifacts")) > 0)
		refuse(b, errors, "", "it hands on no artifacts");
}
