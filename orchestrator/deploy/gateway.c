/* Parameters of the gateway of our template, by their names: what Azure would take, and cage-gateway refuse minutes later. A template that
 * does not have all of these names is none of ours, and is not judged. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/base/addr.h"
#include "core/base/write_all.h"
#include "core/net/tls_client.h"
#include "orchestrator/client/shown.h"
#include "orchestrator/deploy/deploy.h"
#include "orchestrator/deploy/parameters.h"
#include "orchestrator/gateway/pair.h"
#include "orchestrator/image/reference.h"

/* ---- one at a time ---- */

/* A vault's name begins with a letter. How long it may be stands in the template. */
static bool is_prefix(const char *text)
{
	return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789") == strlen(text) && !isdigit((unsigned char)text[0]);
}

static bool is_address(const char *text)
{
	struct addr address;
	return addr_parse(slice_str(text), &address) && address.family == ADDR_V4;
}

/* The template puts the registry before it. */
static bool is_image(const char *text)
{
	char full[LIMIT_IMAGE_REFERENCE + 32];
	const char *why;
	struct image_reference reference;
	const int n = snprintf(full, sizeof(full), "registry.example/%s", text);
	return n < (int)sizeof(full) && !strstr(text, ".azurecr.") &&
	       image_reference_parse(slice_str(full), &reference, &why) == IMAGE_FORM_GOOD;
}

/* As cage-gateway reads it. */
static bool is_token(const char *text)
{
	size_t n = strlen(text);
	while (n > 0 && (text[n - 1] == '\n' || text[n - 1] == '\r'))
		n--;
	return n >= LIMIT_GATEWAY_TOKEN_MIN && n < LIMIT_GATEWAY_TOKEN;
}

#define AN_IMAGE "expected an image of the registry by its digest, NAME@sha256: and 64 hex digits"

static const struct rule {
	const char *name;
	bool (*is_good)(const char *text); /* NULL: judged below */
	const char *wanted;
	bool is_secret;
} rules[] = {{"prefix", is_prefix, "expected 2 to 8 lower-case letters and digits, a letter first", false},
	     {"gatewayAddress", is_address, "expected an IPv4 address", false},
	     {"proxyImage", is_image, AN_IMAGE, false},
	     {"dnsImage", is_image, AN_IMAGE, false},
	     {"shipImage", is_image, AN_IMAGE, false},
	     {"policy", NULL, NULL, false},
	     {"intakeCertificate", NULL, NULL, false},
	     {"intakeKey", NULL, NULL, true},
	     {"intakeToken", is_token, "expected 32 to 511 characters, as cage-gateway wants it", true}};

_Static_assert(LIMIT_GATEWAY_TOKEN_MIN == 32 && LIMIT_GATEWAY_TOKEN == 512, "said above, and in the template");

static void judge(struct parameters *p, const struct rule *r)
{
	char got[LIMIT_CLIENT_CELL], hint[LIMIT_CLIENT_CELL + 32] = "";
	const char *text = parameters_text(p, r->name);
	if (!text || !r->is_good || r->is_good(text))
		return;
	if (!r->is_secret)
		snprintf(hint, sizeof(hint), ", and got \"%s\"", shown(text, got, sizeof(got)));
	parameters_fault(p, r->name, r->wanted, hint);
}

/* ---- certificate and key ---- */

/* A file that nobody else sees. -1: it can't be made. */
static int hold(const char *text, char path[64])
{
	const int fd = memfd_create("parameter", MFD_CLOEXEC);
	snprintf(path, 64, "/proc/self/fd/%d", fd);
	if (fd >= 0 && write_all(fd, text, strlen(text)))
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static void say_pair(struct parameters *p, enum pair_fault found)
{
	switch (found) {
	case PAIR_GOOD:
		return;
	case PAIR_NO_CERTIFICATE:
		parameters_fault(p, "intakeCertificate", "no certificate in PEM form", "");
		return;
	case PAIR_NO_KEY:
		parameters_fault(p, "intakeKey", "no private key in PEM form without a password", "");
		return;
	case PAIR_OTHER_KEY:
		parameters_fault(p, "intakeKey", "it is not the key of the first certificate of intakeCertificate", "");
		return;
	}
}

static void judge_pair(struct parameters *p)
{
	char cert_path[64], key_path[64];
	const char *cert = parameters_text(p, "intakeCertificate"), *key = parameters_text(p, "intakeKey");
	if (!cert || !key)
		return;
	const int cert_fd = hold(cert, cert_path), key_fd = hold(key, key_path);
	SSL_CTX *ctx = cert_fd >= 0 && key_fd >= 0 ? tls_ctx_new(TLS_server_method()) : NULL;
	if (ctx)
		say_pair(p, pair_use(ctx, cert_path, key_path));
	else
		parameters_fault(p, "intakeCertificate", "it can't be looked at: no memory", "");
	SSL_CTX_free(ctx);
	if (cert_fd >= 0)
		close(cert_fd);
	if (key_fd >= 0)
		close(key_fd);
}

/* ---- all of them ---- */

void gateway_judge(struct deploy *d, struct parameters *p)
{
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (!json_object_get(p->declared, rules[i].name))
			return;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		judge(p, &rules[i]);
	judge_pair(p);
	policy_ask(d, p, "policy");
}
