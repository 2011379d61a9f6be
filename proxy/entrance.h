/* The ways in: what the connections of a listener speak first. */
#ifndef CAGE_PROXY_ENTRANCE_H
#define CAGE_PROXY_ENTRANCE_H

enum entrance {
	ENTRANCE_PROXY,    /* --listen: HTTP, to a proxy */
	ENTRANCE_SOCKS,    /* --socks: SOCKS5 */
	ENTRANCE_CAPTURED, /* --transparent: whatever the client would say to the server that it means to reach */
	ENTRANCE_TOOLS     /* --tools: no client, but who makes tool calls and has them logged (tools.h) */
};

#endif
