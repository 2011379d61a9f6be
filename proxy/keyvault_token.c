/* Who we are to Azure: the managed identity of the container group or machine, which a service on its own link knows, or a workload
 * identity, whose token somebody keeps in a file for us. The variables are those of Azure's own libraries. */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "proxy/keyvault_private.h"
#include "proxy/percent.h"

#define IDENTITY "http://169.254.169.254"
#define IDENTITY_PATH "/metadata/identity/oauth2/token"
#define AUTHORITY "https://login.microsoftonline.com"

static const char no_memory[] = "there is no memory to ask for a token";

static struct slice env(const char *name)
{
	const char *value = getenv(name);
	return value ? slice_str(value) : SLICE_NONE;
}

/* A base as people write it, with a '/' at its end or without. */
static struct slice base_of(const char *name, struct slice otherwise)
{
	struct slice base = env(name);
	if (base.len == 0)
		return otherwise;
	return slice_ends(base, SLICE("/")) ? slice_head(base, base.len - 1) : base;
}

/* One after the other; ptr NULL without memory, also where it lacked for a part. */
static struct slice join(struct arena *a, const struct slice *parts, size_t n)
{
	size_t room = 0;
	for (size_t i = 0; i < n; i++) {
		if (!parts[i].ptr)
			return SLICE_NONE;
		room += parts[i].len;
	}
	char *out = arena_alloc(a, room);
	struct text t = text_in(out, out ? room : 0);
	for (size_t i = 0; i < n; i++)
		text_put(&t, parts[i]);
	return slice_of(out, out ? t.len : 0);
}

#define JOIN(a, ...) \
	join(a, (const struct slice[]){__VA_ARGS__}, sizeof((const struct slice[]){__VA_ARGS__}) / sizeof(struct slice))

/* ---- the identity of this machine ---- */

/* In plain text, so it goes to nobody beyond this link. */
static bool is_near(const struct host *host)
{
	static const struct addr_range link = {{ADDR_V4, {169, 254}}, 16};
	return host->kind == HOST_ADDRESS && (addr_is_loopback(&host->addr) || addr_range_contains(&link, &host->addr));
}

static const char *managed_request(struct slice resource, struct arena *a, struct call_request *out)
{
	struct slice base = base_of("AZURE_POD_IDENTITY_AUTHORITY_HOST", SLICE(IDENTITY));
	struct slice client = env("AZURE_CLIENT_ID");
	struct slice url = JOIN(a, base, SLICE(IDENTITY_PATH "?api-version=2018-02-01&resource="),
				percent_encode(resource, a), client.len > 0 ? SLICE("&client_id=") : SLICE(""),
				client.len > 0 ? percent_encode(client, a) : SLICE(""));
	const char *why;
	if (!url.ptr)
		return no_memory;
	if (url_parse(url, a, &out->url, &why) != CAGE_OK || out->url.scheme != SCHEME_HTTP ||
	    !is_near(&out->url.host) || !slice_eq(out->url.path, SLICE(IDENTITY_PATH)))
		return "AZURE_POD_IDENTITY_AUTHORITY_HOST is not http://ADDRESS[:PORT] with an address of this machine "
		       "or of its link (169.254.0.0/16)";
	out->field = SLICE("Metadata");
	out->value = SLICE("true");
	return NULL;
}

/* ---- a workload identity ---- */

/* What the file says, without blanks behind it; ptr NULL: it can't be read. */
static struct slice read_assertion(struct arena *a)
{
	size_t n = 0;
	const char *path = getenv("AZURE_FEDERATED_TOKEN_FILE");
	char *out = arena_alloc(a, LIMIT_SECRET_VALUE);
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1;
	for (ssize_t got = 1; out && fd >= 0 && got > 0 && n < LIMIT_SECRET_VALUE;) {
		got = read(fd, out + n, LIMIT_SECRET_VALUE - n);
		n += got > 0 ? (size_t)got : 0;
	}
	if (fd >= 0)
		close(fd);
	if (n == LIMIT_SECRET_VALUE)
		return SLICE_NONE; /* there may be more of it */
	while (n > 0 && out[n - 1] <= ' ')
		n--;
	return n > 0 ? slice_of(out, n) : SLICE_NONE;
}

static const char *workload_request(struct slice resource, struct arena *a, struct call_request *out)
{
	struct slice tenant = env("AZURE_TENANT_ID"), client = env("AZURE_CLIENT_ID");
	const char *why;
	if (tenant.len == 0 || client.len == 0)
		return "with AZURE_FEDERATED_TOKEN_FILE also AZURE_TENANT_ID and AZURE_CLIENT_ID have to be set";
	struct slice url = JOIN(a, base_of("AZURE_AUTHORITY_HOST", SLICE(AUTHORITY)), SLICE("/"),
				percent_encode(tenant, a), SLICE("/oauth2/v2.0/token"));
	if (!url.ptr || url_parse(url, a, &out->url, &why) != CAGE_OK || out->url.scheme != SCHEME_HTTPS ||
	    out->url.host.kind != HOST_NAME || out->url.query.len > 0)
		return "AZURE_AUTHORITY_HOST is not https://NAME";
	struct slice assertion = read_assertion(a);
	if (!assertion.ptr)
		return "the file that AZURE_FEDERATED_TOKEN_FILE names can't be read";
	out->form = JOIN(a, SLICE("grant_type=client_credentials&client_id="), percent_encode(client, a),
			 SLICE("&scope="), percent_encode(resource, a),
			 SLICE("%2F.default&client_assertion_type="
			       "urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer&client_assertion="),
			 percent_encode(assertion, a));
	out->field = SLICE("Content-Type");
	out->value = SLICE("application/x-www-form-urlencoded");
	return out->form.ptr ? NULL : no_memory;
}

const char *identity_request(struct slice resource, struct arena *arena, struct call_request *out)
{
	*out = (struct call_request){.form = SLICE_NONE};
	return env("AZURE_FEDERATED_TOKEN_FILE").len > 0 ? workload_request(resource, arena, out)
							 : managed_request(resource, arena, out);
}
