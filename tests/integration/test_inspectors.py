"""The section `inspectors` of a policy at work: what its keys allow and switch off, canaries, rates, budgets, sizes, types and
names, and what is said about a section that is wrong."""
import json
import random
import socket
import subprocess
import threading

import pytest
from cagelib.checks import logged_block, logged_pair, refused, upstream_failed
from cagelib.content import (FORMAT, Watch, assert_unleaked, base64_at, filler, github_pat, gzipped, json_escaped, percent,
                             stopped, the_finding)
from cagelib.dns import Dns
from cagelib.proxy import binary, policy
from cagelib.raw import RawOrigin
from cagelib.wire import chunked

HOST = "content.test"
NAMES = (HOST, "other.test", "api.github.com", "a.wild.test", "b.wild.test", "upload.test")
SECRET = github_pat()
NOTE = b"note: " + SECRET.encode() + b"\n"
CORP = "CORP-0123456789ABCDEF0123456789ABCDEF"
CANARY = "Blue-Heron/4711 at dawn"
KEY_ID = "AKIAJ3JWK2UTG5DY2QIM"  # made up


@pytest.fixture(scope="module")
def origin(pki):
    with RawOrigin(leaf=pki.leaf(*NAMES)) as running:
        yield running


@pytest.fixture
def start(start_cage, origin, pki):
    """Starts a proxy with those rules (or one for HOST) and that section."""
    def run(inspectors=None, *rules, args=(), **more):
        more = {"inspectors": inspectors, **more} if inspectors else more
        rules = rules or ({"id": "content", "hosts": [HOST]},)
        return start_cage(policy(*rules, pins={n: origin.pin for n in NAMES}, trust=[pki.ca_pem], **more), *args)
    return run


def post(body, fields=(), host=HOST, target="/"):
    return lambda wire: wire.request("POST", target, [("Host", host), *fields], body)


def upload(cage, body, path="/", host=HOST, fields=()):
    return cage.fetch("POST", "https://%s%s" % (host, path), fields, body)


# ---- secrets

def test_a_key_passes_to_its_own_provider_and_nowhere_else(start, origin):
    cage = start(None, {"id": "github", "hosts": ["api.github.com"]}, {"id": "content", "hosts": [HOST]})
    answer = upload(cage, NOTE, "/own", "api.github.com", [("Authorization", "Bearer " + SECRET)])
    assert answer.status == 200
    assert origin.requests[-1].header("authorization") == "Bearer " + SECRET
    assert logged_pair(cage, "/own")[0]["decision"] == "allow"
    stopped(cage, origin, post(NOTE), SECRET, id=FORMAT)


def test_a_key_does_not_pass_to_its_own_provider_in_the_plain(start_cage):
    with RawOrigin() as plain:
        rule = {"id": "github", "hosts": ["api.github.com"], "ports": [80]}
        cage = start_cage(policy(rule, pins={"api.github.com": plain.pin}))
        answer = cage.fetch("POST", "http://api.github.com/", [], NOTE)
        refused(answer, "secret.detected")
        logged_block(cage, answer)
        assert not plain.received


def test_a_format_can_be_off(start, origin):
    cage = start({"secrets": {"off": [FORMAT]}})
    assert upload(cage, NOTE, "/off").status == 200
    assert "findings" not in logged_pair(cage, "/off")[0]
    other = "AKIA" + "J3JWK2UTG5DY2QIM"
    stopped(cage, origin, post(other.encode()), other, id="aws-access-key-id")


def test_the_inspector_can_be_off(start):
    cage = start({"secrets": {"action": "off"}})
    assert upload(cage, NOTE, "/off").status == 200
    logged_pair(cage, "/off")


def test_a_format_can_be_allowed_at_a_rule(start, origin):
    rules = {"id": "content", "hosts": [HOST]}, {"id": "other", "hosts": ["other.test"]}
    cage = start({"secrets": {"allow": {"other": [FORMAT]}}}, *rules)
    assert upload(cage, NOTE, "/allowed", "other.test").status == 200
    stopped(cage, origin, post(NOTE), SECRET, id=FORMAT)


