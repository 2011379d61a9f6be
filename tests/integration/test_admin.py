"""The admin port: what it tells, and that the agent can't get at it through the proxy (THREATS T36)."""
import re
import signal
import socket

import pytest
from cagelib.checks import logged_block, refused
from cagelib.proxy import metrics, policy, wait_until
from cagelib.raw import RawOrigin
from cagelib.wire import Wire


@pytest.fixture(scope="module")
def plain():
    with RawOrigin() as running:
        yield running


def rules(plain, *more, **options):
    return policy({"id": "p", "hosts": ["p.test"], "ports": [80]}, *more, pins={"p.test": plain.pin, **options.pop("pins", {})}, **options)


@pytest.fixture(scope="module")
def cage(start_module_cage, plain):
    return start_module_cage(rules(plain))


def test_health_and_readiness(cage):
    assert cage.admin("/healthz").status == 200
    assert cage.admin("/readyz").status == 200


def test_ca_pem(cage):
    answer = cage.admin("/ca.pem")
    with open(cage.ca_pem, "rb") as f:
        assert (answer.status, answer.body) == (200, f.read())
    assert b"PRIVATE" not in answer.body


def test_anything_else_is_not_found(cage):
    for path in ("/", "/ca.key", "/metrics/../ca.key", "/healthz/x"):
        assert cage.admin(path).status in (400, 404), path
    assert cage.admin("/healthz", "POST").status in (404, 405)


def test_metrics_are_prometheus_text(cage):
    answer = cage.admin("/metrics")
    assert answer.status == 200 and answer.header("content-type").startswith("text/plain")
    text = answer.body.decode("ascii")
    names = {name for name, _, _ in metrics(text)}
    typed = set(re.findall(r"^# TYPE (\S+) (?:counter|gauge|histogram)$", text, re.M))
    for name in names:
        assert name in typed or re.sub(r"_(bucket|sum|count)$", "", name) in typed, name
    wanted = "cage_bytes_total cage_connections_total cage_connections_open cage_pool_idle cage_upstream_connections_total".split()
    assert set(wanted) <= names, names


def test_decisions_are_counted_by_reason(cage):
    def blocked():
        return cage.metric("cage_decisions_total", decision="block", reason="host.not_allowed")

    def allowed():
        return cage.metric("cage_decisions_total", decision="allow")

    before = blocked(), allowed()
    refused(cage.fetch("GET", "http://evil.test/"), "host.not_allowed")
    assert cage.fetch("GET", "http://p.test/counted").status == 200
    assert (blocked(), allowed()) == (before[0] + 1, before[1] + 1)


def test_bytes_are_counted(cage):
    def inspected(direction):
        return cage.metric("cage_bytes_total", direction=direction, inspected="true")

    before = inspected("out"), inspected("in")
    assert cage.fetch("POST", "http://p.test/bytes", body=b"12345").body == b"ok\n"
    after = before[0] + 5, before[1] + 3
    wait_until(lambda: (inspected("out"), inspected("in")) == after, 10, "the bytes were not counted")


def test_admin_can_be_off(start_cage, plain):
    cage = start_cage(rules(plain), admin="off")
    assert "admin on" not in cage.stderr.text()
    assert cage.fetch("GET", "http://p.test/").status == 200


def test_admin_on_a_unix_socket(start_cage, plain, tmp_path_factory):
    path = str(tmp_path_factory.mktemp("s") / "admin.sock")
    start_cage(rules(plain), admin="unix:" + path)
    sock = socket.socket(socket.AF_UNIX)
    sock.connect(path)
    with Wire(sock) as wire:
        assert wire.exchange("GET", "/healthz", [("Host", "localhost")]).status == 200


# ---- T36: the cage itself as target

@pytest.fixture(scope="module")
def open_cage(start_module_cage, plain):
    """A careless policy that lists loopback and our own ports, which are known after the start only."""
    cage = start_module_cage(rules(plain))
    ports = [cage.port, cage.admin_port, plain.port]
    ours = {"id": "ours", "hosts": ["127.0.0.1", "localhost"], "ports": ports, "addresses": ["127.0.0.0/8", "::1"]}
    cage.reload(rules(plain, ours))
    return cage


def test_t36_loopback_as_such_is_reachable_through_that_rule(open_cage, plain):
    assert open_cage.fetch("GET", "http://127.0.0.1:%d/" % plain.port).status == 200


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost"])
@pytest.mark.parametrize("port", ["port", "admin_port"])
def test_t36_our_own_listeners_are_never_dialled(open_cage, name, port):
    answer = open_cage.fetch("GET", "http://%s:%d/metrics" % (name, getattr(open_cage, port)))
    refused(answer, "address.self")
    logged_block(open_cage, answer, host=name)


@pytest.mark.parametrize("port", ["port", "admin_port"])
def test_t36_nor_in_a_connect(open_cage, port):
    authority = "127.0.0.1:%d" % getattr(open_cage, port)
    wire, answer = open_cage.ask_connect(authority)
    if answer.status == 200:
        answer = wire.exchange("GET", "/metrics", [("Host", authority)])
    refused(answer, "address.self")


def test_t36_a_pin_does_not_lead_there_either(start_cage, plain):
    cage = start_cage(rules(plain))
    target = {"id": "pinned", "hosts": ["self.test"], "ports": [80]}
    cage.write_policy(rules(plain, target, pins={"self.test": "127.0.0.1:%d" % cage.admin_port}))
    cage.signal(signal.SIGHUP)
    wait_until(lambda: len(cage.log.find(event="policy")) == 2, 10, "the policy was not looked at")
    answer = cage.fetch("GET", "http://self.test/metrics")
    refused(answer, {"address.self", "host.not_allowed"})


def test_t36_the_names_of_the_admin_port_mean_nothing_on_the_proxy_port(cage):
    for path in ("/healthz", "/metrics", "/ca.pem"):
        answer = cage.connect().exchange("GET", path, [("Host", "localhost")])
        refused(answer, {"target.malformed", "head.malformed"}, status=400)
