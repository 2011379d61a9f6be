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
#include "orchestrator/service/config_profiles.h"
#include "orchestrator/service/state_dir.h"

#define LARGEST ((uint64_t)1 << 50)
#define YEAR_S 31536000

static void copy_text(struct loader *l, const struct node *value, char *out, size_t room)
{
	if (!text_check(l, value, "text"))
		return;
	if (value->text.len >= room || memchr(value->text.ptr, 0, value->text.len)) {
		node_error(l->errs, value, "expected at most %zu bytes", room - 1);
		return;
	}
	memcpy(out, value->text.ptr, value->text.len);
	out[value->text.len] = '\0';
}

static void read_path(struct loader *l, const struct node *value, char *out)
{
	copy_text(l, value, out, CONFIG_PATH);
	if (value->kind == NODE_TEXT && value->text.len > 0 && value->text.ptr[0] != '/')
		node_error(l->errs, value, "expected an absolute path, got %s", node_describe(value).text);
}

static void read_count(struct loader *l, const struct node *value, uint64_t max, uint64_t *out)
{
	uint64_t n;
	if (!number_read(l, value, max, &n))
		return;
	if (n == 0)
		node_error(l->errs, value, "expected at least 1");
	*out = n;
}

static void read_places(struct loader *l, const struct node *value, size_t *out)
{
	uint64_t n = *out;
	read_count(l, value, LIMIT_SERVE_RUNNING, &n);
	*out = (size_t)n;
}

/* A number with up to nine digits behind a dot, which may be 0. */
static bool read_decimal(struct loader *l, const struct node *value, double *out)
{
	uint64_t whole = 0, part = 0;
	struct slice rest = value->kind == NODE_TEXT ? value->text : SLICE_NONE;
	bool has_dot = slice_find(rest, '.') != rest.len;
	struct slice digits = slice_cut(&rest, '.');
	if (!slice_to_u64(digits, 1000000000, &whole) ||
	    (has_dot && (rest.len == 0 || rest.len > 15 || !slice_to_u64(rest, UINT64_MAX, &part)))) {
		node_error(l->errs, value, "expected a number such as 2 or 0.5, got %s", node_describe(value).text);
		return false;
	}
	double fraction = (double)part;
	for (size_t i = 0; has_dot && i < rest.len; i++)
		fraction /= 10;
	*out = (double)whole + fraction;
	return true;
}

/* ---- limits of a sandbox ---- */

static struct sandbox_limits *limits_of(void *out)
{
	return out;
}

static void read_cpu(struct loader *l, const struct node *value, void *out)
{
	if (read_decimal(l, value, &limits_of(out)->cpu) && (limits_of(out)->cpu <= 0 || limits_of(out)->cpu > 1024))
		node_error(l->errs, value, "expected more than 0 and at most 1024 processors");
}

static void read_memory(struct loader *l, const struct node *value, void *out)
{
	size_read(l, value, LARGEST, &limits_of(out)->memory);
}

static void read_pids(struct loader *l, const struct node *value, void *out)
{
	read_count(l, value, 1000000, &limits_of(out)->pids);
}

static void read_disk(struct loader *l, const struct node *value, void *out)
{
	size_read(l, value, LARGEST, &limits_of(out)->disk);
}

static void read_seconds(struct loader *l, const struct node *value, uint64_t *out)
{
	uint64_t us = 0;
	if (duration_read(l, value, LIMIT_SERVE_LIFE_S, &us))
		*out = us / 1000000;
}

static void read_wall(struct loader *l, const struct node *value, void *out)
{
	read_seconds(l, value, &limits_of(out)->wall_s);
}

static void read_egress(struct loader *l, const struct node *value, void *out)
{
	size_read(l, value, LARGEST, &limits_of(out)->egress);
}

static void read_output(struct loader *l, const struct node *value, void *out)
{
	size_read(l, value, MIB(1024), &limits_of(out)->output);
}

static void read_lifetime(struct loader *l, const struct node *value, void *out)
{
	read_seconds(l, value, &limits_of(out)->lifetime_s);
}

