/* The keys of the configuration. What is wrong is told as file:line:column, all of it at once, as with a policy. */
#include "orchestrator/service/config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/policy/load.h"
#include "orchestrator/service/backend_aci.h"
#include "orchestrator/service/backend_podman.h"
#include "orchestrator/service/backends.h"
#include "orchestrator/service/config_private.h"
#include "orchestrator/service/config_profiles.h"
#include "orchestrator/service/state_dir.h"

static struct config *config_of(void *out)
{
	return out;
}

static void read_version(struct loader *l, const struct node *value, void *out)
{
	(void)out;
	if (value->kind != NODE_TEXT || !slice_eq(value->text, SLICE("1")))
		node_error(l->errs, value, "expected 1, got %s", node_describe(value).text);
}

static void read_state(struct loader *l, const struct node *value, void *out)
{
	config_path(l, value, config_of(out)->state);
}

static void read_policies(struct loader *l, const struct node *value, void *out)
{
	config_path(l, value, config_of(out)->policies);
}

static void read_signatures(struct loader *l, const struct node *value, void *out)
{
	config_path(l, value, config_of(out)->signatures);
}

static void read_ceiling(struct loader *l, const struct node *value, void *out)
{
	char path[CONFIG_PATH] = "";
	size_t before = l->errs->n;
	struct policy_errors *errs = calloc(1, sizeof(*errs));
	config_path(l, value, path);
	if (errs && l->errs->n == before)
		config_of(out)->ceiling = ceiling_load(path, errs);
	for (size_t i = 0; errs && i < errs->n; i++)
		node_error(l->errs, value, "%s:%u:%u: %s", errs->list[i].file, errs->list[i].line, errs->list[i].column,
			   errs->list[i].text);
	if (!config_of(out)->ceiling && l->errs->n == before)
		node_error(l->errs, value, "can't be read: no memory");
	free(errs);
}

static void read_defaults(struct loader *l, const struct node *value, void *out)
{
	config_limits_read(l, value, &config_of(out)->defaults);
}

static void read_maximum(struct loader *l, const struct node *value, void *out)
{
	config_limits_read(l, value, &config_of(out)->maximum);
}

static void read_profiles(struct loader *l, const struct node *value, void *out)
{
	config_profiles_read(l, value, out);
}

static void read_webhook(struct loader *l, const struct node *value, void *out)
{
	config_text(l, value, config_of(out)->alerts.webhook, sizeof(config_of(out)->alerts.webhook));
	if (value->kind == NODE_TEXT && !slice_starts(value->text, SLICE("https://")) &&
	    !slice_starts(value->text, SLICE("http://")))
		node_error(l->errs, value, "expected a URL, got %s", node_describe(value).text);
}

static void read_alert_log(struct loader *l, const struct node *value, void *out)
{
	flag_read(l, value, &config_of(out)->alerts.log);
}

static void read_alert_egress(struct loader *l, const struct node *value, void *out)
{
	size_read(l, value, LIMIT_SERVE_LARGEST, &config_of(out)->alerts.egress);
}

static void read_alert_blocks(struct loader *l, const struct node *value, void *out)
{
	number_read(l, value, LIMIT_SERVE_LARGEST, &config_of(out)->alerts.blocks);
}

static void read_alerts(struct loader *l, const struct node *value, void *out)
{
	static const struct key keys[] = {{WORD("webhook"), read_webhook, KEY_OPTIONAL},
					  {WORD("log"), read_alert_log, KEY_OPTIONAL},
					  {WORD("egress"), read_alert_egress, KEY_OPTIONAL},
					  {WORD("blocks"), read_alert_blocks, KEY_OPTIONAL}};
	section_read(l, value, keys, sizeof(keys) / sizeof(keys[0]), out);
}

static const struct key config_keys[] = {
	{WORD("version"), read_version, KEY_REQUIRED},       {WORD("listen"), config_listen, KEY_OPTIONAL},
	{WORD("state"), read_state, KEY_OPTIONAL},           {WORD("policies"), read_policies, KEY_OPTIONAL},
	{WORD("ceiling"), read_ceiling, KEY_OPTIONAL},       {WORD("limits"), config_limits, KEY_OPTIONAL},
	{WORD("defaults"), read_defaults, KEY_OPTIONAL},     {WORD("maximum"), read_maximum, KEY_OPTIONAL},
	{WORD("fair"), config_fair, KEY_OPTIONAL},           {WORD("quotas"), config_quotas, KEY_OPTIONAL},
	{WORD("profiles"), read_profiles, KEY_OPTIONAL},     {WORD("backends"), config_backends, KEY_OPTIONAL},
	{WORD("publish"), config_publish, KEY_OPTIONAL},     {WORD("prices"), config_prices, KEY_OPTIONAL},
	{WORD("alerts"), read_alerts, KEY_OPTIONAL},         {WORD("rootfs"), config_rootfs, KEY_OPTIONAL},
	{WORD("signatures"), read_signatures, KEY_OPTIONAL}, {WORD("ship"), config_ship, KEY_OPTIONAL},
};

/* ---- the file ---- */

static const char *const no_file = "the configuration";

