/* A socket that sees which connections the agent tries for which nobody listens. */
#ifndef CAGE_GATE_WATCH_H
#define CAGE_GATE_WATCH_H

/* An AF_PACKET socket on lo that gets the first bytes, from the IP header on, of TCP SYNs and UDP datagrams to
 * addresses other than loopback and to ports other than those of our listeners. Or -1 with errno. */
int watch_socket(void);

#endif
