/* Where things are: listeners, backends, roots of rooms, and addresses for ports. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "orchestrator/pod/pool.h"
#include "orchestrator/service/backend_podman.h"
#include "orchestrator/service/backends.h"
#include "orchestrator/service/config_private.h"

static struct config *config_of(void *out)
{
	return out;
}

/* ---- listeners ---- */

bool config_add_listener(struct config *c, const char *text, const char **why)
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

void config_listen(struct loader *l, const struct node *value, void *out)
{
	if (!list_check(l, value, "listeners"))
		return;
	for (const struct node *item = value->first; item; item = item->next) {
		char text[256] = "";
		const char *why = NULL;
		config_text(l, item, text, sizeof(text));
		if (text[0] && !config_add_listener(config_of(out), text, &why))
			node_error(l->errs, item, "%s", why);
	}
}

void config_listen_variable(struct loader *l, struct config *c)
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
		if (!config_add_listener(c, one, &why))
			error_at(l->errs, (struct where){"CAGE_LISTEN", 0, 0}, "%s", why);
	}
}

/* ---- backends ---- */

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

void config_option(struct loader *l, const struct node *value, struct slice key, struct words *out)
{
	char text[CONFIG_PATH] = "", option[64];
	config_text(l, value, text, sizeof(text));
	if (text[0] == '\0' || text[0] == '-') {
		node_error(l->errs, value, "expected a value that is no option");
		return;
	}
	snprintf(option, sizeof(option), "--%.*s", SLICE_FMT(key));
	for (char *c = option; *c; c++)
		*c = *c == '_' ? '-' : *c;
	words_add(out, "%s", strcmp(option, "--program") == 0 ? "--podman" : option);
	words_add(out, "%s", text);
}

static void read_podman_word(struct loader *l, const struct node *value, void *out)
{
	(void)out;
	config_option(l, value, value->key, &podman_maker.options);
}

/* It has to be absolute, since cage-pod has another directory. */
static void read_podman_path(struct loader *l, const struct node *value, void *out)
{
	char path[CONFIG_PATH] = "";
	config_path(l, value, path);
	if (path[0] == '/')
		read_podman_word(l, value, out);
}

/* What cage-pod would refuse is refused here, where its place is known. */
static void read_podman_subnets(struct loader *l, const struct node *value, void *out)
{
	char text[64] = "";
	struct in_addr first;
	unsigned bits;
	config_text(l, value, text, sizeof(text));
	if (text[0] && !pod_pool_parse(text, &first, &bits))
		node_error(l->errs, value, POD_POOL_EXPECTED ", got %s", node_describe(value).text);
	read_podman_word(l, value, out);
}

static void read_podman_uids(struct loader *l, const struct node *value, void *out)
{
	char text[64] = "";
	uint32_t first;
	config_text(l, value, text, sizeof(text));
	if (text[0] && !pod_uids_parse(text, &first))
		node_error(l->errs, value, POD_UIDS_EXPECTED ", got %s", node_describe(value).text);
	read_podman_word(l, value, out);
}

static void read_podman_manager(struct loader *l, const struct node *value, void *out)
{
	static const struct slice words[] = {WORD("cgroupfs"), WORD("systemd")};
	size_t i;
	if (choice_read(l, value, words, 2, &i))
		read_podman_word(l, value, out);
}

static void read_podman(struct loader *l, const struct node *value, void *out)
{
	static const struct key keys[] = {
		{WORD("image"), read_podman_word, KEY_OPTIONAL},
		{WORD("proxy_image"), read_podman_word, KEY_OPTIONAL},
		{WORD("dns_image"), read_podman_word, KEY_OPTIONAL},
		{WORD("network"), read_podman_word, KEY_OPTIONAL},
		{WORD("subnets"), read_podman_subnets, KEY_OPTIONAL},
		{WORD("uids"), read_podman_uids, KEY_OPTIONAL},
		{WORD("program"), read_podman_path, KEY_OPTIONAL},
		{WORD("runtime"), read_podman_word, KEY_OPTIONAL},
		{WORD("cgroup_manager"), read_podman_manager, KEY_OPTIONAL},
		{WORD("storage_driver"), read_podman_word, KEY_OPTIONAL},
		{WORD("root"), read_podman_path, KEY_OPTIONAL},
		{WORD("runroot"), read_podman_path, KEY_OPTIONAL},
		{WORD("tmpdir"), read_podman_path, KEY_OPTIONAL},
		{WORD("network_config_dir"), read_podman_path, KEY_OPTIONAL},
	};
	maker_use(&podman_maker);
	section_read(l, value, keys, sizeof(keys) / sizeof(keys[0]), out);
}

/* Those that are named, in that order; the first is that of a create which names none. */
/* True: there is one that is none. */
static bool tell_no_backends(struct loader *l, const struct node *map)
{
	const size_t before = l->errs->n;
	for (const struct node *item = map->first; item; item = item->next)
		if (!slice_eq(item->key, SLICE("local")) && !slice_eq(item->key, SLICE("podman")) &&
		    !slice_eq(item->key, SLICE("aci")))
			node_key_error(l->errs, item, "is no backend: expected local, podman or aci");
	return l->errs->n > before;
}

void config_backends(struct loader *l, const struct node *value, void *out)
{
	static const struct key keys[] = {{WORD("local"), read_local, KEY_OPTIONAL},
					  {WORD("podman"), read_podman, KEY_OPTIONAL},
					  {WORD("aci"), config_aci, KEY_OPTIONAL}};
	struct config *c = config_of(out);
	char name[LIMIT_SANDBOX + 1];
	if (value->kind == NODE_MAP && tell_no_backends(l, value))
		return;
	section_read(l, value, keys, sizeof(keys) / sizeof(keys[0]), out);
	if (value->kind != NODE_MAP)
		return;
	c->n_backends = 0;
	for (const struct node *item = value->first; item && c->n_backends < LIMIT_SERVE_BACKENDS; item = item->next) {
		snprintf(name, sizeof(name), "%.*s", SLICE_FMT(item->key));
		if (backend_find(name)) /* else it was told */
			c->backends[c->n_backends++] = backend_find(name);
	}
	if (c->n_backends == 0)
		node_error(l->errs, value, "expected at least one backend");
}

/* ---- roots ---- */

static void read_root(struct loader *l, const struct node *value, json_t *roots)
{
	char path[CONFIG_PATH] = "";
	struct stat st;
	size_t before = l->errs->n;
	if (!word_is_plain(value->key, LIMIT_SANDBOX))
		node_key_error(l->errs, value, "expected a name of letters, digits, '.', '_' or '-'");
	config_path(l, value, path);
	if (l->errs->n == before && (stat(path, &st) != 0 || !S_ISDIR(st.st_mode)))
		node_error(l->errs, value, "there is no such directory");
	json_object_setn_new(roots, value->key.ptr, value->key.len, json_string(path));
}

void config_rootfs(struct loader *l, const struct node *value, void *out)
{
	if (value->kind != NODE_MAP || value->count > LIMIT_SERVE_ROOTFS) {
		node_error(l->errs, value, "expected a mapping of at most %d names to directories", LIMIT_SERVE_ROOTFS);
		return;
	}
	for (const struct node *item = value->first; item; item = item->next)
		read_root(l, item, config_of(out)->rootfs);
}

/* ---- ports ---- */

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

void config_publish(struct loader *l, const struct node *value, void *out)
{
	static const struct key keys[] = {{WORD("addresses"), read_addresses, KEY_OPTIONAL}};
	section_read(l, value, keys, 1, out);
}
