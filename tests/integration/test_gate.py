"""cage-gate: nothing leaves the room, in both modes, for root and for an ordinary user. Each way out that the attack program
knows is tried inside, while a peer in the next network looks at every frame that arrives. All of it is in networks of
its own; where they can't be made, the tests are skipped and say so."""
import contextlib
import json
import os
import shutil
import signal
import socket
import struct
import subprocess

import pytest
from cagelib import gate as gates
from cagelib import netns
from cagelib.proxy import policy, wait_until
from cagelib.raw import RawOrigin

MODES = ("netns", "seccomp")
# What the peer must see of the attack program when there is no gate, so that seeing nothing means something.
WITHOUT_GATE = {
    "tcp4_direct", "tcp4_metadata", "tcp4_metadata_azure", "tcp4_no_device", "tcp4_other_index", "tcp4_bound_outside", "tcp4_reconnected",
    "tcp4_rebound", "tcp4_listener_reused", "tcp4_accepted_reused", "tcp4_fast_open", "tcp6_direct", "tcp6_mapped", "tcp6_link_local_mapped",
    "tcp6_link_local_global", "udp4_plain", "udp4_connected", "udp4_packet_info", "udp4_disconnected", "udp4_rebound", "udp4_corked",
    "udp4_spliced", "udp4_zero_copy", "udp4_multicast", "udp6_plain", "udp6_disconnected", "udp6_mapped_packet_info", "udp6_link_local",
    "udp6_all_nodes"}


@pytest.fixture(scope="module")
def networks():
    with netns.or_skip(within=gates.networks) as made:
        yield made


@pytest.fixture(scope="module")
def directory(networks):
    with gates.everybodys_copies("cage-gate", "helper_attack") as made:
        yield made


@pytest.fixture(scope="module")
def neighbours(networks):
    """Others in the shared network: a listener on loopback, and an abstract socket."""
    with socket.create_server(("127.0.0.1", 9090)), socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind("\0cage-attack")
        abstract.listen()
        yield


@pytest.fixture
def start(directory):
    with contextlib.ExitStack() as stack:
        yield lambda command, *options, **more: stack.enter_context(gates.Gate(directory, command, *options, **more))


def attack(directory, networks, which):
    return [os.path.join(directory, "helper_attack"), gates.PEER, gates.PEER6, str(networks.index), gates.OWN, which]


def verdicts(text):
    """{name: (port, verdict)}"""
    return {name: (int(port), verdict) for name, port, verdict in (line.split() for line in text.splitlines())}


def names_of(seen, results):
    by_port = {port: name for name, (port, _) in results.items()}
    return {by_port.get(what, what) for what in seen}


def test_the_attacks_arrive_without_a_gate(directory):
    """In networks of its own, since the kernel says more than once which group was joined."""
    with gates.networks() as networks:
        done = subprocess.run(attack(directory, networks, "send"), capture_output=True, text=True, timeout=90)
        arrived = names_of(networks.seen("icmp", "igmp"), verdicts(done.stdout))
    assert WITHOUT_GATE - arrived == set()


def test_files_that_change_the_user_are_made_without_a_gate(directory, networks):
    """So that refusing them means something; directories are never made with such bits."""
    done = subprocess.run(attack(directory, networks, "files"), capture_output=True, text=True, timeout=90)
    opened = {name for name, (_, verdict) in verdicts(done.stdout).items() if verdict == "open"}
    assert opened == {"set_id_change", "set_id_create", "set_id_without_a_name", "set_id_behind_a_pointer"}


@pytest.mark.parametrize("ordinary", (False, True), ids=("root", "user"))
@pytest.mark.parametrize("mode", MODES)
def test_t36_no_attack_leaves_the_room(networks, directory, neighbours, start, mode, ordinary):
    """With the listeners handed over, and nobody who serves them: a dead proxy's port is not to be had either."""
    networks.seen()
    room = start(attack(directory, networks, "all"), mode=mode, ordinary=ordinary, handoff=True)
    for _, handed in room.take():
        handed.close()
    room.go()
    code, out, err = room.finish()
    assert (code, err) == (0, "")
    results = verdicts(out)
    assert len(results) > 60
    expected = gates.SHARED_ONLY if mode == "netns" else set()
    assert {name for name, (_, verdict) in results.items() if verdict == "open"} == expected
    assert names_of(networks.seen(), results) == set()
    assert {results[name][1] for name in ("udp4_membership", "tcp4_membership")} == {"shut"}


