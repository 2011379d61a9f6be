/* Where ready policies are looked for. */
#include "orchestrator/presets.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/base/slice.h"
#include "core/base/text.h"
#include "orchestrator/launch.h"

#define PATH_ROOM 4096
#define LIST_ROOM 1024

static const struct preset_extra {
	const char *name, *env[6];
} extras[] = {
	{"claude-code",
	 {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1",
	  "DISABLE_AUTOUPDATER=1", NULL}},
	{"qwen-code",
	 {"OPENAI_BASE_URL=https://dashscope.aliyuncs.com/compatible-mode/v1", "OPENAI_MODEL=qwen3-coder-plus", NULL}},
	{"opencode", {"OPENCODE_DISABLE_AUTOUPDATE=1", NULL}},
	{"aider", {"AIDER_ANALYTICS=false", "AIDER_CHECK_UPDATE=false", NULL}},
	{"local-llm",
	 {"OLLAMA_HOST=http://llm.internal:80", "OPENAI_BASE_URL=http://llm.internal/v1", "OPENAI_API_KEY=none", NULL}},
};

const char *const *preset_env(const char *name)
{
	static const char *const none[] = {NULL};
	for (size_t i = 0; i < sizeof(extras) / sizeof(extras[0]); i++)
		if (strcmp(extras[i].name, name) == 0)
			return extras[i].env;
	return none;
}

/* The first of the places that is there. */
static bool find_dir(char dir[PATH_ROOM])
{
	const char *given = getenv("CAGE_POLICIES");
	if (given && given[0])
		return snprintf(dir, PATH_ROOM, "%s", given) < PATH_ROOM;
	if (launch_path("../share/cage/policies", dir, PATH_ROOM) && access(dir, X_OK) == 0)
		return true;
	return snprintf(dir, PATH_ROOM, "%s", CAGE_SOURCE_POLICIES) < PATH_ROOM && access(dir, X_OK) == 0;
}

/* One that is not there yet would come before that of the source tree. */
void preset_places(struct words *out)
{
	char dir[PATH_ROOM];
	const char *given = getenv("CAGE_POLICIES");
	if (given && given[0])
		words_add(out, "%s", given);
	bool has_name = launch_path("../share/cage/policies", dir, PATH_ROOM);
	if (has_name)
		words_add(out, "%s", dir);
	if (!has_name || access(dir, X_OK) != 0)
		words_add(out, "%s", CAGE_SOURCE_POLICIES);
}

/* It becomes a file name. */
static bool is_plain(const char *name)
{
	return name[0] != '\0' && name[0] != '.' && !strchr(name, '/');
}

/* " claude-code codex ..." */
static void list_names(const char *dir, struct text *out)
{
	struct dirent **all = NULL;
	int n = scandir(dir, &all, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		struct slice name = slice_str(all[i]->d_name);
		if (slice_ends(name, SLICE(".yaml")) && !slice_eq(name, SLICE("catalogue.yaml"))) {
			text_put_char(out, ' ');
			text_put(out, slice_head(name, name.len - 5));
		}
		free(all[i]);
	}
	free(all);
}

bool preset_find(const char *name, char *out, size_t room)
{
	char dir[PATH_ROOM], names[LIST_ROOM];
	if (!find_dir(dir)) {
		say("the ready policies can't be found: set CAGE_POLICIES, or give --policy");
		return false;
	}
	if (is_plain(name) && snprintf(out, room, "%s/%s.yaml", dir, name) < (int)room && access(out, R_OK) == 0)
		return true;
	struct text list = text_in(names, sizeof(names));
	list_names(dir, &list);
	say("there is no ready policy \"%s\" in %s; there are:%.*s", name, dir, SLICE_FMT(text_slice(&list)));
	return false;
}
