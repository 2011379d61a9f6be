/* cage verify ID: the probes of cage verify, in a sandbox of a service. */
#include <stdio.h>
#include <string.h>

#include "core/base/say.h"
#include "orchestrator/client/api.h"
#include "orchestrator/client/shown.h"

static const char help_text[] =
	"usage: cage verify [options] ID\n"
	"\n"
	"Tries, inside a sandbox that runs, all known ways out of it, each of which must fail in\n"
	"the way that the room makes it fail, and what must work. Prints a table. What runs in the\n"
	"sandbox goes on; what is tried is in its decision log. A policy that allows names below\n"
	"example.com makes a surprise of it.\n"
	"\n"
	"  --json               print the result as one JSON object\n" CLIENT_HELP "\n"
	"Without ID a room is made for it: cage verify --help.\n"
	"\n"
	"Exit codes: 0 nothing but the cage is reachable, 1 there was a surprise or no result,\n"
	"2 wrong usage.\n";

static const struct option long_options[] = {CLIENT_OPTION_JSON, CLIENT_OPTIONS};

static const struct command_line command_line = {.name = "verify",
						 .help = help_text,
						 .options = long_options,
						 .letters = "h",
						 .least = 1,
						 .most = 1,
						 .wanted = "ID"};

/* A result comes when all was tried. */
#define ANSWER_MS (LIMIT_SERVE_VERIFY_MS + 10000)

/* cage run has none of these, and takes no operand. */
bool verify_asks_service(int argc, char **argv)
{
	static const char *const ours[] = {"--json", "--socket", "--url", "--token-file"};
	for (int i = 1; i < argc; i++)
		for (size_t j = 0; j < sizeof(ours) / sizeof(ours[0]); j++)
			if (strncmp(argv[i], ours[j], strlen(ours[j])) == 0)
				return true;
	return argc > 1 && argv[1][0] != '-';
}

static bool is_result(const char *text)
{
	return strcmp(text, "works") == 0 || strcmp(text, "fails") == 0 || strcmp(text, "unclear") == 0;
}

static void print_probe(const json_t *probe)
{
	static const char *const verdicts[] = {"ok", "surprise", "left_out"}, *const words[] = {"ok", "SURPRISE",
												"left out"};
	const char *verdict = json_text(probe, "verdict"), *reason = json_text(probe, "reason");
	const char *result = json_text(probe, "result");
	const char *word = "?";
	char name[256], safe[512];
	for (size_t i = 0; i < 3; i++)
		if (strcmp(verdict, verdicts[i]) == 0)
			word = words[i];
	snprintf(name, sizeof(name), "%s%s%s", json_text(probe, "name"), reason[0] ? ": " : "", reason);
	printf("%-9s %-9s %s\n", word, is_result(result) ? result : "-", shown(name, safe, sizeof(safe)));
}

static bool print_table(const json_t *answer)
{
	size_t i;
	const json_t *probe;
	json_array_foreach(json_object_get(answer, "probes"), i, probe) print_probe(probe);
	printf("%lld probes, %lld surprises, %lld left out\n",
	       (long long)json_integer_value(json_object_get(answer, "tried")),
	       (long long)json_integer_value(json_object_get(answer, "surprises")),
	       (long long)json_integer_value(json_object_get(answer, "left_out")));
	if (fflush(stdout) == 0 && !ferror(stdout))
		return true;
	say_stdout();
	return false;
}

int cmd_verify_sandbox(int argc, char **argv)
{
	struct client c = {0};
	struct target t;
	enum command_read read = read_command(argc, argv, &command_line, &c, NULL);
	if (read != COMMAND_RUN)
		return command_exit(read);
	if (!id_is_good(c.operands[0]))
		return 2;
	target_sandbox(&t, c.operands[0], "verify");
	struct http_request r = api_request("POST", &t);
	r.answer_ms = ANSWER_MS;
	json_t *answer = api_json(&c, &r);
	client_close(&c);
	bool ok = answer && (c.json ? json_print(answer) : print_table(answer));
	ok = ok && json_is_true(json_object_get(answer, "closed"));
	json_decref(answer);
	return ok ? 0 : 1;
}
