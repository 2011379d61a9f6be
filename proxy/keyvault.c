/* When secrets are read from their vaults, and what becomes of it:
 *
 *	IDLE -> (time) READING -> (the reader has ended) IDLE
 *
 * A round is about all of them, and after a failure about those that failed. A value that was read once stays until there is another;
 * without one, requests that need it are refused. */
#include "proxy/keyvault.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <openssl/rand.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/base/clock.h"
#include "core/base/say.h"
#include "proxy/keyvault_private.h"

enum keyvault_state { KEYVAULT_IDLE, KEYVAULT_READING };

/* What is known of a source, by its place in the vault. */
struct source_note {
	unsigned slot; /* whose note it is */
	bool is_known, is_failing;
	uint32_t outcome, status; /* of the last failure */
};

struct keyvault {
	struct keyvault_config config;
	const struct policy *policy; /* NULL: none yet */
	enum keyvault_state state;
	bool is_settled, has_given_up;
	uint64_t all;                   /* secrets with a source of their own, a bit each */
	uint64_t failing, again;        /* whose last reading failed; those of them that may do better soon */
	uint64_t wanted, told;          /* of this round: asked for, and heard of */
	unsigned failures;              /* rounds in a row that failed */
	uint32_t wait_s;                /* what a service has asked for in this round */
	uint64_t settle_by_us, full_us; /* when the first values must be there; when all are read again */
	struct event *timer, *readable;
	int in, reader; /* its pipe and what it is signalled by; -1: none */
	struct source_note notes[VAULT_SLOTS];
	uint64_t n_good, n_failed;
	size_t len; /* bytes in buf */
	union {
		struct keyvault_record record;
		char buf[sizeof(struct keyvault_record) + LIMIT_SECRET_VALUE];
	};
};

bool keyvault_is_settled(const struct keyvault *k)
{
	return k->is_settled;
}

/* ---- time ---- */

static void wake_in(struct keyvault *k, uint64_t ms)
{
	struct timeval tv = loop_ms((unsigned)ms);
	if (event_add(k->timer, &tv) != 0)
		say("secrets of key vaults are not read again: no memory");
}

/* Several cages that were started together shall not ask together for ever. */
static uint64_t refresh_ms(void)
{
	unsigned char byte = 0;
	uint64_t fifth = LIMIT_KEYVAULT_REFRESH_MS / 5;
	if (RAND_bytes(&byte, 1) != 1)
		byte = 128;
	return LIMIT_KEYVAULT_REFRESH_MS - fifth / 2 + fifth * byte / 255;
}

static uint64_t retry_ms(const struct keyvault *k)
{
	uint64_t ms = LIMIT_KEYVAULT_RETRY_MS;
	for (unsigned i = 1; i < k->failures && ms < LIMIT_KEYVAULT_RETRY_MAX_MS; i++)
		ms *= 2;
	if (ms > LIMIT_KEYVAULT_RETRY_MAX_MS)
		ms = LIMIT_KEYVAULT_RETRY_MAX_MS;
	return k->wait_s * 1000ull > ms ? k->wait_s * 1000ull : ms;
}

static bool is_time_for_all(const struct keyvault *k)
{
	return clock_mono_us() >= k->full_us;
}

/* Those that failed sooner, if that may help; all of them in any case. */
static void plan(struct keyvault *k)
{
	const uint64_t now = clock_mono_us();
	uint64_t ms = k->full_us > now ? (k->full_us - now) / 1000 + 1 : 0;
	if (k->again && retry_ms(k) < ms)
		ms = retry_ms(k);
	if (ms < k->wait_s * 1000ull)
		ms = k->wait_s * 1000ull;
	wake_in(k, ms);
}

/* ---- what is said ---- */

static struct source_note *note_of(struct keyvault *k, const struct policy_secret *s)
{
	struct source_note *n = &k->notes[VAULT_PLACE(s->slot)];
	if (!n->is_known || n->slot != s->slot)
		*n = (struct source_note){.slot = s->slot, .is_known = true};
	return n;
}

static const char *consequence(const struct keyvault *k, const struct policy_secret *s, uint32_t outcome)
{
	if (sources_has(k->config.sources, s))
		return "the last value stays in use";
	if (!k->is_settled)
		return outcome == KEYVAULT_AGAIN ? "trying again" : "cage-proxy does not start without it";
	return "requests that need it are refused";
}

