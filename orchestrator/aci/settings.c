/* Each value by a table, then what goes together. */
#include "orchestrator/aci/settings.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/addr.h"
#include "core/base/limits.h"
#include "core/policy/errors.h"
#include "orchestrator/azure/azure.h"
#include "orchestrator/image/reference.h"

#define WORD_ROOM 4096 /* bytes of a value, with its NUL */

/* One judgement: what was told is counted. */
struct judge {
	const struct aci_settings *s;
	size_t told;
};

static void tell(struct judge *j, const char *name, const char *why)
{
	j->told++;
	j->s->tell(j->s->from, name, 0, why);
}

static struct slice value_of(const struct judge *j, const char *name)
{
	return j->s->value(j->s->from, name, 0);
}

static bool has(const struct judge *j, const char *name)
{
	return value_of(j, name).ptr != NULL;
}

static bool is_word(const struct judge *j, const char *name, const char *word)
{
	return slice_eq(value_of(j, name), slice_str(word));
}

/* ---- values ---- */

static bool is_image(const char *text)
{
	struct image_reference parts;
	const char *why;
	return image_reference_parse(slice_str(text), &parts, &why) == IMAGE_FORM_GOOD;
}

/* "/subscriptions/ID/resourceGroups/NAME/providers/" and so on: words and names in turn, the former in any case. */
static bool is_id(const char *text, const char *const *words)
{
	struct slice rest = slice_str(text);
	char name[256];
	if (slice_cut(&rest, '/').len != 0)
		return false;
	for (; *words; words++) {
		struct slice word = slice_cut(&rest, '/'), next = slice_cut(&rest, '/');
		snprintf(name, sizeof(name), "%.*s", SLICE_FMT(next));
		if (!slice_ieq(word, slice_str(*words)) || next.len >= sizeof(name) || !azure_name_is_plain(name))
			return false;
	}
	return rest.len == 0;
}

static bool is_subnet(const char *text)
{
	static const char *const words[] = {"subscriptions",   "resourceGroups", "providers",
					    "virtualNetworks", "subnets",        NULL};
	return is_id(text, words) && strcasestr(text, "/providers/Microsoft.Network/");
}

static bool is_identity(const char *text)
{
	static const char *const words[] = {"subscriptions", "resourceGroups", "providers", "userAssignedIdentities",
					    NULL};
	return is_id(text, words) && strcasestr(text, "/providers/Microsoft.ManagedIdentity/");
}

/* HOST or HOST:PORT. */
static bool is_server(const char *text)
{
	struct slice rest = slice_str(text), host = slice_cut(&rest, ':');
	uint64_t port = 1;
	return host.len > 0 &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.:") == strlen(text) &&
	       (host.len == strlen(text) || (slice_to_u64(rest, UINT16_MAX, &port) && port > 0));
}

/* The relay resolves nothing. */
static bool is_place(const char *text)
{
	struct addr at;
	uint16_t port;
	return addr_parse_with_port(slice_str(text), &at, &port) && port > 0;
}

/* A path would be set before ours. */
static bool is_intake(const char *text)
{
	const char *host = text + sizeof("https://") - 1;
	return strncmp(text, "https://", 8) == 0 && web_url_is_safe(text) && (is_server(host) || is_place(host));
}

static bool is_resolver(const char *text)
{
	struct addr at;
	return addr_parse(slice_str(text), &at) || is_place(text);
}

static bool is_topology(const char *text)
{
	return strcmp(text, "group") == 0 || strcmp(text, "split") == 0;
}

static bool is_sku(const char *text)
{
	return strcmp(text, "Standard") == 0 || strcmp(text, "Confidential") == 0;
}

static bool is_credentials(const char *text)
{
	enum azure_credentials any;
	return azure_credentials_read(text, &any);
}

static bool is_reader(const char *text)
{
	return strcmp(text, "proxy") == 0 || strcmp(text, "reference") == 0;
}

static bool is_path(const char *text)
{
	return text[0] == '/';
}

