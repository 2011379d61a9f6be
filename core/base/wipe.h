/* Memory that carried a secret, overwritten before it is given back. */
#ifndef CAGE_BASE_WIPE_H
#define CAGE_BASE_WIPE_H

/* As free(), of all that malloc() gave. */
void wipe_free(void *memory);

#endif
