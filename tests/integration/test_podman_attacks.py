"""What an attack on sandboxes of Podman's containers has found: what images say of themselves, what a socket that is bound to a device does, what is
counted, and what sandboxes share."""
import fcntl
import hashlib
import json
import os
import shutil
import signal
import struct
import subprocess
import uuid

import pytest

from cagelib.cage_run import command_line
from cagelib.keeper import read_result
from cagelib.proxy import wait_until
from test_podman import named_box, pod, python, sandbox, sh  # noqa: F401 (fixtures)

F_OFD_SETLK = 37
LOCKED = 0x4361676543616765
ORDERS = {"run.oci.handler": "other"}


# ---- images


@pytest.fixture
def craft(pod, tmp_path):
    """Pulls an image that is the agent's but for what its manifest says; its reference. What the agent's said is put back."""
    made = []

    def digest_of(name):
        return pod("image", "inspect", "--format", "{{.Digest}}", name).strip()

    def make(name, source="localhost/agent", **more):
        oci = tmp_path / ("oci-%d" % len(made))
        pod("save", "--format", "oci-dir", "--output", str(oci), source)
        index = json.loads((oci / "index.json").read_text())
        listed = index["manifests"][0]
        manifest = {**json.loads((oci / "blobs/sha256" / listed["digest"][7:]).read_text()), **more}
        data = json.dumps({k: v for k, v in manifest.items() if v is not None}).encode()
        digest = hashlib.sha256(data).hexdigest()
        (oci / "blobs/sha256" / digest).write_bytes(data)
        listed.update(digest="sha256:" + digest, size=len(data), annotations={"org.opencontainers.image.ref.name": "it"})
        (oci / "index.json").write_text(json.dumps(index))
        made.append("localhost/%s:1" % name)
        pod("tag", pod("pull", "oci:%s:it" % oci).split()[-1], made[-1])
        shutil.rmtree(oci)
        return "localhost/%s@sha256:%s" % (name, digest)

    yield make
    for source in ("localhost/agent", "localhost/dns"):
        make("plain", source, annotations=None, Annotations=None)
    for name in made:
        pod("rmi", "--force", name, check=False)
    assert digest_of("localhost/agent").startswith("sha256:")


def admitted(sandbox, ref, repository="*"):
    """What is printed and said when that image is asked for."""
    rules = {"version": 1, "name": "images", "images": [{"registry": "localhost", "repository": repository}]}
    with sandbox(*sh("echo ran"), options=["--image", "localhost/none", "--admit", ref], policy=rules) as k:
        k.end()
        return k.output()[0], k.text("said")


@pytest.mark.parametrize("key", ["annotations", "Annotations", "ANNOTATIONS", "annotation\u017f", "unknown"])
def test_a_key_of_a_manifest_that_is_spelled_otherwise(sandbox, craft, key):
    """Podman, which is written in Go, takes no account of case."""
    out, said = admitted(sandbox, craft("spelled", **{key: ORDERS}))
    assert out == b"" and "image.annotated" in said, said


def test_annotations_that_describe(sandbox, craft):
    out, said = admitted(sandbox, craft("described", annotations={"org.opencontainers.image.title": "x"}))
    assert out == b"ran\n", said


def test_an_image_has_the_name_that_was_asked_for(sandbox, pod, craft):
    """Podman finds it by its digest, whatever it is called."""
    ref = craft("bad")
    out, said = admitted(sandbox, ref.replace("/bad@", "/good@"), "good")
    assert out == b"" and "image.mismatch" in said and "repository" in said, said
    out, said = admitted(sandbox, ref, "bad")
    assert out == b"ran\n", said


@pytest.mark.parametrize("role", ["agent", "dns"])
def test_annotations_of_another_image_with_the_same_id(sandbox, craft, role):
    """They come with whatever was pulled last, for images that nobody asks a policy about too."""
    craft("elsewhere", "localhost/" + role, annotations=ORDERS)
    with sandbox(*sh("echo ran")) as k:
        r = k.end()
        assert k.output()[0] == b"" and r["reason"] == "room.failed", r
        assert "the container of the %s was made with the annotation run.oci.handler" % role in k.text("said"), k.text("said")


