/* What the trial of a policy has come to, for those that give a sandbox one. */
#include <sys/wait.h>

#include "orchestrator/service/policies.h"

#define BAD_POLICY 2 /* exit code of `cage-proxy --check` */

struct verdict policy_verdict(int status, struct slice said, const char *path, json_t *errors)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return (struct verdict){0, NULL};
	policy_read_errors(said, path, errors);
	if (WIFEXITED(status) && WEXITSTATUS(status) == BAD_POLICY)
		return (struct verdict){422, "the policy is not good"};
	return (struct verdict){503, "the policy could not be checked"};
}

struct verdict trial_verdict(enum trial_start start)
{
	switch (start) {
	case TRIAL_BEGAN:
		return (struct verdict){0, NULL};
	case TRIAL_SECRET:
		return (struct verdict){422, "a secret is not there"};
	case TRIAL_BUSY:
		break;
	}
	return (struct verdict){503, "too many policies are being checked"};
}
