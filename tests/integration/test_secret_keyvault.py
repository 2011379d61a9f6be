"""Secrets that cage-proxy reads from Azure Key Vault itself, with the identity of its machine (THREATS T33, T34). Both are stand-ins
here, at names that the policy pins."""
import json
import os
import re
import signal
import socket
import subprocess
import time

import pytest
from cagelib.cage_run import Room
from cagelib.checks import logged_block, refused
from cagelib.dns import Dns
from cagelib.keyvault import Identity, Vault, error, json_answer
from cagelib.log import validate
from cagelib.proxy import Stderr, binary, child_named, children_of, is_alive, policy, small_binary, wait_until
from cagelib.raw import RawOrigin, serving
from cagelib.wire import Wire, response_bytes

HOST, VAULT, AUTHORITY = "api.test", "kv.vault.azure.net", "login.test"
VALUE, OTHER = "kv-value-0123456789abcdef", "kv-other-fedcba9876543210"
VERSION = "0123456789abcdef0123456789abcdef"
PLACEHOLDER = "{{VAULT_KEY}}"


@pytest.fixture(scope="module")
def leaf(pki):
    return pki.leaf(HOST, VAULT, AUTHORITY, "own.test")


@pytest.fixture
def identity():
    with Identity() as running:
        yield running


@pytest.fixture
def vault(leaf, identity):
    with Vault(leaf, identity, key=VALUE) as running:
        yield running


@pytest.fixture
def api(leaf):
    with RawOrigin(serving(lambda _: response_bytes(200, running.says)), leaf=leaf) as running:
        running.says = b"ok\n"
        yield running


@pytest.fixture
def plain():
    with RawOrigin() as running:
        yield running


@pytest.fixture
def rules(pki, api, vault):
    """Makes a policy with one secret from there."""

    def make(url="https://%s/secrets/key" % VAULT, pins=None, trust=None, **more):
        pins = {HOST: api.pin, VAULT: vault.origin.pin, **(pins or {})}
        secret = {"id": "k", "from": {"keyvault": url}, "placeholder": PLACEHOLDER, **more}
        return policy({"id": "r", "hosts": [HOST], "secrets": ["k"]}, pins=pins, trust=trust or [pki.ca_pem], secrets=[secret])

    return make


@pytest.fixture
def cage(start_cage, rules, identity):
    return start_cage(rules(), program=small_binary(), env=identity.env())


def fetch(cage):
    return cage.fetch("GET", "https://%s/" % HOST, [("x-api-key", PLACEHOLDER)])


def arrives(cage, api, value):
    assert fetch(cage).status == 200
    assert api.requests[-1].header("x-api-key") == value


def ends(tmp_path, rules, identity, env=None, code=1):
    """What it says when it does not get ready, and ends with that code within its time."""
    path = tmp_path / "policy.yaml"
    path.write_text(json.dumps(rules))
    log = tmp_path / "log.jsonl"
    done = subprocess.run([small_binary(), "--policy", str(path), "--ca-dir", str(tmp_path / "ca"), "--listen", "127.0.0.1:0", "--admin", "off",
                           "--log", str(log)], capture_output=True, text=True, timeout=30, env={**os.environ, **identity.env(), **(env or {})})
    assert done.returncode == code, done
    assert "ready" not in done.stderr
    for value in (VALUE, *identity.tokens):
        assert value not in done.stderr
        assert not log.exists() or value not in log.read_text()
    return done.stderr


# ---- reading

def test_t33_a_value_is_put_in(cage, api, vault, identity):
    arrives(cage, api, VALUE)
    ask = identity.requests[0]
    assert ask.method == "GET" and ask.header("metadata") == "true" and not ask.header("authorization")
    assert ask.target == "/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fvault.azure.net"
    assert vault.requests[0].target == "/secrets/key?api-version=7.4"
    assert vault.requests[0].header("host") == VAULT
    (line, *_) = cage.log.find(event="secret")
    assert (line["decision"], line["host"], line["path"], line["status"]) == ("allow", VAULT, "/secrets/key", 200)


