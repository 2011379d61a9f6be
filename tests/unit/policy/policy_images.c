/* The section `images`: what it takes, and what is said of mistakes in it. */
#include "core/policy/image_key.h"
#include "tests/unit/policy/fixture.h"

#define DIGITS                                                                                                         \
	"MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEdawLUiBpBCuNUCddSaPDSb8DE4wiAfE4srpQPcYplK02dswh2FFfPJqFv5iiN4bWaNQkM+M+" \
	"FAdc29+nuOw3Ig=="
#define PEM "-----BEGIN PUBLIC KEY----- " DIGITS " -----END PUBLIC KEY-----"
#define OTHER_CURVE                                                                                                \
	"MHYwEAYHKoZIzj0CAQYFK4EEACIDYgAEYz9qZws6PauNXnklh6JAKSZli1hjdjDAiYQgYfWXYc7c1fJXz7OJqISGATynghbL86NhpVD/" \
	"6qh1Clz2e2XUiDP8XfnKJC4Hnjj4B4AHlbk+BtBxkG8IqdwI9Iig92kx"
#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ENTRY HEAD "images:\n  - {registry: r.test, repository: org/agent, "

static void none_without_a_word(void **state)
{
	(void)state;
	struct fixture f = fixture_good(HEAD);
	assert_int_equal(f.policy->n_images, 0);
	fixture_free(&f);
}

static void all_keys(void **state)
{
	(void)state;
	struct fixture f = fixture_new();
	fixture_write(&f, "k.pub", SLICE("-----BEGIN PUBLIC KEY-----\n" DIGITS "\n-----END PUBLIC KEY-----\n"));
	fixture_load(&f, HEAD "images:\n"
			      "  - {registry: 'r.test:5000', repository: org/**}\n"
			      "  - {registry: localhost, repository: a, digest: 'sha256:" HEX "', key: k.pub}\n"
			      "  - {registry: r.test, repository: '**', key: '" PEM "'}\n");
	policy_errors_print(f.errs, STDERR_FILENO);
	assert_non_null(f.policy);
	const struct policy_image *images = f.policy->images;
	assert_int_equal(f.policy->n_images, 3);
	assert_true(slice_eq(images[0].registry, SLICE("r.test:5000")));
	assert_true(slice_eq(images[0].repository, SLICE("/org/**")));
	assert_true(images[0].key.len == 0 && images[0].digest.len == 0);
	assert_true(slice_eq(images[1].digest, SLICE("sha256:" HEX)));
	assert_int_equal(images[1].key.len, IMAGE_KEY_DER);
	assert_true(slice_eq(images[1].key, images[2].key));
	fixture_free(&f);
}

static const struct mistake {
	const char *yaml, *error;
} mistakes[] = {
	{HEAD "images: r.test/org\n", "policy.yaml:3:9: images: expected a list of images, got \"r.test/org\""},
	{HEAD "images: []\n", "policy.yaml:3:9: images: expected a list of images, got an empty list"},
	{HEAD "image: []\n", "policy.yaml:3:1: image: unknown key; did you mean \"images\"?"},
	{HEAD "images:\n  - {registry: r.test}\n", "policy.yaml:4:5: images[0]: missing key \"repository\""},
	{HEAD "images:\n  - {repository: a}\n", "policy.yaml:4:5: images[0]: missing key \"registry\""},
	{ENTRY "digets: x}\n", "policy.yaml:4:47: images[0].digets: unknown key; did you mean \"digest\"?"},
	{HEAD "images:\n  - {registry: R.test, repository: a}\n",
	 "policy.yaml:4:16: images[0].registry: expected a registry in lower case, such as registry.example.com or "
	 "registry.example.com:5000, got \"R.test\""},
	{HEAD "images:\n  - {registry: hub, repository: a}\n",
	 "policy.yaml:4:16: images[0].registry: expected a registry with a dot or a port in its name, or localhost, "
	 "got "
	 "\"hub\""},
	{HEAD "images:\n  - {registry: '*.test', repository: a}\n",
	 "policy.yaml:4:16: images[0].registry: expected a registry in lower case, such as registry.example.com or "
	 "registry.example.com:5000, got \"*.test\""},
	{HEAD "images:\n  - {registry: r.test, repository: 'org/agent:1'}\n",
	 "policy.yaml:4:36: images[0].repository: expected a repository in lower case without tag and digest, such as "
	 "org/agent or org/**, got \"org/agent:1\""},
	{HEAD "images:\n  - {registry: r.test, repository: org/a**}\n",
	 "policy.yaml:4:36: images[0].repository: two stars must be a whole segment: /**, got \"org/a**\""},
	{ENTRY "digest: 'sha256:abc'}\n",
	 "policy.yaml:4:55: images[0].digest: expected a digest, sha256: and 64 hex digits in lower case, got "
	 "\"sha256:abc\""},
	{ENTRY "key: none.pub}\n",
	 "policy.yaml:4:52: images[0].key: can't use \"none.pub\": No such file or directory"},
	{ENTRY "key: policy.yaml}\n",
	 "policy.yaml:4:52: images[0].key: \"policy.yaml\" is not one public key in PEM (-----BEGIN PUBLIC KEY-----)"},
	{ENTRY "key: '-----BEGIN PUBLIC KEY----- %% -----END PUBLIC KEY-----'}\n",
	 "policy.yaml:4:52: images[0].key: it is not one public key in PEM: what stands in it is no base64"},
	{ENTRY "key: '-----BEGIN PUBLIC KEY----- " OTHER_CURVE " -----END PUBLIC KEY-----'}\n",
	 "policy.yaml:4:52: images[0].key: it is no ECDSA key on the curve P-256, and no other is taken"},
	{ENTRY "key: '" PEM " " PEM "'}\n",
	 "policy.yaml:4:52: images[0].key: it is not one public key in PEM: what stands in it is no base64"},
};