/* Whoever checks may be another user: what only he can't read may be good. */
static bool is_file(const char *text)
{
	struct stat st;
	return stat(text, &st) == 0 ? S_ISREG(st.st_mode) : errno == EACCES;
}

static bool has_certificate(const char *text)
{
	static const char begin[] = "-----BEGIN ";
	static char bytes[KIB(64)];
	int fd = is_file(text) ? open(text, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1;
	const bool is_hidden = fd < 0 && errno == EACCES && is_file(text);
	const ssize_t n = fd >= 0 ? read(fd, bytes, sizeof(bytes)) : -1;
	if (fd >= 0)
		close(fd);
	return is_hidden || (n > 0 && memmem(bytes, (size_t)n, begin, sizeof(begin) - 1));
}

#define A_PLACE "expected ADDRESS:PORT, and no name"
#define AN_IMAGE "expected REGISTRY/REPOSITORY@sha256:HEX, an image by its digest"
#define A_CA "expected a file with certificates (PEM)"
#define AN_ID "expected /subscriptions/ID/resourceGroups/NAME/providers/"

static const struct row {
	const char *name;
	bool (*is_good)(const char *text);
	const char *expected;
	bool finds; /* also what is only looked for needs it */
} rows[] = {
	{"subscription", azure_name_is_plain, "expected the id of a subscription", true},
	{"group", azure_name_is_plain, "expected the name of a resource group", true},
	{"region", azure_name_is_plain, "expected a name such as westeurope", false},
	{"image", is_image, AN_IMAGE, false},
	{"proxy-image", is_image, AN_IMAGE, false},
	{"dns-image", is_image, AN_IMAGE, false},
	{"gate-image", is_image, AN_IMAGE, false},
	{"topology", is_topology, "expected group or split", true},
	{"gateway", is_place, A_PLACE, false},
	{"gateway-dns", is_place, A_PLACE, false},
	{"intake", is_intake, "expected https://HOST:PORT", true},
	{"intake-ca", has_certificate, A_CA, false},
	{"subnet", is_subnet, AN_ID "Microsoft.Network/virtualNetworks/NAME/subnets/NAME", false},
	{"identity", is_identity, AN_ID "Microsoft.ManagedIdentity/userAssignedIdentities/NAME", false},
	{"identity-client", azure_name_is_plain, "expected the client id of an identity", false},
	{"vault-secrets", is_reader, "expected proxy or reference", false},
	{"registry", is_server, "expected the name of a server, such as example.azurecr.io", false},
	{"registry-password-file", is_file, "expected a file", false},
	{"resolver", is_resolver, "expected ADDRESS or ADDRESS:PORT, and no name", false},
	{"sku", is_sku, "expected Standard or Confidential", false},
	{"credentials", is_credentials, "expected auto, secret, workload, identity or az", false},
	{"endpoint", web_url_is_safe, "expected https://HOST", true},
	{"ca-file", has_certificate, A_CA, false},
	{"map-dir", is_path, "expected an absolute path", false},
};

static void judge_value(struct judge *j, const struct row *row, struct slice value, size_t i)
{
	char text[WORD_ROOM], why[WORD_ROOM];
	snprintf(text, sizeof(text), "%.*s", SLICE_FMT(value));
	if (value.len < sizeof(text) && row->is_good(text))
		return;
	snprintf(why, sizeof(why), "%s, got %s", row->expected, quote(value).text);
	j->told++;
	j->s->tell(j->s->from, row->name, i, why);
}

static void judge_values(struct judge *j, bool all)
{
	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		struct slice value;
		for (size_t i = 0; (all || rows[k].finds) && (value = j->s->value(j->s->from, rows[k].name, i)).ptr;
		     i++)
			judge_value(j, &rows[k], value, i);
	}
}

/* ---- together ---- */

static void need(struct judge *j, const char *name, const char *why)
{
	if (!has(j, name))
		tell(j, name, why);
}

static void forbid(struct judge *j, const char *name, const char *why)
{
	if (has(j, name))
		tell(j, name, why);
}

