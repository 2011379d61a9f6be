/* cage azure up. A deployment is asked for once: whenever nobody knows whether it was, it is looked for, by the tag of this attempt.
 *
 *	UP_LOOKS -> UP_PUTS -> UP_FOLLOWS -> UP_ENDS
 *	   ^  |        |
 *	   |  +-> UP_WAITS     another one is under way
 *	   +------+----+       an answer that was lost, or somebody was quicker */
#include <openssl/evp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "core/base/say.h"
#include "core/base/text.h"
#include "core/base/wipe.h"
#include "orchestrator/client/api.h"
#include "orchestrator/deploy/deploy.h"

#define DIGEST 32
#define DIGEST_TEXT (2 * DIGEST + 1)

enum up_state { UP_LOOKS, UP_WAITS, UP_PUTS, UP_FOLLOWS, UP_ENDS };

struct up {
	struct deploy *d;
	enum up_state state;
	int code;                  /* of UP_ENDS */
	char attempt[DIGEST_TEXT]; /* of this run */
	char digest[DIGEST_TEXT];  /* "": what was asked for can't be compared, since some of it is secure */
	char whose[DIGEST_TEXT];   /* attempt of what is waited for, or followed */
};

static void enter(struct up *u, enum up_state next, int code)
{
	u->state = next;
	u->code = code;
}

/* ---- which deployment ---- */

static void put_hex(char out[DIGEST_TEXT], const unsigned char bytes[DIGEST])
{
	struct text t = text_in(out, DIGEST_TEXT - 1);
	text_put_hex(&t, bytes, DIGEST);
	out[t.len] = '\0';
}

/* A hash of a value that somebody could guess tells whether the guess was right: with secure ones there is none. */
static bool make_digest(struct up *u, const json_t *body)
{
	unsigned char hash[DIGEST];
	if (u->d->has_secure)
		return true;
	char *text = json_dumps(body, JSON_COMPACT | JSON_SORT_KEYS);
	const bool ok = text && EVP_Digest(text, strlen(text), hash, NULL, EVP_sha256(), NULL) == 1;
	wipe_free(text);
	if (ok)
		put_hex(u->digest, hash);
	return ok;
}

static json_t *make_body(struct up *u)
{
	json_t *body = template_body(u->d);
	if (!body)
		return NULL;
	json_t *tags = make_digest(u, body)
			       ? json_pack("{s:s,s:s,s:s}", DEPLOY_TAG, DEPLOY_OWNER, DEPLOY_TAG_ATTEMPT, u->attempt,
					   DEPLOY_TAG_DIGEST, u->digest[0] ? u->digest : "none")
			       : NULL;
	if (tags && json_object_set_new(body, "tags", tags) == 0)
		return body;
	json_decref(body);
	return NULL;
}

/* ---- steps ---- */

/* The one of that name that is there. */
static void judge(struct up *u, const json_t *deployment)
{
	const json_t *tags = json_object_get(deployment, "tags");
	const bool is_active = deployment_is_active(deployment);
	snprintf(u->whose, sizeof(u->whose), "%s", json_text(tags, DEPLOY_TAG_ATTEMPT));
	if (strcmp(u->whose, u->attempt) == 0) {
		enter(u, UP_FOLLOWS, 0);
	} else if (!is_active) {
		enter(u, UP_PUTS, 0);
	} else if (u->digest[0] && strcmp(json_text(tags, DEPLOY_TAG_DIGEST), u->digest) == 0) {
		say("the same deployment is under way already: it is followed");
		enter(u, UP_FOLLOWS, 0);
	} else {
		say("another deployment %s is under way: this one comes after it", u->d->options->name);
		enter(u, UP_WAITS, 0);
	}
}

/* Its first look, or one after an answer that was lost. */
static int stopped_in_look(const struct up *u)
{
	return session_stopped(u->d, strcmp(u->whose, u->attempt) == 0
					     ? "the deployment may have begun, and goes on then"
					     : "this deployment has not begun");
}

static void look(struct up *u)
{
	static struct arm_call call;
	char path[LIMIT_ARM_URL];
	path_deployment(u->d, u->d->options->name, "", path);
	if (session_get(u->d, &call, path)) {
		judge(u, call.answer);
	} else if (call.status == 404) {
		enter(u, UP_PUTS, 0);
	} else if (u->d->is_stopped) {
		enter(u, UP_ENDS, stopped_in_look(u));
	} else {
		errors_say_call("the deployment can't be looked at", &call);
		enter(u, UP_ENDS, EXIT_FAILED);
	}
	arm_free(&u->d->arm, &call);
}