@pytest.mark.parametrize("ordinary", (False, True), ids=("root", "user"))
def test_listeners_of_the_room_are_handed_over(networks, start, ordinary):
    """Whatever the address, ports 80, 443 and 53 are ours; the address is the one that the agent meant."""
    script = """
import socket
for address, port in (("127.0.0.1", 8080), ("203.0.113.9", 443), ("2001:db8::9", 80), ("198.51.100.53", 53)):
    with socket.create_connection((address, port), timeout=20) as s:
        print(s.recv(100).decode())
for address in ("8.8.8.8", "2001:4860:4860::8888"):
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(20)
        s.connect((address, 53))
        s.send(b"query")
        print(s.recv(100).decode())
"""
    room = start(["python3", "-c", script], ordinary=ordinary, handoff=True)
    handed = {}
    for kind, sock in room.take():
        handed.setdefault((kind, sock.family), []).append(sock)
    four, six = socket.AF_INET, socket.AF_INET6
    assert {k: len(v) for k, v in handed.items()} == {
        ("PROXY", four): 1, ("CAPTURED", four): 2, ("CAPTURED", six): 2, ("DNS_UDP", four): 1, ("DNS_UDP", six): 1, ("DNS_TCP", four): 1,
        ("DNS_TCP", six): 1, ("WATCH", socket.AF_PACKET): 1}
    room.go()
    assert room.mode() == "mode netns\n"
    by_port = {s.getsockname()[:2]: s for k, s in room.sockets if k != "WATCH"}
    for listener in (handed["PROXY", four][0], by_port["0.0.0.0", 443], by_port["::", 80], handed["DNS_TCP", four][0]):
        client, _ = listener.accept()
        with client:
            client.sendall(("%s %s" % client.getsockname()[:2]).encode())
    handed["DNS_UDP", six][0].setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)  # as cage-dns has it
    for listener in (handed["DNS_UDP", four][0], handed["DNS_UDP", six][0]):
        query, asked, _, asker = listener.recvmsg(100, 100)
        listener.sendmsg([query, b" answered"], asked, 0, asker)
    assert room.finish() == (0, "127.0.0.1 8080\n203.0.113.9 443\n2001:db8::9 80\n198.51.100.53 53\nquery answered\nquery answered\n", "")


def test_refused_attempts_are_watched(networks, start):
    """SYNs and datagrams to where nobody listens; what is ours, what is captured and loopback is not worth a line."""
    script = """
import socket
def tcp(address, port):
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
    print(s.connect_ex((address, port)))
for address, port in (("127.0.0.1", 7), ("::1", 7), ("203.0.113.9", 443), ("203.0.113.9", 22), ("2001:db8::9", 22), ("203.0.113.9", 8080)):
    tcp(address, port)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(b"x", ("192.0.2.77", 53))
s.sendto(b"x", ("192.0.2.77", 123))
"""
    room = start(["python3", "-c", script], handoff=True)
    watch = dict(room.take())["WATCH"]
    room.go()
    code, out, _ = room.finish()
    assert (code, out.split()) == (0, ["111", "111", "0", "111", "111", "111"])
    found = []
    for _ in range(4):
        packet, (_, ethertype, *_) = watch.recvfrom(200)
        family, at, port_at = (socket.AF_INET, 16, 22) if ethertype == 0x0800 else (socket.AF_INET6, 24, 42)
        size = 4 if family == socket.AF_INET else 16
        found.append((socket.inet_ntop(family, packet[at:at + size]), struct.unpack_from("!H", packet, port_at)[0]))
    assert found == [("203.0.113.9", 22), ("2001:db8::9", 22), ("203.0.113.9", 8080), ("192.0.2.77", 123)]
    watch.setblocking(False)
    with pytest.raises(BlockingIOError):
        watch.recv(200)


