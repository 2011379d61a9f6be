/* Addresses of secrets in key vaults. Promises: what is taken is an https URL of a name and a path of a secret, of plain bytes, that
 * parses to itself; whoever is counted among Azure's vaults is one label below one of its domains.
 *
 * Input: the text. */
#include "core/base/limits.h"
#include "core/policy/keyvault.h"
#include "tests/fuzz/fuzz.h"

#define ARENA MIB(1)
#define WORD_BYTES "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

static void path_must_be_plain(struct slice path)
{
	char text[LIMIT_KEYVAULT_NAME + LIMIT_KEYVAULT_VERSION + 16];
	PROMISE(path.len < sizeof(text));
	snprintf(text, sizeof(text), "%.*s", SLICE_FMT(path));
	PROMISE(strncmp(text, "/secrets/", 9) == 0);
	const char *name = text + 9;
	size_t n = strspn(name, WORD_BYTES "-");
	PROMISE(n > 0 && n <= LIMIT_KEYVAULT_NAME);
	PROMISE(name[n] == '\0' || (name[n] == '/' && strlen(name + n + 1) == LIMIT_KEYVAULT_VERSION &&
				    strspn(name + n + 1, WORD_BYTES) == LIMIT_KEYVAULT_VERSION));
}

static void host_must_be_right(struct slice host)
{
	struct slice resource = keyvault_resource(host);
	if (!resource.ptr)
		return;
	struct slice domain = slice_from(resource, sizeof("https://") - 1);
	PROMISE(slice_ends(host, domain) && host.len > domain.len + 1);
	PROMISE(slice_find(host, '.') == host.len - domain.len - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct slice text = fuzz_copy(slice_of(data, size));
	struct arena arena;
	struct target t, again;
	const char *why = NULL;
	arena_init(&arena, ARENA);
	if (keyvault_url_parse(text, &arena, &t, &why) == CAGE_OK) {
		char url[LIMIT_HOST + 256];
		PROMISE(t.scheme == SCHEME_HTTPS && t.host.kind == HOST_NAME && t.port == 443 && t.query.len == 0);
		path_must_be_plain(t.path);
		host_must_be_right(t.host.text);
		snprintf(url, sizeof(url), "https://%.*s%.*s", SLICE_FMT(t.host.text), SLICE_FMT(t.path));
		PROMISE(keyvault_url_parse(slice_str(url), &arena, &again, &why) == CAGE_OK);
		PROMISE(host_eq(&t.host, &again.host) && slice_eq(t.path, again.path));
	} else {
		PROMISE(why);
	}
	arena_free(&arena);
	fuzz_free(&text);
	return 0;
}
