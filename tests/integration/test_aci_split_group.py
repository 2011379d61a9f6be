"""The group that cage-aci asks for with the topology split, emulated with Podman, and a real gateway in another network: the agent finds
its way to it by the relay beside it, and nowhere else. The gateway's network looks at every frame."""
import contextlib
import re

import pytest
from cagelib import gate as gates
from cagelib.aci import Aci
from cagelib.aci_group import AciGroup
from cagelib.arm import Arm, Script
from cagelib.gateway import Gateway
from cagelib.proxy import policy, wait_until
from cagelib.raw import RawOrigin
from test_container import USERS, group, networks  # noqa: F401 fixtures that are the same


@pytest.fixture(scope="module")
def directory():
    with gates.everybodys_copies("cage-relay", "cage-gate", "cage-inside", "helper_attack") as made:
        yield made


@pytest.fixture(scope="module")
def world(networks, tmp_path_factory, pki):
    """The gateway and a server, in the peer's network."""
    with contextlib.ExitStack() as stack:
        with networks.in_peer():
            origin = stack.enter_context(RawOrigin())
            gateway = stack.enter_context(Gateway(tmp_path_factory.mktemp("gateway"), pki, host=gates.PEER))
        yield gateway, origin


def body_of(tmp_path, gateway, rules, *command, run=()):
    """What cage-aci would have Azure make, with its sandbox at the gateway for as long as the gateway stands."""
    with Arm(script=lambda body: Script()) as arm:
        with Aci(arm, tmp_path / "aci", *gateway.aci_words(), rules=rules, env=gateway.aci_env(), run=run) as aci:
            assert aci.run(*command)[2] == "exit 0", aci.text()
            aci.end()
        body = arm.gone[0].body
    agent = next(c["properties"] for c in body["properties"]["containers"] if c["name"] == "agent")
    proxy = next(v["secureValue"] for v in agent["environmentVariables"] if v["name"] == "HTTP_PROXY")
    assert gateway.put("box", rules, token=re.match("http://box:([^@]+)@", proxy)[1], owner="test")[0] in (200, 201)
    return body


# Frames to the intake are this test's own, whose connections have their last ones late; that the agent has no way there is tried here.
SCRIPT = """
curl -sS -o /dev/null -w '%{http_code}\\n' http://a.test/ok
curl -sS -o /dev/null -w '%{http_code}\\n' http://b.test/not
curl -sS -o /dev/null -w '%{http_code}\\n' https://b.test/not
curl -sS --noproxy '*' --max-time 20 http://PEER:PORT/direct 2>/dev/null || echo shut
curl -sS --noproxy '*' --max-time 20 https://PEER:INTAKE/v1/healthz 2>/dev/null || echo shut
curl -sS --noproxy '*' --max-time 20 http://169.254.169.254/metadata/ 2>/dev/null || echo shut
curl -sS -o /dev/null -w '%{http_code}\\n' --proxy http://127.0.0.1:8080 --proxy-user box:wrong-token-of-it http://a.test/ok
id -u
grep -c . /tmp/cage/ca.pem >/dev/null && echo ca
"""


@pytest.mark.parametrize("user", USERS)
def test_t36_the_group_of_a_split(networks, group, world, tmp_path, user):
    """What its policy allows gets through; the gateway itself, its intake and all else are shut but by the relay. Its decisions are told of it alone."""
    gateway, origin = world
    rules = policy({"id": "a", "hosts": ["a.test"], "ports": [80]}, pins={"a.test": origin.pin})
    script = SCRIPT.replace("PEER", gates.PEER).replace("PORT", str(gateway.proxy_port)).replace("INTAKE", str(gateway.port))
    body = body_of(tmp_path, gateway, rules, "sh", "-c", script)
    networks.seen()
    with AciGroup(body, group, tmp_path / "group", agent_user=USERS[user]) as made:
        code, out, err = made.run_agent()
    assert (code, out) == (0, "200\n403\n403\nshut\nshut\nshut\n407\n1000\nca\n"), (err, made.said)
    assert networks.seen() - {gateway.port} == {gateway.proxy_port}
    wait_until(lambda: {"/ok", "/not"} <= {x.get("path") for x in gateway.lines("box")[0]}, 10, "lines are missing")
    assert gateway.delete("box", "test") == 204


@pytest.mark.parametrize("user", USERS)
def test_t36_attacks_from_the_group_of_a_split(networks, group, directory, world, tmp_path, user):
    """All that helper_attack knows: nothing arrives but what the relay carries."""
    gateway, _ = world
    attack = ["/opt/cage/helper_attack", gates.PEER, gates.PEER6, str(networks.index), gates.OWN, "all"]
    body = body_of(tmp_path, gateway, policy({"id": "a", "hosts": ["a.test"]}), *attack)
    networks.seen()
    with AciGroup(body, group, tmp_path / "group", agent_user=USERS[user]) as made:
        code, out, err = made.run_agent(300)
    assert code == 0 and len(out.splitlines()) > 20, (code, out, err)
    assert networks.seen() - {gateway.port} <= {gateway.proxy_port}, out
    assert gateway.delete("box", "test") == 204


def test_t36_an_agent_that_the_gateway_does_not_know_is_not_run(networks, group, world, tmp_path):
    """Its credential is none: there is no CA for it, and it is not run. The wait is cut short by a gateway that is not there."""
    gateway, _ = world
    body = body_of(tmp_path, gateway, policy(), "echo", "ran")
    assert gateway.delete("box", "test") == 204
    agent = next(c["properties"] for c in body["properties"]["containers"] if c["name"] == "agent")
    agent["command"] = ["timeout", "20", *agent["command"]]
    with AciGroup(body, group, tmp_path / "group") as made:
        code, out, _ = made.run_agent()
    assert code == 124 and out == ""