def with_proxy(start_cage, room, pki, origin):
    """cage-proxy on what the gate hands over, as a launcher starts it; the room may go on. The gate keeps its own copies."""
    options = {"PROXY": "--listen", "CAPTURED": "--transparent", "WATCH": "--watch"}
    handed = [(options[kind], sock.fileno()) for kind, sock in room.take() if kind in options]
    args = [word for option, fd in handed for word in (option, "fd:%d" % fd)]
    rules = policy({"id": "a", "hosts": ["a.test"]}, pins={"a.test": origin.pin}, trust=[pki.ca_pem])
    return start_cage(rules, *args, listen=(), pass_fds=[fd for _, fd in handed])


ASK = """
import socket, ssl, sys
def ask(sock):
    tls = ssl.create_default_context()
    tls.check_hostname, tls.verify_mode = False, ssl.CERT_NONE
    with tls.wrap_socket(sock, server_hostname="a.test") as s:
        s.sendall(b"GET /%s HTTP/1.1\\r\\nHost: a.test\\r\\nConnection: close\\r\\n\\r\\n" % sys.argv[1].encode())
        print(s.recv(1000).split()[1].decode(), flush=True)
"""


def test_a_room_is_served_by_the_proxy(networks, start, start_cage, pki):
    """By CONNECT, and by a connection to any address that has no idea of a proxy."""
    script = ASK + """
s = socket.create_connection(("127.0.0.1", 8080), 20)
s.sendall(b"CONNECT a.test:443 HTTP/1.1\\r\\nHost: a.test:443\\r\\n\\r\\n")
s.recv(1000)
ask(s)
ask(socket.create_connection(("203.0.113.9", 443), 20))
ask(socket.create_connection(("2001:db8::9", 443), 20))
"""
    with RawOrigin(leaf=pki.leaf("a.test")) as origin:
        room = start(["python3", "-c", script, "served"], handoff=True)
        cage = with_proxy(start_cage, room, pki, origin)
        room.go()
        assert room.finish() == (0, "200\n200\n200\n", "")
        wait_until(lambda: len(cage.log.find(event="request", decision="allow", path="/served")) == 3, 20, "not three requests in the log")


def test_t13_refused_attempts_are_logged(networks, start, start_cage, pki):
    """Another port, by TCP and by UDP: nothing leaves, the program gets a refusal, and each has its line."""
    script = """
import socket
print(socket.socket(socket.AF_INET6).connect_ex(("2001:db8::22", 22)), socket.socket().connect_ex(("203.0.113.9", 22)))
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("192.0.2.77", 123))
s.send(b"x")
try:
    s.recv(1)
except ConnectionRefusedError:
    print("refused")
"""
    networks.seen()
    with RawOrigin(leaf=pki.leaf("a.test")) as origin:
        room = start(["python3", "-c", script], handoff=True)
        cage = with_proxy(start_cage, room, pki, origin)
        room.go()
        assert room.finish() == (0, "111 111\nrefused\n", "")
        for address, port in (("2001:db8::22", 22), ("203.0.113.9", 22), ("192.0.2.77", 123)):
            line = cage.log.wait(event="connect", reason="connect.captured", address=address, port=port)
            assert (line["decision"], line["enforced"], line["stage"]) == ("block", True, "connect")
        assert len(cage.log.find(reason="connect.captured")) == 3
    assert networks.seen() == set()


def test_a_scan_does_not_fill_the_log(networks, start, start_cage, pki):
    script = "import socket\nfor port in range(1000, 3000): socket.socket().connect_ex(('203.0.113.9', port))"
    with RawOrigin(leaf=pki.leaf("a.test")) as origin:
        room = start(["python3", "-c", script], handoff=True)
        cage = with_proxy(start_cage, room, pki, origin)
        room.go()
        assert room.finish() == (0, "", "")
        cage.log.wait(reason="connect.captured", port=1000)
        assert cage.stop() == 0
        assert 0 < len(cage.log.find(reason="connect.captured")) < 1000


