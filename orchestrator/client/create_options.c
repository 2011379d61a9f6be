/* The options of cage create, and the help text that describes them. */
#include <stdio.h>
#include <string.h>

#include "core/base/say.h"
#include "orchestrator/client/create.h"

static const char help_text[] =
	"usage: cage create [options] [-- CMD [ARGS]]\n"
	"\n"
	"Creates a sandbox that runs CMD, or that idles for tool calls (cage exec) without one,\n"
	"and prints its id. Waits until it runs, and says meanwhile what it waits for.\n"
	"\n"
	"  --profile NAME       of the service's configuration; what is not said here is as it says\n"
	"  --policy FILE|NAME   the policy: a file (with a slash or .yaml in its name, or - for\n"
	"                       stdin), or one of the service's\n"
	"  --allow HOST         may be reached with https, and nothing else that is not allowed too;\n"
	"                       *.example.com are all names below that\n"
	"  --no-network         nothing may be reached\n"
	"  --file PATH=FILE     a text that is at PATH in its workspace from the start; - is stdin\n"
	"  --env NAME[=VALUE]   a variable for CMD; without a value, ours\n"
	"  --secret ID          the policy's secret ID may be used, with the value that\n"
	"                       cage secret set gave it; CMD sees a placeholder\n"
	"  --tool NAME          a tool that may be called: shell_exec, file_read, file_write,\n"
	"                       file_list, http_request; none: no tool (default: all)\n"
	"  --block REGEX        shell_exec of what matches is denied\n"
	"  --limit WHAT=N,...   cpu, memory, pids, disk, wall (time of CMD), egress, output: such as\n"
	"                       cpu=0.5,memory=512MiB,wall=10m\n"
	"  --lifetime TIME      when it ends in any case, such as 1h\n"
	"  --keep               its workspace, output and log stay after its end, until cage rm\n"
	"  --label NAME=VALUE   to find it, and to count what it used\n"
	"  --publish PORT[:N]   its PORT can be connected to on port N of this machine (default: one\n"
	"                       that is free; cage show says which), from this machine only; not 53,\n"
	"                       80, 443 and 8080, which are cage's own there\n"
	"  --rootfs NAME        a root that the service's configuration names, read-only\n"
	"  --image REF          what it is made of: REGISTRY/REPOSITORY@sha256:HEX, which the policy\n"
	"                       has to let in; for the backends podman and aci\n"
	"  --backend NAME       local, podman or aci, if the service's configuration has it\n"
	"  -f, --follow         show its output, and end with the exit code of CMD\n"
	"  -d, --detach         do not wait until it runs\n"
	"  --json               print all that is known of it in the place of the id\n" CLIENT_HELP "\n"
	"--policy, --allow and --no-network exclude each other; options that name one of several\n"
	"things may be repeated.\n"
	"\n"
	"  cage create --allow api.example.com --file main.py=./main.py -f -- python3 main.py\n"
	"\n"
	"Exit codes: 0 it runs (with --detach: it will), 1 it could not be made, 2 wrong usage.\n"
	"With -f: that of CMD; 128 and the number of the signal that killed it; 124 its time was\n"
	"up; 137 it was stopped; 1 it failed before it ran.\n";

enum {
	OPT_PROFILE = 1,
	OPT_POLICY,
	OPT_ALLOW,
	OPT_NO_NETWORK,
	OPT_FILE,
	OPT_ENV,
	OPT_SECRET,
	OPT_TOOL,
	OPT_BLOCK,
	OPT_LIMIT,
	OPT_LIFETIME,
	OPT_KEEP,
	OPT_LABEL,
	OPT_PUBLISH,
	OPT_ROOTFS,
	OPT_IMAGE,
	OPT_BACKEND
};

