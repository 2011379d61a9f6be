/* The body of a container group. What it has of secrets is in secret volumes and secure values, which Azure does not show again, and
 * in the containers of the proxy and dns alone. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/base64.h"
#include "core/base/say.h"
#include "core/base/wipe.h"
#include "core/proc/key_file.h"
#include "orchestrator/aci/group.h"

#define TOOLS "/cage" /* where the gate's image puts its programs */
#define GATE "/cage/cage-gate"
#define INSIDE "/cage/cage-inside"
#define POLICY "/etc/cage"
#define POLICY_FILE "/etc/cage/policy.yaml"
#define KEYS "/run/cage/keys"
#define WORKSPACE "/workspace"

/* ---- pieces ---- */

static json_t *mount(const char *volume, const char *path, bool is_read_only)
{
	return json_pack("{s:s, s:s, s:b}", "name", volume, "mountPath", path, "readOnly", is_read_only);
}

json_t *group_strings(const char *const *words)
{
	json_t *list = json_array();
	for (; *words; words++)
		json_array_append_new(list, json_string(*words));
	return list;
}

static void add_variable(json_t *list, const char *variable, const char *kind)
{
	const size_t n = strcspn(variable, "=");
	if (variable[n] == '=')
		json_array_append_new(list, json_pack("{s:s%, s:s}", "name", variable, n, kind, variable + n + 1));
}

/* Azure takes hundredths of a processor and tenths of a GB. */
json_t *group_resources(double cpu, double memory)
{
	return json_pack("{s:{s:f, s:f}, s:{s:f, s:f}}", "requests", "cpu", ceil(cpu * 100) / 100, "memoryInGB",
			 ceil(memory * 10) / 10, "limits", "cpu", ceil(cpu * 100) / 100, "memoryInGB",
			 ceil(memory * 10) / 10);
}

/* With a confidential group the platform does a part of what the gate does. */
void group_set_security(const struct aci_options *o, json_t *properties, int uid, json_t *capabilities)
{
	if (strcmp(o->sku, "Confidential") == 0)
		json_object_set_new(properties, "securityContext",
				    json_pack("{s:b, s:b, s:i, s:i, s:{s:[s], s:O}}", "privileged", 0,
					      "allowPrivilegeEscalation", 0, "runAsUser", uid, "runAsGroup", uid,
					      "capabilities", "drop", "ALL", "add", capabilities));
	json_decref(capabilities);
}

json_t *group_container(const char *name, const char *image, json_t *properties)
{
	json_object_set_new(properties, "image", json_string(image));
	return json_pack("{s:s, s:o}", "name", name, "properties", properties);
}

/* ---- helpers ---- */

static json_t *helper_command(const struct aci *a, const char *program, const char *listen)
{
	const char *const words[] = {program,    "--policy",      POLICY_FILE,
				     "--listen", listen,          "--log",
				     "-",        "--admin",       "off",
				     "--ca-dir", "/var/lib/cage", "--keys",
				     KEYS,       "--sandbox",     a->options->run.sandbox,
				     NULL};
	return group_strings(words);
}

/* All that the sandbox may send is the proxy's to count. */
static void add_budget(const struct aci *a, json_t *command)
{
	const char *out = words_option(&a->options->run.proxy, "--out");
	if (!out)
		return;
	json_array_append_new(command, json_string("--out"));
	json_array_append_new(command, json_string(out));
}

static json_t *helper(const struct aci *a, const char *program, const char *listen, const struct words *env)
{
	json_t *variables = json_array();
	for (size_t i = 0; env && i < env->n; i++)
		add_variable(variables, env->list[i], "secureValue");
	if (env && a->options->identity_client)
		json_array_append_new(variables, json_pack("{s:s, s:s}", "name", "AZURE_CLIENT_ID", "value",
							   a->options->identity_client));
	json_t *p = json_pack("{s:o, s:o, s:o, s:[o, o]}", "command", helper_command(a, program, listen),
			      "environmentVariables", variables, "resources",
			      group_resources(GROUP_HELPER_CPU, GROUP_HELPER_MEMORY), "volumeMounts",
			      mount("policy", POLICY, true), mount("keys", KEYS, true));
	json_t *command = json_object_get(p, "command");
	json_array_append_new(command, json_string("--resolver"));
	json_array_append_new(command, json_string(a->options->resolver));
	if (env)
		add_budget(a, command);
	group_set_security(a->options, p, GROUP_HELPER_USER, json_array());
	return p;
}

/* ---- the agent ---- */

