/* The plain words for each status. */
#include "core/base/status.h"

const char *cage_status_text(enum cage_status st)
{
	switch (st) {
	case CAGE_OK:
		return "ok";
	case CAGE_AGAIN:
		return "more is needed";
	case CAGE_EOF:
		return "end of stream";
	case CAGE_TRUNCATED:
		return "connection ended without a clean end";
	case CAGE_EPROTO:
		return "protocol error";
	case CAGE_ELIMIT:
		return "limit reached";
	case CAGE_ETIMEOUT:
		return "timed out";
	case CAGE_ENOMEM:
		return "out of memory";
	case CAGE_EVERIFY:
		return "certificate verification failed";
	case CAGE_ESYS:
		return "system error";
	}
	return "unknown status";
}
