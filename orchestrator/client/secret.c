/* cage secret: values that sandboxes may use without having them. They are written where the service reads them, sealed; the service
 * need not run. A value is never an argument: command lines can be read by everybody. */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/proc/sandbox_id.h"
#include "orchestrator/client/ask.h"
#include "orchestrator/client/api.h"
#include "orchestrator/client/format.h"
#include "orchestrator/client/table.h"
#include "orchestrator/service/seal.h"
#include "orchestrator/service/state_dir.h"

static const char help_text[] =
	"usage: cage secret set [options] NAME\n"
	"       cage secret list [options]\n"
	"       cage secret rm [options] NAME...\n"
	"\n"
	"Values of secrets for sandboxes: cage create --secret NAME lets a sandbox use the one of that\n"
	"name, where its policy says so, without ever having it. NAME is the id of a secret of the\n"
	"policy.\n"
	"\n"
	"  set                  reads the value from stdin, or asks for it on a terminal; 8 bytes to\n"
	"                       16 KiB; a line break at its end is no part of it, and only a key file\n"
	"                       (google-jwt of a policy) may have others\n"
	"  list                 prints the names, and when each was set; values are never shown\n"
	"  rm                   removes them\n"
	"\n"
	"  --json               list: one JSON object a line\n"
	"  --state DIR          the state directory of the service (default $CAGE_STATE, else as\n"
	"                       cage serve has it); it must be of this machine\n"
	"  -h, --help           print this and exit\n"
	"\n"
	"At rest they are sealed under a key in that directory (secrets.key): who has both has them.\n"
	"\n"
	"  printf %s \"$KEY\" | cage secret set anthropic-api-key\n";

enum { OPT_STATE = 1 };

struct secrets {
	const char *given; /* the state directory; NULL: the usual one */
	char state[PATH_MAX];
	bool json;
};

static const struct option long_options[] = {{"state", required_argument, NULL, OPT_STATE},
					     CLIENT_OPTION_JSON,
					     {"help", no_argument, NULL, 'h'},
					     {NULL, 0, NULL, 0}};

static int usage(const char *what, const char *why)
{
	say("%s: %s", what, why);
	say("cage secret --help says more");
	return 2;
}

/* ---- set ---- */

/* A line break is the terminal's or the editor's, not the value's. */
static void drop_line_break(struct seal_value *v)
{
	if (v->len > 0 && v->bytes[v->len - 1] == '\n')
		v->len--;
	if (v->len > 0 && v->bytes[v->len - 1] == '\r')
		v->len--;
}

/* Up to its end. */
static bool read_stdin(struct seal_value *v)
{
	char more;
	ssize_t n = 1;
	while (n > 0 && v->len < sizeof(v->bytes)) {
		n = read(STDIN_FILENO, v->bytes + v->len, sizeof(v->bytes) - v->len);
		v->len += n > 0 ? (size_t)n : 0;
	}
	if (n > 0) /* full: a line break may still follow */
		n = read(STDIN_FILENO, &more, 1) == 1 && (more != '\n' || read(STDIN_FILENO, &more, 1) == 1);
	if (n != 0)
		say("stdin: %s", n < 0 ? strerror(errno) : "a value has at most 16 KiB");
	return n == 0;
}

/* Most policies refuse it later, of a sandbox that somebody waits for. */
static void warn_of_lines(const char *name, const struct seal_value *v)
{
	if (memchr(v->bytes, '\n', v->len) || memchr(v->bytes, '\r', v->len))
		say("%s holds a line break: a policy takes such a value for google-jwt only", name);
}

static int set(const struct secrets *s, char **names, int n)
{
	struct seal_value value = {.len = 0};
	if (n != 1)
		return usage("set", "expected one NAME");
	if (!seal_name_is_good(slice_str(names[0])))
		return usage("NAME", "expected " SANDBOX_ID);
	bool ok = isatty(STDIN_FILENO) ? ask_silently(names[0], value.bytes, sizeof(value.bytes), &value.len)
				       : read_stdin(&value);
	if (ok) {
		drop_line_break(&value);
		ok = seal_write(s->state, names[0], slice_of(value.bytes, value.len));
		if (ok)
			warn_of_lines(names[0], &value);
	}
	seal_value_wipe(&value);
	return ok ? 0 : 1;
}

/* ---- list and rm ---- */

static void add_row(void *arg, const char *name, int64_t changed_s)
{
	char when[FORMAT_TEXT];
	table_cell(arg, name);
	table_cell(arg, format_time(changed_s, when));
}

static void print_row(void *arg, const char *name, int64_t changed_s)
{
	char when[FORMAT_TEXT];
	json_t *row = json_pack("{s:s, s:s}", "name", name, "set_at", format_time(changed_s, when));
	bool *ok = arg;
	*ok = *ok && row && json_print(row);
	json_decref(row);
}

static int list_json(const char *state)
{
	bool ok = true;
	return seal_list(state, print_row, &ok) && ok ? 0 : 1;
}

static int list(const struct secrets *s, char **names, int n)
{
	static const char *const columns[] = {"NAME", "SET", NULL};
	struct table t;
	(void)names;
	if (n != 0)
		return usage("list", "no name is expected");
	if (s->json)
		return list_json(s->state);
	table_begin(&t, columns);
	if (!seal_list(s->state, add_row, &t)) {
		words_free(&t.cells);
		return 1;
	}
	return table_end(&t) ? 0 : 1;
}

static int rm(const struct secrets *s, char **names, int n)
{
	int code = 0;
	if (n == 0)
		return usage("rm", "expected a NAME");
	for (int i = 0; i < n; i++) {
		enum seal_result r = seal_remove(s->state, names[i]);
		if (r == SEAL_NONE)
			say("%s: there is no secret of that name: cage secret list lists them", names[i]);
		if (r != SEAL_FOUND)
			code = 1;
	}
	return code;
}

static const struct {
	const char *name;
	int (*run)(const struct secrets *s, char **names, int n);
} actions[] = {{"set", set}, {"list", list}, {"rm", rm}};

static int act(struct secrets *s, char **words, int n)
{
	if (n < 1)
		return usage("secret", "expected set, list or rm");
	if (!state_dir_path(s->given, s->state, sizeof(s->state)))
		return usage("--state", "is needed: there is no HOME");
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++)
		if (strcmp(words[0], actions[i].name) == 0)
			return actions[i].run(s, words + 1, n - 1);
	return usage(words[0], "expected set, list or rm");
}

int cmd_secret(int argc, char **argv)
{
	static char name[] = "cage: secret";
	struct secrets s = {.given = NULL};
	int opt;
	argv[0] = name; /* with which getopt begins what it says */
	optind = 0;
	while ((opt = getopt_long(argc, argv, "h", long_options, NULL)) != -1) {
		if (opt == OPT_STATE)
			s.given = optarg;
		else if (opt == OPT_JSON)
			s.json = true;
		else if (opt == 'h')
			return fputs(help_text, stdout) >= 0 && fflush(stdout) == 0 ? 0 : 1;
		else {
			say("cage secret --help says more");
			return 2;
		}
	}
	return act(&s, argv + optind, argc - optind);
}
