"""A group that stands in a pool, emulated with Podman: while it waits nothing runs and nothing listens in it, and when it is given what to
run, its agent is locked in as that of any other group. A peer beside the group looks at every frame."""
import os
import shutil
import socket

import pytest
from cagelib import gate as gates
from cagelib.aci import Aci
from cagelib.aci_standby_group import StandbyGroup
from cagelib.arm import Arm, Script
from cagelib.given import Given, replaced, write
from cagelib.proxy import policy, wait_until
from cagelib.raw import RawOrigin
from test_aci_standby import LIMITS, make, standby
from test_container import USERS, group, networks  # noqa: F401 fixtures that are the same

PORTS = (53, 8080)
SCRIPT = """
curl -sS -o /dev/null -w '%{http_code}\\n' https://a.test/ok
curl -sS -o /dev/null -w '%{http_code}\\n' http://b.test/not
curl -sS --noproxy '*' --max-time 20 http://PEER/direct 2>/dev/null || echo shut
curl -sS --noproxy '*' --max-time 20 http://169.254.169.254/metadata/ 2>/dev/null || echo shut
id -u
grep -c . /tmp/cage/ca.pem >/dev/null && echo ca
find /mnt /etc/cage /run/cage -type f 2>/dev/null
cat /mnt/configmap/*/run 2>/dev/null
echo end
"""


@pytest.fixture(scope="module")
def directory():
    with gates.everybodys_copies("cage-proxy", "cage-dns", "cage-gate", "cage-inside", "helper_attack") as made:
        yield made


def taken(tmp_path, rules, *command):
    """What Azure would have after cage-aci has taken one."""
    with Arm(script=lambda body: Script()) as arm:
        given = standby(make(arm, "1:" + LIMITS))
        with Aci(arm, tmp_path / "aci", *given["options"], rules=rules, run=given["run"]) as aci:
            assert aci.run(*command)[2] == "exit 0", aci.text()
            aci.end()
        return arm.gone[0].body


def wait_for_all(made):
    """Each container has its one process, which sleeps between two looks."""
    for name in ("proxy", "dns", "agent"):
        wait_until(lambda: made.pid(name), 60, "%s does not start" % name)
        with open("/proc/%d/cmdline" % made.pid(name), "rb") as f:
            assert f.read().split(b"\0")[1:3] == [b"--await", b"/mnt/configmap/%s/run" % name.encode()]


