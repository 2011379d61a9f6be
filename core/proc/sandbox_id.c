/* Which bytes an id may have. */
#include "core/proc/sandbox_id.h"

#include "core/base/limits.h"

bool sandbox_id_is_good(struct slice id)
{
	for (size_t i = 0; i < id.len; i++) {
		unsigned char c = ascii_lower((unsigned char)id.ptr[i]);
		if (!ascii_is_digit(c) && !(c >= 'a' && c <= 'z') && c != '.' && c != '_' && c != '-')
			return false;
	}
	return id.len > 0 && id.len <= LIMIT_SANDBOX;
}
