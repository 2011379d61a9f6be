/* Alerts: so many wait for the webhook, and the rest is only told. */
#include "orchestrator/service/alerts.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* after them */
#include <cmocka.h>

/* Lines of stderr that have this in them, while `many` sandboxes come to their end. */
static int told(size_t many, const char *what)
{
	struct service *s = calloc(1, sizeof(*s));
	struct row row = {.state = TIMED_OUT, .id = "sb-1", .reason = "time.wall", .ended_us = 1};
	char line[256];
	int n = 0, old = dup(STDERR_FILENO);
	FILE *f = tmpfile();
	assert_true(s && f && old >= 0);
	s->base = event_base_new();
	s->children = children_new(s->base);
	row.spec = json_pack("{s:{}}", "labels");
	strcpy(s->config.alerts.webhook, "http://127.0.0.1:1/");
	assert_true(alerts_start(s));
	dup2(fileno(f), STDERR_FILENO);
	for (size_t i = 0; i < many; i++)
		alerts_look(s, &row);
	dup2(old, STDERR_FILENO);
	close(old);
	rewind(f);
	while (fgets(line, sizeof(line), f))
		n += strstr(line, what) != NULL;
	fclose(f);
	alerts_free(s);
	children_free(&s->children);
	event_base_free(s->base);
	json_decref(row.spec);
	free(s);
	return n;
}

static void test_so_many_wait(void **state)
{
	(void)state;
	assert_int_equal(told(LIMIT_SERVE_ALERTS, "too many alerts"), 0);
	assert_int_equal(told(LIMIT_SERVE_ALERTS + 5, "too many alerts"), 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_so_many_wait)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
