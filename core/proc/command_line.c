/* The reading of command lines, and of the options that every program has. */
#include "core/proc/command_line.h"

#include <fcntl.h>
#include <string.h>

#include "core/base/say.h"
#include "core/base/usage.h"
#include "core/proc/sandbox_id.h"

enum options_action options_usage_error(const char *option, const char *why)
{
	say("%s: %s", option, why);
	say("--help lists all options");
	return OPTIONS_EXIT_USAGE;
}

static enum options_action say_fault(int opt, char **argv, const struct option *known)
{
	char word[USAGE_WORD];
	const char *why = usage_fault(opt, argv, known, word);
	return options_usage_error(word, why);
}

enum options_action options_read(int argc, char **argv, const struct option *known, options_taker *take, void *options)
{
	enum options_action then = OPTIONS_RUN;
	int opt;
	while ((opt = usage_next(argc, argv, ":h", known, NULL)) != -1) {
		enum options_action next =
			opt == '?' || opt == ':' ? say_fault(opt, argv, known) : take(options, opt, optarg);
		if (next == OPTIONS_EXIT_OK || next == OPTIONS_EXIT_USAGE)
			return next;
		if (next != OPTIONS_RUN)
			then = next;
	}
	return optind < argc ? options_usage_error(argv[optind], "is not an option") : then;
}

enum options_action options_read_admin(const char *text, bool *has_admin, struct listen_spec *out)
{
	const char *why = NULL;
	*has_admin = strcmp(text, "off") != 0;
	if (*has_admin && !listen_spec_parse(text, out, &why))
		return options_usage_error("--admin", why);
	return OPTIONS_RUN;
}

enum options_action options_read_bindings(const char *text, struct listen_spec *out)
{
	const char *why = NULL;
	if (!listen_spec_parse(text, out, &why) || out->kind != LISTEN_UNIX)
		return options_usage_error("--bindings", why ? why : "expected unix:PATH");
	return OPTIONS_RUN;
}

/* Programs that are started from here do not get it. */
enum options_action options_read_descriptor(const char *option, const char *text, int *out)
{
	struct listen_spec spec;
	const char *why = NULL;
	if (!listen_spec_parse(text, &spec, &why) || spec.kind != LISTEN_FD)
		return options_usage_error(option, "expected fd:N");
	*out = spec.fd;
	return fcntl(spec.fd, F_SETFD, FD_CLOEXEC) == 0 ? OPTIONS_RUN
							: options_usage_error(option, "there is no such descriptor");
}

enum options_action options_read_log_max(const char *text, uint64_t *out)
{
	if (slice_to_u64(slice_str(text), LIMIT_LOG_MOST, out) && *out >= LIMIT_LOG_LEAST)
		return OPTIONS_RUN;
	return options_usage_error("--log-max", "expected a number of bytes, 256 KiB to 1 TiB");
}

enum options_action options_read_sandbox(const char *text, const char **out)
{
	*out = text;
	return sandbox_id_is_good(slice_str(text)) ? OPTIONS_RUN
						   : options_usage_error("--sandbox", "expected " SANDBOX_ID);
}

enum options_action options_add_listener(const char *option, const char *text, bool may_be_unix,
					 struct listen_spec *list, size_t *n)
{
	const char *why = NULL;
	if (*n == LIMIT_LISTENERS)
		return options_usage_error(option, "too many listeners");
	if (!listen_spec_parse(text, &list[*n], &why))
		return options_usage_error(option, why);
	if (!may_be_unix && list[*n].kind == LISTEN_UNIX)
		return options_usage_error(option, "expected ADDRESS:PORT, [IPV6]:PORT or fd:N");
	++*n;
	return OPTIONS_RUN;
}