def test_a_version_and_a_client_id(start_cage, rules, api, vault, identity):
    vault.values["key/" + VERSION] = OTHER
    cage = start_cage(rules("https://KV.vault.azure.net:443/secrets/key/" + VERSION), env={**identity.env(), "AZURE_CLIENT_ID": "who am i"})
    arrives(cage, api, OTHER)
    assert identity.requests[0].target.endswith("&client_id=who%20am%20i")


def test_a_host_that_is_pinned_may_be_any(start_cage, rules, api, vault, identity):
    cage = start_cage(rules("https://own.test/secrets/key", pins={"own.test": vault.origin.pin}), env=identity.env())
    arrives(cage, api, VALUE)


def test_a_workload_identity(start_cage, rules, api, vault, leaf, identity, tmp_path):
    (tmp_path / "assertion").write_text("a.signed/assertion\n")
    with Identity(leaf) as authority:
        vault.identity = authority
        cage = start_cage(rules(pins={AUTHORITY: authority.origin.pin}),
                          env={"AZURE_FEDERATED_TOKEN_FILE": str(tmp_path / "assertion"), "AZURE_TENANT_ID": "t-1", "AZURE_CLIENT_ID": "c-1",
                               "AZURE_AUTHORITY_HOST": "https://%s/" % AUTHORITY})
        arrives(cage, api, VALUE)
        ask = authority.requests[0]
        assert (ask.method, ask.target) == ("POST", "/t-1/oauth2/v2.0/token")
        assert ask.body == (b"grant_type=client_credentials&client_id=c-1&scope=https%3A%2F%2Fvault.azure.net%2F.default&client_assertion_type="
                            b"urn%3Aietf%3Aparams%3Aoauth%3Aclient-assertion-type%3Ajwt-bearer&client_assertion=a.signed%2Fassertion")
        assert not identity.requests


def test_it_is_ready_when_all_are_read(start_cage, rules, vault, identity):
    vault.answer = lambda _: error(503, "Busy") if len(vault.requests) < 4 else None
    cage = start_cage(rules(), program=small_binary(), env=identity.env())
    said = cage.stderr.text().splitlines()
    first = next(i for i, x in enumerate(said) if "can't be read: the vault answered with status 503; trying again" in x)
    again = next(i for i, x in enumerate(said) if "can be read again" in x)
    ready = next(i for i, x in enumerate(said) if "cage-proxy: ready" in x)
    assert first < again < ready
    assert len(cage.log.find(event="secret", decision="error", reason="secret.unavailable", status=503)) == 3


class Starting:
    """A proxy that is not ready yet."""

    def __init__(self, directory, rules, env, program):
        (directory / "policy.yaml").write_text(json.dumps(rules))
        self.log = directory / "log.jsonl"
        self.process = subprocess.Popen([program, "--policy", str(directory / "policy.yaml"), "--ca-dir", str(directory / "ca"), "--log", str(self.log),
                                         "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"], stderr=subprocess.PIPE, env={**os.environ, **env})
        self.stderr = Stderr(self.process.stderr)

    def ask(self, listener, target, *fields):
        port = int(self.stderr.wait(listener + r" on 127\.0\.0\.1:(\d+)", 10).group(1))
        with Wire(socket.create_connection(("127.0.0.1", port), 10)) as wire:
            return wire.exchange("GET", target, [("Host", HOST), ("Connection", "close"), *fields])

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(20)
        self.process.stderr.close()
        return code


