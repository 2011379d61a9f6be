/* What an address, a name or a word of Azure may look like; without libcurl, since the service judges them too. */
#include <string.h>

#include "core/base/slice.h"
#include "orchestrator/azure/azure.h"

bool azure_credentials_read(const char *text, enum azure_credentials *out)
{
	static const char *const names[] = {"auto", "secret", "workload", "identity", "az"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(text, names[i]) == 0) {
			*out = (enum azure_credentials)i;
			return true;
		}
	return false;
}

bool azure_name_is_plain(const char *text)
{
	return text && text[0] &&
	       strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.()") == strlen(text) &&
	       strcmp(text, ".") != 0 && strcmp(text, "..") != 0;
}

/* ---- addresses ---- */

static struct slice host_of(const char *url, const char *scheme)
{
	struct slice rest = slice_from(slice_str(url), strlen(scheme));
	size_t n = 0;
	while (n < rest.len && !strchr("/?#", rest.ptr[n]))
		n++;
	return slice_head(rest, n);
}

/* 127.0.0.1 and the address of the identity service, with or without a port. */
static bool is_near(struct slice host)
{
	static const struct slice near[] = {WORD("127.0.0.1"), WORD("169.254.169.254")};
	for (size_t i = 0; i < sizeof(near) / sizeof(near[0]); i++)
		if (slice_eq(slice_cut(&(struct slice){host.ptr, host.len}, ':'), near[i]))
			return true;
	return false;
}

bool web_url_is_safe(const char *url)
{
	for (const char *c = url; *c; c++)
		if (*c <= 0x20 || *c >= 0x7f || *c == '\\')
			return false;
	if (strncmp(url, "https://", 8) == 0) {
		struct slice host = host_of(url, "https://");
		return host.len > 0 && slice_find(host, '@') == host.len;
	}
	return strncmp(url, "http://", 7) == 0 && is_near(host_of(url, "http://"));
}