static void count(struct keyvault *k, unsigned index, uint32_t outcome, uint32_t status)
{
	const bool is_good = outcome == KEYVAULT_READ;
	const uint64_t bit = (uint64_t)1 << index;
	k->failing = is_good ? k->failing & ~bit : k->failing | bit;
	k->again = outcome == KEYVAULT_AGAIN ? k->again | bit : k->again & ~bit;
	k->n_good += is_good;
	k->n_failed += !is_good;
	k->config.on_read(k->config.owner, &k->policy->secrets[index], (int)status, is_good);
}

static void note_failure(struct keyvault *k, unsigned index, uint32_t outcome, uint32_t status, const char *what,
			 const char *why)
{
	const struct policy_secret *s = &k->policy->secrets[index];
	struct source_note *n = note_of(k, s);
	if (!n->is_failing || n->outcome != outcome || n->status != status)
		say("secret %.*s: %.*s can't be read: %s%s; %s", SLICE_FMT(s->id), SLICE_FMT(s->source), what, why,
		    consequence(k, s, outcome));
	n->is_failing = true;
	n->outcome = outcome;
	n->status = status;
	count(k, index, outcome, status);
}

static void note_value(struct keyvault *k, unsigned index, struct slice value, uint32_t status)
{
	const struct policy_secret *s = &k->policy->secrets[index];
	struct source_note *n = note_of(k, s);
	bool had = sources_has(k->config.sources, s), is_new = false;
	const char *fault = sources_put(k->config.sources, k->policy, s, value, &is_new);
	if (fault) {
		note_failure(k, index, KEYVAULT_REFUSED, status, "its value ", fault);
		return;
	}
	if (n->is_failing)
		say("secret %.*s: %.*s can be read again", SLICE_FMT(s->id), SLICE_FMT(s->source));
	if (had && is_new)
		say("secret %.*s: %.*s has a new value", SLICE_FMT(s->id), SLICE_FMT(s->source));
	n->is_failing = false;
	count(k, index, KEYVAULT_READ, status);
}

/* ---- a round ---- */

static void hang_up(struct keyvault *k)
{
	if (k->readable)
		event_free(k->readable);
	k->readable = NULL;
	if (k->reader >= 0) {
		syscall(SYS_pidfd_send_signal, k->reader, SIGKILL, NULL,
			0); /* it has told all, or is not heard any more */
		close(k->reader);
	}
	if (k->in >= 0)
		close(k->in);
	k->in = k->reader = -1;
	OPENSSL_cleanse(k->buf, sizeof(k->buf));
	k->len = 0;
	k->state = KEYVAULT_IDLE;
}

/* What is not settled in time won't be: nothing is served without the values that it was started with. */
static void settle(struct keyvault *k)
{
	bool is_late = clock_mono_us() + retry_ms(k) * 1000 >= k->settle_by_us;
	if (k->is_settled || k->has_given_up)
		return;
	if (k->failing && k->failing == k->again && !is_late)
		return;
	k->is_settled = !k->failing;
	k->has_given_up = !k->is_settled;
	k->config.on_settled(k->config.owner, k->is_settled);
}

static void end_round(struct keyvault *k)
{
	uint64_t silent = k->wanted & ~k->told;
	hang_up(k);
	for (unsigned i = 0; i < k->policy->n_secrets; i++)
		if (silent >> i & 1)
			note_failure(k, i, KEYVAULT_AGAIN, 0, "the process that asks for it has ended early", "");
	k->failures = k->again ? k->failures + 1 : 0;
	settle(k);
	if (!k->has_given_up)
		plan(k);
}

/* False: this is not what a reader says. */
static bool take_record(struct keyvault *k)
{
	const struct keyvault_record *r = &k->record;
	if (r->index >= k->policy->n_secrets || !(k->wanted >> r->index & 1) || (k->told >> r->index & 1) ||
	    !memchr(r->why, 0, sizeof(r->why)))
		return false;
	k->told |= (uint64_t)1 << r->index;
	if (r->wait_s > k->wait_s && r->wait_s <= LIMIT_KEYVAULT_WAIT_S)
		k->wait_s = r->wait_s;
	if (r->outcome == KEYVAULT_READ)
		note_value(k, r->index, slice_of(k->buf + sizeof(*r), r->len), r->status);
	else
		note_failure(k, r->index, r->outcome == KEYVAULT_AGAIN ? KEYVAULT_AGAIN : KEYVAULT_REFUSED, r->status,
			     "", r->why);
	return true;
}

