/* cage: the command line of the cage. */
#include <stdio.h>
#include <string.h>

#include "core/base/say.h"
#include "core/base/usage.h"
#include "core/proc/process.h"
#include "orchestrator/bench.h"
#include "orchestrator/client/client.h"
#include "orchestrator/image/image.h"
#include "orchestrator/run.h"
#include "orchestrator/serve.h"
#include "orchestrator/verify.h"
#include "orchestrator/workspace.h"

static const char help_text[] =
	"usage: cage COMMAND [options]\n"
	"\n"
	"Lets an AI agent use the network without being able to leak through it.\n"
	"\n"
	"  run [options] -- CMD   run CMD in a locked room: its only way out is a proxy and a DNS\n"
	"                         filter that let out what a policy allows\n"
	"  apply PATCH            make the changes that an agent made in its view of a workspace\n"
	"  verify [options]       try all known ways out of a room, from inside; with ID, out of a\n"
	"                         sandbox of a service\n"
	"  env [options]          print the variables that bring clients to a proxy, and make\n"
	"                         the files that they name\n"
	"  image check REF        say whether a policy lets containers be made of an image\n"
	"\n"
	"  serve [options]        make sandboxes on demand, for who asks over an HTTP API\n"
	"  bench aci              measure how fast they come on Azure\n"
	"  azure up|plan|down     make, preview and remove what sandboxes on Azure need\n"
	"\n"
	"Sandboxes of a service (cage serve), which these are clients of:\n"
	"\n"
	"  create [-- CMD]        make one, which runs CMD or idles for tool calls\n"
	"  list, show ID          those that there are; all that is known of one\n"
	"  output ID, logs ID     what its command wrote; what was decided about its traffic\n"
	"  exec ID -- CMD         run a program in it, or make another tool call\n"
	"  cp FILE ID:PATH        copy a file into it, or out of it\n"
	"  reload ID POLICY       give it a new policy\n"
	"  stop ID, rm ID         end it; end it and remove all that it wrote\n"
	"  usage                  what all of them used, and what it cost\n"
	"  workflow run FILE      several of them, one after the other, with what they hand on\n"
	"  secret set|list|rm     values that they may use without having them\n"
	"\n"
	"  help COMMAND           print more about one of these, as COMMAND --help does\n"
	"  --version              print the version and exit\n"
	"  -h, --help             print this and exit\n"
	"\n"
	"  cage run --workspace . --agent claude-code -- claude -p \"mend the tests\"\n"
	"  cage run --policy policy.yaml --log log.jsonl --limit time=10m -- ./agent.sh\n"
	"  cage run -- sh                     look around in a room\n"
	"\n"
	"The programs behind it, each with a --help of its own: cage-proxy, the proxy; cage-dns,\n"
	"the DNS filter; cage-gate, the lock (cage-gate --probe says what this host allows);\n"
	"cage-gateway, a proxy for the sandboxes of a network (docs/azure.md); cage-ship, which sends\n"
	"copies of decision logs to Azure (docs/azure-logs.md).\n"
	"\n"
	"CAGE_POLICIES            where the ready policies of --agent are\n"
	"CAGE_SOCKET, CAGE_STATE  where the service is (docs/client.md); CAGE_TOKEN: its token over TCP\n"
	"XDG_STATE_HOME           cage in it keeps the CA and patches of ordinary users; root has\n"
	"                         /var/lib/cage\n"
	"\n"
	"Exit codes: 0 good, 1 failed, 2 wrong usage or wrong policy, 78 the agent can't be locked\n"
	"in; of run, also those of CMD.\n";

static int verify(int argc, char **argv)
{
	return verify_asks_service(argc, argv) ? cmd_verify_sandbox(argc, argv) : cmd_verify(argc, argv);
}

static const struct command {
	const char *name;
	int (*run)(int argc, char **argv);
} commands[] = {{"run", cmd_run},           {"apply", cmd_apply},   {"env", cmd_env},
		{"verify", verify},         {"create", cmd_create}, {"list", cmd_list},
		{"show", cmd_show},         {"logs", cmd_logs},     {"output", cmd_output},
		{"exec", cmd_exec},         {"cp", cmd_cp},         {"reload", cmd_reload},
		{"stop", cmd_stop},         {"rm", cmd_rm},         {"usage", cmd_usage},
		{"secret", cmd_secret},     {"serve", cmd_serve},   {"image", cmd_image},
		{"workflow", cmd_workflow}, {"bench", cmd_bench},   {"azure", cmd_azure}};

static int print(const char *text)
{
	fputs(text, stdout);
	return usage_printed();
}

static const struct command *find(const char *name)
{
	for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
		if (strcmp(name, commands[i].name) == 0)
			return &commands[i];
	return NULL;
}

static int help(const char *name)
{
	char *argv[] = {"cage", "--help", NULL};
	const struct command *c = name ? find(name) : NULL;
	if (c || !name)
		return c ? c->run(2, argv) : print(help_text);
	say("there is no command \"%s\"; cage --help lists them", name);
	return 2;
}

int main(int argc, char **argv)
{
	say_as("cage");
	process_harden();
	const char *name = argc > 1 ? argv[1] : "";
	const struct command *command = find(name);
	if (command)
		return command->run(argc - 1, argv + 1);
	if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
		return help(argc > 2 ? argv[2] : NULL);
	if (strcmp(name, "--version") == 0)
		return print("cage " CAGE_VERSION "\n");
	if (name[0])
		say("there is no command \"%s\"", name);
	say("cage --help lists the commands");
	return 2;
}