def test_nothing_is_served_before_it_is_read(tmp_path, pki, vault, identity, plain):
    """It listens and is alive, but not ready, and what needs the secret is refused."""
    vault.go_on.clear()
    rules = policy({"id": "r", "hosts": [HOST], "ports": [80], "plaintext": True, "secrets": ["k"]}, pins={HOST: plain.pin, VAULT: vault.origin.pin},
                   trust=[pki.ca_pem], secrets=[{"id": "k", "from": {"keyvault": "https://%s/secrets/key" % VAULT}, "placeholder": PLACEHOLDER}])
    starting = Starting(tmp_path, rules, identity.env(), binary())
    try:
        wait_until(lambda: vault.requests, 20, "the vault is not asked")
        assert starting.ask("admin", "/healthz").status == 200
        assert starting.ask("admin", "/readyz").status == 503
        refused(starting.ask("listening", "http://%s/" % HOST, ("x-api-key", PLACEHOLDER)), "secret.unavailable", 503)
        assert "ready" not in starting.stderr.text()
        vault.go_on.set()
        starting.stderr.wait("ready", 10)
        assert starting.ask("admin", "/readyz").status == 200
        assert not plain.requests
        assert starting.ask("listening", "http://%s/" % HOST, ("x-api-key", PLACEHOLDER)).status == 200
        assert plain.requests[0].header("x-api-key") == VALUE
    finally:
        assert starting.stop() == 0, starting.stderr.text()
    validate(starting.log.read_bytes().splitlines())


# ---- changes

def test_a_new_value_is_picked_up(cage, api, vault, identity):
    arrives(cage, api, VALUE)
    vault.values["key"] = OTHER
    cage.stderr.wait(r"secret k: https://kv\.vault\.azure\.net/secrets/key has a new value", 10)
    arrives(cage, api, OTHER)
    # The old one is known still, and taken out of responses.
    api.says = (VALUE + OTHER).encode()
    assert fetch(cage).body == (PLACEHOLDER * 2).encode()
    assert len(identity.tokens) >= 2  # each round has its own


def test_sighup_reads_again_at_once(start_cage, rules, api, vault, identity):
    cage = start_cage(rules(), env=identity.env())  # with its real times: minutes
    vault.values["key"] = OTHER
    cage.reload(rules())
    cage.stderr.wait("has a new value", 10)
    arrives(cage, api, OTHER)
    vault.values["more"] = VALUE
    cage.reload(rules("https://%s/secrets/more" % VAULT))
    wait_until(lambda: cage.log.find(event="secret", path="/secrets/more"), 10, "the new secret was not read")
    arrives(cage, api, VALUE)


def test_a_policy_with_a_secret_that_can_not_be_read(cage, rules, api):
    cage.reload(rules("https://%s/secrets/absent" % VAULT))
    cage.stderr.wait(r"secret k: \S+/absent can't be read: the vault answered with status 404 \(SecretNotFound\); "
                     r"is there a secret of that name\?; requests that need it are refused", 10)
    refused(fetch(cage), "secret.unavailable", 503)
    assert not api.requests


