/* openapi.yaml, as it was built in. */
#ifndef CAGE_SERVICE_OPENAPI_H
#define CAGE_SERVICE_OPENAPI_H

#include <stddef.h>

extern const char openapi_bytes[];
extern const size_t openapi_length;

#endif
