/* Byte by byte. */
#include "orchestrator/fetch/rules.h"

#include <string.h>

#include "core/base/limits.h"

bool fetch_field_name_is_good(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] <= ' ' || s.ptr[i] > '~' || strchr("\"(),/:;<=>?@[\\]{}", s.ptr[i]))
			return false;
	return s.len > 0;
}

bool fetch_method_is_good(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] < 'A' || s.ptr[i] > 'Z')
			return false;
	return s.len > 0 && s.len <= LIMIT_SERVE_METHOD && !slice_eq(s, SLICE("CONNECT"));
}

bool fetch_field_value_is_good(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if ((unsigned char)s.ptr[i] < ' ' && s.ptr[i] != '\t')
			return false;
	return slice_find(s, 0x7f) == s.len;
}

bool fetch_url_is_good(struct slice s)
{
	for (size_t i = 0; i < s.len; i++)
		if (s.ptr[i] <= ' ' || s.ptr[i] > '~')
			return false;
	return s.len <= LIMIT_TARGET && (slice_starts(s, SLICE("http://")) || slice_starts(s, SLICE("https://")));
}
