/* What a cgroup has counted of its limits. The names of the files are others in each version, or mean the same. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "orchestrator/gate/cgroup.h"
#include "orchestrator/gate/say.h"

uint64_t cgroup_count(const char *dir, const char *file, const char *word)
{
	char path[CGROUP_PATH + 64], line[128];
	const size_t len = strlen(word);
	uint64_t n = 0;
	snprintf(path, sizeof(path), "%s/%s", dir, file);
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	while (n == 0 && fgets(line, sizeof(line), f))
		if (strncmp(line, word, len) == 0 && line[len] == ' ')
			n = strtoull(line + len, NULL, 10);
	fclose(f);
	return n;
}

struct cgroup_events cgroup_events(const struct cgroup *cgroup)
{
	struct cgroup_events all = {0};
	for (size_t i = 0; i < cgroup->n; i++) {
		all.killed += cgroup_count(cgroup->dirs[i], "memory.events", "oom_kill") +     /* version 2 */
			      cgroup_count(cgroup->dirs[i], "memory.oom_control", "oom_kill"); /* 1 */
		all.refused += cgroup_count(cgroup->dirs[i], "pids.events", "max");
	}
	return all;
}

void cgroup_tell(const struct cgroup *cgroup)
{
	const struct cgroup_events all = cgroup_events(cgroup);
	if (all.killed > 0)
		say("the limit of memory was reached, and processes were killed for it: %" PRIu64, all.killed);
	if (all.refused > 0)
		say("the limit of processes was reached, and new ones were refused: %" PRIu64, all.refused);
}
