"""cage-gate and cage run in containers that share a network and may make no namespaces: Podman as a model of an ACI container
group, and of Docker. A peer beside the group looks at every frame, as in test_gate.py."""
import array
import contextlib
import json
import os
import shutil
import socket
import subprocess
import tempfile

import pytest
from cagelib import container
from cagelib import gate as gates
from cagelib import netns
from cagelib.container import UNLOCKED
from cagelib.log import Log
from cagelib.proxy import policy, wait_until
from cagelib.raw import RawOrigin

USERS = {"root": "0:0", "user": "1000:1000"}


@pytest.fixture(scope="module")
def networks():
    with netns.or_skip(within=gates.networks) as made:
        yield made


@pytest.fixture(scope="module")
def directory():
    with gates.everybodys_copies("cage", "cage-proxy", "cage-dns", "cage-gate", "helper_attack") as made:
        yield made


@pytest.fixture(scope="module")
def group(networks, directory):
    with contextlib.ExitStack() as stack:
        try:
            made = stack.enter_context(container.group(directory))
        except container.NoPodman as e:
            pytest.skip("NOT TESTED, no container can be run here: %s" % e)
        yield made


NEIGHBOUR = """
import socket
tcp = socket.create_server(("127.0.0.1", 9090))
abstract = socket.socket(socket.AF_UNIX)
abstract.bind("\\0cage-attack")
abstract.listen()
print("up", flush=True)
input()
for s in (tcp, abstract):
    s.setblocking(False)
    try:
        s.accept()
        print("somebody came")
    except BlockingIOError:
        print("nobody came")
"""


@pytest.fixture
def neighbour(group):
    """Another container of the group, which listens on the loopback that they share; who came is told at the end."""
    name, process = group.popen("python3", "-c", NEIGHBOUR)
    assert process.stdout.readline() == "up\n"
    yield process
    group.remove(name)
    process.communicate(timeout=60)


class Room:
    """A container whose first process is the gate, with this test as its launcher."""

    def __init__(self, group, *command, user="0:0", mode="auto", rules="docker", options=(), handoff=True):
        self.group = group
        self.ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.ours.settimeout(60)
        ready, self.write = os.pipe()
        self.ready = open(ready)
        program = os.path.join(group.programs, "cage-gate")
        line = [program, "--mode", mode, *(["--handoff", "3"] if handoff else []), "--ready", "4", "--env", "PATH=" + container.PATH, *options, "--",
                *command]
        self.name, self.process = group.popen(*line, user=user, rules=rules, fds=(theirs.fileno(), self.write))
        theirs.close()
        os.close(self.write)
        self.sockets = []

    def take(self):
        return gates.Gate.take(self)

    def go(self):
        self.ours.send(b"g")

    def finish(self, text=None):
        out, err = self.process.communicate(text, timeout=180)
        return self.process.returncode, out, err

    def close(self):
        self.group.remove(self.name)
        self.process.kill()
        self.process.communicate()
        for _, handed in self.sockets:
            handed.close()
        self.ours.close()
        self.ready.close()


@pytest.fixture
def start(group):
    with contextlib.ExitStack() as stack:
        def make(*command, **more):
            room = Room(group, *command, **more)
            stack.callback(room.close)
            return room
        yield make


def attack(networks, directory, which="all"):
    return [os.path.join(directory, "helper_attack"), gates.PEER, gates.PEER6, str(networks.index), gates.OWN, which]


def verdicts(text):
    return {name: (int(port), verdict) for name, port, verdict in (line.split() for line in text.splitlines())}


def test_the_model_is_what_it_claims(group):
    """Docker's capabilities, no namespaces for anybody, and the network of the group."""
    done = group.run("sh", "-c", "grep CapEff /proc/self/status; unshare -Ur true; unshare -n true; cat /proc/net/dev", user="0:0")
    assert "CapEff:\t00000000a80425fb" in done.stdout
    assert done.stderr.count("Operation not permitted") == 2
    assert "gate0" in done.stdout


