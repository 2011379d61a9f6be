/* Variables and files of the kit. Those variables that replace a trust store point at the full bundle, the system's and
 * ours, so that what is tunnelled can be verified too; those that add to it, at the CA alone. */
#include "orchestrator/env_kit.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/base/limits.h"
#include "core/base/say.h"
#include "orchestrator/jks.h"
#include "orchestrator/nss.h"

#define PATH_ROOM 4200

const char *const kit_system_bundles[] = {
	"/etc/ssl/certs/ca-certificates.crt",                /* Debian, Arch */
	"/etc/pki/tls/certs/ca-bundle.crt",                  /* Fedora */
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", /* Fedora */
	"/etc/ssl/ca-bundle.pem",                            /* openSUSE */
	"/etc/ssl/cert.pem",                                 /* Alpine */
	NULL,
};

const char *const kit_java_stores[] = {
	"/etc/ssl/certs/java/cacerts", /* Debian */
	"/etc/pki/java/cacerts",       /* Fedora */
	NULL,
};

static const struct kit_variable {
	const char *name, *file; /* file NULL: the proxy's URL */
} variables[] = {
	{"HTTP_PROXY", NULL},
	{"HTTPS_PROXY", NULL},
	{"ALL_PROXY", NULL},
	{"http_proxy", NULL},
	{"https_proxy", NULL},
	{"all_proxy", NULL},
	{"SSL_CERT_FILE", "bundle.pem"},
	{"SSL_CERT_DIR", "certs"},
	{"REQUESTS_CA_BUNDLE", "bundle.pem"},
	{"CURL_CA_BUNDLE", "bundle.pem"},
	{"GIT_SSL_CAINFO", "bundle.pem"},
	{"PIP_CERT", "bundle.pem"},
	{"CARGO_HTTP_CAINFO", "bundle.pem"},
	{"AWS_CA_BUNDLE", "bundle.pem"},
	{"NODE_EXTRA_CA_CERTS", "ca.pem"},
	{"DENO_CERT", "ca.pem"},
	{"WGETRC", "wgetrc"},
};

#define N_VARIABLES (sizeof(variables) / sizeof(variables[0]))

/* What Java is told: it reads none of the other variables. It asks no proxy for names of the loopback by itself. */
void kit_java_variable(const char *kit, const char *proxy, const char *password, struct words *out)
{
	const char *host = strstr(proxy, "://");
	host = host ? host + 3 : proxy;
	const char *colon = strrchr(host, ':');
	int len = colon ? (int)(colon - host) : (int)strlen(host);
	const char *port = colon ? colon + 1 : "80";
	words_add(out,
		  "JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=%s/cacerts.jks%s%s "
		  "-Dhttp.proxyHost=%.*s -Dhttp.proxyPort=%s -Dhttps.proxyHost=%.*s -Dhttps.proxyPort=%s",
		  kit, password ? " -Djavax.net.ssl.trustStorePassword=" : "", password ? password : "", len, host,
		  port, len, host, port);
}

void kit_shell_variables(const char *kit, const struct kit_way *way, struct words *out)
{
	for (size_t i = 0; i < N_VARIABLES; i++) {
		const struct kit_variable *v = &variables[i];
		if (v->file)
			words_add(out, "%s=%s/%s", v->name, kit, v->file);
		else
			words_add(out, "%s=%s", v->name, way->proxy);
	}
	words_add(out, "NO_PROXY=%s", way->direct);
	words_add(out, "no_proxy=%s", way->direct);
	words_add(out, "NODE_USE_ENV_PROXY=1");
	words_add(out, "UV_NATIVE_TLS=true");
}

void kit_variables(const char *kit, const struct kit_way *way, struct words *out)
{
	kit_shell_variables(kit, way, out);
	kit_java_variable(kit, way->proxy, JKS_PASSWORD, out);
}

/* ---- files ---- */

static bool path_in(char out[PATH_ROOM], const char *dir, const char *name)
{
	return snprintf(out, PATH_ROOM, "%s/%s", dir, name) < PATH_ROOM;
}

/* Written in place: it may be mounted elsewhere already. */
static bool write_file(const char *dir, const char *name, const void *bytes, size_t len)
{
	char path[PATH_ROOM];
	int fd =
		path_in(path, dir, name) ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644) : -1;
	if (fd < 0)
		return false;
	const char *next = bytes;
	while (len > 0) {
		ssize_t n = write(fd, next, len);
		if (n < 0)
			break;
		next += n;
		len -= (size_t)n;
	}
	return fchmod(fd, 0644) == 0 && close(fd) == 0 && len == 0;
}

