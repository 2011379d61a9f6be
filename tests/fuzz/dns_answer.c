/* Responses of upstreams, as they are vetted. Promises: whatever is kept has only aliases that were allowed and addresses that are
 * public, within the bounds of number, bytes and time; written as an answer and read again it is the same, whatever else stood in
 * the response. */
#include "dns/answer.h"
#include "tests/fuzz/fuzz.h"

#define TTL_MIN 5
#define TTL_MAX 1000
#define ANSWER_MAX 65535

/* What the policy allows. */
static enum reason check(void *arg, const struct dns_name *name)
{
	(void)arg;
	PROMISE(name->is_plain);
	return name->text[0] != 'x' ? REASON_NONE : REASON_HOST_NOT_ALLOWED;
}

static const struct dns_answer_rules rules = {.ttl_min = TTL_MIN, .ttl_max = TTL_MAX, .check = check};

static void answer_must_be_right(const struct dns_answer *a)
{
	struct addr addr;
	size_t at = 0;
	PROMISE(a->ttl >= TTL_MIN && a->ttl <= TTL_MAX && a->len <= LIMIT_DNS_ANSWER &&
		a->n_aliases <= LIMIT_DNS_ALIASES);
	PROMISE(a->rcode == DNS_RCODE_NOERROR || (a->rcode == DNS_RCODE_NXDOMAIN && a->n_records == 0));
	for (size_t i = 0; i < a->n_aliases; i++) {
		PROMISE(a->data[at] != 0 && a->data[at + 1] != 'x');
		at += 1 + (size_t)(unsigned char)a->data[at];
	}
	for (size_t i = 0; dns_answer_address(a, i, &addr); i++)
		PROMISE(i < LIMIT_ANSWERS && addr_classify(&addr) == ADDR_PUBLIC);
}

static void write_and_read_again(const struct dns_answer *a, const struct dns_question *q)
{
	static char buf[ANSWER_MAX];
	static union dns_answer_room again;
	struct dns_query query = {.udp_size = 512, .q = *q};
	struct dns_writer w;
	dns_write_begin(&w, buf, sizeof(buf), &query);
	dns_answer_write(a, a->ttl, &w);
	PROMISE(dns_answer_read(dns_write_end(&w), &q->name, q->type, &rules, &again) == REASON_NONE);
	PROMISE(again.answer.len == a->len && memcmp(again.answer.data, a->data, a->len) == 0);
	PROMISE(again.answer.n_aliases == a->n_aliases && again.answer.n_records == a->n_records);
	PROMISE(again.answer.rcode == a->rcode);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static union dns_answer_room room;
	struct slice packet = fuzz_copy(slice_of(data, size));
	struct dns_response r;
	if (dns_response_parse(packet, &r) && r.q.name.is_plain &&
	    dns_answer_read(packet, &r.q.name, r.q.type, &rules, &room) == REASON_NONE) {
		answer_must_be_right(&room.answer);
		write_and_read_again(&room.answer, &r.q);
	}
	fuzz_free(&packet);
	return 0;
}