@pytest.mark.parametrize("place, to", [("workspace", "/sys/module"), ("home/agent", "/sys/firmware"), ("tmp", "/usr/share")])
def test_a_place_of_the_agent_that_is_a_link(sandbox, pod, tmp_path, place, to):
    """What is there is copied by the runtime, with all rights: nothing of it is given to the agent."""
    root = tmp_path / "root"
    shutil.copytree(os.path.join(pod.dir, "root-agent"), root, symlinks=True)
    os.makedirs(root / place, exist_ok=True)
    shutil.rmtree(root / place)
    os.symlink(to, root / place)
    with sandbox(*sh("echo ran"), options=["--image", str(root)]) as k:
        r = k.end()
        assert r["reason"] == "room.failed" and k.output()[0] == b"", (r, k.output())
        assert "it is a symbolic link, or below one" in k.text("said"), k.text("said")


# ---- the network


NEIGHBOURS = """
    import errno, socket, struct
    index, done = socket.if_nametoindex("eth0"), {}
    def note(what):
        done[what] = done.get(what, 0) + 1
    for how in ("device", "interface", "message", "unrouted"):
        for i in range(50):
            to = ("11.%d.7.9" % i, 9)
            s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
            try:
                if how in ("device", "unrouted"):
                    s.setsockopt(socket.SOL_SOCKET, 25, b"eth0\\0")
                if how == "unrouted":
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_DONTROUTE, 1)
                if how == "interface":
                    s.setsockopt(0, 50, struct.pack("!I", index))
                if how == "message":
                    s.sendmsg([b"x"], [(0, 8, struct.pack("=III", index, 0, 0))], 0, to)
                else:
                    s.sendto(b"x", to)
                note("sent")
            except OSError as e:
                note(errno.errorcode[e.errno])
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        s.sendto(b"x", ("11.1.1.1", 9))
        note("unbound")
    except OSError as e:
        note("unbound " + errno.errorcode[e.errno])
    print(sorted(done))
    print(open("/proc/net/arp").read(), flush=True)
"""


def test_an_agent_makes_no_neighbours(sandbox, pod):
    """The table of them is one for the whole machine. Who is bound to a device reaches itself then; who is not has no way, at once."""
    with sandbox() as k:
        k.connect()
        out, err, done = k.run(*python(NEIGHBOURS))
        listed = subprocess.run(["nsenter", "--net=/proc/%d/ns/net" % pod.pid("cage-box-agent"), "ip", "neigh"], capture_output=True, text=True,
                                timeout=20, check=True).stdout
        assert done == "exit 0" and b"unbound ENETUNREACH" in out, (out, err)
        assert "11." not in listed and len(listed.splitlines()) <= 8 and b"11." not in out, (listed, out)
        out, _, _ = k.run(*python("""
            import os, socket
            s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, 25, b"eth0\\0"); s.settimeout(5)
            s.connect((os.environ["HTTP_PROXY"][7:-5], 8080)); print("proxy")"""))
        assert out == b"proxy\n"


# ---- what is counted


@pytest.mark.cgroups
def test_buffers_of_tcp_are_memory(sandbox):
    fill = """
        import socket, sys
        l = socket.socket(); l.bind(("127.0.0.1", 0)); l.listen(100)
        keep, sent, most = [], 0, 160 << 20
        while sent < most and len(keep) < 400:
            a = socket.socket(); a.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 22); a.settimeout(1); a.connect(l.getsockname())
            keep += [a, l.accept()[0]]
            a.setblocking(False)
            try:
                while sent < most:
                    sent += a.send(b"x" * 65536)
            except BlockingIOError:
                pass
        print(sent >> 20)"""
    with sandbox(*python(fill), words=["run=--limit", "run=mem=64M,pids=32,cpu=1"]) as k:
        r = k.end()
        out = k.output()[0]
    assert r["reason"] == "oom" or not out or int(out) < 140, (r, out)


