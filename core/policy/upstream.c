/* The section `upstream`: which resolvers to ask, which names are pinned to an address, whom to trust,
 * and whether only what cage-dns has answered is dialled. */
#include "core/policy/load.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#define DNS_PORT 53
#define DNS_TLS_PORT 853

/* "ADDR", "ADDR:PORT" or "[ADDR]:PORT"; the port is 0 when there is none. */
static bool address_parse(struct slice text, struct addr *addr, uint16_t *port)
{
	*port = 0;
	if (addr_parse(text, addr))
		return true;
	return addr_parse_with_port(text, addr, port) && *port != 0;
}

/* "tls://ADDR[:PORT]#NAME": the name must be in its certificate. False: not of that form. */
static bool tls_resolver_parse(struct slice text, struct arena *a, struct policy_resolver *r)
{
	const char *why = "";
	struct host host;
	struct slice name = slice_from(text, sizeof("tls://") - 1);
	struct slice address = slice_cut(&name, '#');
	if (!address_parse(address, &r->addr, &r->port) || name.len == 0)
		return false;
	if (host_parse(name, a, &host, &why) != CAGE_OK || host.kind != HOST_NAME)
		return false;
	r->name = host.text;
	if (r->port == 0)
		r->port = DNS_TLS_PORT;
	return true;
}

static bool is_tls_resolver(struct slice text)
{
	return slice_starts(text, SLICE("tls://"));
}

bool policy_resolver_parse(struct slice text, struct arena *a, struct policy_resolver *r)
{
	if (is_tls_resolver(text))
		return tls_resolver_parse(text, a, r);
	if (!address_parse(text, &r->addr, &r->port))
		return false;
	if (r->port == 0)
		r->port = DNS_PORT;
	return true;
}

size_t policy_count_tls(const struct policy_resolver *list, size_t n)
{
	size_t tls = 0;
	for (size_t i = 0; i < n; i++)
		tls += list[i].name.len > 0;
	return tls;
}

static bool resolver_read(struct loader *l, const struct node *item, struct policy_resolver *r)
{
	if (item->kind == NODE_TEXT && policy_resolver_parse(item->text, l->arena, r))
		return true;
	bool is_tls = item->kind == NODE_TEXT && is_tls_resolver(item->text);
	node_error(l->errs, item, "expected %s, got %s",
		   is_tls ? "tls://address#name or tls://address:port#name"
			  : "system, an address, address:port or tls://address#name",
		   node_describe(item).text);
	return false;
}

static void read_resolvers(struct loader *l, const struct node *value, void *out)
{
	struct policy *p = out;
	p->system_resolvers = false;
	if (!list_check(l, value, "resolvers"))
		return;
	p->resolvers = load_keep(l, value->count, sizeof(*p->resolvers));
	if (!p->resolvers)
		return;
	for (const struct node *item = value->first; item; item = item->next) {
		struct policy_resolver *r = &p->resolvers[p->n_resolvers];
		if (item->kind == NODE_TEXT && slice_eq(item->text, SLICE("system"))) {
			p->system_resolvers = true;
			continue;
		}
		if (resolver_read(l, item, r))
			p->n_resolvers++;
	}
	if (p->n_resolvers > LIMIT_DNS_SERVERS)
		node_error(l->errs, value, "expected at most %d resolvers, got %zu", LIMIT_DNS_SERVERS, p->n_resolvers);
	if (p->system_resolvers && p->n_resolvers > 0)
		node_error(l->errs, value, "system can't stand beside addresses: which would be asked first?");
}

/* The key of a pin as a node of its own, so that errors point to it. */
static struct node key_node(const struct node *value)
{
	struct node key = *value;
	key.kind = NODE_TEXT;
	key.text = value->key;
	key.at.line = value->key_line;
	key.at.column = value->key_column;
	return key;
}

static bool pin_host(struct loader *l, const struct node *value, struct slice *out)
{
	struct node key = key_node(value);
	if (!host_pattern_read(l, &key, out))
		return false;
	if (!slice_starts(*out, SLICE("*.")))
		return true;
	node_error(l->errs, &key, "a wildcard can't be pinned");
	return false;
}

static bool pin_address(struct loader *l, const struct node *value, struct policy_pin *pin)
{
	if (value->kind != NODE_TEXT || !address_parse(value->text, &pin->addr, &pin->port)) {
		node_error(l->errs, value, "expected an address or address:port, got %s", node_describe(value).text);
		return false;
	}
	if (addr_classify(&pin->addr) != ADDR_METADATA)
		return true;
	node_error(l->errs, value, "%s is a cloud metadata address; those can't be reached", quote(value->text).text);
	return false;
}

