"""The policy at work: which rule decides, what a refusal says, addresses, pins, observe mode, and --check."""
import subprocess

import pytest
from cagelib.checks import logged_block, logged_pair, refused, upstream_failed
from cagelib.dns import Dns
from cagelib.proxy import binary, policy
from cagelib.raw import RawOrigin

RULES = [
    {"id": "exact", "hosts": ["a.test"], "methods": ["GET", "POST"], "paths": ["/v1/**", "/part-*.txt"]},
    {"id": "admin", "hosts": ["a.test"], "methods": ["GET"], "paths": ["/v1/admin/**"]},
    {"id": "no-keys", "action": "deny", "hosts": ["a.test", "*.wild.test"], "paths": ["/v1/keys/**"]},
    {"id": "wild", "hosts": ["*.wild.test"]},
    {"id": "deep", "hosts": ["*.deep.wild.test"]},
    {"id": "one", "hosts": ["one.wild.test"]},
    {"id": "denied-host", "action": "deny", "hosts": ["bad.wild.test"]},
    {"id": "gone", "hosts": ["expired.test"], "expires": "2020-01-01T00:00:00Z"},
    {"id": "later", "hosts": ["later.test"], "expires": "2099-01-01T00:00:00Z"},
    {"id": "watched", "hosts": ["watched.test"], "methods": ["GET"], "mode": "observe"},
    {"id": "post-only", "hosts": ["method.test"], "methods": ["POST"]},
    {"id": "any-method", "hosts": ["method.test"]},
]
NAMES = ("a.test x.wild.test y.deep.wild.test deep.wild.test one.wild.test bad.wild.test wild.test expired.test later.test "
         "watched.test method.test none.test").split()


@pytest.fixture(scope="module")
def origin(pki):
    with RawOrigin(leaf=pki.leaf(*NAMES)) as running:
        yield running


@pytest.fixture(scope="module")
def cage(start_module_cage, origin, pki):
    pins = {name: origin.pin for name in NAMES}
    return start_module_cage(policy(*RULES, pins=pins, trust=[pki.ca_pem]), "--sandbox", "box-1")


ALLOWED = [
    ("GET", "a.test", "/v1", "exact"),
    ("GET", "a.test", "/v1/x/y?q=1", "exact"),
    ("POST", "a.test", "/v1/x", "exact"),
    ("GET", "a.test", "/part-7.txt", "exact"),
    ("GET", "a.test", "/v1/admin/x", "admin"),
    ("GET", "a.test", "/%76%31/escaped", "exact"),
    ("GET", "a.test", "/v1/./b/../c", "exact"),
    ("DELETE", "x.wild.test", "/anything", "wild"),
    ("GET", "deep.wild.test", "/", "wild"),
    ("GET", "y.deep.wild.test", "/", "deep"),
    ("GET", "one.wild.test", "/", "one"),
    ("GET", "later.test", "/", "later"),
    ("POST", "method.test", "/", "post-only"),
    ("GET", "method.test", "/", "any-method"),
]


@pytest.mark.parametrize("method, host, path, rule", ALLOWED)
def test_allowed_by(cage, origin, method, host, path, rule):
    before = len(origin.requests)
    answer = cage.fetch(method, "https://%s%s" % (host, path), body=b"x" if method == "POST" else b"")
    assert answer.status == 200, answer
    assert len(origin.requests) == before + 1
    assert origin.requests[-1].header("host") == host
    line = cage.log.wait(event="request", rule=rule, method=method, host=host)
    assert (line["decision"], line["sandbox"], line["policy"], line["gen"]) == ("allow", "box-1", "test", 1)


def test_t03_one_root_dot_and_any_case_are_the_same_name(cage, origin):
    wire = cage.tunnel("A.TEST.", sni="a.test")
    assert wire.exchange("GET", "/v1/dotted", [("Host", "A.test.:443")]).status == 200
    assert origin.requests[-1].header("host") == "a.test"
    assert logged_pair(cage, "/v1/dotted")[0]["host"] == "a.test"