static const struct key limit_keys[] = {
	{WORD("cpu"), read_cpu, KEY_OPTIONAL},       {WORD("memory"), read_memory, KEY_OPTIONAL},
	{WORD("pids"), read_pids, KEY_OPTIONAL},     {WORD("disk"), read_disk, KEY_OPTIONAL},
	{WORD("wall"), read_wall, KEY_OPTIONAL},     {WORD("egress"), read_egress, KEY_OPTIONAL},
	{WORD("output"), read_output, KEY_OPTIONAL}, {WORD("lifetime"), read_lifetime, KEY_OPTIONAL},
};

void config_limits_read(struct loader *l, const struct node *value, struct sandbox_limits *out)
{
	section_read(l, value, limit_keys, sizeof(limit_keys) / sizeof(limit_keys[0]), out);
}

/* ---- of the service ---- */

static struct config *config_of(void *out)
{
	return out;
}

static void read_running(struct loader *l, const struct node *value, void *out)
{
	read_places(l, value, &config_of(out)->queue.running);
}

static void read_queued(struct loader *l, const struct node *value, void *out)
{
	read_count(l, value, LIMIT_SERVE_QUEUED, &config_of(out)->queued);
}

static void read_starts(struct loader *l, const struct node *value, void *out)
{
	struct policy_rate rate;
	if (!rate_read(l, value, &rate))
		return;
	config_of(out)->queue.starts = rate.count;
	config_of(out)->queue.period_us = rate.period_us;
}

static void read_retention(struct loader *l, const struct node *value, void *out)
{
	duration_read(l, value, YEAR_S, &config_of(out)->retention_us);
}

static void read_limits(struct loader *l, const struct node *value, void *out)
{
	static const struct key keys[] = {{WORD("running"), read_running, KEY_OPTIONAL},
					  {WORD("queued"), read_queued, KEY_OPTIONAL},
					  {WORD("starts"), read_starts, KEY_OPTIONAL},
					  {WORD("retention"), read_retention, KEY_OPTIONAL}};
	section_read(l, value, keys, sizeof(keys) / sizeof(keys[0]), out);
}

/* ---- quotas ---- */

static void read_label(struct loader *l, const struct node *value, char *out)
{
	if (value->kind != NODE_TEXT || !label_name_is_good(value->text)) {
		node_error(l->errs, value, "expected 1 to %d of a-z, 0-9, '.', '_' or '-', got %s", LIMIT_SERVE_LABEL,
			   node_describe(value).text);
		return;
	}
	memcpy(out, value->text.ptr, value->text.len);
	out[value->text.len] = '\0';
}

static void read_quota_label(struct loader *l, const struct node *value, void *out)
{
	read_label(l, value, ((struct quota *)out)->label);
}

static void read_quota_value(struct loader *l, const struct node *value, void *out)
{
	struct quota *q = out;
	q->any = false;
	copy_text(l, value, q->value, sizeof(q->value));
}

static void read_quota_running(struct loader *l, const struct node *value, void *out)
{
	read_places(l, value, &((struct quota *)out)->running);
}

static void read_quotas(struct loader *l, const struct node *value, void *out)
{
	static const struct key keys[] = {{WORD("label"), read_quota_label, KEY_REQUIRED},
					  {WORD("value"), read_quota_value, KEY_OPTIONAL},
					  {WORD("running"), read_quota_running, KEY_REQUIRED}};
	struct queue_rules *rules = &config_of(out)->queue;
	if (!list_check(l, value, "quotas"))
		return;
	if (value->count > LIMIT_SERVE_QUOTAS) {
		node_error(l->errs, value, "expected at most %d quotas", LIMIT_SERVE_QUOTAS);
		return;
	}
	for (const struct node *item = value->first; item; item = item->next) {
		struct quota *q = &rules->quotas[rules->n_quotas++];
		*q = (struct quota){.any = true};
		section_read(l, item, keys, sizeof(keys) / sizeof(keys[0]), q);
	}
}

/* ---- the rest ---- */

static void read_version(struct loader *l, const struct node *value, void *out)
{
	(void)out;
	if (value->kind != NODE_TEXT || !slice_eq(value->text, SLICE("1")))
		node_error(l->errs, value, "expected 1, got %s", node_describe(value).text);
}

