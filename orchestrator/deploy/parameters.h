/* Parameters of a template: what was given is held against what the template declares, before anything is sent. All that is wrong is
 * said, each in a line. No value is ever said. */
#ifndef CAGE_DEPLOY_PARAMETERS_H
#define CAGE_DEPLOY_PARAMETERS_H

#include <jansson.h>

#include "orchestrator/deploy/secure.h"

struct parameters {
	const json_t *declared; /* {NAME: {"type", ...}} of the template */
	json_t *values;         /* {NAME: {"value": ...}} or {NAME: {"reference": ...}} */
	struct secure *secure;
	bool has_secure; /* a value of one was given */
	unsigned faults;
};

/* Where a value comes from. Command lines can be read by everybody: FROM_WORD takes none that is secure. */
enum parameter_from { FROM_WORD, FROM_FILE, FROM_VARIABLE };

/* NAME=VALUE, NAME=FILE or NAME=VARIABLE. Text becomes what the type of the parameter is: all but strings as JSON. */
void parameters_set(struct parameters *p, enum parameter_from from, const char *given);

/* A file of parameters, as Azure has them: {"parameters": {NAME: {"value": ...}}}. What was set already counts more. */
void parameters_take(struct parameters *p, const char *path, const json_t *document);

/* Those that have no default and were not given. */
void parameters_check(struct parameters *p);

/* needed.c: those that have an empty default, and are used by a resource that another one says is to be made. */
void parameters_need(struct parameters *p, const json_t *template);

#endif