/* What each process is limited to; Azure limits all of them together. */
static void add_limits(const struct aci *a, json_t *list)
{
	char text[128] = "";
	const struct room_limits *l = &a->limits;
	const struct {
		const char *name;
		uint64_t value;
	} rows[] = {{"pids", l->pids}, {"files", l->files}, {"fsize", l->fsize}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const size_t n = strlen(text);
		if (rows[i].value)
			snprintf(text + n, sizeof(text) - n, "%s%s=%llu", n > 0 ? "," : "", rows[i].name,
				 (unsigned long long)rows[i].value);
	}
	if (!text[0])
		return;
	json_array_append_new(list, json_string("--limit"));
	json_array_append_new(list, json_string(text));
}

static void add_gate_options(const struct aci *a, json_t *list)
{
	json_array_append_new(list, json_string("--names"));
	if (a->n_files > 0) {
		json_array_append_new(list, json_string("--bind-ro"));
		json_array_append_new(list, json_string(ACI_FILES));
	}
	add_limits(a, list);
}

/* The gate locks it in, cage-inside proves that from within, and only then is the command run. */
static json_t *agent_command(const struct aci *a)
{
	json_t *list = json_array();
	const char *const gate[] = {GATE,  "--mode", "seccomp", "--uid",     "1000",    "--bind-ro",
				    TOOLS, "--bind", WORKSPACE, "--workdir", WORKSPACE, NULL};
	for (const char *const *w = gate; *w; w++)
		json_array_append_new(list, json_string(*w));
	add_gate_options(a, list);
	for (size_t i = 0; i < a->agent_env.n; i++) {
		json_array_append_new(list, json_string("--env"));
		json_array_append_new(list, json_stringn(a->agent_env.list[i], strcspn(a->agent_env.list[i], "=")));
	}
	json_array_append_new(list, json_string("--"));
	json_array_append_new(list, json_string(INSIDE));
	json_array_append_new(list, json_string("--enter"));
	json_array_append_new(list, json_string("127.0.0.1:8080"));
	if (a->n_files > 0) {
		json_array_append_new(list, json_string("--files"));
		json_array_append_new(list, json_string(ACI_FILES "/" ACI_FILES_NAME));
	}
	json_array_append_new(list, json_string("--"));
	for (size_t i = 0; i < a->command.n; i++)
		json_array_append_new(list, json_string(a->command.list[i]));
	return list;
}

/* A group has at least one processor and 1 GB; what is missing is the agent's. */
static json_t *agent_resources(const struct aci *a)
{
	const double helpers = aci_is_split(a->options) ? 1 : 2;
	const double helpers_cpu = helpers * GROUP_HELPER_CPU, helpers_memory = helpers * GROUP_HELPER_MEMORY;
	double cpu = a->limits.cpu ? (double)a->limits.cpu / 1000 : 1;
	double memory = a->limits.mem ? (double)a->limits.mem / (1024.0 * 1024 * 1024) : 1;
	if (cpu + helpers_cpu < 1)
		cpu = 1 - helpers_cpu;
	if (memory + helpers_memory < 1)
		memory = 1 - helpers_memory;
	return group_resources(cpu, memory);
}

static json_t *agent(const struct aci *a)
{
	json_t *variables = json_array();
	for (size_t i = 0; i < a->agent_env.n; i++)
		add_variable(variables, a->agent_env.list[i],
			     group_is_credential(a, a->agent_env.list[i]) ? "secureValue" : "value");
	json_t *p = json_pack("{s:o, s:o, s:o, s:[o, o]}", "command", agent_command(a), "environmentVariables",
			      variables, "resources", agent_resources(a), "volumeMounts", mount("tools", TOOLS, true),
			      mount("workspace", WORKSPACE, false));
	group_set_security(a->options, p, 0,
			   json_pack("[s, s, s]", "SETUID", "SETGID", "SETPCAP")); /* to give them up */
	return p;
}

/* ---- volumes ---- */

json_t *group_encoded(const void *bytes, size_t len)
{
	char *text = malloc(BASE64_DIGITS(len) + 1);
	if (!text)
		return NULL;
	base64_write(slice_of(bytes, len), text);
	json_t *value = json_stringn(text, BASE64_DIGITS(len));
	wipe_free(text);
	return value;
}

/* Without a run there is none of it, as in the body of which a pool is made. */
static json_t *encoded_file(const char *path)
{
	if (!path)
		return json_string("");
	static char bytes[LIMIT_POLICY_FILE + 1];
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, bytes, sizeof(bytes)) : -1;
	if (fd >= 0)
		close(fd);
	if (n <= 0 || (size_t)n > LIMIT_POLICY_FILE) {
		say("%s: can't be read, or is too long", path);
		return NULL;
	}
	json_t *value = group_encoded(bytes, (size_t)n);
	explicit_bzero(bytes, sizeof(bytes));
	return value;
}

