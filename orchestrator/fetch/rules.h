/* What a request may have in it: for cage-fetch, and for those that refuse what it would. */
#ifndef CAGE_FETCH_RULES_H
#define CAGE_FETCH_RULES_H

#include "core/base/slice.h"

/* Upper case letters, and not CONNECT. */
bool fetch_method_is_good(struct slice s);

/* http or https, visible ASCII. */
bool fetch_url_is_good(struct slice s);

/* A token of RFC 9110. */
bool fetch_field_name_is_good(struct slice s);

/* No line of its own can be made out of it. */
bool fetch_field_value_is_good(struct slice s);

#endif
