/* The shape of a create, key by key. */
#include "orchestrator/service/create.h"

#include <string.h>

#include "core/base/limits.h"
#include "orchestrator/service/blocked.h"
#include "orchestrator/service/config_profiles.h"

const char *const tool_names[TOOLS] = {"shell_exec", "file_read", "file_write", "file_list", "http_request"};

/* ---- names ---- */

static bool is_one_of(struct slice s, const char *set)
{
	for (size_t i = 0; i < s.len; i++)
		if (!ascii_is_digit((unsigned char)s.ptr[i]) && !(s.ptr[i] >= 'a' && s.ptr[i] <= 'z') &&
		    !(s.ptr[i] && strchr(set, s.ptr[i])))
			return false;
	return true;
}

bool label_name_is_good(struct slice s)
{
	return s.len > 0 && s.len <= LIMIT_SERVE_LABEL && is_one_of(s, "._-");
}

bool label_value_is_good(struct slice s)
{
	return s.len <= LIMIT_SERVE_LABEL && is_one_of(s, "._-ABCDEFGHIJKLMNOPQRSTUVWXYZ");
}

bool label_parse(struct slice text, struct slice *name, struct slice *value)
{
	const size_t at = slice_find(text, '=');
	*name = slice_head(text, at);
	*value = slice_from(text, at + 1);
	return at < text.len && label_name_is_good(*name) && label_value_is_good(*value);
}

static bool variable_is_good(struct slice s)
{
	return s.len > 0 && s.len <= LIMIT_SERVE_VARIABLE_NAME && !ascii_is_digit((unsigned char)s.ptr[0]) &&
	       is_one_of(s, "_ABCDEFGHIJKLMNOPQRSTUVWXYZ");
}

/* Relative, without "." and "..", without an empty part. */
bool file_path_is_good(struct slice s)
{
	bool good = s.len > 0 && s.len <= LIMIT_SERVE_PATH && s.ptr[s.len - 1] != '/';
	while (good && s.len > 0) {
		struct slice part = slice_cut(&s, '/');
		good = part.len > 0 && part.len < 256 && !slice_eq(part, SLICE(".")) && !slice_eq(part, SLICE(".."));
	}
	return good;
}

/* ---- values ---- */

static void check_tool(const struct place *p, const json_t *value)
{
	for (size_t i = 0; i < TOOLS && json_is_string(value); i++)
		if (strcmp(json_string_value(value), tool_names[i]) == 0)
			return;
	place_error(p, "expected shell_exec, file_read, file_write, file_list or http_request");
}

static void check_tools(const struct place *p, const json_t *value)
{
	if (check_list(p, value, 0, TOOLS, check_tool))
		check_unique(p, value);
}

static void check_pattern(const struct place *p, const json_t *value)
{
	char why[256];
	if (check_text(p, value, 0, LIMIT_SERVE_PATTERN) &&
	    !pattern_is_good(slice_of(json_string_value(value), json_string_length(value)), why, sizeof(why)))
		place_error(p, "%s", why);
}

static void check_patterns(const struct place *p, const json_t *value)
{
	check_list(p, value, 0, LIMIT_SERVE_PATTERNS, check_pattern);
}

static void check_image(const struct place *p, const json_t *value)
{
	check_text(p, value, 1, LIMIT_IMAGE_REFERENCE);
}

static void check_command(const struct place *p, const json_t *value)
{
	check_list(p, value, 1, LIMIT_SERVE_WORDS, check_any_text);
}

static void check_env(const struct place *p, const json_t *value)
{
	check_map(p, value, LIMIT_SERVE_VARIABLES, variable_is_good, "letters, digits and '_'", check_any_text);
}

static void check_files(const struct place *p, const json_t *value)
{
	check_map(p, value, LIMIT_SERVE_START_FILES, file_path_is_good, "a relative path without \"..\"",
		  check_any_text);
}

static void check_mode(const struct place *p, const json_t *value)
{
	static const char *const modes[] = {"none", "allowlist", "policy"};
	for (size_t i = 0; i < 3 && json_is_string(value); i++)
		if (strcmp(json_string_value(value), modes[i]) == 0)
			return;
	place_error(p, "expected none, allowlist or policy");
}

static void check_domain(const struct place *p, const json_t *value)
{
	check_text(p, value, 1, LIMIT_SERVE_DOMAIN);
}

static void check_domains(const struct place *p, const json_t *value)
{
	check_list(p, value, 0, LIMIT_SERVE_DOMAINS, check_domain);
}

static void check_network(const struct place *p, const json_t *value)
{
	static const struct member fields[] = {{"mode", check_mode, true}, {"domain_allowlist", check_domains, false}};
	check_object(p, value, fields, 2);
}

