/* Between the files of the configuration: readers of its keys. Each tells what is wrong, and goes on. */
#ifndef CAGE_SERVICE_CONFIG_PRIVATE_H
#define CAGE_SERVICE_CONFIG_PRIVATE_H

#include "core/policy/load.h"
#include "orchestrator/service/config.h"

/* ---- config_values.c ---- */

void config_text(struct loader *l, const struct node *value, char *out, size_t room);

/* An absolute path, of less than CONFIG_PATH bytes. */
void config_path(struct loader *l, const struct node *value, char *out);

/* 1 to max. */
void config_count(struct loader *l, const struct node *value, uint64_t max, uint64_t *out);
bool config_decimal(struct loader *l, const struct node *value, double *out);

/* ---- config_queue.c; out: the configuration ---- */

void config_running(struct loader *l, const struct node *value, void *out);
void config_queued(struct loader *l, const struct node *value, void *out);
void config_starts(struct loader *l, const struct node *value, void *out);
void config_retention(struct loader *l, const struct node *value, void *out);
void config_limits(struct loader *l, const struct node *value, void *out);
void config_quotas(struct loader *l, const struct node *value, void *out);
void config_fair(struct loader *l, const struct node *value, void *out);

/* ---- config_places.c; likewise ---- */

void config_listen(struct loader *l, const struct node *value, void *out);
void config_listen_variable(struct loader *l, struct config *c);
void config_backends(struct loader *l, const struct node *value, void *out);
void config_rootfs(struct loader *l, const struct node *value, void *out);
void config_publish(struct loader *l, const struct node *value, void *out);

/* ---- config_aci.c; likewise ---- */

void config_aci(struct loader *l, const struct node *value, void *out);

/* ---- config_prices.c; likewise ---- */

void config_prices(struct loader *l, const struct node *value, void *out);
void config_aci_prices(struct loader *l, const struct node *value, void *out);
void config_judge_prices(struct config *c, struct loader *l);
/* An option of a program that knows what it means: "--KEY", with dashes, and its value. */
void config_option(struct loader *l, const struct node *value, struct slice key, struct words *out);

/* ---- config_ship.c; likewise ---- */

void config_ship(struct loader *l, const struct node *value, void *out);

#endif
