/* Registrable domains by libpsl: the list that is built into the library or, without one, the system's. With neither,
 * every name is its own. */
#include "inspectors/registrable.h"

#include <libpsl.h>

#include "core/base/limits.h"

/* Found at the first call and kept. */
static const psl_ctx_t *suffixes(void)
{
	static const psl_ctx_t *list;
	static bool looked;
	if (!looked) {
		list = psl_builtin();
		if (!list)
			list = psl_latest(NULL);
		looked = true;
	}
	return list;
}

struct slice registrable_domain(const struct host *host)
{
	char name[LIMIT_HOST + 1];
	if (host->kind != HOST_NAME || host->text.len > LIMIT_HOST || !suffixes())
		return host->text;
	memcpy(name, host->text.ptr, host->text.len);
	name[host->text.len] = '\0';
	const char *domain = psl_registrable_domain(suffixes(), name);
	return domain ? slice_from(host->text, (size_t)(domain - name)) : host->text;
}