TROUBLE = {
    "401": (error(401, "Unauthorized"), r"the vault answered with status 401 \(Unauthorized\)"),
    "403": (json_answer(403, {"error": {"code": "Forbidden", "innererror": {"code": "ForbiddenByRbac"}}}),
            r"the vault answered with status 403 \(ForbiddenByRbac\); does the identity have the role Key Vault Secrets User"),
    "404": (error(404, "SecretNotFound"), r"the vault answered with status 404 \(SecretNotFound\)"),
    "500": (error(500, VALUE), r"the vault answered with status 500"),
    "redirect": (response_bytes(302, b"", [("Location", "https://%s/secrets/key" % HOST)]), r"status 302; redirects are not followed"),
    "no JSON": (response_bytes(200, b"<html>"), r"the vault's answer is not JSON with a value in it"),
    "no object": (response_bytes(200, b'["value"]'), r"the vault's answer is not JSON with a value in it"),
    "no text": (json_answer(200, {"value": 12345678}), r"the vault's answer is not JSON with a value in it"),
    "a NUL": (response_bytes(200, b'{"value": "abc\\u0000defghi"}'), r"the vault's answer is not JSON with a value in it"),
    "no value": (json_answer(200, {"value": ""}), r"its value is empty"),
    "short": (json_answer(200, {"value": "1234567"}), r"its value is shorter than 8 bytes"),
    "lines": (json_answer(200, {"value": "two\r\nlines-of-it"}), r"its value holds a line break"),
    "a placeholder": (json_answer(200, {"value": "x" + PLACEHOLDER}), r"its value contains a placeholder"),
    "long": (json_answer(200, {"value": "x" * 16385}), r"its value is too long"),
    "too much": (json_answer(200, {"value": VALUE, "tags": "x" * (128 << 10)}), r"the vault answered with more than is read of it"),
    "no HTTP": (b"SSH-2.0-what\r\n\r\n", r"the vault answered with what is not HTTP"),
    "cut": (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\nConnection: close\r\n\r\n{", r"the vault (ended before its answer did|did not answer in time)"),
}


@pytest.mark.parametrize("name", TROUBLE)
def test_trouble_later_keeps_the_value(cage, api, vault, name):
    answer, said = TROUBLE[name]
    vault.answer = answer
    cage.stderr.wait(r"secret k: https://kv\.vault\.azure\.net/secrets/key can't be read: .*%s.*; the last value stays in use" % said, 15)
    wait_until(lambda: cage.metric("cage_keyvault_failing") == 1, 5, "the metrics don't say so")
    assert cage.metric("cage_keyvault_reads_total", result="failed") >= 1
    arrives(cage, api, VALUE)
    assert cage.admin("/readyz").status == 200
    vault.answer = None
    cage.stderr.wait("can be read again", 10)
    wait_until(lambda: cage.metric("cage_keyvault_failing") == 0, 5, "the metrics don't say so")


@pytest.mark.parametrize("name", [n for n in TROUBLE if n not in ("500", "cut")])
def test_trouble_at_the_start_ends_it(tmp_path, rules, vault, identity, name):
    answer, said = TROUBLE[name]
    vault.answer = answer
    out = ends(tmp_path, rules(), identity)
    assert re.search(said + r".*; cage-proxy does not start without it", out), out
    assert "nothing is served without it" in out
    assert len(vault.requests) == 1


def test_trouble_at_the_start_that_may_pass_is_waited_for(tmp_path, rules, vault, identity):
    vault.answer = error(503, "Busy")
    out = ends(tmp_path, rules(), identity)
    assert "status 503; trying again" in out and "nothing is served without it" in out
    assert 5 <= len(vault.requests) <= 30


def test_a_vault_that_does_not_answer(tmp_path, rules, vault, identity):
    vault.go_on.clear()
    out = ends(tmp_path, rules(), identity)
    assert "the vault did not answer in time; trying again" in out


# ---- throttling

def test_retry_after_is_respected(cage, vault):
    """Two seconds, though the next try would come after a tenth of one, and the next round after one."""
    times = []
    busy = error(429, "Throttled", ("Retry-After", "2"))

    def answer(request):
        del request
        times.append(time.monotonic())
        return busy if len(times) == 1 else None

    vault.answer = answer
    cage.stderr.wait(r"status 429 \(Throttled\)", 10)
    cage.stderr.wait("can be read again", 15)
    assert times[1] - times[0] >= 1.9


def test_retry_after_beyond_the_start_ends_it(tmp_path, rules, vault, identity):
    vault.answer = error(429, "Throttled", ("Retry-After", "600"))
    assert "status 429 (Throttled); trying again" in ends(tmp_path, rules(), identity)
    assert len(vault.requests) == 1


# ---- the token

@pytest.mark.parametrize("answer, said", [
    (json_answer(400, {"error": "invalid_request", "error_description": "Identity not found"}),
     "there is no token: the identity service answered with status 400 (invalid_request); is there a managed identity"),
    (response_bytes(200, b"what"), "the token service's answer is not a JSON object"),
    (json_answer(200, {"expires_in": "100"}), "the token service's answer has no token that can be used"),
    (json_answer(200, {"access_token": "with blanks and\r\n lines", "expires_in": "1"}), "the token service's answer has no token that can be used"),
    (response_bytes(307, b"", [("Location", "http://127.0.0.1:1/")]), "status 307; redirects are not followed"),
])
def test_no_token_at_the_start(tmp_path, rules, vault, identity, answer, said):
    identity.answer = answer
    assert said in ends(tmp_path, rules(), identity)
    assert not vault.requests


def test_an_identity_service_that_has_just_been_started(start_cage, rules, api, identity):
    identity.answer = lambda _: error(404, "x") if len(identity.requests) < 3 else None
    cage = start_cage(rules(), program=small_binary(), env=identity.env())
    assert "there is no token: the identity service answered with status 404; trying again" in cage.stderr.text()
    arrives(cage, api, VALUE)


def test_no_token_later(cage, api, vault, identity):
    identity.answer = error(500, "x")
    cage.stderr.wait("there is no token: the identity service answered with status 500; the last value stays in use", 10)
    arrives(cage, api, VALUE)
    identity.answer = None
    cage.stderr.wait("can be read again", 10)
    assert vault.requests[-1].header("authorization") == "Bearer " + identity.tokens[-1]


@pytest.mark.parametrize("base", ["http://192.0.2.1:80", "https://127.0.0.1:1", "http://localhost:1", "http://127.0.0.1:1/x", "http://u@127.0.0.1", "what"])
def test_t33_a_token_is_asked_for_on_this_link_only(tmp_path, rules, identity, base):
    out = ends(tmp_path, rules(), identity, env={"AZURE_POD_IDENTITY_AUTHORITY_HOST": base})
    assert "AZURE_POD_IDENTITY_AUTHORITY_HOST is not http://ADDRESS[:PORT]" in out


@pytest.mark.parametrize("env, said", [
    ({}, "also AZURE_TENANT_ID and AZURE_CLIENT_ID have to be set"),
    ({"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c"}, "the file that AZURE_FEDERATED_TOKEN_FILE names can't be read"),
    ({"AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c", "AZURE_AUTHORITY_HOST": "http://127.0.0.1"}, "AZURE_AUTHORITY_HOST is not https://NAME"),
])
def test_a_workload_identity_that_is_not_whole(tmp_path, rules, identity, env, said):
    assert said in ends(tmp_path, rules(), identity, env={"AZURE_FEDERATED_TOKEN_FILE": str(tmp_path / "none"), **env})


# ---- who is the vault

def test_t33_a_wrong_name_gets_no_token(tmp_path, rules, pki, identity):
    with Vault(pki.leaf("other.test"), identity, key=VALUE) as wrong:
        assert "the vault showed a certificate that is not to be trusted" in ends(tmp_path, rules(pins={VAULT: wrong.origin.pin}), identity)
        assert not wrong.requests


def test_t33_a_certificate_of_nobody_gets_no_token(tmp_path, rules, pki, identity):
    with Vault(pki.self_signed(VAULT), identity, key=VALUE) as wrong:
        assert "the vault showed a certificate that is not to be trusted" in ends(tmp_path, rules(pins={VAULT: wrong.origin.pin}), identity)
        assert not wrong.requests


def resolved(pki, api, dns):
    return policy({"id": "r", "hosts": [HOST], "secrets": ["k"]}, pins={HOST: api.pin}, trust=[pki.ca_pem], upstream={"resolvers": [dns.address]},
                  secrets=[{"id": "k", "from": {"keyvault": "https://%s/secrets/key" % VAULT}, "placeholder": PLACEHOLDER}])


def test_a_name_is_resolved_as_the_policy_says(start_cage, pki, api, leaf, identity):
    """To an address that no request of an agent would be sent to: that of a private endpoint."""
    try:
        near = Vault(leaf, identity, at=("127.0.0.77", 443), key=VALUE)
    except PermissionError:
        pytest.skip("NOT TESTED, port 443 can't be had")
    with near, Dns({VAULT: ["127.0.0.77"]}) as dns:
        cage = start_cage(resolved(pki, api, dns), env=identity.env())
        arrives(cage, api, VALUE)
        assert set(dns.asked) == {VAULT}


@pytest.mark.parametrize("answers, said", [({}, "the vault can't be found: its name has no address; trying again"),
                                           ({VAULT: ["169.254.169.254"]}, "the vault has an address that nobody is asked at"),
                                           ({VAULT: ["127.0.0.78"]}, "the vault can't be reached; trying again")])
def test_a_name_that_leads_nowhere(tmp_path, pki, api, identity, answers, said):
    with Dns(answers) as dns:
        assert said in ends(tmp_path, resolved(pki, api, dns), identity)


def test_trust_is_that_of_the_policy(tmp_path, rules, vault, identity):
    assert "the vault showed a certificate that is not to be trusted" in ends(tmp_path, rules(trust=["system"]), identity)
    assert not vault.requests


@pytest.mark.parametrize("url, said", [
    ("http://kv.vault.azure.net/secrets/key", "the scheme is not https"),
    ("https://kv.vault.azure.net:444/secrets/key", "the port is not 443"),
    ("https://kv.vault.azure.net/keys/key", "the path is not /secrets/NAME or /secrets/NAME/VERSION"),
    ("https://kv.vault.azure.net/secrets/key?x", "it has a query"),
    ("https://evil.test/secrets/key", "is not a vault of Azure"),
])
@pytest.mark.parametrize("args", [(), ("--check",), ("--print-env",)])
def test_an_address_that_is_not_good(tmp_path, url, said, args):
    path = tmp_path / "policy.yaml"
    path.write_text("version: 1\nname: t\nrules: [{id: r, hosts: [a.test], secrets: [k]}]\nsecrets:\n  - {id: k, from: {keyvault: '%s'}}\n" % url)
    done = subprocess.run([binary(), "--policy", str(path), "--ca-dir", str(tmp_path / "ca"), "--listen", "127.0.0.1:0", "--admin", "off", *args],
                          capture_output=True, text=True, timeout=30)
    assert done.returncode == 2, done
    assert "policy.yaml:5:30: secrets[0].from.keyvault: " in done.stderr and said in done.stderr


def test_check_and_print_env_ask_nobody(tmp_path, rules, vault, identity):
    path = tmp_path / "policy.yaml"
    path.write_text(json.dumps(rules()))
    run = [binary(), "--policy", str(path), "--ca-dir", str(tmp_path / "ca")]
    checked = subprocess.run([*run, "--check"], capture_output=True, text=True, timeout=30, env={**os.environ, **identity.env()})
    assert checked.returncode == 0, checked
    assert "secret k: https://kv.vault.azure.net/secrets/key was not read" in checked.stdout
    printed = subprocess.run([*run, "--print-env"], capture_output=True, text=True, timeout=30, env={**os.environ, **identity.env()})
    assert (printed.returncode, printed.stdout) == (0, "K=%s\n" % PLACEHOLDER), printed
    assert not vault.requests and not identity.requests


# ---- who else

def read_proc(pid, name):
    """Nothing of one that has just ended: a reader lasts for one round."""
    try:
        with open("/proc/%d/%s" % (pid, name), "rb") as f:
            return f.read()
    except (FileNotFoundError, ProcessLookupError):
        return b""


def links(pid):
    """What its descriptors are, but for the first three."""
    return {x for x in (os.readlink("/proc/%d/fd/%s" % (pid, fd)) for fd in os.listdir("/proc/%d/fd" % pid) if int(fd) > 2) if not x.startswith("anon_inode")}


def test_t34_nothing_shows_the_value_or_the_token(cage, api, vault, identity):
    arrives(cage, api, VALUE)
    vault.values["key"] = OTHER
    cage.stderr.wait("has a new value", 10)
    vault.answer = error(500, "x")
    cage.stderr.wait("can't be read", 10)
    shown = [cage.stderr.text().encode(), cage.admin("/metrics").body, open(cage.log.path, "rb").read()]
    for pid in [cage.pid, *cage.children]:
        shown += [read_proc(pid, "environ"), read_proc(pid, "cmdline")]
    for secret in (VALUE, OTHER, *identity.tokens):
        assert not any(secret.encode() in x for x in shown)


def test_t34_the_reader_has_nothing_of_the_others(cage, vault, identity):
    """While it waits for the vault: no value, no keys, no log, no descriptor but its pipe; and it ends with the master."""
    vault.go_on.clear()
    seen = len(vault.requests)
    wait_until(lambda: len(vault.requests) > seen, 10, "no second round")
    reader = child_named(cage, "cage-keyvault")
    maps = read_proc(reader, "maps").decode()
    assert "cage-vault" not in maps
    assert [x.split(":")[0] for x in links(reader) & links(cage.pid)] == ["pipe"]
    assert not any(x.startswith("/") for x in links(reader))
    assert not any(t.encode() in read_proc(reader, "environ") + read_proc(reader, "cmdline") for t in (VALUE, *identity.tokens))
    cage.children = [*cage.children, reader]


def test_a_reader_that_dies_is_another_failure(cage, api, vault):
    vault.go_on.clear()
    seen = len(vault.requests)
    wait_until(lambda: len(vault.requests) > seen, 10, "no second round")
    os.kill(child_named(cage, "cage-keyvault"), signal.SIGKILL)
    cage.stderr.wait("the process that asks for it has ended early; the last value stays in use", 10)
    vault.go_on.set()
    cage.stderr.wait("can be read again", 10)
    arrives(cage, api, VALUE)


def readers(cage):
    out = []
    for pid in children_of(cage.pid):
        try:
            out += [pid] if is_alive(pid) and read_proc(pid, "comm") == b"cage-keyvault\n" else []
        except OSError:
            pass  # it has ended meanwhile
    return out


def test_a_reload_while_the_vault_is_slow(start_cage, rules, api, vault, identity):
    """Each begins anew: nobody is left who asks for the policy before."""
    cage = start_cage(rules(), env=identity.env())
    vault.go_on.clear()
    for _ in range(10):
        asked = len(vault.requests)
        cage.reload(rules())
        wait_until(lambda before=asked: len(vault.requests) > before, 10, "the vault is not asked")
        wait_until(lambda: len(readers(cage)) == 1, 5, "more than one reader")
    vault.values["key"] = OTHER
    vault.go_on.set()
    cage.stderr.wait("has a new value", 10)
    arrives(cage, api, OTHER)
    assert "can't be read" not in cage.stderr.text()
    wait_until(lambda: not readers(cage), 5, "a reader is left")


def test_t33_the_agent_reaches_neither(cage, vault, identity):
    seen = len(identity.requests)
    for url in ("http://169.254.169.254/metadata/identity/oauth2/token?api-version=2018-02-01&resource=https%3A%2F%2Fvault.azure.net",
                "http://%s/metadata/identity/oauth2/token" % identity.origin.pin):
        refused(cage.fetch("GET", url, [("Metadata", "true")]), {"host.not_allowed", "address.private"})
    answer = cage.fetch("GET", "https://%s/secrets/key?api-version=7.4" % VAULT)
    refused(answer, "host.not_allowed", host=VAULT)
    logged_block(cage, answer, reason="host.not_allowed")
    assert all(r.header("metadata") == "true" and "resource=" in r.target for r in identity.requests[seen:])
    assert all(r.target == "/secrets/key?api-version=7.4" for r in vault.requests)


def test_an_end_during_the_start(tmp_path, rules, vault, identity):
    """SIGTERM, while it waits for its first value: in good order."""
    vault.answer = error(503, "Busy")
    starting = Starting(tmp_path, rules(), identity.env(), binary())
    wait_until(lambda: len(vault.requests) >= 2, 15, "it does not try again")
    children = children_of(starting.process.pid)
    assert starting.stop() == 0, starting.stderr.text()
    wait_until(lambda: not any(is_alive(p) for p in children), 10, "children outlive the master")
    validate(starting.log.read_bytes().splitlines())


def test_many_secrets_of_one_vault(start_cage, pki, api, vault, identity):
    """Sixty-four of them: one token a round, one request for each source, two of which are the same."""
    names = ["k%d" % i for i in range(64)]
    vault.values.update({"s%d" % i: "value-of-%03d-of-many" % i for i in range(63)})
    secrets = [{"id": n, "from": {"keyvault": "https://%s/secrets/s%d" % (VAULT, min(i, 62))}, "placeholder": "{{KEY_%03d}}" % i} for i, n in enumerate(names)]
    cage = start_cage(policy({"id": "r", "hosts": [HOST], "secrets": names}, pins={HOST: api.pin, VAULT: vault.origin.pin}, trust=[pki.ca_pem],
                             secrets=secrets), env=identity.env())
    assert len(identity.tokens) == 1 and len(vault.requests) == 63
    for i in (0, 62, 63):
        assert cage.fetch("GET", "https://%s/" % HOST, [("x-api-key", "{{KEY_%03d}}" % i)]).status == 200
        assert api.requests[-1].header("x-api-key") == "value-of-%03d-of-many" % min(i, 62)


# ---- cage run

@pytest.fixture
def room(tmp_path, rules):
    if subprocess.run([binary("cage-gate"), "--probe"], capture_output=True, timeout=20).returncode != 0:
        pytest.skip("NOT TESTED, nothing can be locked in here")
    made = Room(tmp_path, rules())
    yield made
    made.check_logs()


def test_t34_the_agent_of_cage_run_has_the_placeholder(room, api, identity):
    done = room.sh("env; cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n'; curl -sS -H \"x-api-key: $K\" https://%s/" % HOST,
                   env={**identity.env(), "AZURE_CLIENT_ID": "client-1"})
    assert done.returncode == 0, done.stderr
    assert "K=%s\n" % PLACEHOLDER in done.stdout and "AZURE_" not in done.stdout
    assert api.requests[0].header("x-api-key") == VALUE
    assert identity.requests[0].target.endswith("&client_id=client-1")
    for secret in (VALUE, *identity.tokens):
        assert secret not in done.stdout + done.stderr


def test_t33_the_agent_of_cage_run_reaches_no_identity(room, identity):
    ask = "curl -sS -m 5 -o /dev/null -w '%%{http_code}\\n' -H Metadata:true %s http://%s/metadata/identity/oauth2/token; "
    near, far = identity.origin.pin, "169.254.169.254"
    done = room.sh("".join(ask % x for x in (("--noproxy '*'", near), ("--noproxy '*'", far), ("", near), ("", far))) + "true", env=identity.env())
    assert len(done.stdout.split()) == 4 and set(done.stdout.split()) <= {"000", "403"}, done
    assert all(t not in done.stdout for t in identity.tokens)
    assert all("resource=" in r.target for r in identity.requests)


def test_cage_run_takes_no_other_value_for_it(room, identity):
    done = room.sh("echo ran", options=["--secret", "k=env:MINE"], env={**identity.env(), "MINE": OTHER})
    assert (done.returncode, done.stdout) == (2, "") and "--secret k: the policy takes this secret from a key vault" in done.stderr


def test_cage_run_hides_what_shows_who_it_is(room, tmp_path):
    shown = tmp_path / "shown"
    shown.mkdir()
    (shown / "who").write_text("a.signed/assertion")
    done = room.sh("echo ran", options=["--bind-ro", str(shown)],
                   env={"AZURE_FEDERATED_TOKEN_FILE": str(shown / "who"), "AZURE_TENANT_ID": "t", "AZURE_CLIENT_ID": "c"})
    assert done.returncode != 0 and done.stdout == "" and "who" in done.stderr, done
