/* What names of Azure's log ingestion look like. cage-ship and the configuration of cage serve take the same ones. */
#ifndef CAGE_SHIP_FORMS_H
#define CAGE_SHIP_FORMS_H

#include <stdbool.h>

#include "core/base/slice.h"

#define SHIP_ENDPOINT_EXPECTED \
	"expected https://HOST without a slash at its end, such as https://NAME.westeurope-1.ingest.monitor.azure.com"
#define SHIP_AUDIENCE_EXPECTED "expected https://HOST without a slash at its end, such as https://monitor.azure.us"
#define SHIP_RULE_EXPECTED                                                                                             \
	"expected the immutable id of a data collection rule, dcr- and 32 hex digits: it is not its name or resource " \
	"id"
#define SHIP_STREAM_EXPECTED "expected the name of a stream of that rule, such as Custom-CageLog_CL"

/* An audience has the same form. http only where it is this machine. */
bool ship_endpoint_is_good(struct slice text);
bool ship_rule_is_good(struct slice text);
bool ship_stream_is_good(struct slice text);

#endif