static char *read_file(const char *dir, const char *name, size_t *len)
{
	char path[PATH_ROOM];
	FILE *f = path_in(path, dir, name) ? fopen(path, "re") : NULL;
	char *bytes = f ? malloc(LIMIT_TRUST_FILE) : NULL;
	*len = bytes ? fread(bytes, 1, LIMIT_TRUST_FILE, f) : 0;
	bool whole = *len > 0 && *len < LIMIT_TRUST_FILE && !ferror(f);
	if (f)
		fclose(f);
	if (whole)
		return bytes;
	free(bytes);
	return NULL;
}

static bool make_dir(const char *dir, const char *name)
{
	char path[PATH_ROOM];
	return path_in(path, dir, name) && (mkdir(path, 0755) == 0 || errno == EEXIST) && chmod(path, 0755) == 0;
}

/* certs/HASH.0, as OpenSSL looks for it. */
static bool write_hashed(const char *kit, const char *pem, size_t len)
{
	char dir[PATH_ROOM], name[32];
	BIO *in = BIO_new_mem_buf(pem, (int)len);
	X509 *cert = in ? PEM_read_bio_X509(in, NULL, NULL, NULL) : NULL;
	bool ok = cert && path_in(dir, kit, "certs") && make_dir(kit, "certs");
	if (ok)
		snprintf(name, sizeof(name), "%08lx.0", X509_subject_name_hash(cert));
	ok = ok && write_file(dir, name, pem, len);
	X509_free(cert);
	BIO_free(in);
	return ok;
}

static bool write_wgetrc(const char *kit, const char *proxy)
{
	char text[3 * PATH_ROOM];
	int n = snprintf(text, sizeof(text),
			 "use_proxy = on\nhttp_proxy = %s\nhttps_proxy = %s\nca_certificate = %s/bundle.pem\n", proxy,
			 proxy, kit);
	return n > 0 && (size_t)n < sizeof(text) && write_file(kit, "wgetrc", text, (size_t)n);
}

/* No value has a quote in it: paths are ours, or were checked where they came from. */
static bool write_env_sh(const char *kit, const struct kit_way *way)
{
	char path[PATH_ROOM];
	struct words all = {0};
	FILE *f = path_in(path, kit, "env.sh") ? fopen(path, "we") : NULL;
	kit_variables(kit, way, &all);
	bool ok = f && !all.failed;
	for (size_t i = 0; i < all.n && ok; i++) {
		int name = (int)strcspn(all.list[i], "=");
		ok = fprintf(f, "export %.*s='%s'\n", name, all.list[i], all.list[i] + name + 1) > 0;
	}
	words_free(&all);
	if (f)
		ok = fchmod(fileno(f), 0644) == 0 && fclose(f) == 0 && ok;
	return ok;
}

bool kit_has_nss(void)
{
	return nss_is_possible();
}

bool kit_begin(const char *kit)
{
	if (write_file(kit, "bundle.pem", "", 0) && write_file(kit, "cacerts.jks", "", 0) &&
	    (!kit_has_nss() || make_dir(kit, "nssdb")))
		return true;
	say("%s: %s", kit, strerror(errno));
	return false;
}

bool kit_fill(const char *kit, const char *ca_dir, const struct kit_way *way)
{
	size_t n_ca = 0, n_bundle = 0;
	char *ca = read_file(ca_dir, "ca.pem", &n_ca), *bundle = read_file(ca_dir, "bundle.pem", &n_bundle);
	bool ok = ca && bundle && write_file(kit, "ca.pem", ca, n_ca) &&
		  write_file(kit, "bundle.pem", bundle, n_bundle) && write_hashed(kit, ca, n_ca) &&
		  jks_write(kit, "cacerts.jks", bundle, n_bundle) && write_wgetrc(kit, way->proxy) &&
		  write_env_sh(kit, way);
	if (!ca && errno == ENOENT)
		say("there is no CA in %s yet: start cage-proxy once, or name another --ca-dir", ca_dir);
	else if (!ok)
		say("the env kit can't be made in %s from %s: %s", kit, ca_dir, strerror(errno));
	else
		nss_make(kit, ca_dir);
	free(ca);
	free(bundle);
	return ok;
}
