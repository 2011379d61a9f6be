/* The env kit: the files and variables that bring every usual client to the proxy and make it trust the CA. */
#ifndef CAGE_ORCHESTRATOR_ENV_KIT_H
#define CAGE_ORCHESTRATOR_ENV_KIT_H

#include "orchestrator/words.h"

/* What is said of the way out. */
struct kit_way {
	const char *proxy;  /* its URL, "http://127.0.0.1:8080" */
	const char *direct; /* hosts that are reached without it, as NO_PROXY lists them */
};

/* Empty files where CMD will find full ones, for mounts that are made before there is a CA. False with a message. */
bool kit_begin(const char *kit);

/* Is there a database for Chromium in it, in nssdb? */
bool kit_has_nss(void);

/* Fills kit from ca.pem and bundle.pem of ca_dir: the bundle, the CA alone and by its hash, a trust store for Java, files
 * for wget, a database for Chromium where certutil is at hand, and env.sh. False with a message. */
bool kit_fill(const char *kit, const char *ca_dir, const struct kit_way *way);

/* Adds NAME=VALUE for each variable; kit: its path as the user of the variables sees it. */
void kit_variables(const char *kit, const struct kit_way *way, struct words *out);

/* The same without those of Java, whose trust store is no text. */
void kit_shell_variables(const char *kit, const struct kit_way *way, struct words *out);

/* That of Java. password: NULL, its store is looked at without one. */
void kit_java_variable(const char *kit, const char *proxy, const char *password, struct words *out);

/* The files of this machine that hold its certificates, and in whose place the room shows the kit's bundle; ends with
 * NULL. */
extern const char *const kit_system_bundles[];

/* The same for Java's own. */
extern const char *const kit_java_stores[];

#endif
