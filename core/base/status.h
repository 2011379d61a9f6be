/* One status for the whole tree. 0 is success; nothing else is. */
#ifndef CAGE_BASE_STATUS_H
#define CAGE_BASE_STATUS_H

enum cage_status {
	CAGE_OK = 0,
	CAGE_AGAIN,     /* not an error: more input or another event is needed */
	CAGE_EOF,       /* clean end of stream (TLS: close_notify seen) */
	CAGE_TRUNCATED, /* the transport ended without a clean end */
	CAGE_EPROTO,    /* the peer broke the protocol */
	CAGE_ELIMIT,    /* a limit of base/limits.h or of the policy was reached */
	CAGE_ETIMEOUT,
	CAGE_ENOMEM,
	CAGE_EVERIFY, /* the peer's certificate was not good */
	CAGE_ESYS     /* errno has the reason */
};

#define MUST_CHECK __attribute__((warn_unused_result))

#endif