def test_t38_a_dead_proxy_leaves_the_dark(networks, start, start_cage, pki):
    """The launcher shuts its copies: the agent is refused. The ports stay taken by the gate: nobody else can serve there."""
    script = ASK + """
ask(socket.create_connection(("203.0.113.9", 443), 20))
sys.stdin.readline()
print(socket.socket().connect_ex(("203.0.113.9", 443)), socket.socket().connect_ex(("127.0.0.1", 8080)))
for address in ("127.0.0.1", "0.0.0.0"):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        s.bind((address, 8080))
        print("taken over")
    except OSError as e:
        print(e.errno)
"""
    with RawOrigin(leaf=pki.leaf("a.test")) as origin:
        room = start(["python3", "-c", script, "x"], handoff=True)
        cage = with_proxy(start_cage, room, pki, origin)
        room.go()
        assert room.process.stdout.readline() == "200\n"
        cage.kill()
        start_cage.forget(cage)
        networks.seen()
        for kind, handed in room.sockets:
            if kind in ("PROXY", "CAPTURED"):
                handed.shutdown(socket.SHUT_RDWR)
        room.process.stdin.write("\n")
        assert room.finish() == (0, "111 111\n" + "98\n" * 2, "")
        assert networks.seen() == set()


def test_a_shared_network_has_listeners_on_loopback(networks, start):
    room = start(["python3", "-c", "import socket; print(socket.create_connection(('127.0.0.1', 8080), 20).recv(9).decode())"], mode="seccomp",
                 handoff=True)
    handed = {(kind, sock.getsockname()): sock for kind, sock in room.take()}
    proxy = ("PROXY", ("127.0.0.1", 8080))
    assert set(handed) == {proxy, *(("CAPTURED", ("127.0.0.1", p)) for p in (80, 443)), ("DNS_TCP", ("127.0.0.1", 53))}
    room.go()
    client, _ = handed[proxy].accept()
    with client:
        client.sendall(b"welcome")
    assert room.mode() == "mode seccomp\n"
    assert room.finish() == (0, "welcome\n", "")


def test_a_peer_can_not_reach_into_a_shared_network(networks, start):
    """What the agent listens on is reachable on loopback only."""
    script = """
import socket
s = socket.create_server(("0.0.0.0", 7777))
print("listening", flush=True)
input()
s.setblocking(False)
try:
    s.accept()
    print("reached")
except BlockingIOError:
    print("not reached")
"""
    room = start(["python3", "-c", script], mode="seccomp")
    assert room.process.stdout.readline() == "listening\n"
    with networks.in_peer(), pytest.raises(ConnectionRefusedError):
        socket.create_connection((gates.OWN, 7777), timeout=20)
    room.process.stdin.write("\n")
    assert room.finish()[:2] == (0, "not reached\n")


@pytest.mark.parametrize("mode", MODES)
def test_exit_codes(networks, start, mode):
    assert start(["sh", "-c", "exit 7"], mode=mode).finish()[0] == 7
    assert start(["sh", "-c", "kill -9 $$"], mode=mode).finish()[0] == 128 + 9
    code, _, err = start(["no-such-program"], mode=mode).finish()
    assert code == 127 and err.startswith("cage-gate: no-such-program: No such file or directory\n") and "--bind-ro DIR" in err
    assert start(["/etc/passwd"], mode=mode).finish()[0] == 126


@pytest.mark.parametrize("mode", MODES)
def test_signals_are_passed_on(networks, start, mode):
    room = start(["sh", "-c", "trap 'exit 9' TERM; echo set; while :; do read line; done"], mode=mode)
    assert room.process.stdout.readline() == "set\n"
    room.process.send_signal(signal.SIGTERM)
    assert room.finish()[0] == 9


@pytest.mark.parametrize("mode", MODES)
def test_only_named_variables_are_there(networks, start, mode):
    assert start(["env"], mode=mode, env=("PATH=/usr/bin", "A=b=c")).finish()[1] == "PATH=/usr/bin\nA=b=c\n"


@pytest.mark.parametrize("mode", MODES)
def test_without_go_nothing_runs(networks, start, mode):
    room = start(["echo", "ran"], mode=mode, handoff=True)
    room.take()
    room.ours.close()
    assert room.finish() == (78, "", "cage-gate: the launcher did not say go\n")


@pytest.mark.parametrize("mode", MODES)
def test_t36_no_socket_of_outside_comes_along(networks, directory, mode):
    """A socket keeps the network that it was made in, whoever has it."""
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_INET, kind) as outside:
            done = subprocess.run([os.path.join(directory, "cage-gate"), "--mode", mode, "--", "echo", "ran"], stdin=outside, capture_output=True,
                                  text=True, timeout=20)
        assert (done.returncode, done.stdout, done.stderr) == (78, "", "cage-gate: descriptor 0 is a socket of the network outside\n")


