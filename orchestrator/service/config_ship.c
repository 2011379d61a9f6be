/* Where copies of decision logs go. The words are those of cage-ship, which knows what they mean; what can be seen from here is told
 * before the service starts. */
#include "orchestrator/service/config_private.h"
#include "orchestrator/ship/forms.h"

static struct config *config_of(void *out)
{
	return out;
}

static void read_word(struct loader *l, const struct node *value, void *out)
{
	config_option(l, value, value->key, &config_of(out)->ship.options);
}

/* What it is was said where it is not text, or begins like an option. */
static void read_form(struct loader *l, const struct node *value, void *out, bool (*is_good)(struct slice text),
		      const char *expected)
{
	if (value->kind == NODE_TEXT && !is_good(value->text))
		node_error(l->errs, value, "%s, got %s", expected, node_describe(value).text);
	else
		read_word(l, value, out);
}

static void read_endpoint(struct loader *l, const struct node *value, void *out)
{
	read_form(l, value, out, ship_endpoint_is_good, SHIP_ENDPOINT_EXPECTED);
}

static void read_audience(struct loader *l, const struct node *value, void *out)
{
	read_form(l, value, out, ship_endpoint_is_good, SHIP_AUDIENCE_EXPECTED);
}

static void read_rule(struct loader *l, const struct node *value, void *out)
{
	read_form(l, value, out, ship_rule_is_good, SHIP_RULE_EXPECTED);
}

static void read_stream(struct loader *l, const struct node *value, void *out)
{
	read_form(l, value, out, ship_stream_is_good, SHIP_STREAM_EXPECTED);
}

static void read_path(struct loader *l, const struct node *value, void *out)
{
	char path[CONFIG_PATH] = "";
	config_path(l, value, path);
	read_word(l, value, out);
}

static void read_credentials(struct loader *l, const struct node *value, void *out)
{
	static const struct slice words[] = {WORD("auto"), WORD("secret"), WORD("workload"), WORD("identity"),
					     WORD("az")};
	size_t i;
	if (choice_read(l, value, words, sizeof(words) / sizeof(words[0]), &i))
		read_word(l, value, out);
}

static void read_age(struct loader *l, const struct node *value, void *out)
{
	uint64_t us;
	if (duration_read(l, value, LIMIT_SHIP_AGE_MAX_S, &us))
		read_word(l, value, out);
}

static void read_keep_bytes(struct loader *l, const struct node *value, void *out)
{
	size_read(l, value, LIMIT_SERVE_LARGEST, &config_of(out)->ship.keep_bytes);
}

static void read_keep(struct loader *l, const struct node *value, void *out)
{
	duration_read(l, value, LIMIT_SERVE_SHIP_MAX_S, &config_of(out)->ship.keep_us);
}

void config_ship(struct loader *l, const struct node *value, void *out)
{
	static const struct key keys[] = {
		{WORD("endpoint"), read_endpoint, KEY_REQUIRED}, {WORD("rule"), read_rule, KEY_REQUIRED},
		{WORD("stream"), read_stream, KEY_REQUIRED},     {WORD("credentials"), read_credentials, KEY_OPTIONAL},
		{WORD("audience"), read_audience, KEY_OPTIONAL}, {WORD("ca_file"), read_path, KEY_OPTIONAL},
		{WORD("age"), read_age, KEY_OPTIONAL},           {WORD("keep_bytes"), read_keep_bytes, KEY_OPTIONAL},
		{WORD("keep"), read_keep, KEY_OPTIONAL},
	};
	section_read(l, value, keys, sizeof(keys) / sizeof(keys[0]), out);
}
