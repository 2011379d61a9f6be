/* cage image check. It says what a service with that policy and those signatures would decide. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/usage.h"
#include "orchestrator/image/admit.h"
#include "orchestrator/image/image.h"
#include "orchestrator/misuse.h"

static const char help_text[] =
	"usage: cage image check --policy FILE [--signatures DIR] REGISTRY/REPOSITORY@sha256:DIGEST\n"
	"\n"
	"Says whether a policy lets containers be made of an image: its `images` have to list the\n"
	"registry and repository, and where they have a key, a signature by it has to be in DIR.\n"
	"A tag is not enough. docs/admission.md says how images are signed, and lists the reasons.\n"
	"\n"
	"  --policy FILE      the policy\n"
	"  --signatures DIR   where signatures are: sha256-HEX.json with sha256-HEX.sig, or an OCI\n"
	"                     layout as cosign fills one\n"
	"  -h, --help         print this and exit\n"
	"\n"
	"Exit codes: 0 admitted, 1 refused, 2 wrong usage or wrong policy.\n";

enum { OPT_POLICY = 256, OPT_SIGNATURES };

static const struct option long_options[] = {{"policy", required_argument, NULL, OPT_POLICY},
					     {"signatures", required_argument, NULL, OPT_SIGNATURES},
					     {"help", no_argument, NULL, 'h'},
					     {NULL, 0, NULL, 0}};

static int tell(const struct image_verdict *v)
{
	if (v->reason == IMAGE_ADMITTED)
		printf("admitted: %s\n", v->why);
	else
		printf("refused: %s: %s\n", image_reason_code(v->reason), v->why);
	return usage_printed() != 0 || v->reason != IMAGE_ADMITTED;
}

static int check(const char *path, const char *reference, const char *signatures)
{
	struct image_verdict verdict;
	struct arena arena;
	struct policy_errors *errs = calloc(1, sizeof(*errs));
	int code = 2;
	arena_init(&arena, LIMIT_POLICY_REGION);
	const struct policy *p = errs ? policy_load(path, &arena, clock_wall_s(), NULL, errs) : NULL;
	if (p) {
		image_admit(p, slice_str(reference), signatures, &verdict);
		code = tell(&verdict);
	} else if (errs) {
		policy_errors_print(errs, STDERR_FILENO);
	}
	arena_free(&arena);
	free(errs);
	return code;
}

static int check_words(const char *policy, const char *signatures, int n, char **words)
{
	if (n < 1 || strcmp(words[0], "check") != 0)
		return wrong_usage("image", n < 1 ? "image" : words[0], "expected check");
	if (!policy)
		return wrong_usage("image", "--policy", "is needed");
	if (n != 2)
		return wrong_usage("image", n < 2 ? "check" : words[2],
				   n < 2 ? "expected an image" : "is not expected here");
	return check(policy, words[1], signatures);
}

int cmd_image(int argc, char **argv)
{
	char word[USAGE_WORD];
	const char *policy = NULL, *signatures = NULL;
	for (int opt; (opt = usage_next(argc, argv, ":h", long_options, NULL)) != -1;) {
		if (opt == 'h') {
			fputs(help_text, stdout);
			return usage_printed();
		}
		if (opt != OPT_POLICY && opt != OPT_SIGNATURES) {
			const char *why = usage_fault(opt, argv, long_options, word);
			return wrong_usage("image", word, why);
		}
		*(opt == OPT_POLICY ? &policy : &signatures) = optarg;
	}
	return check_words(policy, signatures, argc - optind, argv + optind);
}