@pytest.mark.parametrize("ordinary", (False, True), ids=("root", "user"))
def test_t38_a_killed_gate_ends_the_room(networks, start, ordinary):
    """The whole of it: what the agent has started as well. The end of its output shows that nobody holds it any more."""
    room = start(["sh", "-c", "sleep 1000 & echo started; wait"], ordinary=ordinary)
    assert room.process.stdout.readline() == "started\n"
    room.process.kill()
    assert room.finish()[:2] == (-9, "")


def test_t38_a_killed_supervisor_leaves_the_dark(networks, start):
    """What lives on without namespaces gets no socket any more."""
    script = "import socket, sys; socket.socket(); print('up', flush=True); sys.stdin.read(1)\ntry: socket.socket()\nexcept OSError as e: print(e.errno)"
    room = start(["bash", "-c", "exec 3<&0; python3 -c \"$SCRIPT\" <&3 & wait"], mode="seccomp", env=("PATH=/usr/bin:/bin", "SCRIPT=" + script))
    assert room.process.stdout.readline() == "up\n"
    room.process.kill()
    room.process.stdin.write("x")
    assert room.finish()[:2] == (-9, "38\n")


def descriptors(pid):
    return len(os.listdir("/proc/%d/fd" % pid))


def test_a_storm_leaves_the_supervisor_as_it_was(networks, directory, start):
    """Agents that die while they ask, that are interrupted, that have no descriptor left, and that ask for nonsense."""
    script = "echo before; read line; %s; echo after; read line" % " ".join(attack(directory, networks, "storm"))
    room = start(["sh", "-c", script], mode="seccomp")
    assert room.process.stdout.readline() == "before\n"
    before = descriptors(room.process.pid)
    room.process.stdin.write("\n")
    room.process.stdin.flush()
    lines = [room.process.stdout.readline().split() for _ in range(5)]
    assert [(x[0], x[-1]) for x in lines] == [("storm_killed", "shut"), ("storm_interrupted", "shut"), ("storm_full", "shut"),
                                              ("storm_nonsense", "shut"), ("after", "after")]
    wait_until(lambda: descriptors(room.process.pid) <= before, 20, "the supervisor keeps descriptors")
    room.process.stdin.write("\n")
    assert room.finish() == (0, "", "")


def test_many_neighbours(networks, start):
    """More than can be closed: the agent is not run beside them."""
    with contextlib.ExitStack() as stack:
        for i in range(1025):
            stack.enter_context(socket.create_server(("127.0.0.1", 10000 + i)))
        assert start(["echo", "ran"], mode="seccomp").finish() == (78, "", "cage-gate: more than 1024 listeners here\n")


# A user of its own namespace, in which no other can be made.
NO_NAMESPACES = ("unshare", "--user", "--map-current-user", "--keep-caps", "sh", "-c",
                 "echo 0 >/proc/sys/user/max_user_namespaces && exec setpriv --ambient-caps=-all --inh-caps=-all \"$@\"", "sh")


def test_auto_takes_the_strongest(networks, start):
    assert start(["true"], mode="auto").mode() == "mode netns\n"


def test_auto_without_namespaces_is_seccomp(networks, start):
    room = start(["true"], mode="auto", ordinary=True, wrapper=NO_NAMESPACES)
    assert room.mode() == "mode seccomp\n"
    assert room.finish() == (0, "", "")


def test_netns_without_namespaces_is_refused(networks, start):
    assert start(["echo", "ran"], ordinary=True, wrapper=NO_NAMESPACES).finish() == (78, "", "cage-gate: namespaces: No space left on device\n")


@pytest.mark.skipif(not shutil.which("strace"), reason="NOT TESTED, there is no strace here")
def test_a_second_supervisor_is_refused(networks, start):
    """A chain of filters has one notifier: where the platform has its own, the agent can't be locked in."""
    in_use = ("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=seccomp", "-e", "inject=seccomp:error=EBUSY")
    code, out, err = start(["echo", "ran"], mode="seccomp", wrapper=in_use).finish()
    assert (code, out) == (78, "")
    assert "supervised filter of system calls: Device or resource busy" in err


