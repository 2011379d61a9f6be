/* Landlock, where the kernel has it: what neither a network namespace nor the filter of system calls can tell apart. */
#ifndef CAGE_GATE_LANDLOCK_H
#define CAGE_GATE_LANDLOCK_H

#include <stdbool.h>
#include <stddef.h>

enum { LANDLOCK_ABI_TCP = 4, LANDLOCK_ABI_SCOPE = 6 };

/* The version that this kernel has, 0 for none. */
int landlock_abi(void);

#define LANDLOCK_NOTHING (-2) /* the kernel has nothing that would be of use */

/* Makes the rules: abstract sockets and signals end at the agent's own processes, as far as the kernel can; and TCP
 * connections to the listed ports are refused. That takes 65,000 calls and 30 ms or more, so it is done while others are
 * waited for; a rehearsal leaves all ports closed instead. Asking for ports on a kernel that can't is a failure. Returns a
 * descriptor, LANDLOCK_NOTHING, or -1 after it has said why. */
int landlock_prepare(const unsigned *ports, size_t n_ports, bool is_rehearsal);

/* This process and those that it will start are held by them from now on. 0, or -1 after it has said why not. */
int landlock_restrict(int ruleset);

#endif
