/* The probes of cage verify in a sandbox that runs. */
#ifndef CAGE_INSIDE_VERIFY_H
#define CAGE_INSIDE_VERIFY_H

/* The exit code: 0 there was no surprise. */
int verify_sandbox(void);

#endif