def test_an_extra_format(start, origin):
    rules = {"id": "content", "hosts": [HOST]}, {"id": "other", "hosts": ["other.test"]}
    extra = [{"id": "corp-key", "pattern": "CORP-[0-9A-F]{32}", "allow": ["other"]}]
    cage = start({"secrets": {"extra": extra}}, *rules)
    stopped(cage, origin, post(b"key " + CORP.encode()), CORP, id="corp-key", where="body", offset=4)
    stopped(cage, origin, post(base64_at(CORP.encode(), 1)), CORP, id="corp-key", view="base64")
    assert upload(cage, CORP.encode(), "/allowed", "other.test").status == 200
    assert upload(cage, CORP[:-1].encode(), "/short").status == 200


def test_secrets_can_be_flagged(start, origin):
    cage = start({"secrets": {"action": "flag"}})
    assert upload(cage, NOTE, "/flagged").status == 200
    assert origin.requests[-1].body == NOTE
    line = cage.log.wait(event="request", path="/flagged")
    assert (line["decision"], line["reason"], line["stage"]) == ("flag", "secret.detected", "body")
    assert the_finding(line, id=FORMAT, where="body")["action"] == "flag"
    assert_unleaked(cage, SECRET)
    assert cage.fetch("GET", "https://%s/head" % HOST, [("X-A", SECRET)]).status == 200
    assert cage.log.wait(event="request", path="/head")["stage"] == "head"


def test_observe_logs_a_block_and_lets_it_pass(start, origin):
    cage = start(None, mode="observe")
    assert upload(cage, NOTE, "/observed").status == 200
    assert origin.requests[-1].body == NOTE
    line = cage.log.wait(event="request", path="/observed")
    assert (line["decision"], line["enforced"], line["reason"], line["stage"]) == ("block", False, "secret.detected", "body")
    the_finding(line, id=FORMAT, where="body", action="block")
    assert_unleaked(cage, SECRET)


def test_observe_beyond_the_hold(start, origin):
    cage = start(None, {"id": "content", "hosts": [HOST], "mode": "observe", "limits": {"hold": 65536}})
    body = filler(3 << 20) + NOTE
    assert upload(cage, body, "/late").status == 200
    assert origin.requests[-1].body == body
    line = cage.log.wait(event="request", path="/late")
    result = cage.log.wait(event="response", txn=line["txn"], conn=line["conn"])
    assert (result["decision"], result["enforced"], result["reason"]) == ("block", False, "secret.detected")
    the_finding(result, id=FORMAT, where="body")


def test_the_fingerprint_is_the_same_for_the_same_value(start, origin):
    cage = start()
    lines = [stopped(cage, origin, post(body), SECRET)[1] for body in (NOTE, base64_at(NOTE, 0))]
    lines.append(stopped(cage, origin, post(github_pat(2).encode()), github_pat(2))[1])
    prints = [the_finding(line)["fingerprint"] for line in lines]
    assert prints[0] == prints[1] != prints[2]


# ---- canaries

@pytest.mark.parametrize("name, body", [
    ("plain", CANARY.encode()), ("upper_case", CANARY.upper().encode()), ("lower_case", CANARY.lower().encode()),
    ("reversed", CANARY[::-1].encode()), ("reversed_upper_case", CANARY[::-1].upper().encode()),
    ("base64", base64_at(CANARY.encode(), 2)), ("hex", CANARY.encode().hex().encode()), ("percent", percent(CANARY.encode())),
    ("json", json_escaped(CANARY.encode())), ("base64_of_reversed", base64_at(CANARY[::-1].encode(), 1)),
], ids=lambda v: v if isinstance(v, str) else "")
def test_t29_a_canary(start, origin, name, body):
    cage = start({"canary": {"strings": ["something else", CANARY]}})
    stopped(cage, origin, post(b"- " + body + b" -"), CANARY, reason="canary.detected", inspector="canary", id="canary-2",
            where="body")
    assert_unleaked(cage, CANARY.lower(), CANARY[::-1])