/* A record, and then its value. 0: it is whole. */
static size_t missing(const struct keyvault *k)
{
	if (k->len < sizeof(k->record))
		return sizeof(k->record) - k->len;
	return sizeof(k->record) + k->record.len - k->len;
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct keyvault *k = arg;
	if (what & EV_TIMEOUT) {
		end_round(k);
		return;
	}
	ssize_t n = read(fd, k->buf + k->len, missing(k));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	k->len += n > 0 ? (size_t)n : 0;
	if (n <= 0 || (k->len >= sizeof(k->record) && k->record.len > LIMIT_SECRET_VALUE)) {
		end_round(k);
		return;
	}
	if (missing(k) > 0)
		return;
	bool is_good = take_record(k);
	OPENSSL_cleanse(k->buf, k->len);
	k->len = 0;
	if (!is_good)
		end_round(k);
}

static bool listen_to(struct keyvault *k, int in)
{
	struct timeval limit = loop_ms(LIMIT_KEYVAULT_ROUND_MS + 2 * LIMIT_KEYVAULT_CALL_MS);
	k->in = in;
	k->readable = event_new(loop_base(k->config.loop), in, EV_READ | EV_PERSIST, on_readable, k);
	return k->readable && event_add(k->readable, &limit) == 0;
}

static void start_round(struct keyvault *k)
{
	int ends[2];
	bool is_full = is_time_for_all(k);
	k->state = KEYVAULT_READING;
	k->wanted = is_full ? k->all : k->again;
	k->told = 0;
	k->wait_s = 0;
	if (is_full)
		k->full_us = clock_mono_us() + refresh_ms() * 1000;
	if (pipe2(ends, O_CLOEXEC) != 0) {
		end_round(k);
		return;
	}
	pid_t pid = k->config.fork(k->config.owner, k->policy, k->wanted, ends[1]);
	close(ends[1]);
	k->reader = pid > 0 ? (int)syscall(SYS_pidfd_open, pid, 0) : -1; /* nobody has waited for it yet */
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	if (!listen_to(k, ends[0]) || pid < 0)
		end_round(k);
}

static void on_time(evutil_socket_t fd, short what, void *arg)
{
	(void)fd, (void)what;
	struct keyvault *k = arg;
	if (k->state != KEYVAULT_IDLE)
		return;
	if (k->again || is_time_for_all(k))
		start_round(k);
	else
		plan(k); /* clocks differ a little */
}

/* ---- from outside ---- */

/* The first secret of each source. */
static uint64_t find_all(const struct policy *p)
{
	uint64_t all = 0;
	for (size_t i = 0; i < p->n_secrets; i++) {
		bool is_first = p->secrets[i].from == SECRET_KEYVAULT;
		for (size_t j = 0; j < i && is_first; j++)
			is_first = p->secrets[j].slot != p->secrets[i].slot;
		all |= (uint64_t)is_first << i;
	}
	return all;
}

void keyvault_use(struct keyvault *k, const struct policy *p)
{
	bool is_first = !k->policy;
	hang_up(k);
	event_del(k->timer);
	k->policy = p;
	k->all = find_all(p);
	k->failing = k->again = 0;
	k->failures = 0;
	k->full_us = 0;
	if (is_first)
		k->settle_by_us = clock_mono_us() + LIMIT_KEYVAULT_START_MS * 1000ull;
	if (k->all)
		wake_in(k, 0);
	else if (is_first)
		k->is_settled = true;
	else
		settle(k);
}

static void put_metric(struct text *t, struct slice name, uint64_t value)
{
	text_put(t, name);
	text_put_u64(t, value);
	text_put_char(t, '\n');
}

void keyvault_metrics(const struct keyvault *k, struct text *t)
{
	text_put(t, SLICE("# HELP cage_keyvault_reads_total Readings of secrets from key vaults.\n"
			  "# TYPE cage_keyvault_reads_total counter\n"));
	put_metric(t, SLICE("cage_keyvault_reads_total{result=\"read\"} "), k->n_good);
	put_metric(t, SLICE("cage_keyvault_reads_total{result=\"failed\"} "), k->n_failed);
	text_put(t, SLICE("# HELP cage_keyvault_failing Secrets whose last reading failed.\n"
			  "# TYPE cage_keyvault_failing gauge\n"));
	put_metric(t, SLICE("cage_keyvault_failing "), (uint64_t)__builtin_popcountll(k->failing));
}

struct keyvault *keyvault_new(const struct keyvault_config *config)
{
	struct keyvault *k = calloc(1, sizeof(*k));
	if (!k)
		return NULL;
	k->config = *config;
	k->in = k->reader = -1;
	k->timer = evtimer_new(loop_base(config->loop), on_time, k);
	if (!k->timer)
		keyvault_free(&k);
	return k;
}

void keyvault_free(struct keyvault **kp)
{
	struct keyvault *k = *kp;
	if (!k)
		return;
	*kp = NULL;
	hang_up(k);
	if (k->timer)
		event_free(k->timer);
	free(k);
}
