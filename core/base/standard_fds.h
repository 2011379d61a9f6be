/* Descriptors 0, 1 and 2, which who has started a program may have left closed. */
#ifndef CAGE_BASE_STANDARD_FDS_H
#define CAGE_BASE_STANDARD_FDS_H

/* Those that are missing become /dev/null: else what is opened next would be where messages go, or what the command is told.
 * Before anything else is opened. 0, or -1 with errno when one still is missing. */
int standard_fds_open(void);

#endif
