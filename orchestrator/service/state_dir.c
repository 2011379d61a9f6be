/* The directory of a service: beside the CA of the same user. */
#include "orchestrator/service/state_dir.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/say.h"
#include "core/proc/key_file.h"

#define ID "id"

bool state_dir_path(const char *given, char *out, size_t room)
{
	char above[PATH_MAX];
	const char *asked = given ? given : getenv("CAGE_STATE");
	int n;
	if (asked && asked[0])
		n = snprintf(out, room, "%s", asked);
	else if (key_dir_path(NULL, above, sizeof(above)))
		n = snprintf(out, room, "%s/serve", above);
	else
		return false;
	return n > 0 && (size_t)n < room;
}

bool state_dir_make(const char *dir)
{
	char above[PATH_MAX];
	int n = snprintf(above, sizeof(above), "%s", dir);
	while (n > 1 && n < (int)sizeof(above) && above[n - 1] == '/')
		above[--n] = '\0';
	char *slash = n < (int)sizeof(above) ? strrchr(above, '/') : NULL;
	if (slash && slash != above) {
		*slash = '\0';
		if (!key_dir_make(above)) {
			say("%s: can't be made: %s", above, strerror(errno));
			return false;
		}
	}
	if (mkdir(dir, 0700) == 0 || errno == EEXIST)
		return true;
	say("%s: can't be made: %s", dir, strerror(errno));
	return false;
}

bool state_dir_id(const char *dir, char out[STATE_DIR_ID])
{
	unsigned char bytes[(STATE_DIR_ID - 1) / 2];
	if (!state_dir_make(dir) || !key_file_open(dir, ID, bytes, sizeof(bytes)))
		return false;
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
	return true;
}

bool state_dir_has_id(const char *dir)
{
	char path[PATH_MAX];
	struct stat st;
	return snprintf(path, sizeof(path), "%s/" ID, dir) < (int)sizeof(path) && lstat(path, &st) == 0;
}