def test_a_canary_needs_no_scanner_of_secrets(start, origin):
    cage = start({"canary": {"strings": [CANARY]}, "secrets": {"action": "off"}})
    stopped(cage, origin, lambda wire: wire.request("GET", "/", [("Host", HOST), ("X-A", CANARY)]), CANARY,
            reason="canary.detected", inspector="canary")


# ---- entropy, encoded blobs, types, sizes

def random_bytes(size):
    return random.Random(7).randbytes(size)


def flagged(cage, path, inspector, reason):
    line = cage.log.wait(event="request", path=path)
    assert (line["decision"], line["reason"]) == ("flag", reason), line
    assert "enforced" not in line
    the_finding(line, inspector=inspector, reason=reason, action="flag")


def test_random_data_is_flagged(start, origin):
    cage = start()
    body = random_bytes(20000)
    assert upload(cage, body, "/random", fields=[("Content-Type", "application/octet-stream")]).status == 200
    assert origin.requests[-1].body == body
    flagged(cage, "/random", "entropy", "entropy.high")


def test_random_data_can_be_blocked(start, origin):
    cage = start({"entropy": {"action": "block"}})
    stopped(cage, origin, post(random_bytes(20000)), SECRET, reason="entropy.high", inspector="entropy", where="body")


def test_a_long_run_of_base64_is_flagged(start):
    cage = start()
    body = b'{"data": "' + base64_at(random_bytes(9000), 0) + b'"}'
    assert upload(cage, body, "/blob", fields=[("Content-Type", "application/json")]).status == 200
    flagged(cage, "/blob", "encoded_blob", "encoded.blob")


ELF = b"\x7fELF\x02\x01\x01\0" + bytes(8) + b"\x02\0\x3e\0\x01\0\0\0" + bytes(2000)


@pytest.mark.parametrize("name, body", [("elf", ELF), ("gzip", gzipped(filler(5000)))], ids=["elf", "gzip"])
def test_t27_a_program_or_archive_as_text_is_blocked(start, origin, name, body):
    cage = start()
    stopped(cage, origin, post(body, [("Content-Type", "text/plain")]), SECRET, reason="type.mismatch", inspector="content_type",
            where="body")
    assert upload(cage, body, "/declared", fields=[("Content-Type", "application/octet-stream")]).status == 200


def test_a_body_over_the_limit_is_refused(start, origin):
    cage = start(None, {"id": "content", "hosts": [HOST], "limits": {"body": 100000, "hold": 65536}})
    assert upload(cage, filler(100000), "/fits").status == 200
    stopped(cage, origin, post(filler(100001)), SECRET, reason="body.too_large", inspector="body_size", where="body")


def test_a_chunked_body_over_the_limit_never_completes(start, origin):
    cage = start(None, {"id": "content", "hosts": [HOST], "limits": {"body": 300000, "hold": 65536}})
    watch = Watch(origin)
    wire = cage.tunnel(HOST)
    wire.request("POST", "/", [("Host", HOST), ("Transfer-Encoding", "chunked")]).send(chunked(*[filler(50000)] * 7))
    answer = wire.read_response()
    refused(answer, "body.too_large")
    assert cage.log.of(answer, decision="block")["reason"] == "body.too_large"
    watch.assert_no_request()


# ---- rates and budgets

def limited(**limits):
    return {"id": "content", "hosts": [HOST, "*.wild.test"], "limits": limits}


def test_a_rate_and_its_burst(start, origin):
    cage = start(None, limited(rate="1/h", burst=3))
    for n in range(3):
        assert cage.fetch("GET", "https://%s/%d" % (HOST, n)).status == 200
    answer, _ = stopped(cage, origin, lambda wire: wire.request("GET", "/4", [("Host", HOST)]), SECRET, reason="limit.rate",
                        status=429, inspector="rate")
    assert 3000 < int(answer.header("retry-after")) <= 3600
    for name in ("a.wild.test", "b.wild.test"):  # another domain has a bucket of its own, its names share it
        assert cage.fetch("GET", "https://%s/" % name).status == 200
    assert cage.fetch("GET", "https://a.wild.test/").status == 200
    answer = cage.fetch("GET", "https://b.wild.test/")
    refused(answer, "limit.rate", status=429)