REFUSED = [
    ("GET", "none.test", "/", "host.not_allowed", ""),
    ("GET", "wild.test", "/", "host.not_allowed", ""),
    ("GET", "nota.test", "/v1", "host.not_allowed", ""),
    ("GET", "a.test.evil.test", "/v1", "host.not_allowed", ""),
    ("GET", "b.a.test", "/v1", "host.not_allowed", ""),
    ("GET", "expired.test", "/", "host.not_allowed", ""),
    ("DELETE", "a.test", "/v1/x", "method.not_allowed", ""),
    ("get", "a.test", "/v1/x", "method.not_allowed", ""),
    ("GET", "a.test", "/v2", "path.not_allowed", ""),
    ("GET", "a.test", "/v1x", "path.not_allowed", ""),
    ("GET", "a.test", "/V1/x", "path.not_allowed", ""),
    ("GET", "a.test", "/v1/../v2", "path.not_allowed", ""),
    ("GET", "a.test", "/part-a/b.txt", "path.not_allowed", ""),
    ("GET", "a.test", "/v1/keys/1", "rule.denied", "no-keys"),
    ("GET", "a.test", "/v1/keys", "rule.denied", "no-keys"),
    ("GET", "a.test", "/v1/%6beys/1", "rule.denied", "no-keys"),
    ("GET", "a.test", "/v1/x/../keys/1", "rule.denied", "no-keys"),
    ("GET", "a.test", "/v1/%2Fkeys/1", "rule.denied", "no-keys"),
    ("GET", "a.test", "/v1/keys%3Fx", "rule.denied", "no-keys"),
    ("GET", "a.test", "/v1//keys/1", "rule.denied", "no-keys"),
    ("GET", "a.test", "/v1/keys;x/1", "rule.denied", "no-keys"),
    ("GET", "a.test", "/v1/%256beys/1", "rule.denied", "no-keys"),
    ("GET", "x.wild.test", "/v1/keys/1", "rule.denied", "no-keys"),
    ("GET", "bad.wild.test", "/", "rule.denied", "denied-host"),
]


@pytest.mark.parametrize("method, host, path, reason, rule", REFUSED)
def test_refused_for(cage, origin, method, host, path, reason, rule):
    before = len(origin.conns)
    answer = cage.fetch(method, "https://%s%s" % (host, path))
    told = refused(answer, reason, host=host)
    assert told.get("rule", "") == rule
    line = logged_block(cage, answer, host=host)
    assert line.get("rule", "") == rule
    assert line["event"] == "connect" or (line["method"], line["scheme"]) == (method, "https")
    assert len(origin.conns) == before


@pytest.mark.parametrize("path", ["/v1/x/..%2Fkeys/1", "/v1/..;/v2", "/v1/%252e%252e/v2", "/v1/keys;%2f..%2fx", "/v1/..;%2fv1/x"])
def test_t20_a_path_with_hidden_segments_is_malformed(cage, origin, path):
    before = len(origin.conns)
    answer = cage.fetch("GET", "https://a.test" + path)
    refused(answer, "target.malformed", status=400)
    logged_block(cage, answer)
    assert len(origin.conns) == before


@pytest.mark.parametrize("field, reason", [
    (("X-HTTP-Method-Override", "DELETE"), "method.not_allowed"),
    (("x-http-method", "PUT"), "method.not_allowed"),
    (("X-Method-Override", "delete"), "method.not_allowed"),
    (("X-Original-URL", "/v1/keys/1"), "rule.denied"),
    (("X-Rewrite-URL", "/v2"), "path.not_allowed"),
])
def test_t21_fields_that_override_method_or_path_are_judged_too(cage, origin, field, reason):
    before = len(origin.conns)
    answer = cage.fetch("GET", "https://a.test/v1/x", [field])
    refused(answer, reason)
    logged_block(cage, answer)
    assert len(origin.conns) == before


def test_an_allow_rule_needs_method_and_path_together(cage):
    # "exact" allows POST below /v1, "admin" only adds: the request is allowed by "exact"
    assert cage.fetch("POST", "https://a.test/v1/admin/x", body=b"x").status == 200
    assert cage.log.wait(event="request", method="POST", path="/v1/admin/x")["rule"] == "exact"


def test_query_values_are_not_logged(cage):
    assert cage.fetch("GET", "https://a.test/v1/q?token=hunter2&b=").status == 200
    cage.log.wait(event="request", path="/v1/q?token=&b=")
    assert b"hunter2" not in b"".join(cage.log.raw_lines())


# ---- observe

