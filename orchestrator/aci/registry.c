/* Who may pull the images: an identity of the group, or a user whose password comes from our environment or a file. It goes into the body
 * of the PUT, which Azure does not show again, and nowhere else. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/base/say.h"
#include "core/base/wipe.h"
#include "orchestrator/aci/aci.h"

#define VARIABLE "CAGE_REGISTRY_PASSWORD"

/* Without the line break that an editor has put there. */
static bool read_file(const char *path, char out[LIMIT_ACI_PASSWORD + 1])
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	ssize_t n = fd >= 0 ? read(fd, out, LIMIT_ACI_PASSWORD + 1) : -1;
	const int why = n < 0 ? errno : n > LIMIT_ACI_PASSWORD ? EFBIG : 0;
	if (fd >= 0)
		close(fd);
	if (why != 0)
		say("--registry-password-file %s: %s", path, strerror(why));
	out[why == 0 ? n : 0] = '\0';
	out[strcspn(out, "\r\n")] = '\0';
	return why == 0;
}

/* Where /proc shows it, it is no more. */
static void take_variable(char out[LIMIT_ACI_PASSWORD + 1])
{
	char *value = getenv(VARIABLE);
	const size_t len = value ? strlen(value) : 0;
	if (len > 0 && len <= LIMIT_ACI_PASSWORD)
		memcpy(out, value, len + 1);
	if (len > 0)
		explicit_bzero(value, len);
	unsetenv(VARIABLE);
}

bool registry_read(struct aci *a)
{
	const struct aci_options *o = a->options;
	char text[LIMIT_ACI_PASSWORD + 1] = "";
	take_variable(text);
	if (!o->registry_username)
		explicit_bzero(text, sizeof(text));
	else if (o->registry_password_file && !read_file(o->registry_password_file, text))
		return false;
	if (o->registry_username && text[0] == '\0') {
		say("--registry-username: there is no password: neither " VARIABLE " nor --registry-password-file");
		return false;
	}
	a->registry_password = o->registry_username ? strdup(text) : NULL;
	explicit_bzero(text, sizeof(text));
	return !o->registry_username || a->registry_password;
}

void registry_free(struct aci *a)
{
	wipe_free(a->registry_password);
	a->registry_password = NULL;
}

void registry_add(const struct aci *a, json_t *properties)
{
	const struct aci_options *o = a->options;
	json_t *one = NULL;
	if (o->registry && a->registry_password)
		one = json_pack("{s:s, s:s, s:s}", "server", o->registry, "username", o->registry_username, "password",
				a->registry_password);
	else if (o->registry && o->identity)
		one = json_pack("{s:s, s:s}", "server", o->registry, "identity", o->identity);
	if (one)
		json_object_set_new(properties, "imageRegistryCredentials", json_pack("[o]", one));
}