static struct slice read_file(const char *path, struct arena *arena, struct policy_errors *errs)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	char *bytes = arena_alloc(arena, LIMIT_SERVE_CONFIG + 1);
	size_t len = 0;
	ssize_t n = fd >= 0 && bytes ? 1 : -1;
	while (n > 0 && len <= LIMIT_SERVE_CONFIG) {
		n = read(fd, bytes + len, LIMIT_SERVE_CONFIG + 1 - len);
		len += n > 0 ? (size_t)n : 0;
	}
	if (n < 0)
		error_at(errs, (struct where){path, 0, 0}, "can't be read: %s", strerror(errno));
	else if (len > LIMIT_SERVE_CONFIG)
		error_at(errs, (struct where){path, 0, 0}, "it is too big");
	if (fd >= 0)
		close(fd);
	return slice_of(bytes, len);
}

static void read_yaml(struct config *c, const char *file, struct loader *l)
{
	struct slice bytes = read_file(file, l->arena, l->errs);
	const struct node *root = l->errs->n == 0 ? node_read_yaml(bytes, file, &l->room, l->errs) : NULL;
	if (root)
		section_read(l, root, config_keys, sizeof(config_keys) / sizeof(config_keys[0]), c);
}

/* ---- variables ---- */

/* A variable is read as the value of the key that it stands for. */
static void read_variable(struct loader *l, const char *name, key_reader *read, void *out)
{
	const char *text = getenv(name);
	if (!text || !text[0])
		return;
	struct node node = {.kind = NODE_TEXT, .quoted = true, .at = {name, 0, 0}, .text = slice_str(text)};
	read(l, &node, out);
}

static void read_variables(struct loader *l, struct config *c)
{
	config_listen_variable(l, c);
	read_variable(l, "CAGE_STATE", read_state, c);
	read_variable(l, "CAGE_POLICIES_DIR", read_policies, c);
	read_variable(l, "CAGE_RUNNING", config_running, c);
	read_variable(l, "CAGE_QUEUED", config_queued, c);
	read_variable(l, "CAGE_STARTS", config_starts, c);
	read_variable(l, "CAGE_RETENTION", config_retention, c);
}

/* ---- all of it ---- */

static const struct sandbox_limits usual = {.cpu = 1,
					    .memory = MIB(512),
					    .pids = 256,
					    .disk = MIB(256),
					    .wall_s = 600,
					    .egress = MIB(1024),
					    .output = MIB(16),
					    .lifetime_s = 3600};
static const struct sandbox_limits most = {.cpu = 1024,
					   .memory = LIMIT_SERVE_LARGEST,
					   .pids = 1000000,
					   .disk = LIMIT_SERVE_LARGEST,
					   .wall_s = LIMIT_SERVE_LIFE_S,
					   .egress = LIMIT_SERVE_LARGEST,
					   .output = MIB(1024),
					   .lifetime_s = LIMIT_SERVE_LIFE_S};

static bool begin(struct config *c)
{
	*c = (struct config){.queued = 1000,
			     .retention_us = 3600 * 1000000ull,
			     .defaults = usual,
			     .maximum = most,
			     .profiles = json_object(),
			     .rootfs = json_object(),
			     .warm = json_object(),
			     .warm_at = json_object(),
			     .warm_age_us = LIMIT_SERVE_WARM_AGE_S * 1000000ull,
			     .backends = {backend_at(0)},
			     .n_backends = 1,
			     .records_us = LIMIT_SERVE_RECORD_S * 1000000ull,
			     .log_max = LIMIT_LOG_SANDBOX,
			     .usage_us = LIMIT_SERVE_USED_S * 1000000ull,
			     .mode = "auto",
			     .alerts.log = true,
			     .ship = {.keep_bytes = LIMIT_SERVE_SHIP_BYTES, .keep_us = LIMIT_SERVE_SHIP_S * 1000000ull},
			     .prices.currency = "USD",
			     .aci_prices.currency = "USD"};
	c->queue = (struct queue_rules){.running = 10, .starts = 20, .period_us = 1000000};
	return c->profiles && c->rootfs && c->warm && c->warm_at;
}

bool config_read(struct config *c, const char *file)
{
	struct policy_errors *errs = calloc(1, sizeof(*errs));
	struct arena arena;
	arena_init(&arena, 64 * LIMIT_SERVE_CONFIG);
	struct loader l = {.errs = errs, .arena = &arena, .path = file ? file : no_file};
	l.room = (struct node_room){&arena, LIMIT_POLICY_NODES};
	bool ok = errs && begin(c);
	if (ok && file)
		read_yaml(c, file, &l);
	if (ok)
		read_variables(&l, c);
	if (ok && !c->state[0] && !state_dir_path(NULL, c->state, sizeof(c->state)))
		error_at(errs, (struct where){l.path, 0, 0}, "state: there is no home to keep it in; name a directory");
	if (ok) {
		config_judge(c, &usual, &l);
		config_judge_prices(c, &l);
	}
	if (errs) {
		errors_sort(errs);
		policy_errors_print(errs, STDERR_FILENO);
		ok = ok && errs->n == 0;
	}
	arena_free(&arena);
	free(errs);
	return ok;
}

void config_free(struct config *c)
{
	ceiling_free(&c->ceiling);
	json_decref(c->profiles);
	json_decref(c->rootfs);
	maker_forget(&podman_maker);
	maker_forget(&aci_maker);
	json_decref(c->warm);
	json_decref(c->warm_at);
	words_free(&c->ship.options);
	c->profiles = NULL;
	c->rootfs = NULL;
	c->warm = NULL;
	c->warm_at = NULL;
}
