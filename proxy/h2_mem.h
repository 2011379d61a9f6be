/* The memory of nghttp2: field lists go through it, and some carry secrets, so all of it is overwritten before it is
 * given back. */
#ifndef CAGE_PROXY_H2_MEM_H
#define CAGE_PROXY_H2_MEM_H

#include <nghttp2/nghttp2.h>

/* For nghttp2_session_server_new3() and nghttp2_session_client_new3(), which copy it. */
nghttp2_mem *h2_mem(void);

#endif