def test_a_burst_of_none_refuses_always(start):
    cage = start(None, limited(rate="1/s", burst=0))
    answer = cage.fetch("GET", "https://%s/" % HOST)
    refused(answer, "limit.rate", status=429)
    logged_block(cage, answer)


def test_a_budget(start, origin):
    rules = limited(out="100KiB/h")
    cage = start(None, rules)
    assert upload(cage, filler(90000), "/fits").status == 200
    answer, _ = stopped(cage, origin, post(filler(90000)), SECRET, reason="limit.budget", status=429, inspector="budget")
    assert int(answer.header("retry-after")) > 0
    # what was spent is not forgotten when the policy is loaded again
    with open(cage.policy_path, encoding="utf-8") as file:
        again = json.load(file)
    cage.reload({**again, "name": "again"})
    answer = upload(cage, filler(90000), "/reloaded")
    refused(answer, "limit.budget", status=429)
    assert logged_block(cage, answer)["policy"] == "again"


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_a_body_larger_than_the_whole_budget_is_never_told_to_try_later(start, origin, framing):
    cage = start(None, limited(out="100KiB/h"))

    def send(wire):
        if framing == "length":
            return wire.request("POST", "/", [("Host", HOST)], filler(110000))
        return wire.request("POST", "/", [("Host", HOST), ("Transfer-Encoding", "chunked")]).send(
            chunked(*[filler(10000)] * 11))

    answer, _ = stopped(cage, origin, send, SECRET, reason="body.too_large", inspector="budget", where="body")
    told = answer.json()
    assert not answer.has("retry-after")
    assert "limits.out" in told["message"] and "limits.out" in told["hint"] and "later" not in told["hint"]


def test_a_budget_is_shared_by_workers(start, origin):
    cage = start(None, limited(out="400KiB/h"), args=("--workers", "2"))
    statuses = [upload(cage, filler(50000), "/%d" % n).status for n in range(16)]
    assert statuses.count(200) == 8 - (statuses[7] == 429)  # heads count too
    assert set(statuses) == {200, 429}


def test_a_rate_is_shared_by_workers(start):
    cage = start(None, limited(rate="1/h", burst=5), args=("--workers", "2"))
    statuses = [cage.fetch("GET", "https://%s/%d" % (HOST, n)).status for n in range(16)]
    assert statuses == [200] * 5 + [429] * 11


# ---- names

def ask(cage, name):
    """The answer to a GET, or to the CONNECT before it when that was refused."""
    wire, answer = cage.ask_connect(name + ":443")
    if answer.status != 200:
        return answer
    return cage.start_tls(wire, name).exchange("GET", "/", [("Host", name)])


@pytest.mark.parametrize("name", [
    "x" * 41 + ".wild.test",
    "a.b.c.d.e.f.g.wild.test",
    "k3jf9x2lq8vz7w1m4n6p0r5t.wild.test",
    "9f86d081884c7d659a2feaa0c55ad015.wild.test",
    SECRET.lower().replace("_", "-") + ".wild.test",
], ids=["long_label", "many_labels", "random_label", "hex_label", "token_label"])
def test_t16_t29_data_in_a_name_under_a_wildcard(start, name):
    with Dns({name: ["203.0.113.9"], "www.wild.test": ["203.0.113.9"]}) as dns:
        cage = start(None, {"id": "wild", "hosts": ["*.wild.test"]}, upstream={"resolvers": [dns.address]})
        answer = ask(cage, name)
        refused(answer, {"name.suspicious", "secret.detected"})
        logged_block(cage, answer)
        assert dns.asked == []


