/* The system calls of a container: names, with NULL behind the last. What is in neither list is answered as an unknown call is
 * (ENOSYS), so that who uses a new one takes its other way. */
#ifndef CAGE_POD_SECCOMP_CALLS_H
#define CAGE_POD_SECCOMP_CALLS_H

/* What programs need, whatever its arguments are. */
extern const char *const seccomp_allowed[];

/* What they know that there is, and are told that they may not (EPERM). */
extern const char *const seccomp_refused[];

#endif