def children(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as f:
        return f.read().split()


def listening():
    """Ports of the group, which this thread shares."""
    found = set()
    for name in ("tcp", "tcp6", "udp", "udp6"):
        with open("/proc/thread-self/net/" + name, encoding="ascii") as f:
            found |= {int(line.split()[1].rsplit(":", 1)[1], 16) for line in f.readlines()[1:] if name.startswith("udp") or line.split()[3] == "0A"}
    return found


def can_connect(address, port):
    with socket.socket() as s:
        s.settimeout(5)
        return s.connect_ex((address, port)) == 0


def assert_it_waits(made, networks, before):
    """Nothing to be reached from the group's own network nor from the peer, no process beside the one that waits, no file written."""
    assert listening() <= before and not any(can_connect("127.0.0.1", port) for port in PORTS)
    with networks.in_peer():
        assert not any(can_connect(gates.OWN, port) for port in PORTS)
    networks.seen()  # the refusals of those
    assert all(children(made.pid(name)) == [] for name in ("proxy", "dns", "agent"))
    assert os.listdir(os.path.join(made.dir, "policy")) == os.listdir(os.path.join(made.dir, "keys")) == os.listdir(os.path.join(made.dir, "workspace")) == []
    assert all(p.poll() is None for p in made.helpers.values())


@pytest.mark.parametrize("user", USERS)
def test_t36_a_group_that_stood(networks, group, pki, tmp_path, user):
    """It waits, is given what to run in pieces, the agent first, and then is what any other group is."""
    networks.seen()
    before = listening()
    with RawOrigin(leaf=pki.leaf("a.test")) as origin:
        rules = policy({"id": "a", "hosts": ["a.test"]}, pins={"a.test": origin.pin})
        body = taken(tmp_path, rules, "sh", "-c", SCRIPT.replace("PEER", gates.PEER))
        for one in body["properties"]["containers"]:
            pairs = one["properties"]["configMap"]["keyValuePairs"]
            pairs["run"] = replaced(pairs["run"], b'"system"', b'"/cage/ca.pem"')
        made = StandbyGroup(body, group, tmp_path / "group", agent_user=USERS[user])
        shutil.copy(pki.ca_pem, tmp_path / "group" / "tools" / "ca.pem")
        with made:
            wait_for_all(made)
            assert_it_waits(made, networks, before | {origin.port})
            made.give("agent", piece=100)
            made.give("proxy", "dns", piece=1000)
            code, out, err = made.end()
            keys = os.listdir(os.path.join(made.dir, "keys"))
    assert (code, out) == (0, "200\n403\nshut\nshut\n1000\nca\nend\n"), (err, made.said)
    assert networks.seen() == set() and sorted(keys) == ["fingerprint.key", "placeholder.key"]
    assert any('"schema"' in line for line in made.said["proxy"][0].splitlines())


def test_t36_attacks_from_a_group_that_stood(networks, group, directory, tmp_path):
    """All that helper_attack knows: nothing arrives."""
    networks.seen()
    attack = ["/opt/cage/helper_attack", gates.PEER, gates.PEER6, str(networks.index), gates.OWN, "all"]
    with StandbyGroup(taken(tmp_path, policy({"id": "a", "hosts": ["a.test"]}), *attack), group, tmp_path / "group") as made:
        wait_for_all(made)
        made.give()
        code, out, err = made.end(300)
    assert code == 0 and len(out.splitlines()) > 20, (code, out, err)
    assert networks.seen() == set(), out


def test_t36_what_comes_later_changes_nothing(group, tmp_path):
    """Another text in the config map while the command runs; and a container that is started again does not run another policy."""
    body = taken(tmp_path, policy(), "sh", "-c", "until [ -e go ]; do :; done; echo mine")
    with StandbyGroup(body, group, tmp_path / "group") as made:
        wait_for_all(made)
        made.give()
        wait_until(lambda: can_connect("127.0.0.1", 8080), 60, "the proxy does not come up")
        wait_until(lambda: children(made.pid("agent")), 60, "the agent does not come up")
        its = Given(next(c for c in body["properties"]["containers"] if c["name"] == "agent")["properties"]["configMap"]["keyValuePairs"]["run"])
        with open(os.path.join(made.maps, "agent", "run"), "wb") as f:
            f.write(write(*((b"w", w.encode()) for w in [*its.words[:-3], "echo", "other"]), (b"o", b"/cage-used/other")))
        with open(os.path.join(made.maps, "proxy", "run"), "wb") as f:
            f.write(write((b"f", b"/etc/cage/policy.yaml\0version: 1\n"), (b"o", b"/cage-used/again")))
        made.names["before"] = made.names["proxy"]
        again = made.start("proxy")
        assert again.wait(60) == 78 and "a file of another run is there" in again.communicate()[1]
        open(os.path.join(made.dir, "workspace", "go"), "w", encoding="ascii").close()
        code, out, err = made.end()
    assert (code, out) == (0, "mine\n"), err


def test_t36_an_agent_is_not_run_without_its_proxy(group, tmp_path):
    """The proxy was given something that is none: it ends, and so does the agent, which has not run."""
    body = taken(tmp_path, policy(), "echo", "ran")
    agent = next(c["properties"] for c in body["properties"]["containers"] if c["name"] == "agent")
    its = Given(agent["configMap"]["keyValuePairs"]["run"])
    its.words[its.words.index("--enter") + 1] = "0.0.0.0:99999"  # so that it does not wait for two minutes
    with StandbyGroup(body, group, tmp_path / "group") as made:
        wait_for_all(made)
        with open(os.path.join(made.maps, "proxy", "run"), "wb") as f:
            f.write(write((b"x", b"broken")))
        with open(os.path.join(made.maps, "agent", "run"), "wb") as f:
            f.write(write(*((b"w", w.encode()) for w in its.words), *((b"v", ("%s=%s" % v).encode()) for v in its.variables.items()), (b"o", its.mark.encode())))
        code, out, _ = made.end()
        assert made.helpers["proxy"].wait(60) == 78
    assert code == 2 and out == ""