def test_t29_a_secret_in_a_name_is_refused_where_names_are_not_judged(start):
    hidden = SECRET.encode().hex()
    name = ".".join(hidden[i:i + 20] for i in range(0, len(hidden), 20)) + ".wild.test"
    with Dns({name: ["203.0.113.9"]}) as dns:
        cage = start({"name": {"action": "off"}}, {"id": "wild", "hosts": ["*.wild.test"]}, upstream={"resolvers": [dns.address]})
        answer = ask(cage, name)
        refused(answer, "secret.detected")
        the_finding(logged_block(cage, answer), id=FORMAT, where="host", view="hex")
        assert dns.asked == []


def test_t16_too_many_names_under_one_domain(start):
    with Dns({}) as dns:
        cage = start({"name": {"names": 20}}, {"id": "wild", "hosts": ["*.wild.test"]}, upstream={"resolvers": [dns.address]})
        reasons = [ask(cage, "n%d.wild.test" % n).header("x-cage-reason") for n in range(40)]
    assert "name.suspicious" not in reasons[:15]  # the count is an estimate
    assert reasons[30:] == ["name.suspicious"] * 10
    assert len(set(dns.asked)) < 30


def test_a_listed_name_is_not_judged(start_cage, origin, pki):
    name = "k3jf9x2lq8vz7w1m4n6p0r5t" + "x" * 20 + ".listed.test"
    with RawOrigin(leaf=pki.leaf(name)) as listed:
        cage = start_cage(policy({"id": "listed", "hosts": [name]}, pins={name: listed.pin}, trust=[pki.ca_pem]))
        assert cage.fetch("GET", "https://%s/" % name).status == 200


# ---- a section that is wrong

def check(tmp_path, section):
    path = tmp_path / "policy.yaml"
    rules = ("{id: mirror, hosts: [a.test]}", "{id: no, hosts: [b.test], action: deny}",
             "{id: ssh, hosts: [c.test], ports: [22], action: tunnel}")
    path.write_text("version: 1\nname: wrong\nrules: [%s]\n\ninspectors:\n%s" % (", ".join(rules), section))
    done = subprocess.run([binary(), "--policy", str(path), "--check"], capture_output=True, text=True, timeout=30)
    return done.returncode, done.stderr.replace(str(path), "policy.yaml")


@pytest.mark.parametrize("section, place, words", [
    ("  secrtes: {action: block}\n", "6:", ["secrtes", "did you mean", "secrets"]),
    ("  secrets: {action: blok}\n", "6:21", ["block"]),
    ("  secrets: {of: []}\n", "6:", ["did you mean", "off"]),
    ("  secrets:\n    extra: [{id: a, pattern: 'x('}]\n", "7:30", ["pattern"]),
    ("  secrets:\n    extra: [{id: a, pattern: 'x.*'}]\n", "7:30", ["pattern"]),
    ("  secrets:\n    extra: [{id: github-pat, pattern: 'abcdefgh'}]\n", "7:13", ["github-pat"]),
    ("  secrets:\n    extra: [{id: a, pattern: 'abcdefgh', allow: [mirro]}]\n", "7:50", ["no rule", "mirro"]),
    ("  secrets:\n    allow: {mirro: [github-pat]}\n", "7:", ["no rule", "mirro"]),
    ("  secrets:\n    allow: {mirror: [github-pta]}\n", "7:22", ["github-pta", "did you mean", "github-pat"]),
    ("  secrets:\n    off: [github-pta]\n", "7:11", ["github-pta", "did you mean", "github-pat"]),
    ("  secrets:\n    off: []\n", "7:", []),
    ("  secrets:\n    extra: [{id: a, pattern: 'A'}]\n", "7:30", ["at least 8 bytes", "1"]),
    ("  secrets:\n    extra: [{id: a, pattern: 'corp-[0-9]?[0-9][0-9]'}]\n", "7:30", ["at least 8 bytes", "7"]),
    ("  secrets:\n    extra: [{id: a, pattern: abcdefgh, allow: [no]}]\n", "7:48", ["\"no\" is a deny rule"]),
    ("  secrets:\n    extra: [{id: a, pattern: abcdefgh, allow: [ssh]}]\n", "7:48", ["\"ssh\" is a tunnel"]),
    ("  secrets:\n    allow: {no: [github-pat]}\n", "7:13", ["\"no\" is a deny rule"]),
    ("  secrets:\n    allow: {ssh: [github-pat]}\n", "7:13", ["\"ssh\" is a tunnel"]),
    ("  external: {command: [/no/such]}\n", "6:24", ["/no/such", "No such file"]),
    ("  external: {command: [missing.py, x]}\n", "6:24", ["missing.py", "No such file"]),
    ("  external: {command: [policy.yaml]}\n", "6:24", ["policy.yaml", "Permission denied"]),
    ("  external: {command: [/usr/bin]}\n", "6:24", ["/usr/bin", "not a file"]),
    ("  external: {socket: policy.yaml}\n", "6:22", ["policy.yaml", "not a socket"]),
    ("  external: {socket: none/x.sock}\n", "6:22", ["none/x.sock", "No such file"]),
    ("  external: {socket: /usr/}\n", "6:22", ["/usr/", "not a socket"]),
    ("  canary: {strings: [short]}\n", "6:22", ["8 to 128 bytes"]),
    ("  canary: {}\n", "6:", ["strings"]),
    ("  entropy: {threshold: high}\n", "6:24", []),
    ("  name: {label_length: 64}\n", "6:24", []),
    ("  rate: {burst: 5}\n", "6:", ["burst"]),
    ("  secrets: 5\n", "6:", []),
    ("  - secrets\n", "", ["mapping"]),
])
def test_errors_say_where(tmp_path, section, place, words):
    code, said = check(tmp_path, section)
    assert code == 2, said
    line = next((x for x in said.splitlines() if "policy.yaml:" in x), "")
    assert "policy.yaml:" + place in line, said
    for word in words:
        assert word in line, said


