/* What stands before the '@' of the variable, and what behind it. */
#include "orchestrator/proxy_credential.h"

#include <stdio.h>
#include <stdlib.h>

#include "core/base/base64.h"

#define SCHEME "http://"

/* "ID:TOKEN@HOST:PORT" */
static struct slice authority(void)
{
	const char *proxy = getenv("HTTP_PROXY");
	struct slice rest = slice_str(proxy ? proxy : "");
	if (!slice_starts(rest, SLICE(SCHEME)))
		return SLICE_NONE;
	rest = slice_from(rest, sizeof(SCHEME) - 1);
	return slice_cut(&rest, '/');
}

void proxy_credential(char out[PROXY_CREDENTIAL])
{
	char digits[BASE64_DIGITS(LIMIT_SANDBOX + 1 + LIMIT_SANDBOX_TOKEN)];
	struct slice rest = authority(), who = slice_cut(&rest, '@');
	out[0] = '\0';
	if (rest.len == 0 || who.len > LIMIT_SANDBOX + 1 + LIMIT_SANDBOX_TOKEN)
		return;
	base64_write(who, digits);
	snprintf(out, PROXY_CREDENTIAL, "Proxy-Authorization: Basic %.*s\r\n", (int)BASE64_DIGITS(who.len), digits);
	explicit_bzero(digits, sizeof(digits));
}

struct slice proxy_host(void)
{
	struct slice rest = authority(), first = slice_cut(&rest, '@');
	struct slice host = rest.len > 0 ? rest : first;
	return slice_cut(&host, ':');
}
