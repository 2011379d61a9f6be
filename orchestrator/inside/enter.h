/* cage-inside --enter: the last step before the command of an agent whose container shares a network with the proxy's. */
#ifndef CAGE_INSIDE_ENTER_H
#define CAGE_INSIDE_ENTER_H

#define ENTER_KIT "/tmp/cage" /* where its programs find the CA */
#define ENTER_REFUSED 78      /* the agent is not locked in, or that can't be shown */

/* argv: ADDRESS:PORT of the proxy, [--files FILE], "--", CMD and its arguments. Becomes CMD, or returns an exit code. */
int enter(int argc, char **argv);

#endif