static const struct option long_options[] = {
	{"profile", required_argument, NULL, OPT_PROFILE},
	{"policy", required_argument, NULL, OPT_POLICY},
	{"allow", required_argument, NULL, OPT_ALLOW},
	{"no-network", no_argument, NULL, OPT_NO_NETWORK},
	{"file", required_argument, NULL, OPT_FILE},
	{"env", required_argument, NULL, OPT_ENV},
	{"secret", required_argument, NULL, OPT_SECRET},
	{"tool", required_argument, NULL, OPT_TOOL},
	{"block", required_argument, NULL, OPT_BLOCK},
	{"limit", required_argument, NULL, OPT_LIMIT},
	{"lifetime", required_argument, NULL, OPT_LIFETIME},
	{"keep", no_argument, NULL, OPT_KEEP},
	{"label", required_argument, NULL, OPT_LABEL},
	{"publish", required_argument, NULL, OPT_PUBLISH},
	{"rootfs", required_argument, NULL, OPT_ROOTFS},
	{"image", required_argument, NULL, OPT_IMAGE},
	{"backend", required_argument, NULL, OPT_BACKEND},
	{"follow", no_argument, NULL, 'f'},
	{"detach", no_argument, NULL, 'd'},
	CLIENT_OPTION_JSON,
	CLIENT_OPTIONS,
};

static bool put_text(struct create *c, const char *key, const char *value)
{
	if (json_object_set_new(c->body, key, json_string(value)) == 0)
		return true;
	say("--%s: expected text (UTF-8)", key);
	return false;
}

static bool turn_on(bool *flag)
{
	return *flag = true;
}

static bool put_allow(struct create *c, const char *host)
{
	json_t *network = create_member(c->body, "network", json_pack("{s:s}", "mode", "allowlist"));
	c->has_allow = true;
	return create_put_word(network, "domain_allowlist", host);
}

static bool put_policy(struct create *c, const char *value)
{
	c->has_policy = true;
	c->policy = value;
	return create_put_policy(c->body, value);
}

static bool cut_off(struct create *c)
{
	c->is_cut_off = true;
	return json_object_set_new(c->body, "network", json_pack("{s:s}", "mode", "none")) == 0;
}

static bool put_tool(struct create *c, const char *name)
{
	if (strcmp(name, "none") == 0)
		return create_member(c->body, "tools", json_array()) != NULL;
	return create_put_word(c->body, "tools", name);
}

static bool take_option(void *own, int opt, const char *value)
{
	struct create *c = own;
	switch (opt) {
	case OPT_PROFILE:
		return put_text(c, "profile", value);
	case OPT_POLICY:
		return put_policy(c, value);
	case OPT_ALLOW:
		return put_allow(c, value);
	case OPT_NO_NETWORK:
		return cut_off(c);
	case OPT_FILE:
		return create_put_file(c->body, value);
	case OPT_ENV:
		return create_put_env(c->body, value);
	case OPT_SECRET:
		return create_put_word(c->body, "secrets", value);
	case OPT_TOOL:
		return put_tool(c, value);
	case OPT_BLOCK:
		return create_put_word(c->body, "blocked_commands", value);
	case OPT_LIMIT:
		return create_put_limits(c->body, value);
	case OPT_LIFETIME:
		return create_put_lifetime(c->body, value);
	case OPT_KEEP:
		return json_object_set_new(c->body, "keep", json_true()) == 0;
	case OPT_LABEL:
		return create_put_label(c->body, value);
	case OPT_PUBLISH:
		return create_put_publish(c->body, value);
	case OPT_ROOTFS:
		return put_text(c, "rootfs", value);
	case OPT_IMAGE:
		return put_text(c, "image", value);
	case OPT_BACKEND:
		return put_text(c, "backend", value);
	case 'f':
		return turn_on(&c->follow);
	case 'd':
		return turn_on(&c->detach);
	default:
		return false;
	}
}

const struct command_line create_command_line = {
	.name = "create",
	.help = help_text,
	.options = long_options,
	.letters = "hfd",
	.take = take_option,
	.may_have_command = true,
};

bool create_complete(struct create *c, const struct client *client)
{
	char **command = client->command;
	if (c->has_allow + c->has_policy + c->is_cut_off > 1)
		return usage_error(&create_command_line, "--policy, --allow and --no-network",
				   "only one of them can be meant");
	if (c->follow && c->detach)
		return usage_error(&create_command_line, "--follow and --detach", "only one of them can be meant");
	if (c->follow && client->json)
		return usage_error(&create_command_line, "--follow and --json", "only one of them can be meant");
	if (command && !command[0])
		return usage_error(&create_command_line, "--", "a command is expected behind it");
	if (c->follow && !command && !json_object_get(c->body, "profile"))
		return usage_error(&create_command_line, "--follow", "without a command there is no output");
	for (; command && *command; command++)
		if (!create_put_word(c->body, "command", *command))
			return false;
	return true;
}