/* Keys of which this side knows what the other has to come to as well: placeholders, and fingerprints in the log. */
static json_t *key(const char *dir, const char *name)
{
	if (!dir)
		return json_string("");
	unsigned char bytes[32];
	json_t *value = key_file_open(dir, name, bytes, sizeof(bytes)) ? group_encoded(bytes, sizeof(bytes)) : NULL;
	explicit_bzero(bytes, sizeof(bytes));
	return value;
}

static json_t *volumes(const struct aci *a)
{
	const struct run_options *run = &a->options->run;
	json_t *list =
		json_pack("[{s:s, s:{}}, {s:s, s:{}}]", "name", "tools", "emptyDir", "name", "workspace", "emptyDir");
	if (aci_is_split(a->options))
		return list;
	json_t *policy = encoded_file(run->policy), *placeholders = key(run->ca_dir, "placeholder.key"),
	       *fingerprints = key(run->ca_dir, KEY_FILE_FINGERPRINT);
	if (policy && placeholders && fingerprints) {
		json_array_append_new(list,
				      json_pack("{s:s, s:{s:o}}", "name", "policy", "secret", "policy.yaml", policy));
		json_array_append_new(list,
				      json_pack("{s:s, s:{s:o, s:o}}", "name", "keys", "secret", "placeholder.key",
						placeholders, KEY_FILE_FINGERPRINT, fingerprints));
		return list;
	}
	json_decref(policy);
	json_decref(placeholders);
	json_decref(fingerprints);
	json_decref(list);
	return NULL;
}

/* ---- the group ---- */

static json_t *containers(const struct aci *a)
{
	const struct aci_options *o = a->options;
	json_t *list = json_array();
	json_array_append_new(list, group_container("agent", o->admit ? o->admit : o->image, agent(a)));
	if (aci_is_split(o)) {
		json_array_append_new(list, group_relay(a));
		return list;
	}
	json_array_append_new(list, group_container("proxy", o->proxy_image,
						    helper(a, "cage-proxy", "127.0.0.1:8080", &a->proxy_env)));
	json_array_append_new(list, group_container("dns", o->dns_image, helper(a, "cage-dns", "127.0.0.1:53", NULL)));
	return list;
}

/* With the user of its own image: the volume can be written to by all, and no right is needed for it. */
static json_t *init_containers(const struct aci *a)
{
	json_t *p = json_pack("{s:[s, s], s:[o]}", "command", "/usr/bin/cage-install", TOOLS, "volumeMounts",
			      mount("tools", TOOLS, false));
	group_set_security(a->options, p, GROUP_HELPER_USER, json_array());
	return json_pack("[o]", group_container("gate", a->options->gate_image, p));
}

/* Which of them there are is the topology's to say. NULL: there is none. */
static json_t *properties_of(const json_t *list, enum aci_container which)
{
	size_t i;
	json_t *one;
	json_array_foreach(list, i, one)
	{
		const char *name = json_string_value(json_object_get(one, "name"));
		if (name && strcmp(name, aci_containers[which]) == 0)
			return json_object_get(one, "properties");
	}
	return NULL;
}

/* One of its own is no secret: the gate keeps the agent from asking for its tokens. */
static void add_identity(const struct aci_options *o, json_t *body)
{
	if (!o->identity)
		return;
	json_t *all = json_object();
	for (size_t i = 0; i < o->identities.n; i++)
		json_object_set_new(all, o->identities.list[i], json_object());
	json_object_set_new(body, "identity",
			    json_pack("{s:s, s:o}", "type", "UserAssigned", "userAssignedIdentities", all));
}

json_t *group_body(const struct aci *a, const char *region)
{
	const struct aci_options *o = a->options;
	json_t *own = volumes(a), *list = containers(a);
	if (!own) {
		json_decref(list);
		return NULL;
	}
	files_add(a, own, json_object_get(properties_of(list, ACI_AGENT), "volumeMounts"));
	json_t *properties =
		json_pack("{s:s, s:s, s:s, s:o, s:o, s:o}", "sku", o->sku, "osType", "Linux", "restartPolicy", "Never",
			  "initContainers", init_containers(a), "containers", list, "volumes", own);
	if (o->subnet)
		json_object_set_new(properties, "subnetIds", json_pack("[{s:s}]", "id", o->subnet));
	json_t *body = json_pack("{s:s, s:{s:s, s:s}, s:o}", "location", region, "tags", ACI_TAG_ID, o->run.sandbox,
				 ACI_TAG_STATE, o->state, "properties", properties);
	add_identity(o, body);
	registry_add(a, properties);
	vault_add(a, properties, properties_of(list, ACI_PROXY));
	return body;
}