@pytest.mark.parametrize("where", (("127.0.0.2", 8080), ("0.0.0.0", 443), ("127.0.0.11", 40053), ("::", 80)))
def test_a_neighbour_that_can_not_be_closed(networks, start, where):
    """Landlock knows ports and no addresses: on a port of ours, or behind Docker's redirection, a neighbour stays reachable."""
    with socket.create_server(where, family=socket.AF_INET6 if ":" in where[0] else socket.AF_INET):
        code, out, err = start(["echo", "ran"], mode="seccomp").finish()
    assert (code, out, err) == (78, "", "cage-gate: somebody listens on port %d of this network, and the agent can't be kept from it\n" % where[1])


@pytest.mark.parametrize("line", (["--mode", "none", "--", "true"], ["--handoff", "99", "--", "true"], ["--handoff", "1", "--", "true"], ["--ready", "x"],
                                  ["--json", "--", "true"], ["--probe", "true"], ["--choose", "true"], ["--choose", "--json"],
                                  ["--choose", "--overlay", "/usr"], ["--overlay", "/usr:state", "--", "true"], ["--overlay", "/:/tmp", "--", "true"], ["--nonsense"], [], ["--uid", "0", "--", "true"]))
def test_wrong_usage(directory, line):
    done = subprocess.run([os.path.join(directory, "cage-gate"), *line], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr


@pytest.mark.parametrize("ordinary", (False, True), ids=("root", "user"))
def test_probe(networks, directory, neighbours, ordinary):
    line = [os.path.join(directory, "cage-gate"), "--probe"]
    if ordinary:
        line = ["setpriv", "--reuid", str(gates.ORDINARY), "--regid", str(gates.ORDINARY), "--clear-groups", *line]
    done = subprocess.run([*line, "--json"], capture_output=True, text=True, timeout=20)
    found = json.loads(done.stdout)
    assert (done.returncode, found["mode"], found["netns"], found["seccomp"]) == (0, "netns", True, True)
    assert found["uid"] == (gates.ORDINARY if ordinary else 0)
    assert found["listening"] == [9090] and found["listeners"] == ["127.0.0.1:9090"]
    assert found["notifier"] is True and found["addfd_send"] is True
    assert "127.0.0.1" in found["loopback"] and set(found["loopback"]) <= {"127.0.0.1", "::1"}
    text = subprocess.run(line, capture_output=True, text=True, timeout=20)
    assert (text.returncode, text.stdout.splitlines()[-1]) == (0, "an agent is locked in with mode netns")
    for line in ("seccomp notifier    yes", "seccomp ADDFD_SEND  yes", "listening here      127.0.0.1:9090"):
        assert line in text.stdout.splitlines()


@pytest.mark.parametrize("mode", MODES)
def test_probe_of_a_mode(networks, directory, mode):
    line = [os.path.join(directory, "cage-gate"), "--probe", "--json", "--mode"]
    done = subprocess.run([*line, mode], capture_output=True, text=True, timeout=20)
    assert (done.returncode, json.loads(done.stdout)["mode"]) == (0, mode)


def test_probe_without_namespaces(networks, directory):
    line = ["setpriv", "--reuid", str(gates.ORDINARY), "--regid", str(gates.ORDINARY), "--clear-groups", *NO_NAMESPACES, os.path.join(directory, "cage-gate"),
            "--probe", "--json", "--mode"]
    for mode, code, found in (("netns", 78, "none"), ("seccomp", 0, "seccomp"), ("auto", 0, "seccomp")):
        done = subprocess.run([*line, mode], capture_output=True, text=True, timeout=20)
        assert (done.returncode, json.loads(done.stdout)["mode"]) == (code, found)


@pytest.mark.skipif(not shutil.which("strace"), reason="NOT TESTED, there is no strace here")
@pytest.mark.parametrize("call, error, notifier, addfd", (("seccomp", "EBUSY", False, False), ("ioctl", "EINVAL", True, False)))
def test_probe_of_a_host_without_a_notifier(networks, directory, call, error, notifier, addfd):
    """Somebody else's is in use; a kernel that knows no ADDFD_SEND."""
    line = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + call, "-e", "inject=%s:error=%s" % (call, error)]
    done = subprocess.run([*line, os.path.join(directory, "cage-gate"), "--probe", "--json"], capture_output=True, text=True, timeout=60)
    found = json.loads(done.stdout)
    assert (found["seccomp"], found["notifier"], found["addfd_send"]) == (False, notifier, addfd)