def test_an_observed_refusal_is_logged_and_passes(cage, origin):
    before = len(origin.requests)
    assert cage.fetch("DELETE", "https://watched.test/observed").status == 200
    assert len(origin.requests) == before + 1
    line = cage.log.wait(event="request", path="/observed")
    assert (line["decision"], line["enforced"], line["reason"]) == ("block", False, "method.not_allowed")
    assert cage.log.wait(event="response", conn=line["conn"], txn=line["txn"])["status"] == 200


def test_a_policy_that_observes(start_cage, origin, pki):
    cage = start_cage(policy(mode="observe", pins={"none.test": origin.pin}, trust=[pki.ca_pem]))
    assert cage.fetch("GET", "https://none.test/observe-all").status == 200
    line = cage.log.wait(event="request", path="/observe-all")
    assert (line["decision"], line["enforced"], line["reason"]) == ("block", False, "host.not_allowed")
    # what observing may not let pass
    refused(cage.fetch("GET", "http://127.0.0.1/"), {"address.private", "address.self"})
    refused(cage.tunnel("none.test").exchange("GET", "/", [("Host", "evil.test")]), "authority.mismatch")


def test_what_is_observed_is_logged_though_the_server_fails(start_cage, origin):
    cage = start_cage(policy(mode="observe", pins={"none.test": origin.pin}))  # and nobody trusts its certificate
    answer = cage.fetch("GET", "https://none.test/observed")
    upstream_failed(answer, "upstream.unverified")
    line = cage.log.wait(event="request", path="/observed")
    assert (line["decision"], line["enforced"], line["reason"]) == ("block", False, "host.not_allowed")
    result = cage.log.wait(event="response", txn=line["txn"])
    assert (result["decision"], result["reason"], result["status"]) == ("error", "upstream.unverified", 502)


# ---- T02: no rule, no traffic

@pytest.mark.parametrize("text", ["version: 1\nname: bare\n", "version: 1\nname: bare\nmode: enforce\n"])
def test_t02_a_policy_without_rules_denies_everything(start_cage, text):
    cage = start_cage(text)
    answer = cage.fetch("GET", "https://a.test/")
    refused(answer, "host.not_allowed")
    logged_block(cage, answer)


# ---- ports

def test_ports(start_cage):
    with RawOrigin() as plain:
        rules = [{"id": "web", "hosts": ["p.test"], "ports": [80, 8080]}, {"id": "tls", "hosts": ["q.test"]}]
        cage = start_cage(policy(*rules, pins={"p.test": plain.pin, "q.test": plain.pin}))
        assert cage.fetch("GET", "http://p.test/80").status == 200
        assert cage.fetch("GET", "http://p.test:8080/8080").status == 200
        assert plain.requests[-1].header("host") == "p.test:8080"
        assert logged_pair(cage, "/8080")[0]["port"] == 8080
        for url in ("http://p.test:8081/", "http://q.test/", "http://q.test:443/"):
            before = len(plain.conns)
            answer = cage.fetch("GET", url)
            refused(answer, {"port.not_allowed", "protocol.unknown"})
            assert len(plain.conns) == before


# ---- addresses and names

def test_t07_private_addresses_are_refused(start_cage):
    literals = ["127.0.0.1", "10.1.2.3", "192.168.0.1", "172.16.0.1", "100.64.0.1", "0.0.0.0", "169.254.1.1", "[::1]", "[fd00::1]",
                "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]"]
    with Dns({}) as dns:
        rule = {"id": "careless", "hosts": [x.strip("[]") for x in literals], "ports": [80]}
        cage = start_cage(policy(rule, upstream={"resolvers": [dns.address]}))
        for literal in literals:
            answer = cage.fetch("GET", "http://%s/" % literal)
            refused(answer, "address.private")
            logged_block(cage, answer)


def test_a_resolver_in_the_place_of_the_systems(start_cage):
    """It is asked where the policy names none, and not where it does."""
    rule = {"id": "a", "hosts": ["a.test"], "ports": [80]}
    with Dns({"a.test": ["127.0.0.1"]}) as told, Dns({"a.test": ["127.0.0.1"]}) as named:
        refused(start_cage(policy(rule), "--resolver", told.address).fetch("GET", "http://a.test/"), "address.private")
        assert set(told.asked) == {"a.test"}
        told.asked.clear()
        refused(start_cage(policy(rule, upstream={"resolvers": [named.address]}), "--resolver", told.address).fetch("GET", "http://a.test/"), "address.private")
        assert told.asked == [] and set(named.asked) == {"a.test"}


