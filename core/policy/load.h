/* What the files of the loader share. policy_load() reads the YAML, walks it section by section (section.c does the
 * walking, rules.c, secrets.c, transforms.c, upstream.c, dns.c, images.c and tests.c know the keys), compiles the rules (compile.c), looks for rules that
 * contradict each other (conflicts.c) and runs the policy's own tests. */
#ifndef CAGE_POLICY_LOAD_H
#define CAGE_POLICY_LOAD_H

#include "core/policy/image_key.h"
#include "core/policy/node.h"

struct loader {
	struct policy_errors *errs;
	struct arena *arena;  /* the policy's: what stays */
	struct arena scratch; /* trees, file bytes and whatever ends with the load */
	struct node_room room;
	struct policy *policy;
	const char *path;               /* of the policy file */
	const struct node **rule_nodes; /* where each rule stands */
	struct map ids;                 /* rule id -> struct policy_rule */
	struct test *tests;             /* the policy's own */
	size_t n_tests;
	const struct node **secret_nodes; /* where each secret stands */
	uint64_t named;                   /* secrets that some rule has, a bit each */
	int64_t now;                      /* seconds since 1970 */
	struct policy_readers readers;
};

/* n elements that live as long as the policy, or no longer than the load; NULL with an error. */
void *load_keep(struct loader *l, size_t n, size_t size) MUST_CHECK;
void *load_scratch(struct loader *l, size_t n, size_t size) MUST_CHECK;

/* The error when there is no room left. */
void load_no_memory(struct loader *l);

/* ---- section.c: walking the tree ---- */

typedef void key_reader(struct loader *l, const struct node *value, void *out);

enum key_need { KEY_OPTIONAL, KEY_REQUIRED };

struct key {
	struct slice name;
	key_reader *read; /* NULL: a key of version 1 that this build does not support yet */
	enum key_need need;
};

/* Reads each key of a map with its reader; unknown, unsupported and missing keys are errors. False: not a map. */
bool section_read(struct loader *l, const struct node *map, const struct key *keys, size_t n_keys, void *out);

/* Is it a list with something in it? Otherwise an error. what: "host patterns". */
bool list_check(struct loader *l, const struct node *node, const char *what);

/* Is it text with something in it? Otherwise an error. what: "a port". */
bool text_check(struct loader *l, const struct node *node, const char *what);

/* One of n words, as its index; false with an error. */
bool choice_read(struct loader *l, const struct node *node, const struct slice *words, size_t n, size_t *out);

bool mode_read(struct loader *l, const struct node *node, enum policy_mode *out);

/* The search for the word that is meant by a misspelt one. */
struct near {
	struct slice text;
	struct slice word; /* the nearest so far; empty when none is near */
	size_t distance;
};

void near_try(struct near *n, struct slice word);

/* "; did you mean ...?", or nothing. */
struct quoted near_hint(const struct near *n);

/* ---- units.c: values; each gives false with an error ---- */

bool size_read(struct loader *l, const struct node *node, uint64_t max, uint64_t *out);
bool rate_read(struct loader *l, const struct node *node, struct policy_rate *out);
bool burst_read(struct loader *l, const struct node *node, uint64_t *out);
bool duration_read(struct loader *l, const struct node *node, uint64_t max_s, uint64_t *us);
bool size_rate_read(struct loader *l, const struct node *node, uint64_t max, struct policy_rate *out);
bool number_read(struct loader *l, const struct node *node, uint64_t max, uint64_t *out);
bool flag_read(struct loader *l, const struct node *node, bool *out);
bool port_read(struct loader *l, const struct node *node, uint16_t *out);
bool method_check(struct loader *l, const struct node *node, struct slice method);

/* Letters, digits, '.', '_' and '-' only, 1 to max bytes. */
bool word_is_plain(struct slice s, size_t max);

/* ---- hosts.c ---- */

/* The canonical form of a host or of "*.x", in the policy's arena; false with an error. */
bool host_pattern_read(struct loader *l, const struct node *node, struct slice *out);

/* ---- file.c ---- */

struct file_id {
	uint64_t device, inode;
};

/* "dir of the policy/name", with a NUL, in the scratch arena; NULL with an error. */
const char *file_beside_policy(struct loader *l, struct slice name);

/* All bytes of a regular file, in the scratch arena; NULL when it can't be read, with *why set. The policy notes its name. */
struct slice file_read(struct loader *l, const char *path, size_t max, struct file_id *id, const char **why);

/* ---- the sections ---- */

/* Reads a list of rules and adds them to the policy, which has room for them. */
void rules_read(struct loader *l, const struct node *list);

/* Reads `secrets`; before the rules, which name them. */
void secrets_read(struct loader *l, const struct node *list);

/* The secret of that id, which then counts as named; NULL with an error. */
const struct policy_secret *secret_named(struct loader *l, const struct node *id);

/* Once the rules are read: an error for each secret that no rule has, and each whose value is not good. */
void secrets_check(struct loader *l);

/* On the compiled policy: an error for each place to get tokens from that no rule allows. */
void token_urls_check(struct loader *l);

/* A copy that lives as long as the policy, with a NUL behind it; ptr NULL with an error. */
struct slice text_keep(struct loader *l, struct slice text);

bool text_contains(struct slice text, struct slice part);

/* The name of a field, in lower case, that may carry a secret; false with an error at the node. */
bool slot_field_read(struct loader *l, const struct node *node, struct slice name, struct slice *out);

/* `sign` and `oauth2`: what becomes of a value (transforms.c). */
void sign_read(struct loader *l, const struct node *value, void *secret);
void oauth2_read(struct loader *l, const struct node *value, void *secret);

/* `keyvault` of a secret's `from`; and, once pins are read, an error for each whose vault may not be asked (keyvault.c). */
void keyvault_read(struct loader *l, const struct node *value, void *secret);
void keyvaults_check(struct loader *l);

void upstream_read(struct loader *l, const struct node *map);

void images_read(struct loader *l, const struct node *list);

/* A `key` of it, in its file or in the policy itself. False with an error. */
bool image_key_read(struct loader *l, const struct node *value, unsigned char der[IMAGE_KEY_DER]);

/* What `dns` is without a word about it, and what the section says. */
void dns_defaults(struct policy_dns *dns);
void dns_read(struct loader *l, const struct node *map);

/* Once both are read: an error for each resolver that the program would have to ask and can't. */
void resolvers_check(struct loader *l, const struct node *upstream);

/* Makes the lookup tables of a policy whose rules are complete. False with an error. */
bool policy_compile(struct loader *l);

/* Adds an error for each rule that ties with another, and each tunnel that another rule reaches into. */
void conflicts_check(struct loader *l);

/* Reads `tests`: their keys, values and requests. */
void tests_read(struct loader *l, const struct node *list);

/* Runs what tests_read() read, on the compiled policy; each that fails is an error. */
void tests_run(struct loader *l);

#endif