static bool add_listener(struct config *c, const char *text, const char **why)
{
	*why = "there are too many of them";
	if (c->n_listen == LIMIT_SERVE_LISTENERS || !listen_spec_parse(text, &c->listen[c->n_listen], why))
		return false;
	*why = "expected an absolute path";
	if (c->listen[c->n_listen].kind == LISTEN_UNIX && c->listen[c->n_listen].path[0] != '/')
		return false;
	c->n_listen++;
	return true;
}

static void read_listen(struct loader *l, const struct node *value, void *out)
{
	if (!list_check(l, value, "listeners"))
		return;
	for (const struct node *item = value->first; item; item = item->next) {
		char text[256] = "";
		const char *why = NULL;
		copy_text(l, item, text, sizeof(text));
		if (text[0] && !add_listener(config_of(out), text, &why))
			node_error(l->errs, item, "%s", why);
	}
}

static void read_state(struct loader *l, const struct node *value, void *out)
{
	read_path(l, value, config_of(out)->state);
}

static void read_policies(struct loader *l, const struct node *value, void *out)
{
	read_path(l, value, config_of(out)->policies);
}

static void read_signatures(struct loader *l, const struct node *value, void *out)
{
	read_path(l, value, config_of(out)->signatures);
}

static void read_ceiling(struct loader *l, const struct node *value, void *out)
{
	char path[CONFIG_PATH] = "";
	size_t before = l->errs->n;
	struct policy_errors *errs = calloc(1, sizeof(*errs));
	read_path(l, value, path);
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

static void read_fair(struct loader *l, const struct node *value, void *out)
{
	read_label(l, value, config_of(out)->queue.fair);
}

static void read_profiles(struct loader *l, const struct node *value, void *out)
{
	config_profiles_read(l, value, config_of(out)->profiles);
}

static void read_mode(struct loader *l, const struct node *value, void *out)
{
	static const struct slice words[] = {WORD("auto"), WORD("netns"), WORD("seccomp")};
	size_t i;
	if (choice_read(l, value, words, 3, &i))
		snprintf(config_of(out)->mode, sizeof(config_of(out)->mode), "%s", words[i].ptr);
}

static void read_local(struct loader *l, const struct node *value, void *out)
{
	static const struct key keys[] = {{WORD("mode"), read_mode, KEY_OPTIONAL}};
	section_read(l, value, keys, 1, out);
}

static void read_backends(struct loader *l, const struct node *value, void *out)
{
	static const struct key keys[] = {{WORD("local"), read_local, KEY_OPTIONAL}};
	section_read(l, value, keys, 1, out);
}

static void read_address(struct loader *l, const struct node *value, struct config *c)
{
	struct addr addr;
	if (value->kind != NODE_TEXT || !addr_parse(value->text, &addr)) {
		node_error(l->errs, value, "expected an address, got %s", node_describe(value).text);
		return;
	}
	char *out = c->publish[c->n_publish++];
	snprintf(out, sizeof(c->publish[0]), addr.family == ADDR_V6 ? "[%.*s]" : "%.*s", SLICE_FMT(value->text));
}

static void read_addresses(struct loader *l, const struct node *value, void *out)
{
	if (!list_check(l, value, "addresses"))
		return;
	if (value->count > LIMIT_KEEPER_PUBLISHED) {
		node_error(l->errs, value, "expected at most %d addresses", LIMIT_KEEPER_PUBLISHED);
		return;
	}
	for (const struct node *item = value->first; item; item = item->next)
		read_address(l, item, config_of(out));
}

static void read_publish(struct loader *l, const struct node *value, void *out)
{
	static const struct key keys[] = {{WORD("addresses"), read_addresses, KEY_OPTIONAL}};
	section_read(l, value, keys, 1, out);
}

static void read_vcpu_second(struct loader *l, const struct node *value, void *out)
{
	read_decimal(l, value, &config_of(out)->prices.vcpu_second);
}

static void read_gb_second(struct loader *l, const struct node *value, void *out)
{
	read_decimal(l, value, &config_of(out)->prices.gb_second);
}

static void read_currency(struct loader *l, const struct node *value, void *out)
{
	copy_text(l, value, config_of(out)->prices.currency, sizeof(config_of(out)->prices.currency));
}

static void read_prices(struct loader *l, const struct node *value, void *out)
{
	static const struct key keys[] = {{WORD("vcpu_second"), read_vcpu_second, KEY_OPTIONAL},
					  {WORD("gb_second"), read_gb_second, KEY_OPTIONAL},
					  {WORD("currency"), read_currency, KEY_OPTIONAL}};
	section_read(l, value, keys, sizeof(keys) / sizeof(keys[0]), out);
}

static void read_webhook(struct loader *l, const struct node *value, void *out)
{
	copy_text(l, value, config_of(out)->alerts.webhook, sizeof(config_of(out)->alerts.webhook));
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
	size_read(l, value, LARGEST, &config_of(out)->alerts.egress);
}

static void read_alert_blocks(struct loader *l, const struct node *value, void *out)
{
	number_read(l, value, LARGEST, &config_of(out)->alerts.blocks);
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
	{WORD("version"), read_version, KEY_REQUIRED},   {WORD("listen"), read_listen, KEY_OPTIONAL},
	{WORD("state"), read_state, KEY_OPTIONAL},       {WORD("policies"), read_policies, KEY_OPTIONAL},
	{WORD("ceiling"), read_ceiling, KEY_OPTIONAL},   {WORD("limits"), read_limits, KEY_OPTIONAL},
	{WORD("defaults"), read_defaults, KEY_OPTIONAL}, {WORD("maximum"), read_maximum, KEY_OPTIONAL},
	{WORD("fair"), read_fair, KEY_OPTIONAL},         {WORD("quotas"), read_quotas, KEY_OPTIONAL},
	{WORD("profiles"), read_profiles, KEY_OPTIONAL}, {WORD("backends"), read_backends, KEY_OPTIONAL},
	{WORD("publish"), read_publish, KEY_OPTIONAL},   {WORD("prices"), read_prices, KEY_OPTIONAL},
	{WORD("alerts"), read_alerts, KEY_OPTIONAL},     {WORD("signatures"), read_signatures, KEY_OPTIONAL},
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

static void read_listen_variable(struct loader *l, struct config *c)
{
	const char *text = getenv("CAGE_LISTEN"), *why = NULL;
	char one[256];
	if (!text || !text[0])
		return;
	c->n_listen = 0;
	struct slice rest = slice_str(text);
	while (rest.len > 0) {
		struct slice word = slice_cut(&rest, ',');
		snprintf(one, sizeof(one), "%.*s", SLICE_FMT(word));
		if (!add_listener(c, one, &why))
			error_at(l->errs, (struct where){"CAGE_LISTEN", 0, 0}, "%s", why);
	}
}

static void read_variables(struct loader *l, struct config *c)
{
	read_listen_variable(l, c);
	read_variable(l, "CAGE_STATE", read_state, c);
	read_variable(l, "CAGE_POLICIES_DIR", read_policies, c);
	read_variable(l, "CAGE_RUNNING", read_running, c);
	read_variable(l, "CAGE_QUEUED", read_queued, c);
	read_variable(l, "CAGE_STARTS", read_starts, c);
	read_variable(l, "CAGE_RETENTION", read_retention, c);
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
					   .memory = LARGEST,
					   .pids = 1000000,
					   .disk = LARGEST,
					   .wall_s = LIMIT_SERVE_LIFE_S,
					   .egress = LARGEST,
					   .output = MIB(1024),
					   .lifetime_s = LIMIT_SERVE_LIFE_S};

static bool begin(struct config *c)
{
	*c = (struct config){.queued = 1000,
			     .retention_us = 3600 * 1000000ull,
			     .defaults = usual,
			     .maximum = most,
			     .profiles = json_object(),
			     .mode = "auto",
			     .alerts.log = true,
			     .prices.currency = "USD"};
	c->queue = (struct queue_rules){.running = 10, .starts = 20, .period_us = 1000000};
	return c->profiles;
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
	if (ok)
		config_judge(c, &usual, &l);
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
	c->profiles = NULL;
}
