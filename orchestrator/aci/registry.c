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
#include "orchestrator/aci/settings.h"
#include "orchestrator/secret_variable.h"

/* Without the line break that an editor has put there. NULL after it was said why. */
static char *read_file(const char *path)
{
	char *text = malloc(LIMIT_ACI_PASSWORD + 1);
	int fd = text ? open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) : -1;
	ssize_t n = fd >= 0 ? read(fd, text, LIMIT_ACI_PASSWORD + 1) : -1;
	const int why = !text ? ENOMEM : n < 0 ? errno : n > LIMIT_ACI_PASSWORD ? EFBIG : 0;
	if (fd >= 0)
		close(fd);
	if (!text || why != 0) {
		say("--registry-password-file %s: %s", path, strerror(why));
		wipe_free(text);
		return NULL;
	}
	text[n] = '\0';
	text[strcspn(text, "\r\n")] = '\0';
	return text;
}

/* The variable is taken also where nobody wants it. */
bool registry_read(struct aci *a)
{
	const struct aci_options *o = a->options;
	char *password = secret_variable_take(REGISTRY_PASSWORD, LIMIT_ACI_PASSWORD);
	if (!o->registry_username || o->registry_password_file) {
		wipe_free(password);
		password = o->registry_username ? read_file(o->registry_password_file) : NULL;
	}
	a->registry_password = password;
	if (!o->registry_username || (password && password[0]))
		return true;
	if (password || !o->registry_password_file)
		say("--registry-username: there is no password: neither " REGISTRY_PASSWORD
		    " nor --registry-password-file");
	return false;
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