def test_t07_metadata_is_refused_whatever_the_rules_say(start_cage):
    cage = start_cage(policy({"id": "careless", "hosts": ["169.254.169.254"], "ports": [80]}))
    answer = cage.fetch("GET", "http://169.254.169.254/latest/meta-data/")
    refused(answer, "address.private")
    logged_block(cage, answer)


def test_t07_other_spellings_of_an_address_are_malformed(start_cage):
    cage = start_cage(policy({"id": "local", "hosts": ["127.0.0.1"], "ports": [80], "addresses": ["127.0.0.0/8"]}))
    for spelled in ("2130706433", "0x7f000001", "0177.0.0.1", "127.1", "127.0.0.01", "127.0.0.1.."):
        answer = cage.fetch("GET", "http://%s/" % spelled)
        refused(answer, "target.malformed", status=400)
        logged_block(cage, answer)


def test_t07_names_that_spell_a_private_address(start_cage):
    with Dns({"169-254-169-254.nip.test": ["127.0.0.1"]}) as dns:
        cage = start_cage(policy({"id": "nip", "hosts": ["*.nip.test"], "ports": [80]}, upstream={"resolvers": [dns.address]}))
        answer = cage.fetch("GET", "http://169-254-169-254.nip.test/")
        refused(answer, "name.suspicious")
        logged_block(cage, answer)
        assert not dns.asked


@pytest.fixture
def resolved(start_cage):
    """A plain origin on loopback, a name server, and a rule that allows names to lead to 127.0.0.0/8."""
    answers = {"in.test": ["127.0.0.1"], "out.test": ["10.0.0.1"], "mixed.test": ["127.0.0.1", "10.0.0.1"],
               "public.test": ["127.0.0.1"], "denied.test": ["127.0.0.1"]}
    with RawOrigin() as origin, Dns(answers) as dns:
        rules = [{"id": "inside", "hosts": ["in.test", "out.test", "mixed.test"], "ports": [origin.port], "addresses": ["127.0.0.0/8"]},
                 {"id": "public", "hosts": ["public.test", "nowhere.test"], "ports": [origin.port]}]
        yield start_cage(policy(*rules, upstream={"resolvers": [dns.address]})), origin, dns


def test_addresses_of_a_rule_let_a_private_answer_in(resolved):
    cage, origin, _ = resolved
    assert cage.fetch("GET", "http://in.test:%d/in" % origin.port).status == 200
    assert logged_pair(cage, "/in")[0]["host"] == "in.test"
    assert cage.log.wait(address="127.0.0.1")


def test_t18_every_answer_must_lie_inside(resolved):
    cage, origin, dns = resolved
    for name in ("out.test", "mixed.test"):
        answer = cage.fetch("GET", "http://%s:%d/" % (name, origin.port))
        refused(answer, "address.outside_rule", rule="inside")
        logged_block(cage, answer)
    dns.answers["in.test"] = ["10.0.0.1"]  # it leads somewhere else now
    refused(cage.fetch("GET", "http://in.test:%d/" % origin.port, [("Connection", "close")]), "address.outside_rule")
    assert not origin.conns


def test_t18_a_private_answer_without_addresses_is_refused(resolved):
    cage, origin, _ = resolved
    answer = cage.fetch("GET", "http://public.test:%d/" % origin.port)
    refused(answer, "address.private", rule="public")
    logged_block(cage, answer)
    assert not origin.conns


def test_t14_a_denied_name_is_never_resolved(resolved):
    cage, origin, dns = resolved
    refused(cage.fetch("GET", "http://denied.test:%d/" % origin.port), "host.not_allowed")
    refused(cage.fetch("GET", "https://denied.test/"), "host.not_allowed")
    refused(cage.ask_connect("denied.test:9")[1], {"host.not_allowed", "port.not_allowed"})
    assert cage.fetch("GET", "http://in.test:%d/" % origin.port).status == 200
    assert dns.asked and set(dns.asked) == {"in.test"}


def test_a_name_that_does_not_exist_is_a_502(resolved):
    cage, origin, _ = resolved
    answer = cage.fetch("GET", "http://nowhere.test:%d/" % origin.port)
    assert (answer.status, answer.json()["error"], answer.json()["reason"]) == (502, "upstream_failed", "name.unresolved")


