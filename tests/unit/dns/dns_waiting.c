/* Clients that ask the same wait together, in bounds. */
#include "dns/waiting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static struct dns_waiter waiters[8];

static enum dns_join join(struct dns_waiting *w, const char *text, uint16_t type, uint64_t generation, int i,
			  struct dns_group **g)
{
	struct dns_name name;
	assert_true(dns_name_set(&name, slice_str(text)));
	enum dns_join place = dns_waiting_place(w, &name, type, generation);
	enum dns_join joined = dns_waiting_join(w, &name, type, generation, &waiters[i], g);
	assert_int_equal(place, joined);
	return joined;
}

static void take(struct dns_waiting *w, struct dns_group *g)
{
	dns_waiting_take(w, g);
	free(g);
}

static void one_question_for_many(void **state)
{
	struct dns_group *g, *same, *other;
	struct dns_waiting *w = dns_waiting_new(10, 10);
	(void)state;
	assert_int_equal(join(w, "a.test", DNS_TYPE_A, 1, 0, &g), DNS_JOIN_FIRST);
	assert_int_equal(join(w, "a.test", DNS_TYPE_A, 1, 1, &same), DNS_JOIN_MORE);
	assert_int_equal(join(w, "a.test", DNS_TYPE_A, 1, 2, &same), DNS_JOIN_MORE);
	assert_ptr_equal(g, same);
	assert_int_equal(g->count, 3);
	assert_ptr_equal(g->first, &waiters[0]);
	assert_ptr_equal(g->first->next, &waiters[1]);
	assert_ptr_equal(g->first->next->next, &waiters[2]);
	assert_null(g->first->next->next->next);
	take(w, g);
	assert_int_equal(join(w, "a.test", DNS_TYPE_A, 1, 0, &other), DNS_JOIN_FIRST);
	take(w, other);
	dns_waiting_free(&w);
	dns_waiting_free(&w);
}

static void others_ask_for_themselves(void **state)
{
	struct dns_group *g[4];
	struct dns_waiting *w = dns_waiting_new(10, 10);
	(void)state;
	assert_int_equal(join(w, "a.test", DNS_TYPE_A, 1, 0, &g[0]), DNS_JOIN_FIRST);
	assert_int_equal(join(w, "a.test", DNS_TYPE_AAAA, 1, 1, &g[1]), DNS_JOIN_FIRST);
	assert_int_equal(join(w, "b.test", DNS_TYPE_A, 1, 2, &g[2]), DNS_JOIN_FIRST);
	assert_int_equal(join(w, "a.test", DNS_TYPE_A, 2, 3, &g[3]), DNS_JOIN_FIRST); /* another policy */
	assert_int_equal(dns_waiting_count(w), 4);
	for (int i = 0; i < 4; i++)
		take(w, g[i]);
	assert_int_equal(dns_waiting_count(w), 0);
	dns_waiting_free(&w);
}

static void bounded(void **state)
{
	struct dns_group *g[3], *none;
	struct dns_waiting *w = dns_waiting_new(2, 2);
	(void)state;
	assert_int_equal(join(w, "a.test", DNS_TYPE_A, 1, 0, &g[0]), DNS_JOIN_FIRST);
	assert_int_equal(join(w, "a.test", DNS_TYPE_A, 1, 1, &g[0]), DNS_JOIN_MORE);
	assert_int_equal(join(w, "a.test", DNS_TYPE_A, 1, 2, &none), DNS_JOIN_FULL);
	assert_int_equal(join(w, "b.test", DNS_TYPE_A, 1, 2, &g[1]), DNS_JOIN_FIRST);
	assert_int_equal(join(w, "c.test", DNS_TYPE_A, 1, 3, &none), DNS_JOIN_FULL);
	take(w, g[0]);
	assert_int_equal(join(w, "c.test", DNS_TYPE_A, 1, 3, &g[2]), DNS_JOIN_FIRST);
	take(w, g[1]);
	take(w, g[2]);
	dns_waiting_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_question_for_many),
		cmocka_unit_test(others_ask_for_themselves),
		cmocka_unit_test(bounded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
