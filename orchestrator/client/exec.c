/* cage exec: a tool call in a sandbox. A command is the tool shell_exec, and its end is ours. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/base64.h"
#include "core/base/say.h"
#include "core/base/units.h"
#include "orchestrator/client/api.h"
#include "orchestrator/client/file_text.h"
#include "orchestrator/client/quote.h"
#include "core/base/write_all.h"

static const char help_text[] =
	"usage: cage exec [options] ID -- CMD [ARGS]\n"
	"       cage exec [options] ID --tool NAME [JSON]\n"
	"\n"
	"Runs CMD in a sandbox that runs, by its shell, and prints what it writes when it has\n"
	"ended. A CMD of one word may be a whole script. Each call is in the sandbox's decision\n"
	"log, allowed or denied.\n"
	"\n"
	"  --timeout TIME       after which it is ended: seconds, or such as 5m (default 60)\n"
	"  --tool NAME          another tool than shell_exec: file_read, file_write, file_list,\n"
	"                       http_request; JSON are its arguments (GET /api/v1/tools says which\n"
	"                       there are; - reads them from stdin), and its result is printed as\n"
	"                       one JSON object\n"
	"  --json               print the whole result of CMD, and end with 0 where it was run\n" CLIENT_HELP "\n"
	"  cage exec a1b2c3 -- python3 -c 'print(1)'\n"
	"  cage exec a1b2c3 --tool file_list '{\"path\": \".\"}'\n"
	"\n"
	"Exit codes: that of CMD; 128 and the number of the signal that killed it; 124 its time was\n"
	"up; 1 it was denied or could not be run; 2 wrong usage.\n";

#define EXIT_TIMED_OUT 124
#define EXIT_BY_SIGNAL 128

enum { OPT_TIMEOUT = 1, OPT_TOOL };

static const struct option long_options[] = {{"timeout", required_argument, NULL, OPT_TIMEOUT},
					     {"tool", required_argument, NULL, OPT_TOOL},
					     CLIENT_OPTION_JSON,
					     CLIENT_OPTIONS};

struct call {
	uint64_t timeout_s; /* 0: the service's default */
	const char *tool;   /* NULL: it is a command */
};

static bool take_timeout(struct call *o, const char *value)
{
	struct slice text = slice_str(value);
	if ((slice_to_u64(text, LIMIT_CLIENT_TOOL_S, &o->timeout_s) && o->timeout_s > 0) ||
	    units_duration(text, LIMIT_CLIENT_TOOL_S, &o->timeout_s))
		return true;
	say("--timeout %s: expected seconds, or a time such as 5m, at most 1h", value);
	return false;
}

static bool take_option(void *own, int opt, const char *value)
{
	struct call *o = own;
	if (opt == OPT_TIMEOUT)
		return take_timeout(o, value);
	o->tool = value;
	return true;
}

static const struct command_line command_line = {.name = "exec",
						 .help = help_text,
						 .options = long_options,
						 .letters = "h",
						 .take = take_option,
						 .least = 1,
						 .most = 2,
						 .wanted = "ID -- CMD, or ID --tool NAME JSON",
						 .may_have_command = true};

/* ---- asking ---- */

static json_t *command_arguments(char **command)
{
	char *script = shell_quote(command);
	json_t *text = script ? json_string(script) : NULL;
	if (!text)
		say("the command: expected text (UTF-8), and not more than %zu bytes of it", LIMIT_CLIENT_TEXT);
	free(script);
	return text ? json_pack("{s:o}", "command", text) : NULL;
}

static json_t *tool_arguments(const char *text)
{
	json_error_t error;
	size_t len = strlen(text);
	char *from_stdin = strcmp(text, "-") == 0 ? file_text("JSON", text, &len) : NULL;
	if (strcmp(text, "-") == 0 && !from_stdin)
		return NULL;
	json_t *value =
		json_loadb(from_stdin ? from_stdin : text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, &error);
	free(from_stdin);
	if (json_is_object(value))
		return value;
	say("the arguments of the tool: expected a JSON object%s%s", value ? "" : ": ", value ? "" : error.text);
	json_decref(value);
	return NULL;
}