static void check_inline(const struct place *p, const json_t *value)
{
	check_text(p, value, 0, LIMIT_SERVE_POLICY);
}

static void check_policy(const struct place *p, const json_t *value)
{
	static const struct member fields[] = {{"inline", check_inline, false}, {"name", check_name, false}};
	if (check_object(p, value, fields, 2) && json_object_size(value) != 1)
		place_error(p, "expected either \"inline\" or \"name\"");
}

static void check_secrets(const struct place *p, const json_t *value)
{
	if (check_list(p, value, 0, LIMIT_SECRETS, check_name))
		check_unique(p, value);
}

static void check_label_value(const struct place *p, const json_t *value)
{
	if (!json_is_string(value) || !label_value_is_good(slice_str(json_string_value(value))))
		place_error(p, "expected up to %d of letters, digits, '.', '_' and '-'", LIMIT_SERVE_LABEL);
}

void create_check_labels(const struct place *p, const json_t *value)
{
	check_map(p, value, LIMIT_SERVE_LABELS, label_name_is_good, "1 to 63 of a-z, 0-9, '.', '_' and '-'",
		  check_label_value);
	if (json_object_get(value, "workflow"))
		place_error(&(struct place){p->errors, p, "workflow", 0},
			    "is set by the service, for steps of a workflow");
}

static void check_lifetime(const struct place *p, const json_t *value)
{
	check_number(p, value, 1, LIMIT_SERVE_LIFE_S);
}

/* Those in the room that are cage's own can't be anybody else's. */
static void check_port(const struct place *p, const json_t *value)
{
	static const json_int_t own[] = {53, 80, 443, 8080};
	if (!check_number(p, value, 1, 65535))
		return;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (json_integer_value(value) == own[i])
			place_error(p, "53, 80, 443 and 8080 of the room are cage's own");
}

static void check_host_port(const struct place *p, const json_t *value)
{
	check_number(p, value, 0, 65535);
}

static void check_published(const struct place *p, const json_t *value)
{
	static const struct member members[] = {
		{"port", check_port, true}, {"host_port", check_host_port, false}, {"address", check_any_text, false}};
	check_object(p, value, members, 3);
}

static void check_publish(const struct place *p, const json_t *value)
{
	check_list(p, value, 0, LIMIT_KEEPER_PUBLISHED, check_published);
}

/* ---- limits ---- */

static void check_cpu(const struct place *p, const json_t *value)
{
	if (!json_is_number(value) || json_number_value(value) < 0.001 || json_number_value(value) > 1024)
		place_error(p, "expected a number from 0.001 to 1024");
}

static void check_memory(const struct place *p, const json_t *value)
{
	check_number(p, value, 4194304, LIMIT_SERVE_LARGEST);
}

static void check_pids(const struct place *p, const json_t *value)
{
	check_number(p, value, 8, 1000000);
}

static void check_disk(const struct place *p, const json_t *value)
{
	check_number(p, value, 65536, LIMIT_SERVE_LARGEST);
}

static void check_egress(const struct place *p, const json_t *value)
{
	check_number(p, value, 0, LIMIT_SERVE_LARGEST);
}

static void check_output(const struct place *p, const json_t *value)
{
	check_number(p, value, 0, MIB(1024));
}

static void check_limits(const struct place *p, const json_t *value)
{
	static const struct member fields[] = {{"cpu", check_cpu, false},
					       {"memory", check_memory, false},
					       {"pids", check_pids, false},
					       {"disk", check_disk, false},
					       {"wall_seconds", check_lifetime, false},
					       {"egress_bytes", check_egress, false},
					       {"output_bytes", check_output, false}};
	check_object(p, value, fields, sizeof(fields) / sizeof(fields[0]));
}

static const struct member create_fields[] = {
	{"profile", check_name, false},
	{"backend", check_name, false},
	{"rootfs", check_name, false},
	{"image", check_image, false},
	{"command", check_command, false},
	{"env", check_env, false},
	{"files", check_files, false},
	{"tools", check_tools, false},
	{"blocked_commands", check_patterns, false},
	{"network", check_network, false},
	{"policy", check_policy, false},
	{"secrets", check_secrets, false},
	{"limits", check_limits, false},
	{"lifetime_seconds", check_lifetime, false},
	{"keep", check_flag, false},
	{"labels", create_check_labels, false},
	{"publish", check_publish, false},
};

void create_check(const json_t *body, json_t *errors)
{
	struct place root = {errors, NULL, NULL, 0};
	check_object(&root, body, create_fields, sizeof(create_fields) / sizeof(create_fields[0]));
}
