/* What a room shows of this machine by itself. For the gate, and for cage, which keeps no secret there. */
#ifndef CAGE_GATE_MACHINE_H
#define CAGE_GATE_MACHINE_H

/* Where programs of the machine are, the only places of it that a room shows: homes, data and most sockets of services are
 * elsewhere; such as that of Nix, which is beside its store. Ends with NULL. */
extern const char *const machine_trees[];

/* The one of them that is not shown as it is (etc.h). */
#define MACHINE_ETC "/etc"

#endif