static void judge_always(struct judge *j)
{
	static const char *const names[] = {"subscription", "group", "region", "image", "gate-image"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		need(j, names[i], "it is needed");
}

/* It goes into a field of a head; it is not shown. */
static void judge_token(struct judge *j)
{
	char why[200];
	const struct slice token = j->s->token;
	size_t n = 0;
	while (n < token.len && token.ptr[n] > 0x20 && token.ptr[n] < 0x7f)
		n++;
	if (token.ptr && n == token.len && n >= LIMIT_GATEWAY_TOKEN_MIN && n < LIMIT_GATEWAY_TOKEN)
		return;
	snprintf(why, sizeof(why),
		 "its token has to be in the variable " INTAKE_TOKEN ": expected %d to %d characters, got %s",
		 LIMIT_GATEWAY_TOKEN_MIN, LIMIT_GATEWAY_TOKEN - 1,
		 token.len == 0            ? "none"
		 : n < token.len           ? "a blank or a letter that is not ASCII"
		 : n < LIMIT_GATEWAY_TOKEN ? "fewer"
					   : "more");
	tell(j, "intake", why);
}

static void judge_gateway(struct judge *j)
{
	need(j, "intake", "split needs it: expected https://HOST:PORT");
	judge_token(j);
}

static void judge_split(struct judge *j)
{
	static const char theirs[] = "with split it is the gateway's: leave it out";
	need(j, "gateway", "split needs it: " A_PLACE);
	need(j, "subnet", "split needs it: the one from which nothing but the gateway can be reached");
	judge_gateway(j);
	forbid(j, "proxy-image", theirs);
	forbid(j, "dns-image", theirs);
	forbid(j, "identity-client", "with split there is one identity, which pulls; the gateway has the others");
	if (is_word(j, "vault-secrets", "reference"))
		tell(j, "vault-secrets", "with split there is one identity, which pulls; the gateway reads secrets");
	if (j->s->value(j->s->from, "identity", 1).ptr)
		tell(j, "identity", "with split there is one, which pulls; the gateway has the others");
}

static void judge_group(struct judge *j)
{
	static const char *const names[] = {"gateway", "gateway-dns", "intake", "intake-ca"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		forbid(j, names[i], "it is for the topology split alone");
	need(j, "proxy-image", "it is needed without split: " AN_IMAGE);
	need(j, "dns-image", "it is needed without split: " AN_IMAGE);
	if (j->s->value(j->s->from, "identity", 1).ptr)
		need(j, "identity-client", "of several identities it has to say which one is the proxy's");
	if (has(j, "identity"))
		return;
	forbid(j, "identity-client", "there is no identity");
	if (is_word(j, "vault-secrets", "reference"))
		tell(j, "vault-secrets", "there is no identity that could read them");
}

static void judge_registry(struct judge *j)
{
	const bool has_name = has(j, "registry-username");
	if (has_name && !has(j, "registry"))
		tell(j, "registry-username", "there is no registry");
	if (!has_name)
		forbid(j, "registry-password-file", "there is no registry_username (--registry-username)");
	else if (!has(j, "registry-password-file") && !j->s->has_password)
		tell(j, "registry-username",
		     "there is no password: neither a file of it nor the variable " REGISTRY_PASSWORD);
}

bool aci_settings_check(const struct aci_settings *s)
{
	struct judge j = {.s = s};
	judge_values(&j, true);
	judge_always(&j);
	if (is_word(&j, "topology", "split"))
		judge_split(&j);
	else if (!has(&j, "topology") || is_word(&j, "topology", "group"))
		judge_group(&j);
	judge_registry(&j);
	return j.told == 0;
}

bool aci_settings_check_few(const struct aci_settings *s)
{
	struct judge j = {.s = s};
	judge_values(&j, false);
	need(&j, "subscription", "it is needed");
	need(&j, "group", "it is needed");
	if (is_word(&j, "topology", "split"))
		judge_gateway(&j);
	return j.told == 0;
}