def test_attacks_arrive_from_a_container_without_a_gate(networks, directory, group):
    networks.seen()
    done = group.run(*attack(networks, directory, "send"))
    results = verdicts(done.stdout)
    by_port = {port: name for name, (port, _) in results.items()}
    arrived = {by_port.get(what, what) for what in networks.seen()}
    assert {"tcp4_direct", "tcp4_metadata", "tcp6_direct", "udp4_plain", "udp6_plain", "udp4_packet_info"} <= arrived


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("rules", ("docker", "closed"))
def test_what_a_probe_finds(group, user, rules):
    done = group.run(os.path.join(group.programs, "cage-gate"), "--probe", "--json", user=USERS[user], rules=rules)
    found = json.loads(done.stdout)
    locks = rules == "docker"
    assert found["namespaces"] == {"user": False, "net": False, "mount": False, "pid": False}
    assert (done.returncode, found["mode"], found["netns"], found["seccomp"]) == \
        ((0, "seccomp", False, True) if locks else (UNLOCKED, "none", False, False))
    assert (found["notifier"], found["addfd_send"]) == (locks, locks) and "127.0.0.1" in found["loopback"]


@pytest.mark.parametrize("user", USERS)
def test_t36_where_nothing_holds_nothing_is_run(group, start, user):
    room = start("echo", "ran", user=USERS[user], rules="closed", handoff=False)
    code, out, err = room.finish()
    assert (code, out) == (UNLOCKED, "")
    assert err == "cage-gate: neither mode holds here, so the agent can't be locked in; netns, then seccomp:\n" \
                  "cage-gate: namespaces: Operation not permitted\ncage-gate: supervised filter of system calls: Operation not permitted\n"
    assert room.ready.read() == ""
    netns_only = start("echo", "ran", user=USERS[user], mode="netns", handoff=False).finish()
    assert netns_only[:2] == (UNLOCKED, "")


def test_t36_beside_the_notifier_of_a_platform(group, start):
    """A chain of filters has one notifier: where it is not ours, nothing can be supervised."""
    path = os.path.join(group.dir, "notifier")
    with socket.socket(socket.AF_UNIX) as platform:
        platform.bind(path)
        platform.listen()
        platform.settimeout(60)
        group.write_profile("notified", container.with_notifier(path))
        room = start("echo", "ran", rules="notified", handoff=False)
        brought, _ = platform.accept()
        with brought:
            _, control, _, _ = brought.recvmsg(65536, socket.CMSG_SPACE(8))
            code, out, err = room.finish()
            for fd in array.array("i", control[0][2]):
                os.close(fd)
    assert (code, out) == (UNLOCKED, "")
    assert err.endswith("cage-gate: supervised filter of system calls: Device or resource busy\n")


@pytest.mark.parametrize("user", USERS)
def test_t36_no_attack_leaves_the_group(networks, directory, neighbour, start, user):
    """Everything that the attack program knows, with a neighbour in the group and a peer beside it; nobody serves the proxy's port."""
    networks.seen()
    room = start(*attack(networks, directory), user=USERS[user])
    for _, handed in room.take():
        handed.close()
    room.go()
    code, out, err = room.finish()
    assert (code, err) == (0, "")
    assert room.ready.read() == "mode seccomp\n"
    results = verdicts(out)
    assert len(results) > 60
    assert {name for name, (_, verdict) in results.items() if verdict == "open"} == set()
    assert networks.seen() == set()
    out, _ = neighbour.communicate("\n", timeout=60)
    assert out == "nobody came\nnobody came\n"


@pytest.mark.parametrize("user", USERS)
def test_t36_no_attack_leaves_where_namespaces_are_allowed(networks, directory, neighbour, start, user):
    """As with Podman's own profile: the stronger mode is taken."""
    networks.seen()
    room = start(*attack(networks, directory), user=USERS[user], rules="open", options=("--bind-ro", directory))
    for _, handed in room.take():
        handed.close()
    room.go()
    code, out, err = room.finish()
    assert (code, room.ready.read()) == (0, "mode netns\n"), err
    results = verdicts(out)
    assert len(results) > 60
    assert {name for name, (_, verdict) in results.items() if verdict == "open"} == gates.SHARED_ONLY
    assert networks.seen() == set()
    out, _ = neighbour.communicate("\n", timeout=60)
    assert out == "nobody came\nnobody came\n"


