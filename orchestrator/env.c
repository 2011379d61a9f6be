/* cage env: the env kit for use elsewhere, such as a container image or a shell beside a proxy that runs already. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "core/base/say.h"
#include "core/base/usage.h"
#include "core/proc/key_file.h"
#include "orchestrator/env_kit.h"
#include "orchestrator/misuse.h"
#include "orchestrator/run.h"

#define PATH_ROOM 4096

static const char help_text[] =
	"usage: cage env [options]\n"
	"\n"
	"Makes the files that bring the usual programs to a proxy and let them trust its CA, and\n"
	"prints the variables that name them, as a shell reads them: eval \"$(cage env)\".\n"
	"\n"
	"  --proxy URL      where the proxy is (default http://127.0.0.1:8080)\n"
	"  --ca-dir DIR     ca.pem and bundle.pem of that proxy (default as cage-proxy has it)\n"
	"  --kit DIR        where the files are made (default: kit in that directory)\n"
	"  -h, --help       print this and exit\n"
	"\n"
	"Exit codes: 0 good, 1 failed, 2 wrong usage.\n";

enum { OPT_PROXY = 1, OPT_CA_DIR, OPT_KIT, OPT_HELP };

static const struct option long_options[] = {
	{"proxy", required_argument, NULL, OPT_PROXY},
	{"ca-dir", required_argument, NULL, OPT_CA_DIR},
	{"kit", required_argument, NULL, OPT_KIT},
	{"help", no_argument, NULL, OPT_HELP},
	{NULL, 0, NULL, 0},
};

/* What is printed stands in single quotes, in files of several formats. */
static bool is_plain(const char *text)
{
	for (const char *c = text; *c; c++)
		if (*c <= ' ' || *c > '~' || strchr("'\"\\$`", *c))
			return false;
	return text[0] != '\0';
}

static int print_file(const char *kit)
{
	char path[PATH_ROOM + 16], line[PATH_ROOM];
	snprintf(path, sizeof(path), "%s/env.sh", kit);
	FILE *f = fopen(path, "re");
	if (!f)
		return 1;
	while (fgets(line, sizeof(line), f))
		fputs(line, stdout);
	fclose(f);
	return usage_printed();
}

static int print_env(const char *proxy, const char *ca_dir, const char *kit)
{
	char dir[PATH_ROOM], place[PATH_ROOM];
	if (!key_dir_path(ca_dir, dir, sizeof(dir))) {
		say("no place for the CA: give --ca-dir");
		return 2;
	}
	int n = kit ? snprintf(place, sizeof(place), "%s", kit) : snprintf(place, sizeof(place), "%s/kit", dir);
	if (n >= (int)sizeof(place) || place[0] != '/' || !is_plain(place) || !is_plain(proxy)) {
		say("--%s and --proxy: expected an absolute path and a URL, without quotes and spaces",
		    kit ? "kit" : "ca-dir");
		return 2;
	}
	if (mkdir(place, 0755) != 0 && errno != EEXIST) {
		say("%s: %s", place, strerror(errno));
		return 1;
	}
	const struct kit_way way = {.proxy = proxy, .direct = ""}; /* whose loopback it is, is not known here */
	return kit_fill(place, dir, &way) ? print_file(place) : 1;
}

int cmd_env(int argc, char **argv)
{
	char word[USAGE_WORD];
	const char *proxy = "http://127.0.0.1:8080", *ca_dir = NULL, *kit = NULL;
	int opt;
	while ((opt = usage_next(argc, argv, ":h", long_options, NULL)) != -1) {
		if (opt == OPT_PROXY) {
			proxy = optarg;
		} else if (opt == OPT_CA_DIR) {
			ca_dir = optarg;
		} else if (opt == OPT_KIT) {
			kit = optarg;
		} else if (opt == OPT_HELP || opt == 'h') {
			fputs(help_text, stdout);
			return usage_printed();
		} else {
			const char *why = usage_fault(opt, argv, long_options, word);
			return wrong_usage("env", word, why);
		}
	}
	if (optind == argc)
		return print_env(proxy, ca_dir, kit);
	return wrong_usage("env", argv[optind], "is not an option");
}