@pytest.mark.parametrize("limit, files", [("pids=16", 4096), ("pids=128", 2048), ("pids=1000", 1024), ("pids=1000,files=100", 100)])
def test_open_files_are_bounded(sandbox, limit, files):
    """Those of all processes together, which the machine has a bound for."""
    with sandbox(*python("import resource; print(*resource.getrlimit(resource.RLIMIT_NOFILE))"), words=["run=--limit", "run=mem=256M,cpu=1," + limit]) as k:
        k.end()
        assert k.output()[0] == b"%d %d\n" % (files, files), k.text("said")


def test_programs_for_sockets(sandbox):
    """They take of memory that the machine has once, for all. Upper halves of arguments, which the kernel does not look at, make no difference."""
    script = """
        import ctypes, errno, socket, struct
        libc = ctypes.CDLL(None, use_errno=True)
        code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0xffff))
        program = ctypes.create_string_buffer(struct.pack("H6xQ", 1, ctypes.addressof(code)))
        number = {"x86_64": 54, "aarch64": 208}[__import__("os").uname().machine]
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        def attach(level, option):
            done = libc.syscall(number, s.fileno(), ctypes.c_ulong(level), ctypes.c_ulong(option), program, 16)
            return "attached" if done == 0 else errno.errorcode[ctypes.get_errno()]
        print(*[attach(1, option) for option in (26, 50, 51, 52)])
        high = 1 << 32
        print(sorted({attach(1 | level, option | more) for option in (26, 50, 51, 52) for level, more in ((high, 0), (0, high), (high, high), (high << 20, 0))}))
        for level, option in ((1, 2), (1, 8), (1, 15), (1, 27), (6, 1), (0, 1), (41, 26)):
            t = socket.socket(socket.AF_INET6 if level == 41 else socket.AF_INET, socket.SOCK_STREAM)
            try:
                t.setsockopt(level, option, 1)
            except OSError as e:
                if (level, option) != (1, 27):
                    print(level, option, e)
        print(attach(1, 1000))
        print("end")"""
    with sandbox(*python(script)) as k:
        r = k.end()
        assert k.output()[0].decode().splitlines() == ["EPERM EPERM EPERM EPERM", "['ENOPROTOOPT', 'ENOSYS']", "ENOPROTOOPT", "end"], (r, k.output(), k.text("said"))


# ---- what sandboxes share


def test_sandboxes_share_no_file(tmp_path, pod):
    """One could watch or lock it, and the other would see that."""
    script = """
        import os
        for path in ("/run/cage/door", "/run/cage/inside"):
            st = os.stat(path)
            print(st.st_dev, st.st_ino)"""
    with named_box(tmp_path, pod, "box1") as one, named_box(tmp_path, pod, "box2") as two:
        one.connect()
        two.connect()
        a, b = (set(k.run(*python(script))[0].splitlines()) for k in (one, two))
        assert len(a) == len(b) == 2 and not a & b, (a, b)


def test_locks_of_others_are_not_shown(sandbox, tmp_path):
    """Those of open files are shown in every namespace, with a range that whoever holds it chooses."""
    with (tmp_path / "locked").open("wb") as held, sandbox() as k:
        k.connect()
        fcntl.fcntl(held, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, LOCKED, 1, 0))
        with open("/proc/locks") as shown:
            assert str(LOCKED) in shown.read()
        out, err, done = k.run(*python("""
            import fcntl, os, struct
            own = os.open("/tmp/own", os.O_RDWR | os.O_CREAT)
            fcntl.fcntl(own, %d, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 7, 1, 0))
            print(len(open("/proc/locks").read()))""" % F_OFD_SETLK))
        assert (out, done) == (b"0\n", "exit 0"), (out, err)


# ---- what is left


def rules(address):
    done = subprocess.run(["iptables-save"], capture_output=True, text=True, timeout=20, check=True)
    return [line for line in done.stdout.splitlines() if address + "/32" in line and "CNI-FORWARD" in line]


def leases(name):
    folder = "/var/lib/cni/networks/cage-" + name
    return [f for f in (os.listdir(folder) if os.path.exists(folder) else []) if f[0].isdigit()]


def namespaces():
    return set(os.listdir("/run/netns")) if os.path.exists("/run/netns") else set()