@pytest.mark.parametrize("user", USERS)
def test_t36_a_neighbour_is_reached_without_the_gate_only(neighbour, group, user):
    """So that nobody coming means something."""
    done = group.run("python3", "-c", "import socket; socket.create_connection(('127.0.0.1', 9090), 20); print('reached')", user=USERS[user])
    assert done.stdout == "reached\n"


@pytest.mark.parametrize("user", USERS)
def test_sockets_belong_to_the_agent(start, user):
    """One of root's could share the port of a proxy that is root's."""
    room = start("python3", "-c", "import os, socket; s = socket.socket(); print(os.fstat(s.fileno()).st_uid, os.getuid())", user=USERS[user], handoff=False)
    assert room.finish() == (0, "1000 1000\n", "")


EXEC_TARGET = "import os, sys; print(os.getpid(), flush=True); sys.stdin.read()"
TRACER = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print("up", flush=True)
pid = int(input())
print(libc.ptrace(0x4206, pid, 0, 0))
try:
    os.close(os.open("/proc/%d/mem" % pid, os.O_RDWR))
    print("opened")
except OSError:
    print("shut")
try:
    os.kill(pid, 19)
    print("stopped")
except OSError:
    print("not stopped")
"""


@pytest.mark.parametrize("who", ("0:0", "1000:1000"))
def test_t36_what_is_run_beside_the_agent_is_not_the_agents(group, start, who):
    """Somebody who enters the container is not locked in, and must not become the agent's way out, whatever the uid."""
    room = start("python3", "-c", TRACER, handoff=False)
    assert room.process.stdout.readline() == "up\n"
    beside = subprocess.Popen(group.exec(room.name, "python3", "-c", EXEC_TARGET, user=who), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        pid = beside.stdout.readline()
        assert pid
        assert room.finish(pid)[:2] == (0, "-1\nshut\nnot stopped\n")
    finally:
        beside.kill()
        beside.communicate()


def test_t38_a_killed_gate_ends_the_container(group, start):
    """It is the first process of the container, so that all others end with it."""
    room = start("sh", "-c", "sleep 1000 & echo started; wait", handoff=False)
    assert room.process.stdout.readline() == "started\n"
    subprocess.run(container.podman(group.dir, "kill", "--signal", "KILL", room.name), capture_output=True, timeout=60)
    assert room.finish()[:2] == (137, "")


def test_a_group_has_one_agent(start):
    first = start("cat")
    first.take()
    second = start("echo", "ran")
    assert second.finish() == (UNLOCKED, "", "cage-gate: 127.0.0.1:8080: Address already in use\n")


def test_t36_a_neighbour_on_every_address(group, start):
    """Nobody can tell whether it is the one that answers on our port."""
    name, other = group.popen("python3", "-c", "import socket; s = socket.create_server(('0.0.0.0', 443)); print('up', flush=True); input()")
    try:
        assert other.stdout.readline() == "up\n"
        room = start("echo", "ran", handoff=False)
        code, out, err = room.finish()
        assert (code, out) == (UNLOCKED, "")
        assert err.endswith("\ncage-gate: somebody listens on port 443 of this network, and the agent can't be kept from it\n")
    finally:
        group.remove(name)
        other.communicate()


def test_t36_the_ports_stay_taken(start):
    """While nobody serves them, in the other container or in this one."""
    script = "import socket\nfor port in (8080, 53, 80, 443):\n try: socket.create_server(('127.0.0.1', port)); print('taken over')\n " \
             "except OSError as e: print(e.errno)"
    room = start("python3", "-c", script)
    for _, handed in room.take():
        handed.close()
    room.go()
    code, out, err = room.finish()
    assert (code, err) == (0, "")
    assert set(out.split()) <= {"98", "13"}  # in use, or not for an ordinary user


@pytest.fixture
def run_dir():
    """For the policy, the CA and the log of a run, and for nobody else."""
    directory = tempfile.mkdtemp(prefix="cage-run-")
    yield directory
    shutil.rmtree(directory)


FROM_INSIDE = """
curl -sS -o /dev/null -w '%{http_code}\\n' https://a.test/ok
curl -sS -o /dev/null -w '%{http_code}\\n' http://b.test/not
curl -sS --noproxy '*' --max-time 30 http://PEER/direct 2>/dev/null || echo shut
curl -sS --noproxy '*' --max-time 30 http://127.0.0.1:PORT/origin 2>/dev/null || echo shut
"""


def cage_run(group, run_dir, rules, *command, user="0:0"):
    with open(os.path.join(run_dir, "policy.yaml"), "w") as f:
        json.dump(rules, f)
    return group.run(os.path.join(group.programs, "cage"), "run", "--policy", os.path.join(run_dir, "policy.yaml"), "--ca-dir",
                     os.path.join(run_dir, "ca"), "--log", os.path.join(run_dir, "log.jsonl"), "--", *command, user=user, binds=(run_dir,))


def test_t36_cage_run_in_a_group(networks, group, pki, run_dir):
    """All of cage in one container: what is allowed gets through, and nothing else leaves or reaches a neighbour."""
    networks.seen()
    with RawOrigin(leaf=pki.leaf("a.test")) as origin:
        trusted = shutil.copy(pki.ca_pem, run_dir)
        rules = policy({"id": "a", "hosts": ["a.test"]}, pins={"a.test": origin.pin}, trust=[trusted])
        script = FROM_INSIDE.replace("PEER", gates.PEER).replace("PORT", str(origin.port))
        done = cage_run(group, run_dir, rules, "sh", "-c", script)
    assert (done.returncode, done.stdout) == (0, "200\n403\nshut\nshut\n"), done.stderr
    assert networks.seen() == set()
    log = Log(os.path.join(run_dir, "log.jsonl"))
    assert [line["host"] for line in log.find(event="request", decision="allow")] == ["a.test"]
    assert [line["host"] for line in log.find(event="request", decision="block")] == ["b.test"]


def test_t36_cage_run_is_not_the_agents_user(group, run_dir):
    """Without mounts, the files of cage could not be kept from an agent of the same user: it is not run."""
    os.chown(run_dir, 1000, 1000)
    done = cage_run(group, run_dir, policy({"id": "a", "hosts": ["a.test"]}), "echo", "ran", user=USERS["user"])
    assert (done.returncode, done.stdout) == (UNLOCKED, "")


def can_connect(port):
    with socket.socket() as s:
        return s.connect_ex(("127.0.0.1", port)) == 0


def test_t36_the_proxy_of_another_container(networks, group, start, pki, run_dir):
    """As in an ACI group: the proxy has a container of its own, and that of the agent begins with the gate."""
    networks.seen()
    with RawOrigin(leaf=pki.leaf("a.test")) as origin:
        trusted = shutil.copy(pki.ca_pem, run_dir)
        with open(os.path.join(run_dir, "policy.yaml"), "w") as f:
            json.dump(policy({"id": "a", "hosts": ["a.test"]}, pins={"a.test": origin.pin}, trust=[trusted]), f)
        name, proxy = group.popen(os.path.join(group.programs, "cage-proxy"), "--listen", "127.0.0.1:8080", "--admin", "off", "--policy",
                                  os.path.join(run_dir, "policy.yaml"), "--ca-dir", os.path.join(run_dir, "ca"), "--log",
                                  os.path.join(run_dir, "log.jsonl"), binds=(run_dir,))
        try:
            wait_until(lambda: can_connect(8080), 60, "the proxy does not listen")
            room = start("sh", "-c", FROM_INSIDE.replace("PEER", gates.PEER).replace("PORT", str(origin.port)).replace("-sS", "-sSk"),
                         options=("--env", "https_proxy=http://127.0.0.1:8080", "--env", "http_proxy=http://127.0.0.1:8080"), handoff=False)
            assert room.finish() == (0, "200\n403\nshut\nshut\n", "")
        finally:
            group.remove(name)
            proxy.communicate()
    assert networks.seen() == set()