static void what_is_wrong_is_told(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
		expect_error(mistakes[i].yaml, mistakes[i].error);
}

/* A point that is not on the curve is no key, whatever its form. */
static void points_lie_on_the_curve(void **state)
{
	(void)state;
	char pem[] = PEM;
	unsigned char der[IMAGE_KEY_DER];
	assert_null(image_key_parse(slice_str(pem), der));
	pem[sizeof("-----BEGIN PUBLIC KEY----- ") + 60] ^= 1;
	assert_non_null(image_key_parse(slice_str(pem), der));
}

static void an_included_file_has_none(void **state)
{
	(void)state;
	struct fixture f = fixture_new();
	fixture_write(&f, "team.yaml", SLICE("rules: []\nimages: []\n"));
	assert_null(fixture_load(&f, HEAD "include: [team.yaml]\n"));
	assert_string_equal(fixture_error(&f, f.errs->n - 1),
			    "team.yaml:2:1: images: an included file may have only version and rules");
	fixture_free(&f);
}

static void so_many_and_no_more(void **state)
{
	(void)state;
	static char yaml[64 * (LIMIT_IMAGES + 2)];
	for (int extra = 0; extra < 2; extra++) {
		struct fixture f = fixture_new();
		size_t n = (size_t)snprintf(yaml, sizeof(yaml), HEAD "images:\n");
		for (int i = 0; i < LIMIT_IMAGES + extra; i++)
			n += (size_t)snprintf(yaml + n, sizeof(yaml) - n, "- {registry: r.test, repository: a%d}\n", i);
		assert_int_equal(fixture_load(&f, yaml) != NULL, extra == 0);
		fixture_free(&f);
	}
}

static void keys_and_repositories_are_bounded(void **state)
{
	(void)state;
	static char text[LIMIT_IMAGE_KEY + 200], yaml[1000];
	for (size_t extra = 0; extra < 2; extra++) {
		struct fixture f = fixture_new();
		size_t n = (size_t)snprintf(text, sizeof(text),
					    "-----BEGIN PUBLIC KEY-----\n" DIGITS "\n-----END PUBLIC KEY-----");
		memset(text + n, '\n', LIMIT_IMAGE_KEY + extra - n);
		fixture_write(&f, "k.pub", slice_of(text, LIMIT_IMAGE_KEY + extra));
		assert_int_equal(fixture_load(&f, ENTRY "key: k.pub}\n") != NULL, extra == 0);
		fixture_free(&f);
		memset(text, 'a', LIMIT_IMAGE_REPOSITORY + 1);
		snprintf(yaml, sizeof(yaml), HEAD "images: [{registry: r.test, repository: %.*s}]\n",
			 LIMIT_IMAGE_REPOSITORY + (int)extra, text);
		f = fixture_new();
		assert_int_equal(fixture_load(&f, yaml) != NULL, extra == 0);
		fixture_free(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(none_without_a_word),
					   cmocka_unit_test(all_keys),
					   cmocka_unit_test(what_is_wrong_is_told),
					   cmocka_unit_test(points_lie_on_the_curve),
					   cmocka_unit_test(an_included_file_has_none),
					   cmocka_unit_test(so_many_and_no_more),
					   cmocka_unit_test(keys_and_repositories_are_bounded)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