@pytest.mark.parametrize("ordinary", (False, True), ids=("root", "user"))
def test_copies_are_made_when_the_launcher_says_go(networks, open_dir, start, ordinary):
    """It may still be writing them while the room is furnished. They belong to the agent."""
    (open_dir / "from").mkdir()
    (open_dir / "from" / "early").write_text("unfinished")
    room = start(["sh", "-c", "cd ~/copy && cat early late && stat -c %u early late && echo >> late"], "--copy", "%s:/home/agent/copy" % (open_dir / "from"),
                 "--env", "HOME=/home/agent", ordinary=ordinary, handoff=True)
    room.take()
    (open_dir / "from" / "early").write_text("one\n")
    (open_dir / "from" / "late").write_text("two\n")
    room.go()
    assert room.finish() == (0, "one\ntwo\n1000\n1000\n", "")
    assert (open_dir / "from" / "late").read_text() == "two\n"


@pytest.fixture
def overlay(open_dir):
    """A directory and a place for the changes of an agent, both of root."""
    for name in ("dir", "state", "state/upper", "state/work", "state/lower"):
        (open_dir / name).mkdir()
    for path in [open_dir / "state", *(open_dir / "state").iterdir()]:
        os.chown(path, 1000, 1000)
    (open_dir / "dir" / "file").write_text("here\n")
    return "%s:%s" % (open_dir / "dir", open_dir / "state")


@pytest.mark.parametrize("options, expected", ((["--mode", "netns"], "netns mounts"), (["--mode", "seccomp"], "seccomp shared"), ([], "netns mounts")))
def test_choose(networks, directory, options, expected):
    done = subprocess.run([os.path.join(directory, "cage-gate"), "--choose", *options], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout, done.stderr) == (0, expected + "\n", "")


def test_choose_without_namespaces(networks, directory):
    line = ["setpriv", "--reuid", str(gates.ORDINARY), "--regid", str(gates.ORDINARY), "--clear-groups", *NO_NAMESPACES, os.path.join(directory, "cage-gate"), "--choose"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout, done.stderr) == (0, "seccomp shared\n", "")


def test_overlay(networks, directory, overlay):
    """Root's own directory, of which the agent is the owner in its room, and which it does not change."""
    place, state = overlay.split(":")
    gate = os.path.join(directory, "cage-gate")
    done = subprocess.run([gate, "--choose", "--overlay", overlay], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout) == (0, "netns overlay\n"), done.stderr
    shutil.rmtree(state + "/work")
    os.mkdir(state + "/work")
    os.chown(state + "/work", 1000, 1000)
    script = "stat -c %u .; cat file; echo changed > file; rm file; echo new > new; ls; ls " + state
    done = subprocess.run([gate, "--mode", "netns", "--overlay", overlay, "--workdir", place, "--env", "PATH=/usr/bin:/bin", "--", "sh", "-c", script], capture_output=True, text=True,
                          timeout=20)
    assert done.stdout == "1000\nhere\nnew\n" and "No such file" in done.stderr
    assert os.listdir(place) == ["file"] and sorted(os.listdir(state + "/upper")) == ["file", "new"]


def test_overlay_of_files_of_others_is_refused(networks, directory, overlay):
    """It could not change them, so it is not said that it can."""
    os.chown(overlay.split(":")[0] + "/file", gates.ORDINARY, gates.ORDINARY)
    gate = os.path.join(directory, "cage-gate")
    done = subprocess.run([gate, "--choose", "--overlay", overlay], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout) == (0, "netns mounts\n")
    done = subprocess.run([gate, "--mode", "netns", "--overlay", overlay, "--", "true"], capture_output=True, text=True, timeout=20)
    assert done.returncode == 78 and overlay.split(":")[0] in done.stderr
