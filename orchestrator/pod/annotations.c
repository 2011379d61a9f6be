/* What a container's runtime was told beside its settings. Podman adds the annotations of the image's manifest, which it keeps by the
 * image's id: another image of the same configuration and layers that is pulled later brings its own, whatever the name or digest
 * that was asked for. Runtimes obey some of them. So the configuration that the runtime was given is read before anything that is not
 * ours runs in the container: what is neither Podman's own nor a description ends it. */
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "core/base/say.h"
#include "core/base/slice.h"
#include "orchestrator/image/admit.h"
#include "orchestrator/pod/pod.h"

#define OF_PODMAN "io.podman.annotations."

/* Podman's own, with any value: none of them is an order to a runtime; systemd's are those of its stop signal and time. */
static bool is_podmans(const char *name)
{
	static const char *const names[] = {"io.container.manager", "io.kubernetes.cri-o.Created",
					    "io.kubernetes.cri-o.TTY", "org.systemd.property.KillSignal",
					    "org.systemd.property.TimeoutStopUSec"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* "autoremove" and the like, which Podman itself looks at: none of them is ever said of ours, but for names of our own files. */
static bool is_ours(const struct pod *p, const char *name, const json_t *value)
{
	struct slice text = slice_of(json_string_value(value), json_string_length(value));
	return slice_starts(slice_str(name), SLICE(OF_PODMAN)) &&
	       (slice_eq(text, SLICE("FALSE")) || slice_starts(text, slice_str(p->dir.hidden)));
}

static bool is_good(const struct pod *p, const json_t *config, const char *role)
{
	const char *name;
	json_t *value;
	json_object_foreach(json_object_get(config, "annotations"), name, value)
	{
		if (is_podmans(name) || is_ours(p, name, value) || image_annotation_describes(slice_str(name)))
			continue;
		say("the container of the %s was made with the annotation %.100s, which a runtime might obey: its "
		    "image, or "
		    "another one of the same id, has it in its manifest",
		    role, name);
		return false;
	}
	return true;
}

bool annotations_are_good(const struct pod *p, pid_t first, const char *role)
{
	char bundle[POD_PATH], path[POD_PATH + 16];
	json_error_t error;
	if (!monitors_bundle(first, bundle)) {
		say("the container of the %s has no monitor that says how it was made", role);
		return false;
	}
	snprintf(path, sizeof(path), "%s/config.json", bundle);
	json_t *config = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
	if (!json_is_object(config))
		say("%s: %s", path, error.text);
	const bool ok = json_is_object(config) && is_good(p, config, role);
	json_decref(config);
	return ok;
}