def test_a_pin_with_a_port_changes_only_the_dial(cage, origin):
    before = len(origin.requests)
    assert cage.fetch("GET", "https://a.test/v1/pinned").status == 200
    assert origin.requests[before].header("host") == "a.test"
    assert logged_pair(cage, "/v1/pinned")[0]["port"] == 443


def test_a_pin_without_a_port_dials_the_port_that_was_asked_for(start_cage):
    with RawOrigin() as origin:
        rule = {"id": "pinned", "hosts": ["pin.test"], "ports": [origin.port]}
        cage = start_cage(policy(rule, pins={"pin.test": "127.0.0.1"}))
        assert cage.fetch("GET", "http://pin.test:%d/" % origin.port).status == 200
        assert origin.requests[0].header("host") == "pin.test:%d" % origin.port


# ---- --check

def check(tmp_path, text):
    path = tmp_path / "policy.yaml"
    path.write_text(text)
    done = subprocess.run([binary(), "--policy", str(path), "--check"], capture_output=True, text=True, timeout=30)
    return done.returncode, done.stdout + done.stderr, str(path)


GOOD = """version: 1
name: good
rules:
  - id: a
    hosts: [a.test]
tests:
  - {request: GET https://a.test/, expect: allow, rule: a}
  - {request: GET https://b.test/, expect: deny}
"""


def test_check_of_a_good_policy(tmp_path):
    code, out, _ = check(tmp_path, GOOD)
    assert code == 0, out


def test_check_reports_all_errors_with_their_place(tmp_path):
    text = ("version: 1\nname: bad\nrules:\n  - id: a\n    hosts: [a.test]\n    prots: [443]\n"
            "  - id: a\n    hosts: [b.test]\n    ports: [99999]\n")
    code, out, path = check(tmp_path, text)
    assert code == 2
    assert "%s:6:5: " % path in out and "did you mean" in out and "ports" in out
    assert "%s:7:" % path in out
    assert "%s:9:" % path in out


@pytest.mark.parametrize("text, line", [
    ("version: 2\nname: x\n", 1),
    ("version: 1\nname: x\nrules: []\n", 3),
    ("version: 1\nname: x\nmode: watch\n", 3),
    ("version: 1\nname: x\nrules:\n  - id: a\n    hosts: [a.test]\n    addresses: [10.0.0.1/8]\n", 6),
    ("version: 1\nname: x\nrules:\n  - id: a\n    hosts: [a.test]\n    addresses: [169.254.0.0/16]\n", 6),
    ("version: 1\nname: x\nrules:\n  - id: a\n    hosts: [\"a\\0b.test\"]\n", 5),
    ("version: 1\nname: x\nrules:\n  - id: a\n    hosts: [a.test]\n    secrets: [k]\n", 6),
    ("version: 1\nname: x\nupstream:\n  resolve: {a.test: 169.254.169.254}\n", 4),
    ("version: 1\nname: x\nname: y\n", 3),
    ("version: 1\nname: &a x\nmode: *a\n", 2),
    ("version: 1\nname: x\nrules:\n  - id: a\n    hosts: [a.test]\n  - id: b\n    hosts: [a.test]\n", 6),
    ("version: 1\nname: x\nrules:\n  - id: a\n    hosts: [a.test]\n  - id: b\n    action: tunnel\n    hosts: [a.test]\n", 6),
    ("version: 1\nname: x\ntests:\n  - {request: GET https://a.test/, expect: allow}\n", 4),
    ("version: 1\nname: [\n", None),
], ids=["version", "empty-list", "mode", "host-bits", "metadata-range", "t01-nul", "not-supported-yet", "metadata-pin", "key-twice", "anchors",
        "tie", "tunnel-overlap", "failing-test", "broken-yaml"])
def test_check_refuses(tmp_path, text, line):
    code, out, path = check(tmp_path, text)
    assert code == 2, out
    assert ("%s:%d:" % (path, line) if line else "%s:" % path) in out, out


def test_check_of_a_missing_file():
    done = subprocess.run([binary(), "--policy", "/no/such/policy.yaml", "--check"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2
    assert "/no/such/policy.yaml" in done.stderr
