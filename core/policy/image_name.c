/* Registries as host names with a port, repositories as the distribution specification has them. */
#include "core/policy/image_name.h"

#include "core/base/limits.h"

#define LABEL 63 /* bytes of one label of a name */

static bool is_plain(char c)
{
	return (c >= 'a' && c <= 'z') || ascii_is_digit((unsigned char)c);
}

static bool label_is_good(struct slice label)
{
	if (label.len == 0 || label.len > LABEL || !is_plain(label.ptr[0]) || !is_plain(label.ptr[label.len - 1]))
		return false;
	for (size_t i = 0; i < label.len; i++)
		if (!is_plain(label.ptr[i]) && label.ptr[i] != '-')
			return false;
	return true;
}

static bool name_is_good(struct slice name)
{
	if (name.len == 0 || name.len > LIMIT_HOST || name.ptr[name.len - 1] == '.')
		return false;
	while (name.len > 0)
		if (!label_is_good(slice_cut(&name, '.')))
			return false;
	return true;
}

/* Without zeros before it, which would be another spelling. */
static bool port_is_good(struct slice port)
{
	uint64_t n;
	return port.len > 0 && port.ptr[0] != '0' && slice_to_u64(port, UINT16_MAX, &n);
}

const char *image_registry_fault(struct slice registry)
{
	static const char expected[] =
		"a registry in lower case, such as registry.example.com or registry.example.com:5000";
	struct slice port = registry;
	struct slice name = slice_cut(&port, ':');
	bool has_port = name.len < registry.len;
	if (!name_is_good(name) || (has_port && !port_is_good(port)))
		return expected;
	if (!has_port && slice_find(name, '.') == name.len && !slice_eq(name, SLICE("localhost")))
		return "a registry with a dot or a port in its name, or localhost";
	return NULL;
}

/* How many bytes of '.', '_', '__' or any number of '-' there are at the beginning. */
static size_t separator_length(struct slice s)
{
	size_t n = 0;
	if (s.len > 0 && s.ptr[0] == '-')
		while (n < s.len && s.ptr[n] == '-')
			n++;
	else if (slice_starts(s, SLICE("__")))
		n = 2;
	else if (s.len > 0 && (s.ptr[0] == '.' || s.ptr[0] == '_'))
		n = 1;
	return n;
}

/* Runs of letters and digits with one separator between each two of them. */
static bool component_is_good(struct slice s, bool may_have_stars)
{
	for (;;) {
		size_t n = 0;
		while (n < s.len && (is_plain(s.ptr[n]) || (may_have_stars && s.ptr[n] == '*')))
			n++;
		if (n == 0 || n == s.len)
			return n > 0;
		s = slice_from(s, n);
		n = separator_length(s);
		if (n == 0)
			return false;
		s = slice_from(s, n);
	}
}

const char *image_repository_fault(struct slice repository, bool may_have_stars)
{
	static const char expected[] = "a repository in lower case without tag and digest, such as org/agent";
	struct slice rest = repository;
	if (rest.len == 0 || rest.len > LIMIT_IMAGE_REPOSITORY || rest.ptr[rest.len - 1] == '/')
		return expected;
	while (rest.len > 0)
		if (!component_is_good(slice_cut(&rest, '/'), may_have_stars))
			return expected;
	return NULL;
}

const char *image_digest_fault(struct slice digest)
{
	static const char expected[] = "a digest, sha256: and 64 hex digits in lower case";
	if (digest.len != IMAGE_DIGEST_LEN || !slice_starts(digest, SLICE("sha256:")))
		return expected;
	for (size_t i = sizeof("sha256:") - 1; i < digest.len; i++)
		if (!ascii_is_digit((unsigned char)digest.ptr[i]) && (digest.ptr[i] < 'a' || digest.ptr[i] > 'f'))
			return expected;
	return NULL;
}