def test_all_errors_at_once(tmp_path):
    code, said = check(tmp_path, "  secrtes: {action: block}\n  entropy: {action: blok}\n  secrets: {off: [nothing-such]}\n")
    assert code == 2
    assert [x for x in ("policy.yaml:6:", "policy.yaml:7:", "policy.yaml:8:") if x not in said] == [], said


def test_all_errors_of_one_inspector_at_once(tmp_path):
    code, said = check(tmp_path, """\
  secrets:
    action: blok
    extra: [{id: a, pattern: 'x('}, {pattern: abcdefgh, allow: [mirro]}, 5]
    off: [nothing-such]
    allow: {mirror: [github-pta, a], no: [jwt]}
    alow: {}
  canary: {action: blok, strings: [short]}
  external: {action: flog, command: [/no/such], socket: none/x.sock, timeout: 5}
""")
    assert code == 2
    told = [x for x in said.splitlines() if x.startswith("policy.yaml:")]
    places = [x.split(": ")[0] for x in told]
    assert places == ["policy.yaml:" + at for at in (
        "7:13", "8:30", "8:37", "8:65", "8:74", "9:11", "10:22", "10:38", "11:5", "12:20", "12:36", "13:13", "13:22", "13:38",
        "13:57", "13:79")], said


def test_what_is_missing_is_told_once(tmp_path):
    """Of a key that is wrong nobody says that it is not there."""
    for section, place in (("  canary: {strings: [short]}\n", "6:22"), ("  external: {command: [/no/such]}\n", "6:24")):
        code, said = check(tmp_path, section)
        assert code == 2
        assert [x.split(": ")[0] for x in said.splitlines()] == ["policy.yaml:" + place], said


def test_a_good_program_and_a_socket_to_come_pass_the_check(tmp_path):
    (tmp_path / "run.sh").write_text("#!/bin/sh\n")
    (tmp_path / "run.sh").chmod(0o755)
    for section in ("  external: {command: [run.sh]}\n", "  external: {socket: x.sock}\n"):
        code, said = check(tmp_path, section)
        assert code == 0, said


def test_a_wrong_section_at_reload_keeps_the_last_good_one(start, origin):
    cage = start({"secrets": {"action": "block"}})
    wrong = policy({"id": "content", "hosts": [HOST]}, inspectors={"secrets": {"off": ["no-such"]}})
    cage.reload(wrong, reason="policy.rejected")
    stopped(cage, origin, post(NOTE), SECRET, id=FORMAT)