static void pin_read(struct loader *l, const struct node *value, struct policy_pin *pin)
{
	bool host_good = pin_host(l, value, &pin->host);
	if (!pin_address(l, value, pin) || !host_good)
		return;
	if (map_get(&l->policy->pins, pin->host)) {
		node_key_error(l->errs, value, "%s is pinned twice", quote(pin->host).text);
		return;
	}
	if (map_add(&l->policy->pins, pin->host, pin) != CAGE_OK)
		load_no_memory(l);
	l->policy->n_pins++;
}

static void read_resolve(struct loader *l, const struct node *value, void *out)
{
	struct policy *p = out;
	if (value->kind != NODE_MAP || value->count == 0) {
		node_error(l->errs, value, "expected a mapping of host names to addresses, got %s",
			   value->kind == NODE_MAP ? "an empty mapping" : node_describe(value).text);
		return;
	}
	p->pin_list = load_keep(l, value->count, sizeof(*p->pin_list));
	if (!p->pin_list)
		return;
	if (map_init(&p->pins, l->arena, value->count) != CAGE_OK) {
		load_no_memory(l);
		return;
	}
	for (const struct node *item = value->first; item; item = item->next)
		pin_read(l, item, &p->pin_list[p->n_pins]);
}

/* An encrypted file is not readable; OpenSSL would ask the terminal. */
static int no_password(char *buf, int room, int for_writing, void *unused)
{
	(void)buf, (void)room, (void)for_writing, (void)unused;
	return -1;
}

/* NULL when the file holds certificates that OpenSSL reads and nothing broken among them. */
static const char *pem_fault(struct slice pem)
{
	BIO *bio = BIO_new_mem_buf(pem.ptr, (int)pem.len);
	if (!bio)
		return "no memory to read it";
	size_t n = 0;
	ERR_clear_error();
	for (X509 *cert; (cert = PEM_read_bio_X509(bio, NULL, no_password, NULL)); n++)
		X509_free(cert);
	bool clean_end = ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE;
	ERR_clear_error();
	BIO_free(bio);
	if (!clean_end)
		return "it holds a certificate that can't be read";
	return n > 0 ? NULL : "it holds no PEM certificate";
}

static void trust_file(struct loader *l, const struct node *item, struct policy_trust *trust)
{
	struct file_id id;
	const char *path = file_beside_policy(l, item->text);
	if (!path)
		return;
	const char *fault = NULL;
	struct slice pem = file_read(l, path, LIMIT_TRUST_FILE, &id, &fault);
	if (!fault)
		fault = pem_fault(pem);
	if (fault) {
		node_error(l->errs, item, "can't use %s: %s", quote(item->text).text, fault);
		return;
	}
	struct slice *kept = &trust->pems[trust->n_pems++];
	*kept = arena_dup(l->arena, pem);
	if (!kept->ptr)
		load_no_memory(l);
}

static void read_trust(struct loader *l, const struct node *value, void *out)
{
	struct policy *p = out;
	p->trust.system = false;
	if (!list_check(l, value, "system and certificate files"))
		return;
	p->trust.pems = load_keep(l, value->count, sizeof(*p->trust.pems));
	if (!p->trust.pems)
		return;
	for (const struct node *item = value->first; item; item = item->next) {
		if (!text_check(l, item, "system or a file of certificates"))
			continue;
		if (slice_eq(item->text, SLICE("system")))
			p->trust.system = true;
		else
			trust_file(l, item, &p->trust);
	}
}

static void read_bound(struct loader *l, const struct node *value, void *out)
{
	struct policy *p = out;
	flag_read(l, value, &p->bound);
}

/* Whoever can't speak TLS with a resolver must not ask another one instead, in the clear. Where it only goes by what
 * cage-dns has answered, it asks nobody. */
void resolvers_check(struct loader *l, const struct node *upstream)
{
	const struct node *list = upstream->kind == NODE_MAP ? node_get(upstream, SLICE("resolvers")) : NULL;
	bool asks = l->readers.refuses_tls_resolvers && policy_asks_resolvers(l->policy);
	if (!asks || !list || list->kind != NODE_LIST)
		return;
	for (const struct node *item = list->first; item; item = item->next)
		if (item->kind == NODE_TEXT && slice_starts(item->text, SLICE("tls://")))
			node_error(l->errs, item,
				   "only cage-dns asks over TLS; for the proxy the policy needs bound: true, and not "
				   "dns.mode: synthetic");
}

static const struct key upstream_keys[] = {
	{WORD("resolvers"), read_resolvers, KEY_OPTIONAL},
	{WORD("resolve"), read_resolve, KEY_OPTIONAL},
	{WORD("trust"), read_trust, KEY_OPTIONAL},
	{WORD("bound"), read_bound, KEY_OPTIONAL},
};

void upstream_read(struct loader *l, const struct node *map)
{
	section_read(l, map, upstream_keys, sizeof(upstream_keys) / sizeof(upstream_keys[0]), l->policy);
}