static void wait_for_other(struct up *u)
{
	json_t *deployment = NULL, *operations = NULL;
	const enum follow_end end = follow(u->d, u->whose, &deployment, &operations);
	if (end == FOLLOW_STOPPED)
		enter(u, UP_ENDS,
		      session_stopped(u->d, "the deployment that is under way goes on; this one has not begun"));
	else
		enter(u, UP_LOOKS, 0);
	json_decref(deployment);
	json_decref(operations);
}

/* Nobody knows whether it was obeyed, or another one was quicker. What is left of 503 was refused each time. */
static bool is_unclear(const struct arm_call *c)
{
	return c->status == 0 || c->status == 408 || (c->status >= 500 && c->status != 503) ||
	       (c->status == 409 && strcmp(c->code, "DeploymentActive") == 0);
}

static void put(struct up *u)
{
	static struct arm_call call;
	char path[LIMIT_ARM_URL];
	json_t *body = make_body(u);
	if (!body) {
		enter(u, UP_ENDS, EXIT_FAILED);
		return;
	}
	path_deployment(u->d, u->d->options->name, "", path);
	const bool ok = session_ask(u->d, &call, "PUT", path, body, ARM_ONCE);
	memcpy(u->whose, u->attempt, sizeof(u->whose));
	if (ok) {
		enter(u, UP_FOLLOWS, 0);
	} else if (u->d->is_stopped) {
		enter(u, UP_ENDS, session_stopped(u->d, "the deployment may have begun, and goes on then"));
	} else if (is_unclear(&call)) {
		enter(u, UP_LOOKS, EXIT_FAILED);
	} else {
		errors_say_call("Azure does not take the deployment", &call);
		enter(u, UP_ENDS, EXIT_FAILED);
	}
	arm_free(&u->d->arm, &call);
}

/* ---- the end ---- */

static int tell_end(struct up *u, enum follow_end end, const json_t *deployment, const json_t *operations)
{
	switch (end) {
	case FOLLOW_GOOD:
		return outputs_print(u->d, deployment) ? 0 : EXIT_FAILED;
	case FOLLOW_BAD:
		failures_say(u->d, deployment, operations);
		if (u->d->options->json)
			outputs_print(u->d, deployment);
		return EXIT_FAILED;
	case FOLLOW_STOPPED:
		return session_stopped(u->d, "the deployment goes on");
	case FOLLOW_LOST:
		break;
	}
	say("nobody knows how the deployment ended");
	session_stopped(u->d, NULL);
	return EXIT_FAILED;
}

static void finish(struct up *u)
{
	json_t *deployment = NULL, *operations = NULL;
	if (u->d->options->no_wait) {
		fprintf(u->d->progress.out, "the deployment %s has begun\n", u->d->options->name);
		enter(u, UP_ENDS, 0);
		return;
	}
	const enum follow_end end = follow(u->d, u->whose, &deployment, &operations);
	enter(u, UP_ENDS, tell_end(u, end, deployment, operations));
	json_decref(deployment);
	json_decref(operations);
}

static void step(struct up *u)
{
	switch (u->state) {
	case UP_LOOKS:
		look(u);
		return;
	case UP_WAITS:
		wait_for_other(u);
		return;
	case UP_PUTS:
		put(u);
		return;
	case UP_FOLLOWS:
		finish(u);
		return;
	case UP_ENDS:
		return;
	}
}

static bool begin(struct up *u)
{
	unsigned char chance[DIGEST];
	if (getrandom(chance, sizeof(chance), 0) != (ssize_t)sizeof(chance))
		return false;
	put_hex(u->attempt, chance);
	json_t *body = make_body(u); /* also what is wrong with it is known before anything is made */
	json_decref(body);
	return body != NULL;
}

int deploy_up(struct deploy *d)
{
	struct up u = {.d = d, .code = EXIT_FAILED};
	int code = template_read(d);
	if (code == 0 && !begin(&u))
		code = EXIT_FAILED;
	if (code == 0)
		code = group_make(d);
	if (code)
		return d->is_stopped ? EXIT_STOPPED : code;
	for (unsigned i = 0; u.state != UP_ENDS && i < 3 * LIMIT_DEPLOY_STARTS; i++)
		step(&u);
	if (u.state != UP_ENDS)
		say("the deployment could not be begun: others are in its way, or its answers are lost");
	return u.state == UP_ENDS ? u.code : EXIT_FAILED;
}
