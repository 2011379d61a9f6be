"""What a name that is asked for may carry (THREATS T16, T29, T33): the limits under wildcards, and secrets in labels. Each test sees
to it that the question did not leave, that the client was told why, and that the log has one line, without the secret."""
import pytest
from cagelib.dns import Dns
from cagelib.proxy import policy, wait_until

PUBLIC = "20.0.0.7"
SINK = "192.0.2.1"
WIDE = {"id": "wide", "hosts": ["*.wide.test"]}
AKIA = "akiaqylpmn5hhhfpz2aw"
HEX = "43414e4152592d574f52442d37"  # CANARY-WORD-7


@pytest.fixture
def upstream():
    class Anything(dict):
        def get(self, name, default=None):
            return [PUBLIC]

        def __contains__(self, name):
            return True

    with Dns(Anything()) as running:
        yield running


def refused(cage, upstream, name, reason, shown=True):
    """Asks, and looks at all three."""
    before = list(upstream.asked)
    told = cage.dig(name)
    assert "(%s)" % reason in told.text, told
    line = cage.log.wait(event="dns", decision="block", reason=reason, host=name if shown else "[redacted]")
    assert line["enforced"] is True and line["stage"] == "dns" and line["method"] == "A", line
    assert len(cage.log.find(event="dns", decision="block", reason=reason, host=line["host"])) == 1
    assert upstream.asked == before
    return told


@pytest.mark.parametrize("label", ["a" * 41, "a.b.c.d.e.f.g", "nb2wy3dpo5xxe3deb4qho2lu2a5"], ids=["long", "many", "random"])
def test_t16_labels(start_dns, upstream, label):
    cage = start_dns(policy(WIDE), upstream=[upstream.address])
    assert refused(cage, upstream, label + ".wide.test", "name.suspicious").data() == [SINK]


def test_t16_a_listed_name_may_be_anything(start_dns, upstream):
    name = "nb2wy3dpo5xxe3deb4qho2lu2a5." + "a" * 50 + ".wide.test"
    cage = start_dns(policy(WIDE, {"id": "listed", "hosts": [name]}), upstream=[upstream.address])
    assert cage.dig(name).data() == [PUBLIC]
    assert cage.log.wait(event="dns", host=name)["rule"] == "listed"


def test_t16_different_names(start_dns, upstream):
    cage = start_dns(policy(WIDE, inspectors={"name": {"names": 10}}), upstream=[upstream.address])
    for i in range(40):
        cage.dig("n%d.wide.test" % i)
    assert len(set(upstream.asked)) < 25  # about 10 in each of the minutes that it took, of which there may be two
    assert cage.log.wait(event="dns", reason="name.suspicious")["decision"] == "block"


def test_t16_bytes_of_names(start_dns, upstream):
    cage = start_dns(policy(WIDE, dns={"tunnel": {"bytes": "60B/d"}}), upstream=[upstream.address])
    for i in range(6):
        assert cage.dig("ten-byte%d.wide.test" % i).data() == [PUBLIC]
    assert refused(cage, upstream, "ten-byte7.wide.test", "limit.budget").status == "REFUSED"


def test_t16_what_the_cache_has_is_not_counted(start_dns, upstream):
    """The name server of these tests says a time of 0, so the least time that answers are kept must be longer."""
    limits = {"ttl": {"min": "1h"}, "tunnel": {"rate": "3/d", "bytes": "60B/d"}}
    cage = start_dns(policy(WIDE, dns=limits), upstream=[upstream.address])
    for _ in range(20):
        assert cage.dig("www.wide.test").data() == [PUBLIC]
    assert len(upstream.asked) == 1


def test_t16_counts_outlive_a_reload_and_a_worker(start_dns, upstream):
    rules = policy(WIDE, dns={"tunnel": {"rate": "3/d"}})
    cage = start_dns(rules, upstream=[upstream.address])
    for i in range(3):
        assert cage.dig("n%d.wide.test" % i).data() == [PUBLIC]
    cage.reload(rules)
    refused(cage, upstream, "n4.wide.test", "limit.rate")


SECRETS = policy({"id": "wide", "hosts": ["*.wide.test"], "secrets": ["key"]}, secrets=[{"id": "key", "from": {"env": "NO_SUCH_VARIABLE"}, "placeholder": "CORPKEY-placeholder"}],
                 inspectors={"canary": {"strings": ["CANARY-WORD-7"]}, "name": {"action": "off"}, "encoded_blob": {"action": "off"}})


@pytest.mark.parametrize("label, reason", [
    ("corpkey-placeholder", "secret.misplaced"), ("corp.key-placeholder", "secret.misplaced"),
    ("434f52504b45592d706c616365686f6c646572", "secret.misplaced"), ("cage-ph-0123456789abcdef0123456789abcdef", "secret.misplaced"),
    (AKIA, "secret.detected"), ("canary-word-7", "canary.detected"), (HEX, "canary.detected")],
    ids=["placeholder", "over-labels", "placeholder-hex", "random-placeholder", "key-id", "canary", "canary-hex"])
def test_t33_secrets_in_labels(start_dns, upstream, label, reason):
    cage = start_dns(SECRETS, upstream=[upstream.address])
    refused(cage, upstream, label + ".wide.test", reason, shown=False)
    line = cage.log.wait(event="dns", reason=reason)
    assert line["findings"][0]["where"] == "host" and line["findings"][0]["action"] == "block", line


def test_t34_a_denied_name_with_a_secret_is_not_shown(start_dns, upstream):
    cage = start_dns(SECRETS, upstream=[upstream.address])
    refused(cage, upstream, AKIA + ".evil.test", "host.not_allowed", shown=False)
    with open(cage.log.path, encoding="utf-8") as f:
        assert AKIA not in f.read()


def test_t07_a_name_that_spells_an_address(start_dns, upstream):
    cage = start_dns(policy(WIDE), upstream=[upstream.address])
    refused(cage, upstream, "10-0-0-1.wide.test", "name.suspicious")


@pytest.mark.parametrize("words", [("A",), ("HTTPS",), ("SVCB",), ("+edns=1", "+noednsnegotiation")], ids=lambda w: w[0].strip("+"))
def test_t34_no_query_shows_a_secret(start_dns, upstream, words):
    cage = start_dns(SECRETS, upstream=[upstream.address])
    for name in ("canary-word-7.wide.test", AKIA + ".evil.test"):
        cage.dig(name, *words)
    wait_until(lambda: len(cage.log.find(event="dns", decision="block", host="[redacted]")) == 2, 10, "not refused, or shown")
    with open(cage.log.path, encoding="utf-8") as f:
        text = f.read()
    assert "canary-word" not in text and AKIA not in text and upstream.asked == []


def test_t34_nor_does_what_is_kept(start_dns, upstream):
    rules = policy(WIDE, inspectors={"canary": {"strings": ["CANARY-WORD-7"], "action": "flag"}, "name": {"action": "off"}},
                   dns={"ttl": {"min": "1h"}})
    cage = start_dns(rules, upstream=[upstream.address])
    for _ in range(3):
        assert cage.dig("canary-word-7.wide.test").data() == [PUBLIC]
    wait_until(lambda: len(cage.log.find(event="dns", host="[redacted]")) == 3, 10, "shown")
    assert len(upstream.asked) == 1
