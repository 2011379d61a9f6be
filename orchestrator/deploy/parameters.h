/* Parameters of a template: what was given is held against what the template declares, before anything is sent. All that is wrong is
 * said, each in a line, and once of each parameter. No value of a secure one is ever said. */
#ifndef CAGE_DEPLOY_PARAMETERS_H
#define CAGE_DEPLOY_PARAMETERS_H

#include <jansson.h>

#include "orchestrator/deploy/secure.h"

struct parameters {
	const json_t *declared; /* {NAME: {"type", ...}} of the template */
	json_t *values;         /* {NAME: {"value": ...}} or {NAME: {"reference": ...}} */
	struct secure *secure;
	json_t *wrong;    /* {NAME: true}: what was said something of */
	const char *file; /* of parameters, which is being read; NULL: none */
	bool has_secure;  /* a value of one was given */
	unsigned faults;
};

/* Where a value comes from. Command lines can be read by everybody: FROM_WORD takes none that is secure. */
enum parameter_from { FROM_WORD, FROM_FILE, FROM_VARIABLE };

/* NAME=VALUE, NAME=FILE or NAME=VARIABLE. Text becomes what the type of the parameter is: all but strings as JSON. */
void parameters_set(struct parameters *p, enum parameter_from from, const char *given);

/* Said, with the file of parameters if that is where it stands. what and hint make one sentence. */
void parameters_fault(struct parameters *p, const char *name, const char *what, const char *hint);

/* What was given, or the default, where that is text and not empty; NULL: it is not, or stands elsewhere. */
const char *parameters_text(const struct parameters *p, const char *name);

/* The same of any type. */
const json_t *parameters_value(const struct parameters *p, const char *name);

/* A file of parameters, as Azure has them: {"parameters": {NAME: {"value": ...}}}. What was set already counts more. False: it is none. */
bool parameters_take(struct parameters *p, const char *path, const json_t *document);

/* Those that have no default and were not given. */
void parameters_check(struct parameters *p);

/* needed.c: those that have an empty default, and are used by a resource that another one says is to be made. */
void parameters_need(struct parameters *p, const json_t *template);

#endif
