/* What the files of the log have of each other. */
#ifndef CAGE_GATEWAY_LOG_PRIVATE_H
#define CAGE_GATEWAY_LOG_PRIVATE_H

#include "orchestrator/gateway/log.h"

/* log.c: where its files are. */
void log_path_in(const struct gateway_log *l, const char *name, char out[LIMIT_GATEWAY_PATH]);
void log_old_path(const struct gateway_log *l, uint64_t base, char out[LIMIT_GATEWAY_PATH]);

/* log_lines.c: the place of the first byte that is kept. */
uint64_t log_oldest(const struct gateway_log *l);

/* Bytes from a place on, of one file; 0: there are none. */
size_t log_read_at(const struct gateway_log *l, uint64_t at, char *out, size_t room);

/* log_copy.c: where the copy goes on. False with a message. */
bool log_find_copied(struct gateway_log *l);

/* True: it went on. */
bool log_copy(struct gateway_log *l);

#endif