/* What is asked for, as the API has it; NULL: it was said. */
static json_t *call_body(const struct call *o, const struct client *c)
{
	const char *given = c->n_operands > 1 ? c->operands[1] : "{}";
	json_t *arguments = o->tool ? tool_arguments(given) : command_arguments(c->command);
	if (!arguments)
		return NULL;
	json_t *body = json_pack("{s:s, s:o}", "tool", o->tool ? o->tool : "shell_exec", "arguments", arguments);
	if (!body)
		say("--tool: expected text (UTF-8)");
	else if (o->timeout_s > 0)
		json_object_set_new(body, "timeout_seconds", json_integer((json_int_t)o->timeout_s));
	return body;
}

static json_t *ask(struct client *c, const struct call *o, const json_t *body)
{
	struct target t;
	target_sandbox(&t, c->operands[0], "tools/execute");
	json_t *answer = api_post(c, &t, body, NULL, (unsigned)(o->timeout_s ? o->timeout_s : 60) * 1000);
	json_t *result = json_incref(json_object_get(answer, "result"));
	if (answer && !json_is_object(result))
		say("the service at %s: there is no result in what it says", c->place.name);
	json_decref(answer);
	return result;
}

/* ---- what came of it ---- */

static bool print_bytes(struct slice bytes, int fd)
{
	if (write_all(fd, bytes.ptr, bytes.len))
		return true;
	if (fd == STDOUT_FILENO)
		say_stdout();
	return false;
}

static bool print_base64(struct slice digits, int fd)
{
	const size_t room = BASE64_ROOM(digits.len);
	char *bytes = malloc(room + 1);
	size_t n = 0;
	bool ok = bytes && base64_read(digits, bytes, room, &n);
	if (!ok)
		say("the service says what is no base64");
	ok = ok && print_bytes(slice_of(bytes, n), fd);
	free(bytes);
	return ok;
}

/* What is no text comes as base64. */
static bool print_stream(const json_t *result, const char *name, int fd)
{
	char other[32];
	snprintf(other, sizeof(other), "%s_base64", name);
	const json_t *text = json_object_get(result, name), *digits = json_object_get(result, other);
	if (json_is_string(digits))
		return print_base64(slice_str(json_string_value(digits)), fd);
	return !json_is_string(text) || print_bytes(slice_of(json_string_value(text), json_string_length(text)), fd);
}

static int result_code(const json_t *result)
{
	const json_t *code = json_object_get(result, "exit_code"), *killed_by = json_object_get(result, "signal");
	if (json_is_true(json_object_get(result, "timed_out")))
		return EXIT_TIMED_OUT;
	if (json_is_integer(killed_by))
		return EXIT_BY_SIGNAL + ((int)json_integer_value(killed_by) & 0x7f);
	return json_is_integer(code) ? (int)json_integer_value(code) & 0xff : 1;
}

static int print_command(const json_t *result)
{
	if (!print_stream(result, "stdout", STDOUT_FILENO) || !print_stream(result, "stderr", STDERR_FILENO))
		return 1;
	if (json_is_true(json_object_get(result, "truncated")))
		say("it wrote more than is passed on");
	if (json_is_true(json_object_get(result, "timed_out")))
		say("its time was up");
	return result_code(result);
}

static int call(struct client *c, const struct call *o)
{
	json_t *body = call_body(o, c);
	if (!body)
		return 2;
	json_t *result = ask(c, o, body);
	json_decref(body);
	if (!result)
		return 1;
	int code = 1;
	if (o->tool || c->json)
		code = json_print(result) ? 0 : 1;
	else
		code = print_command(result);
	json_decref(result);
	return code;
}

static bool is_whole(const struct call *o, const struct client *c)
{
	if (o->tool && c->command)
		return usage_error(&command_line, "--tool", "a command is only for shell_exec, without --tool");
	if (!o->tool && (!c->command || !c->command[0]))
		return usage_error(&command_line, "CMD", "is required behind --, unless --tool names another tool");
	if (!o->tool && c->n_operands > 1)
		return usage_error(&command_line, c->operands[1], "is not expected here; a command stands behind --");
	return id_is_good(c->operands[0]);
}

int cmd_exec(int argc, char **argv)
{
	struct client c = {0};
	struct call o = {0};
	enum command_read r = read_command(argc, argv, &command_line, &c, &o);
	if (r != COMMAND_RUN)
		return command_exit(r);
	int code = is_whole(&o, &c) ? call(&c, &o) : 2;
	client_close(&c);
	return code;
}
