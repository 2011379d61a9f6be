"""The group that cage-aci asks for, emulated with Podman: its agent is locked in, finds its way through the proxy, and is attacked from
within as in test_container.py. A peer beside the group looks at every frame."""
import shutil

import pytest
from cagelib import gate as gates
from cagelib.aci import Aci
from cagelib.aci_group import AciGroup
from cagelib.arm import Arm, Script
from cagelib.proxy import policy
from cagelib.raw import RawOrigin
from test_container import USERS, group, networks  # noqa: F401 fixtures that are the same


@pytest.fixture(scope="module")
def directory():
    with gates.everybodys_copies("cage-proxy", "cage-dns", "cage-gate", "cage-inside", "helper_attack") as made:
        yield made


def body_of(tmp_path, rules, *command, env=None):
    """What cage-aci would have Azure make."""
    with Arm(script=lambda body: Script()) as arm, Aci(arm, tmp_path / "aci", rules=rules, env=env) as aci:
        assert aci.run(*command)[2] == "exit 0", aci.text()
        aci.end()
        return arm.gone[0].body


def trust(directory, pki):
    """The policy's own way to a CA of tests."""
    shutil.copy(pki.ca_pem, directory / "ca.pem")
    text = (directory / "policy.yaml").read_text().replace('"system"', '"/etc/cage/ca.pem"')
    (directory / "policy.yaml").write_text(text)


SCRIPT = """
curl -sS -o /dev/null -w '%{http_code}\\n' https://a.test/ok
curl -sS -o /dev/null -w '%{http_code}\\n' -H "Authorization: Bearer $API_KEY" https://a.test/key
curl -sS -o /dev/null -w '%{http_code}\\n' http://b.test/not
curl -sS --noproxy '*' --max-time 20 http://PEER/direct 2>/dev/null || echo shut
curl -sS --noproxy '*' --max-time 20 http://169.254.169.254/metadata/ 2>/dev/null || echo shut
id -u
grep -c . /tmp/cage/ca.pem >/dev/null && echo ca
"""


@pytest.mark.parametrize("user", USERS)
def test_t36_the_group_of_cage_aci(networks, group, pki, tmp_path, user):
    """What is allowed gets through with the real key, all else does not, and no frame leaves by itself."""
    networks.seen()
    with RawOrigin(leaf=pki.leaf("a.test")) as origin:
        rules = policy({"id": "a", "hosts": ["a.test"], "secrets": ["key"]}, pins={"a.test": origin.pin},
                       secrets=[{"id": "key", "from": {"env": "API_KEY"}}])
        body = body_of(tmp_path, rules, "sh", "-c", SCRIPT.replace("PEER", gates.PEER), env={"API_KEY": "sk-real-value-of-it"})
        made = AciGroup(body, group, tmp_path / "group", agent_user=USERS[user])
        trust(tmp_path / "group" / "policy", pki)
        with made:
            code, out, err = made.run_agent()
    assert (code, out) == (0, "200\n200\n403\nshut\nshut\n1000\nca\n"), (err, made.said)
    assert networks.seen() == set()
    assert any(b"sk-real-value-of-it" in r.head for r in origin.requests) and "sk-real-value-of-it" not in out + err + str(made.said)


@pytest.mark.parametrize("user", USERS)
def test_t36_attacks_from_the_group(networks, group, directory, tmp_path, user):
    """All that helper_attack knows: nothing arrives."""
    networks.seen()
    attack = ["/opt/cage/helper_attack", gates.PEER, gates.PEER6, str(networks.index), gates.OWN, "all"]
    body = body_of(tmp_path, policy({"id": "a", "hosts": ["a.test"]}), *attack)
    with AciGroup(body, group, tmp_path / "group", agent_user=USERS[user]) as made:
        code, out, err = made.run_agent(300)
    assert code == 0 and len(out.splitlines()) > 20, (code, out, err)
    assert networks.seen() == set(), out


def test_t36_an_agent_without_a_proxy_is_not_run(group, tmp_path):
    """Nobody answers where the proxy should be: 78, and a line that says so. The wait is cut short by another place to ask."""
    body = body_of(tmp_path, policy(), "echo", "ran")
    agent = next(c["properties"] for c in body["properties"]["containers"] if c["name"] == "agent")
    agent["command"][agent["command"].index("--enter") + 1] = "0.0.0.0:99999"
    with AciGroup(body, group, tmp_path / "group") as made:
        code, out, _ = made.run_agent()
    assert code == 2 and out == ""


def test_t36_what_is_reachable_keeps_the_agent_from_running(group, tmp_path):
    """Without the gate, the same proof fails: it exits with 78, and says what it could reach."""
    body = body_of(tmp_path, policy(), "echo", "ran")
    agent = next(c["properties"] for c in body["properties"]["containers"] if c["name"] == "agent")
    agent["command"] = agent["command"][agent["command"].index("/cage/cage-inside"):]
    with AciGroup(body, group, tmp_path / "group", agent_user="1000:1000") as made:
        code, out, err = made.run_agent()
    assert code == 78 and out == "" and "the agent is not run" in err, (code, out, err)