def test_a_podman_that_is_killed_when_it_has_an_address(tmp_path, pod):
    """Podman does not know of it: the address, the network namespace and rules are given back all the same."""
    if json.loads(pod("info", "--format", "json"))["host"]["networkBackend"] != "cni":
        pytest.skip("NOT TESTED, networks are not CNI's")
    name, before = "box" + uuid.uuid4().hex[:8], namespaces()
    k = named_box(tmp_path, pod, name).start()
    try:
        wait_until(lambda: leases(name), 60, "there is no address")
        address = leases(name)[0]
        victims = [int(p) for p in filter(str.isdigit, os.listdir("/proc")) if os.path.basename((command_line(int(p)) or [""])[0]) == "podman"
                   and "cage-" + name in " ".join(command_line(int(p)))]
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        k.process.wait(120)
    finally:
        if k.process.poll() is None:
            k.process.kill()
            k.process.wait(10)
    assert read_result(k.dir)["state"] == "failed"
    done = pod.remove(name)
    assert done.returncode == 0, done.stderr
    assert leases(name) == [] and not os.path.exists("/var/lib/cni/networks/cage-" + name)
    assert not [f for f in os.listdir("/var/lib/cni/results") if "cage-%s-" % name in f] and rules(address) == []
    assert pod.containers() == [] and pod.networks() == []


def orphan(name, address, container):
    """As CNI leaves it: a namespace with that address, its lease, its result, its rules."""
    ns = "netns-" + uuid.uuid4().hex
    run = lambda *w: subprocess.run(w, check=True, timeout=20, capture_output=True)  # noqa: E731
    run("ip", "netns", "add", ns)
    run("ip", "-n", ns, "address", "add", address + "/29", "dev", "lo")
    run("ip", "-n", ns, "link", "set", "lo", "up")
    os.makedirs("/var/lib/cni/networks/cage-" + name)
    for path, text in (("/var/lib/cni/networks/cage-%s/%s" % (name, address), container + "\r\neth0"), ("/var/lib/cni/networks/cage-%s/lock" % name, ""),
                       ("/var/lib/cni/results/cage-%s-%s-eth0" % (name, container), "{}")):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="ascii") as f:
            f.write(text)
    subprocess.run(["iptables", "-N", "CNI-FORWARD"], timeout=20, capture_output=True)
    run("iptables", "-A", "CNI-FORWARD", "-s", address + "/32", "-j", "ACCEPT")
    run("iptables", "-A", "CNI-FORWARD", "-d", address + "/32", "-m", "conntrack", "--ctstate", "RELATED,ESTABLISHED", "-j", "ACCEPT")
    return ns


def test_what_a_killed_podman_has_left(pod):
    name, container, address = "box" + uuid.uuid4().hex[:8], uuid.uuid4().hex * 2, "10.214.77.3"
    ns = orphan(name, address, container)
    done = pod.remove(name)
    assert done.returncode == 0 and "given back" in done.stderr, done.stderr
    assert ns not in namespaces() and rules(address) == [] and leases(name) == []
    assert not os.path.exists("/var/lib/cni/networks/cage-" + name) and not os.path.exists("/var/lib/cni/results/cage-%s-%s-eth0" % (name, container))


def test_what_stays_is_said(pod):
    name = "box" + uuid.uuid4().hex[:8]
    folder = "/var/lib/cni/networks/cage-" + name
    os.makedirs(folder + "/other")
    try:
        done = pod.remove(name)
        assert done.returncode == 1 and "something of the sandbox %s is left" % name in done.stderr, done
    finally:
        shutil.rmtree(folder)


# ---- files


def test_what_is_shown_in_the_workspace_stays_this_machines(sandbox, tmp_path):
    folder = tmp_path / "shown"
    folder.mkdir()
    (folder / "x").write_text("x")
    with sandbox(*sh("cat shown/x"), words=["run=--bind-ro", "run=%s:/workspace/shown" % folder]) as k:
        k.end()
        assert k.output()[0] == b"x", k.text("said")
    assert os.stat(folder).st_uid == 0 and os.stat(folder / "x").st_uid == 0