# ---- the client is told why

@pytest.mark.parametrize("name, days, words", [
    ("bad.test", -1, "certificate has expired"), ("other.test", 30, "hostname mismatch"), (None, 30, "self-signed certificate")],
    ids=["expired", "other_name", "self_signed"])
def test_why_a_server_can_not_be_verified(start_cage, pki, name, days, words):
    leaf = pki.leaf(name, days=days) if name else pki.self_signed("bad.test")
    with RawOrigin(leaf=leaf) as bad:
        cage = start_cage(policy({"id": "bad", "hosts": ["bad.test"]}, pins={"bad.test": bad.pin}, trust=[pki.ca_pem]))
        told = upstream_failed(cage.fetch("GET", "https://bad.test/"), "upstream.unverified")
        assert told["message"] == "The server's certificate can't be verified: %s." % words


def test_why_an_address_can_not_be_verified(start_cage, pki):
    with RawOrigin(leaf=pki.leaf("a.test")) as bad:
        rule = {"id": "local", "hosts": ["127.0.0.1"], "ports": [bad.port], "addresses": ["127.0.0.0/8"]}
        cage = start_cage(policy(rule, trust=[pki.ca_pem]))
        told = upstream_failed(cage.fetch("GET", "https://127.0.0.1:%d/" % bad.port), "upstream.unverified")
        assert told["message"] == "The server's certificate can't be verified: IP address mismatch."


def test_why_a_ca_is_no_server(start_cage, pki):
    with RawOrigin(leaf=pki.leaf("bad.test", is_ca=True)) as bad:
        cage = start_cage(policy({"id": "bad", "hosts": ["bad.test"]}, pins={"bad.test": bad.pin}, trust=[pki.ca_pem]))
        told = upstream_failed(cage.fetch("GET", "https://bad.test/"), "upstream.unverified")
        assert told["message"] == "The server's certificate can't be verified: it is that of a CA (CA:TRUE), not of a server."


def test_a_server_without_tls(start_cage):
    with socket.create_server(("127.0.0.1", 0)) as plain:
        def serve():
            conn, _ = plain.accept()
            conn.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            while conn.recv(4096):
                pass

        threading.Thread(target=serve, daemon=True).start()
        pin = "127.0.0.1:%d" % plain.getsockname()[1]
        cage = start_cage(policy({"id": "bad", "hosts": ["bad.test"]}, pins={"bad.test": pin}))
        told = upstream_failed(cage.fetch("GET", "https://bad.test/"), "upstream.unverified")
        assert told["message"] == "The server's certificate can't be verified: the TLS handshake failed."


def test_t07_nobody_is_sent_to_ask_for_a_metadata_address(start_cage):
    cage = start_cage(policy({"id": "careless", "hosts": ["169.254.169.254"], "ports": [80]}))
    told = refused(cage.fetch("GET", "http://169.254.169.254/latest/meta-data/"), "address.private")
    assert "metadata addresses can't be listed" in told["hint"]


# ---- the log shows no secret, whoever refuses

@pytest.mark.parametrize("method, target", [
    ("GET", "/no/" + SECRET),
    ("GET", "/no?%s=1" % SECRET),
    (KEY_ID, "/no"),
])
def test_t34_what_is_refused_before_inspection_is_not_shown(start_cage, pki, method, target):
    with RawOrigin(leaf=pki.leaf("paths.test")) as origin:
        cage = start_cage(policy({"id": "ok", "hosts": ["paths.test"], "methods": ["GET"], "paths": ["/ok/**"]},
                                 pins={"paths.test": origin.pin}, trust=[pki.ca_pem]))
        answer = cage.fetch(method, "https://paths.test" + target)
        assert answer.status == 403 and answer.header("x-cage-reason") in ("path.not_allowed", "method.not_allowed")
        line = cage.log.of(answer, event="request")
        assert line["decision"] == "block"
        text = "\n".join(str(raw) for raw in cage.log.raw_lines())
        assert SECRET not in text and KEY_ID not in text
        assert not origin.requests
