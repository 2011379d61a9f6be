"""Sandboxes of Podman's containers, with a real Podman of the test's own: what an agent can reach, what it can see, what is
kept of secrets, and that nothing is left, whoever is killed when."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import textwrap
import time
import uuid

import pytest

from cagelib.cage_run import children, command_line
from cagelib.keeper import Keeper, read_result
from cagelib.podman import HOST, LAN, NoPodman, allows, listening, podman
from cagelib.proxy import binary, is_alive, wait_until
from cagelib.service import API, Service, fill_log
from cagelib.signing import make_key, payload, sign

SECRET = "sk-very-secret-value-of-this-test-0123456789"


@pytest.fixture(scope="module")
def pod():
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED, containers of sandboxes are made by root")
    try:
        with podman() as made:
            yield made
            assert made.containers() == [] and made.networks() == []
    except NoPodman as why:
        pytest.skip("NOT TESTED, %s" % why)


@pytest.fixture
def sandbox(tmp_path, pod):
    """Makes sandboxes, and holds each to it that nothing of it is left."""
    made = []

    def make(*command, words=(), options=(), run=(), **more):
        made.append(Keeper(tmp_path / ("box%d" % len(made)), command, words=["pod=" + w for w in [*pod.options, *options]] + list(words),
                           options=run, **more))
        return made[-1]

    yield make
    for keeper in made:
        own = keeper.text("rundir")
        assert not own or not os.path.exists(own), own
    assert pod.containers() == [] and pod.networks() == []


def sh(script):
    return "sh", "-c", script


def python(script):
    return "python3", "-c", textwrap.dedent(script)


def pod_process(keeper):
    return [p for p in children(keeper.process.pid) if os.path.basename(command_line(p)[0]) == "cage-pod"][0]


@pytest.fixture
def listener():
    with listening() as server:
        yield server


# ---- a command


@pytest.mark.cgroups
def test_a_command(sandbox):
    with sandbox(*sh("echo out; echo err >&2; pwd; id -u; exit 3")) as k:
        r = k.end()
        out, err = k.output()
        assert re.fullmatch(rb"out\n/workspace\n20\d{5}\n", out) and err == b"err\n", (out, k.text("said"))
    assert (r["state"], r["reason"], r["exit"]) == ("failed", "exit", "3")
    assert int(r["cpu_us"]) > 0 and int(r["memory_peak"]) > 100000, r


@pytest.mark.cgroups
def test_what_there_is_of_it(sandbox, pod):
    """As the containers are, by Podman itself."""
    with sandbox(options=["--image", "localhost/agent"]) as k:
        k.connect()
        names = sorted(pod.containers())
        assert names == ["cage-box-agent", "cage-box-dns", "cage-box-proxy"] and pod.networks() == ["cage-box"]
        for name in names:
            c = pod.inspect(name)
            host = c["HostConfig"]
            assert host["ReadonlyRootfs"] and not host["Privileged"] and c["EffectiveCaps"] in (None, []) and c["BoundingCaps"] in (None, [])
            assert "no-new-privileges" in host["SecurityOpt"] and any(o.startswith("seccomp=") for o in host["SecurityOpt"])
            assert c["Config"]["User"] not in ("", "0", "root") and host["PidsLimit"] > 0
            assert c["Config"]["Labels"]["cage.sandbox"] == "box" and c["Config"]["Labels"]["cage.state"] == pod.state
        agent = pod.inspect("cage-box-agent")
        assert list(agent["NetworkSettings"]["Networks"]) == ["cage-box"]
        network = json.loads(pod("network", "inspect", "cage-box"))[0]
        assert network["internal"] and not network["dns_enabled"]
        out, _, done = k.sh("grep -E 'Cap|NoNew|Seccomp:' /proc/self/status; touch /x || touch /usr/x || touch /etc/x || echo no")
        assert done == "exit 0" and out.count(b"0000000000000000") == 5 and b"NoNewPrivs:\t1" in out and b"Seccomp:\t2" in out
        assert out.endswith(b"no\n")


def test_limits(sandbox):
    with sandbox(options=(), disk="4M") as k:
        k.connect()
        _, _, done = k.sh("head -c 8000000 /dev/zero > /workspace/big")
        assert done != "exit 0"
        out, err, done = k.run(*python("""
            import os
            s = os.statvfs("/workspace"); print(s.f_blocks * s.f_frsize)
            print(os.stat("/workspace").st_uid)
            open("/tmp/x", "w").close()"""))
        assert done == "exit 0" and re.fullmatch(rb"4194304\n20\d{5}\n", out), (out, err)


@pytest.mark.cgroups
def test_memory_and_processes(sandbox):
    with sandbox(*python("x = bytearray(400 << 20)"), words=["run=--limit", "run=mem=64M,pids=32,cpu=0.5"]) as k:
        r = k.end()
    assert r["state"] == "failed" and r["reason"] == "oom" and int(r["oom"]) > 0 and 0 < int(r["memory_peak"]) <= 64 << 20, r
    with sandbox(*python("""
            import os, time
            n = 0
            try:
                while n < 200:
                    if os.fork() == 0:
                        time.sleep(60)
                    n += 1
            except OSError:
                pass
            print(n)"""), words=["run=--limit", "run=mem=256M,pids=32,cpu=1"]) as k:
        k.end()
        assert int(k.output()[0]) < 32


# ---- users of this machine


def named_box(tmp_path, pod, name):
    return Keeper(tmp_path / name, (), words=["pod=" + w for w in pod.options] + ["run=--sandbox", "run=" + name, "id=" + name])


def test_each_sandbox_has_users_of_its_own(tmp_path, pod):
    """By the place of its network in the pool: an agent and helpers that no other sandbox has."""
    found = []
    with named_box(tmp_path, pod, "box1") as one, named_box(tmp_path, pod, "box2") as two:
        for k, name in ((one, "box1"), (two, "box2")):
            k.connect()
            out, _, _ = k.sh("id; echo ~agent; touch /workspace/a ~/b; ls -ld $HOME | grep -c 'agent *agent'")
            ids = {role: os.stat("/proc/%d" % pod.pid("cage-%s-%s" % (name, role))).st_uid for role in ("agent", "proxy", "dns")}
            place = int.from_bytes(socket.inet_aton(k.run(*python("import os; print(os.environ['HTTP_PROXY'][7:-5])"))[0].decode().strip()), "big")
            place = (place - int.from_bytes(socket.inet_aton("10.214.0.0"), "big")) // 8
            assert ids == {"agent": 2000000 + 2 * place, "proxy": 2000001 + 2 * place, "dns": 2000001 + 2 * place}, (ids, place)
            uid = str(ids["agent"]).encode()
            assert out.splitlines() == [b"uid=%s(agent) gid=%s(agent) groups=%s(agent)" % (uid, uid, uid), b"/home/agent", b"1"], out
            found += ids["agent"], ids["proxy"]
    assert len(set(found)) == 4, found


def test_one_agent_does_not_starve_another(tmp_path, pod):
    """What the kernel counts by user: instances of inotify here, all that there are for one."""
    take = """
        import ctypes, sys, time
        libc, n = ctypes.CDLL(None), 0
        while n < 100000 and libc.inotify_init1(0) >= 0:
            n += 1
        print(n > 0, flush=True)
        %s"""
    with named_box(tmp_path, pod, "box1") as one, named_box(tmp_path, pod, "box2") as two:
        one.connect()
        two.connect()
        one.send(b"R", 7, b"".join(w.encode() + b"\0" for w in ("", *python(take % "time.sleep(1000)"))))
        assert one.read() == (b"o", 7, b"True\n")
        assert two.run(*python(take % "")) == (b"True\n", b"", "exit 0")


def test_files_in_an_images_home_are_the_agents(sandbox, pod, tmp_path):
    """Whoever they belong to in the image; and a home that leads elsewhere changes nothing there."""
    victim = tmp_path / "victim"
    (victim / "agent").mkdir(parents=True)
    for name, prepare in (("home", None), ("led", str(victim))):
        root = os.path.join(pod.dir, name)
        shutil.copytree(os.path.join(pod.dir, "root-agent"), root, symlinks=True)
        os.makedirs(root + "/home/agent/sub", exist_ok=True)
        os.makedirs(root + "/workspace", exist_ok=True)
        for path in ("home/agent/.profile", "home/agent/sub/x", "workspace/w"):
            with open(os.path.join(root, path), "w", encoding="ascii") as f:
                f.write("text\n")
            os.chmod(os.path.join(root, path), 0o600)
        os.symlink("/etc/passwd", root + "/home/agent/link")
        for path in ("home/agent", "home/agent/sub", "home/agent/.profile", "home/agent/sub/x", "workspace", "workspace/w"):
            os.chown(os.path.join(root, path), 1000, 1000)
        if prepare:
            shutil.rmtree(root + "/home")
            os.symlink(prepare, root + "/home")
        script = "cat ~/.profile && echo more >> ~/.profile && echo y > ~/sub/x && touch ~/sub/z && test -L ~/link && echo more >> w && cat w"
        with sandbox(*sh("echo ran" if prepare else script), options=["--image", root]) as k:
            r = k.end()
            assert prepare or (r["state"], k.output()[0]) == ("succeeded", b"text\ntext\nmore\n"), (r, k.output(), k.text("said"))
        assert os.stat("/etc/passwd").st_uid == 0
    assert os.stat(victim / "agent").st_uid == os.stat(victim).st_uid == 0


# ---- what can be reached


REACH = """
    import errno, socket, sys
    def tcp(address, port, family=socket.AF_INET):
        s = socket.socket(family, socket.SOCK_STREAM)
        s.settimeout(1)
        try:
            s.connect((address, port))
        except OSError as e:
            return errno.errorcode.get(e.errno, "timeout")
        return "open"
    import re, os
    proxy = re.search("//(.*):8080", os.environ["HTTP_PROXY"]).group(1)
    base = proxy.rsplit(".", 1)
    net = int(base[1]) & ~7
    port = %d
    print("helpers", tcp(proxy, 8080), tcp(proxy, 53))
    print("others of the proxy", sorted({tcp(proxy, p) for p in (22, 80, 443, 8081, 8082, port)}))
    around = {n: tcp("%%s.%%d" %% (base[0], net + n), port) for n in range(8)}
    print("around", sorted({v for n, v in around.items() if n not in (2, 3)}))
    print("world", sorted({tcp(a, port) for a in %r}))
    print("v6", sorted({tcp(a, port, socket.AF_INET6) for a in ("::ffff:10.88.0.1", "2001:db8::1", "fe80::1%%eth0", "fe80::1%%2")}))
    for family, kind, name in ((socket.AF_PACKET, socket.SOCK_RAW, "packet"), (socket.AF_INET, socket.SOCK_RAW, "raw"), (40, socket.SOCK_STREAM, "vsock")):
        try:
            socket.socket(family, kind, 1 if name == "raw" else 0)
            print(name, "open")
        except OSError as e:
            print(name, "refused")
    u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    for a in ("8.8.8.8", "10.88.0.1", "255.255.255.255", "224.0.0.251"):
        try:
            u.sendto(b"x", (a, 53))
            print("udp", a, "sent")
        except OSError as e:
            print("udp", a, "refused")
"""


def addresses():
    """All IPv4 addresses of this machine."""
    done = subprocess.run(["ip", "-json", "-4", "address"], capture_output=True, text=True, timeout=20, check=True)
    return [a["local"] for link in json.loads(done.stdout) for a in link["addr_info"] if not a["local"].startswith("127.")]


def test_nothing_but_proxy_and_dns_is_reached(sandbox, listener):
    with sandbox() as k:
        k.connect()
        assert {LAN, HOST} <= set(addresses())
        world = sorted(set(addresses()) | {"1.1.1.1", "169.254.169.254"})
        out, err, done = k.run(*python(REACH % (listener.server_address[1], world)))
        assert done == "exit 0", err
        lines = out.decode().splitlines()
    assert lines[0] == "helpers open open", lines
    assert lines[1] == "others of the proxy ['ECONNREFUSED']", lines
    assert "open" not in lines[2] and "ECONNREFUSED" not in lines[2], lines
    assert lines[3] == "world ['ENETUNREACH']", lines
    assert "open" not in lines[4] and "ECONNREFUSED" not in lines[4], lines
    assert lines[5:] == ["packet refused", "raw refused", "vsock refused", *("udp %s refused" % a for a in (
        "8.8.8.8", "10.88.0.1", "255.255.255.255", "224.0.0.251"))], lines
    assert listener.seen == []


def test_one_sandbox_is_not_reached_from_another(tmp_path, pod):
    with named_box(tmp_path, pod, "a") as a, named_box(tmp_path, pod, "b") as b:
        a.connect(), b.connect()
        own = [k.sh("echo $HTTP_PROXY; ip -4 -o addr show eth0")[0].decode() for k in (a, b)]
        proxy, agent = own[1].split()[0][7:].split(":")[0], own[1].split("inet ")[1].split("/")[0]
        assert own[0] != own[1]
        for address in (proxy, agent):
            out, _, _ = a.run(*python("""
                import socket
                s = socket.socket(); s.settimeout(1)
                try:
                    s.connect(("%s", 8080)); print("open")
                except OSError as e:
                    print(e.errno)""" % address))
            assert out == b"101\n", out  # ENETUNREACH
    assert pod.containers() == [] and pod.networks() == []


def test_the_way_out_is_the_policy(sandbox, listener):
    with sandbox(policy=allows(listener, "plain.test")) as k:
        k.connect()
        script = """
            import urllib.request, urllib.error
            for url in ("http://plain.test/a", "http://other.test/b"):
                try:
                    print(urllib.request.urlopen(url, timeout=20).status)
                except urllib.error.HTTPError as e:
                    print(e.code)"""
        out, err, done = k.run(*python(script))
        assert (out, done) == (b"200\n403\n", "exit 0"), (err, k.text("said"))
        out, _, _ = k.run(*python("""
            import socket
            for name in ("plain.test", "other.test"):
                try:
                    print(socket.gethostbyname(name))
                except OSError:
                    print("none")"""))
        assert out == b"10.88.0.1\n192.0.2.1\n", out  # what is pinned, and the sinkhole
        assert [p for p, _ in listener.seen] == ["/a"]
        # the policy anew
        k.set_policy(allows(listener, "other.test"))
        k.send(b"H", 3)
        assert k.until_done(3)[2] == "exit 0", k.text("said")
        out, _, _ = k.run(*python(script))
        assert out == b"403\n200\n"
        k.set_policy("version: 1\nname: [")
        k.send(b"H", 4)
        assert k.until_done(4)[2] == "exit 1"
    lines = [json.loads(x) for x in k.text("log.jsonl").splitlines()]
    assert {x.get("decision") for x in lines} >= {"allow", "block"}
    assert {x["sandbox"] for x in lines if "sandbox" in x} == {"box"}


def test_what_helpers_say_is_bounded(sandbox):
    """LIMIT_POD_HEARD: later answers to reloads are heard all the same."""
    with sandbox() as k:
        k.connect()
        for n in range(400):
            k.send(b"H", 3)
            assert k.until_done(3)[2] == "exit 0", n
            if "more than is kept" in k.text("said"):
                break
        assert "more than is kept" in k.text("said") and len(k.text("said")) < 40000
        for _ in range(3):
            k.send(b"H", 3)
            assert k.until_done(3)[2] == "exit 0"


def test_a_machine_with_an_address_in_that_network_is_refused(sandbox, pod, tmp_path):
    """A bridge that gets one, as other network plugins make it: nothing is run."""
    wrapper = tmp_path / "podman"
    wrapper.write_text("#!/bin/bash\nargs=()\nfor w; do [ \"$w\" = --internal ] || args+=(\"$w\"); done\nexec %s \"${args[@]}\"\n"
                       % pod.options[pod.options.index("--podman") + 1])
    wrapper.chmod(0o755)
    with sandbox(*sh("echo ran"), options=["--podman", str(wrapper)]) as k:
        r = k.end()
        assert k.output() == (b"", b"")
    assert (r["state"], r["reason"]) == ("failed", "room.failed"), r
    assert "address in the network of the agent" in r["message"], r


def test_subnets_are_taken_one_after_the_other(sandbox, pod):
    """Four there are: with three of others the fourth is found, then none."""
    names = ["other%d" % n for n in range(4)]
    try:
        for n, name in enumerate(names[:3]):
            pod("network", "create", "--internal", "--disable-dns", "--subnet", "10.215.0.%d/29" % (8 * n), name)
        with sandbox(*sh("echo $HTTP_PROXY"), options=["--subnets", "10.215.0.0/27"]) as k:
            k.end()
            assert k.output()[0] == b"http://10.215.0.26:8080\n", k.text("said")
        pod("network", "create", "--internal", "--disable-dns", "--subnet", "10.215.0.24/29", names[3])
        with sandbox("true", options=["--subnets", "10.215.0.0/27"]) as k:
            r = k.end()
        assert r["reason"] == "room.failed" and "network create" in r["message"] and "already" in r["message"], r
    finally:
        for name in names:
            pod("network", "rm", "--force", name, check=False)


# ---- what can be seen


def test_no_file_of_the_others_is_seen(sandbox, pod):
    with sandbox() as k:
        k.connect()
        out, _, done = k.sh("cat /proc/1/environ /proc/1/root/etc/passwd /proc/1/maps 2>/dev/null | head -c 10; "
                            "ls /run/cage; find / -xdev \\( -name 'ca.key' -o -name 'log.jsonl*' -o -name 'policy.yaml' -o -name '*.key' \\) 2>/dev/null; "
                            "for i in /proc/[0-9]*; do cat $i/comm; done")
        assert done == "exit 0"
        assert set(out.split()) <= {b"door", b"inside", b"sh", b"cat", b"kit", b"cage-inside"}, out
        for script in ("import os; os.unshare(0x10000000)", "import ctypes,os; l=ctypes.CDLL(None,use_errno=True); r=l.mount(b'x',b'/tmp',b'tmpfs',0,None); "
                       "assert r==0", "import ctypes; l=ctypes.CDLL(None); assert l.unshare(0x20000) == 0",
                       "import os; os.chroot('/tmp')", "import os; os.setuid(0)", "open('/proc/sys/net/ipv6/conf/all/disable_ipv6','w')",
                       "import os; os.mknod('/tmp/x', 0o60600, os.makedev(254, 0)); open('/tmp/x','rb')",
                       "open('/proc/sysrq-trigger','w')", "open('/proc/1/mem','rb')", "import os; os.kill(1, 9); import time; time.sleep(0.2); 1/0"):
            _, _, done = k.run("python3", "-c", script)
            assert done != "exit 0", script
        assert k.run("python3", "-c", "import ctypes; ctypes.CDLL(None).syscall(0x40000000 + 39)")[2] == "signal 31"  # of x32
        assert k.sh("echo alive")[0] == b"alive\n"


def test_secrets_are_nowhere_but_in_the_proxy(sandbox, pod, listener):
    rules = allows(listener, "plain.test", rule={"secrets": ["key"], "plaintext": True})
    rules["secrets"] = [{"id": "key", "from": {"env": "API_KEY"}, "in": ["header:authorization"]}]
    with sandbox(policy=rules, env={"CAGE_SECRET_0": SECRET}, words=["run=--secret", "run=key=env:CAGE_SECRET_0", "env=SAID=" + "v" * 40]) as k:
        k.connect()
        out, _, _ = k.sh("env")
        assert SECRET.encode() not in out and b"API_KEY=" in out and b"SAID=vvvv" in out
        out, err, _ = k.run(*python("""
            import os, urllib.request
            r = urllib.request.Request("http://plain.test/s", headers={"Authorization": "Bearer " + os.environ["API_KEY"]})
            print(urllib.request.urlopen(r, timeout=20).status)"""))
        assert out == b"200\n" and listener.seen[-1][1]["Authorization"] == "Bearer " + SECRET, (out, err)
        inspected = pod("inspect", *pod.containers()) + pod("ps", "--all", "--no-trunc", "--format", "json")
        assert SECRET not in inspected and "v" * 40 not in inspected
        for place in (pod.dir, k.dir, k.rundir()):
            found = subprocess.run(["grep", "-rlsF", "--devices=skip", SECRET, place], capture_output=True, text=True, timeout=60)
            assert found.stdout == "", found.stdout
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as f:
                    line = f.read()
                with open("/proc/%s/environ" % pid, "rb") as f:
                    env = f.read()
            except OSError:
                continue
            assert SECRET.encode() not in line, line
            assert SECRET.encode() not in env or os.path.basename(line.split(b"\0")[0]) in (b"cage-keeper", b"cage-pod") or int(pid) == os.getpid(), line


# ---- ends


SENDS = """
import errno, socket, struct
index = socket.if_nametoindex("eth0")
def sent(send):
    try:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        send(s)
        return "sent"
    except OSError as e:
        return errno.errorcode[e.errno]
def by_device(s, to):
    s.setsockopt(socket.SOL_SOCKET, 25, b"eth0\\0")
    s.sendto(b"device", to)
def by_interface(s, to):
    s.setsockopt(0, 50, struct.pack("!I", index))
    s.sendto(b"interface", to)
def by_message(s, to):
    s.sendmsg([b"message"], [(0, 8, struct.pack("=III", index, 0, 0))], 0, to)
for to in %r:
    print(to, *(sent(lambda s: how(s, (to, 9999))) for how in (by_device, by_interface, by_message)), flush=True)
"""


def test_t36_nothing_is_sent_past_the_helpers(sandbox, pod):
    """To each address of this machine, and to all, by ways on which routes do not count: this machine hears nothing."""
    targets = ["10.88.0.1", LAN, "255.255.255.255", "224.0.0.1", "239.1.2.3"]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("0.0.0.0", 9999))
        s.settimeout(2)
        with sandbox(*python(SENDS % targets)) as k:
            k.end()
            out, err = k.output()
        assert out.count(b"sent") >= 3 and err == b"", (out, err)
        with pytest.raises(socket.timeout):
            s.recvfrom(100)
        s.sendto(b"heard", (LAN, 9999))
        assert s.recv(100) == b"heard"


def test_t36_the_proxy_is_not_heard_in_the_network_that_leads_out(sandbox, pod, listener):
    """A neighbour there that sends to the proxy's inner address by way of its outer one gets no answer, from dns neither."""
    with sandbox(policy=allows(listener, "plain.test")) as k:
        k.connect()
        inner = k.run(*python("import os; print(os.environ['HTTP_PROXY'][7:-5])"))[0].decode().strip()
        outer = pod.inspect("cage-box-proxy")["NetworkSettings"]["Networks"]["podman"]["IPAddress"]
        subprocess.run(["ip", "route", "add", inner + "/32", "via", outer], check=True, timeout=20)
        try:
            with socket.socket() as s:
                s.settimeout(3)
                with pytest.raises(OSError):
                    s.connect((inner, 8080))
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                s.settimeout(2)
                s.connect((inner, 53))
                s.send(bytes.fromhex("123401000001000000000000" "05706c61696e0474657374000001" "0001"))
                with pytest.raises(OSError):
                    s.recv(512)
        finally:
            subprocess.run(["ip", "route", "del", inner + "/32"], check=True, timeout=20)
        assert k.run(*python("import urllib.request; print(urllib.request.urlopen('http://plain.test/a', timeout=5).status)"))[0] == b"200\n"


def test_no_directory_of_addresses_is_left(tmp_path, pod):
    name = "box" + uuid.uuid4().hex[:8]
    with named_box(tmp_path, pod, name) as k:
        k.connect()
        k.send(b"K", 0, b"asked")
        k.end()
    assert not os.path.exists("/var/lib/cni/networks/cage-" + name)


def test_all_probes_of_cage_verify(sandbox):
    with sandbox() as k:
        k.connect()
        out, err, how = k.run("/run/cage/inside", "--verify")
        assert how == "exit 0" and b" probes, 0 surprises" in out, (out, err)


def monitors(pod):
    """The conmon processes of Podman's containers of this test."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        line = command_line(int(pid)) if is_alive(int(pid)) else []
        if line and os.path.basename(line[0]) == "conmon" and any(w.startswith(pod.dir) for w in line) and "cage-box-" in " ".join(line):
            found.append(int(pid))
    return found


def test_a_container_that_podman_has_forgotten(pod):
    """As after a podman that was killed when the container's first process was there, and not yet noted: it ends with the rest."""
    state = os.path.join(pod.dir, "store", "libpod", "bolt_state.db")
    shutil.copy(state, state + ".before")
    options = ("--network", "none", "--ulimit", "nofile=1024:4096", "--ulimit", "nproc=4096:4096")
    for name in ("cage-box-dns", "cage-other-dns"):
        pod("run", "--detach", "--name", name, *options, "localhost/agent", "sleep", "1000")
    first = {name: pod.pid(name) for name in ("cage-box-dns", "cage-other-dns")}
    shutil.move(state + ".before", state)
    assert pod.containers() == [] and len(monitors(pod)) == 1
    done = subprocess.run([binary("cage-pod"), *pod.options, "remove", "box"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0 and "cage-box-dns: Podman does not know it" in done.stderr, done.stderr
    assert monitors(pod) == [] and not is_alive(first["cage-box-dns"]) and is_alive(first["cage-other-dns"])
    assert subprocess.run([binary("cage-pod"), *pod.options, "remove", "other"], timeout=60, check=False).returncode == 0
    assert not is_alive(first["cage-other-dns"])


def test_a_proxy_that_is_killed(sandbox, pod, listener):
    """Nothing gets out any more, and what runs goes on."""
    with sandbox(policy=allows(listener, "plain.test")) as k:
        k.connect()
        os.kill(pod.pid("cage-box-proxy"), signal.SIGKILL)
        wait_until(lambda: "nothing gets out any more" in k.text("said"), 30, "nobody says so")
        out, _, done = k.run(*python("""
            import urllib.request
            try:
                urllib.request.urlopen("http://plain.test/a", timeout=5)
                print("out")
            except OSError:
                print("nothing")"""))
        assert (out, done) == (b"nothing\n", "exit 0") and listener.seen == []
        k.send(b"H", 3)
        assert k.until_done(3)[2] == "exit 1"  # nobody is there to load a policy


@pytest.mark.cgroups
def test_asked_to_end(sandbox, pod):
    with sandbox(*sh("sleep 1000")) as k:
        k.connect()
        k.send(b"K", 0, b"asked")
        r = k.end()
    assert (r["state"], r["reason"]) == ("killed", "asked")


@pytest.mark.parametrize("who", ["pod", "keeper", "both"])
@pytest.mark.parametrize("when", ["network", "containers", "running"])
def test_who_is_killed_leaves_nothing(tmp_path, pod, who, when):
    """Whatever is left then, and no keeper removes, the service does; here it is asked for by hand."""
    k = Keeper(tmp_path / "box", sh("sleep 1000"), words=["pod=" + w for w in pod.options])
    k.start()
    try:
        wait_until(lambda: pod.networks() if when == "network" else "cage-box-proxy" in pod.containers(), 30, "nothing is made")
        if when == "running":
            k.connect()
        victim = pod_process(k)
        k.remember()
        for pid in {"pod": [victim], "keeper": [k.process.pid], "both": [k.process.pid, victim]}[who]:
            os.kill(pid, signal.SIGKILL)
        k.process.wait(60)
        if who == "pod":
            r = read_result(k.dir)
            assert (r["state"], r["reason"]) == ("failed", "room.failed"), r
        wait_until(lambda: not is_alive(victim), 60, "cage-pod goes on")
    finally:
        k.process.kill()
        k.process.wait(10)
        if k.sock:
            k.sock.close()
    if who != "both":
        assert pod.containers() == [] and pod.networks() == []
    done = pod.remove("box")
    assert done.returncode == 0, done.stderr
    assert pod.remove("box").returncode == 0
    assert pod.containers() == [] and pod.networks() == []
    run = k.text("rundir")
    if run and os.path.exists(run):
        subprocess.run(["rm", "-rf", run], check=True, timeout=20)


def test_a_podman_that_hangs(sandbox, tmp_path):
    """It is killed when its time is over; all that waits for it ends."""
    hang = tmp_path / "podman"
    hang.write_text("#!/bin/sh\nexec sleep 1000\n")
    hang.chmod(0o755)
    with sandbox(*sh("true"), options=["--podman", str(hang)]) as k:
        wait_until(lambda: children(k.process.pid), 20, "nothing is started")
        k.connect(ready=False)
        began = time.monotonic()
        k.send(b"K", 0, b"asked")
        r = k.end(200)
        assert time.monotonic() - began < 190
    assert r["state"] == "killed"


@pytest.mark.parametrize("how", ["keeper", "signal"])
def test_the_end_while_an_image_is_looked_at(sandbox, pod, tmp_path, how):
    """Podman does not answer what it is asked of the image."""
    slow = tmp_path / "podman"
    slow.write_text("#!/bin/sh\ncase \" $* \" in *' image inspect '*) exec sleep 1000;; esac\nexec %s \"$@\"\n" % pod.program)
    slow.chmod(0o755)
    rules = {"version": 1, "name": "images", "images": [{"registry": "localhost", "repository": "agent"}]}
    with sandbox(*sh("echo ran"), options=["--podman", str(slow), "--admit", "localhost/agent@sha256:" + "0" * 64], policy=rules) as k:
        def asking():
            return [c for p in children(k.process.pid) for c in children(p) if command_line(c)[:2] == ["sleep", "1000"]]
        wait_until(asking, 30, "nobody asks")
        asks = asking()
        began = time.monotonic()
        if how == "keeper":
            k.connect(ready=False)
            k.send(b"K", 0, b"asked")
        else:
            os.kill(pod_process(k), signal.SIGTERM)
        r = k.end()
        assert time.monotonic() - began < 20 and not [p for p in asks if is_alive(p)], k.text("said")
    assert r["state"] == ("killed" if how == "keeper" else "failed"), r


def test_a_policy_that_is_wrong(sandbox):
    with sandbox("true", policy="version: 1\nname: x\nrulez: []\n") as k:
        r = k.end()
    assert (r["state"], r["reason"]) == ("failed", "policy") and "rulez" in r["message"]


def test_an_image_that_is_not_there(sandbox):
    with sandbox("true", options=["--image", "localhost/none"]) as k:
        r = k.end()
    assert (r["state"], r["reason"]) == ("failed", "room.failed") and "localhost/none" in r["message"]


def test_a_directory_as_root(sandbox, pod):
    root = os.path.join(pod.dir, "root-agent")
    before = sorted(os.listdir(root)) + sorted(os.listdir(root + "/etc"))
    with sandbox(*sh("echo here; touch /usr/x; touch /x"), options=["--image", root]) as k:
        r = k.end()
        assert k.output()[0] == b"here\n", (r, k.text("said"))
    assert sorted(os.listdir(root)) + sorted(os.listdir(root + "/etc")) == before


# ---- an agent that is not locked in


def doctored(tmp_path, pod, edit):
    """A podman whose line for the agent's container is another one: edit is Python over its words, the list a."""
    wrapper = tmp_path / "podman"
    wrapper.write_text("#!/usr/bin/python3\nimport os, sys\na = sys.argv[1:]\nif 'cage-box-agent' in a and 'run' in a:\n    %s\nos.execv(%r, ['podman', *a])\n"
                       % (edit, pod.options[pod.options.index("--podman") + 1]))
    wrapper.chmod(0o755)
    return ["--podman", str(wrapper)]


def other_door(tmp_path, script):
    """Words for doctored(): that script is the first program of the agent's container."""
    door = tmp_path / "door"
    door.write_text("#!/bin/sh\n" + script + "\n")
    door.chmod(0o755)
    return "a = ['%s:/run/cage/door:ro' if w.endswith(':/run/cage/door:ro') else w for w in a]" % door


def pod_alone(tmp_path, pod, options, *command):
    """cage-pod without a keeper: its code, what the command printed, what was said."""
    (tmp_path / "policy.yaml").write_text("version: 1\nname: x\n")
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        line = [binary("cage-pod"), *pod.options, *options, "run", "--policy", str(tmp_path / "policy.yaml"), "--log", str(tmp_path / "log"), "--ca-dir",
                str(tmp_path / "ca"), "--sandbox", "box", "--control", "fd:%d" % theirs.fileno(), "--socks", "unix:%s/socks" % tmp_path, "--tools",
                "unix:%s/tools" % tmp_path, "--tmpfs", "/workspace:4M", "--", *command]
        done = subprocess.run(line, pass_fds=[theirs.fileno()], capture_output=True, timeout=90, stdin=subprocess.DEVNULL)
    assert pod.containers() == [] and pod.networks() == []
    return done.returncode, done.stdout, done.stderr.decode()


NOT_LOCKED_IN = {
    "network": ("a.insert(a.index('run') + 1, '--network=podman')", "an address other than its own"),
    "rights": ("a.remove('--cap-drop=all')", "of the agent is not 0"),
    "root": ("a.insert(a.index('--hostname=cage'), '--user=0:0')", "would be root"),
    "killed": ("cat <&3 >/dev/null; kill -9 $$", ""),
    "well": ("cat <&3 >/dev/null; exit 0", ""),
    "at once": ("exit 0", ""),
}


@pytest.mark.parametrize("how", NOT_LOCKED_IN)
def test_an_agent_that_can_not_be_locked_in(tmp_path, pod, sandbox, how):
    """Whatever its door ends with: that is the end of no sandbox that went well."""
    edit, said = NOT_LOCKED_IN[how]
    if not edit.startswith("a."):
        edit = other_door(tmp_path, edit)
    options = doctored(tmp_path, pod, edit)
    code, out, text = pod_alone(tmp_path, pod, options, "sh", "-c", "echo ran")
    assert (code, out) == (78, b"") and said in text and "could not be locked in" in text, text
    with sandbox(*sh("echo ran"), options=options) as k:
        r = k.end()
        assert k.output() == (b"", b"")
    assert (r["state"], r["reason"]) == ("failed", "room.failed") and "could not be locked in" in r["message"] and said in r["message"], r


def test_a_container_that_does_not_read_its_variables(tmp_path, pod, sandbox):
    """More of them than a pipe takes by itself: cage-pod goes on to obey."""
    options = doctored(tmp_path, pod, other_door(tmp_path, "exec sleep 1000"))
    with sandbox(*sh("true"), options=options, words=["env=V%d=%s" % (n, "v" * 100000) for n in range(8)]) as k:
        k.connect(ready=False)
        wait_until(lambda: "cage-box-dns" in pod.containers() and pod.inspect("cage-box-dns")["State"]["Running"], 30, "dns does not run")
        k.remember()
        began = time.monotonic()
        k.send(b"K", 0, b"asked")
        r = k.end()
        assert time.monotonic() - began < 15
    assert r["state"] == "killed"


def test_variables_that_are_too_many(sandbox):
    with sandbox("true", words=["env=V%d=%s" % (n, "v" * 100000) for n in range(10)]) as k:
        r = k.end()
    assert r["reason"] == "room.failed" and "variables" in r["message"], r


# ---- the door


def through_the_door(data, *words):
    """cage-door with these words in its pipe: how it ends, and what is said."""
    ours, theirs = os.pipe(), os.pipe()
    line = ["bash", "-c", 'exec 3<&%d 4>&%d; exec "$@"' % (ours[0], theirs[1]), "bash", binary("cage-door"), *words]
    process = subprocess.Popen(line, pass_fds=(ours[0], theirs[1]), stdout=subprocess.PIPE)
    os.close(ours[0])
    os.close(theirs[1])
    try:
        with open(ours[1], "wb") as f:
            f.write(data)
    except BrokenPipeError:
        pass
    out, _ = process.communicate(timeout=30)
    with open(theirs[0], "rb") as f:
        return process.returncode, out, f.read()


def test_the_door_of_a_helper():
    assert through_the_door(b"A=1\0B=two words\0\0", "helper", "sh", "-c", "echo $A $B; echo said >&2") == (0, b"1 two words\n", b"said\n")
    assert through_the_door(b"\0", "helper", "sh", "-c", "echo ran")[:2] == (0, b"ran\n")
    whole = 896 * 1024  # LIMIT_POD_WORDS; the kernel takes 128 KiB of each
    row = b"".join(b"A%d=" % n + b"x" * 100000 + b"\0" for n in range(8))
    assert through_the_door(row + b"B=" + b"y" * (whole - 1 - len(row) - 4) + b"\0\0", "helper", "sh", "-c", "echo $B | head -c 3")[:2] == (0, b"yyy")
    for bad in (b"", b"A=1", b"A=1\0", b"A=1\0\0B=2\0", b"A\0\0", b"A=" + b"x" * whole + b"\0\0"):
        assert through_the_door(bad, "helper", "sh", "-c", "echo ran")[:2] == (1, b""), bad[:20]


def test_the_door_of_an_agent_is_closed_here():
    """This is root, with a way to everywhere."""
    code, out, said = through_the_door(b"\0", "agent", "10.0.0.0/29", "10.0.0.3", "10.0.0.2", "sh", "-c", "echo ran")
    assert (code, out) == (78, b"") and b"cage-door: " in said
    for words in (("agent", "10.0.0.0", "10.0.0.3", "10.0.0.2", "sh"), ("agent", "x/29", "10.0.0.3", "10.0.0.2", "sh"),
                  ("agent", "10.0.0.0/29", "10.0.0", "10.0.0.2", "sh"), ("agent", "10.0.0.0/0", "10.0.0.3", "10.0.0.2", "sh")):
        assert through_the_door(b"\0", *words)[0] == 78, words


# ---- the service


@pytest.fixture
def service(tmp_path, pod):
    with Service(tmp_path, {"backends": {"podman": pod.config()}}) as s:
        yield s
    assert pod.containers() == [] and pod.networks() == []


def test_of_the_service(service, pod):
    box = service.run("sh", "-c", "echo hello; pwd", tools=["shell_exec"])
    assert (box["state"], box["exit_code"], box["backend"]) == ("succeeded", 0, "podman"), box
    assert service.output(box["id"]) == b"hello\n/workspace\n"
    ident = service.idle()
    assert service.result(ident, "shell_exec", command="id -un")["stdout"] == "agent\n"
    service.tool(ident, "file_write", path="a/b", content="text")
    assert service.result(ident, "file_read", path="a/b")["content"] == "text"
    assert service.request("DELETE", API + "/" + ident).status in (200, 202, 204)
    wait_until(lambda: pod.containers() == [] and pod.networks() == [], 60, "containers are left")


def test_a_log_that_is_full(tmp_path, pod, listener):
    with Service(tmp_path, {"backends": {"podman": pod.config()}, "limits": {"log": "256KiB"}}) as service:
        fill_log(service, allows(listener, "plain.test"))


def test_tools_and_ports_of_the_service(service, listener):
    ident = service.idle(policy={"inline": json.dumps(allows(listener, "plain.test"))}, publish=[{"port": 9000}])
    answer = service.result(ident, "http_request", url="http://plain.test/tool")
    assert answer["status"] == 200 and listener.seen[-1][0] == "/tool", answer
    refused = service.tool(ident, "http_request", url="http://other.test/")
    assert "403" in refused.body.decode() or refused.status != 200, refused
    service.result(ident, "shell_exec", command="python3 -m http.server --bind 127.0.0.1 9000 >/dev/null 2>&1 & "
                                                "echo page > index.html")
    port = int(service.show(ident)["published"][0]["address"].rsplit(":", 1)[1])

    def page():
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as s:
                s.sendall(b"GET / HTTP/1.0\r\n\r\n")
                return b"page" in s.makefile("rb").read()
        except OSError:
            return False
    wait_until(page, 30, "the port leads nowhere")
    log = service.get("%s/%s/logs" % (API, ident)).body
    assert b"/tool" in log


def test_the_service_is_killed_while_containers_run(tmp_path, pod):
    service = Service(tmp_path, {"backends": {"podman": pod.config()}}).start()
    ident = service.idle()
    other = service.idle()
    service.kill()
    keepers = [int(p) for p in filter(str.isdigit, os.listdir("/proc")) if is_alive(int(p))
               and [os.path.basename(w) for w in command_line(int(p))[:2]] == ["cage-keeper", other]]
    pods = [p for p in children(keepers[0]) if "cage-pod" in command_line(p)[0]]
    for pid in (*keepers, *pods):
        os.kill(pid, signal.SIGKILL)
    with service:
        service.wait(ident, "running")
        service.wait_found(ident)
        assert service.result(ident, "shell_exec", command="echo still")["stdout"] == "still\n"
        box = service.wait(other, "failed")
        assert box["reason"] in ("room.failed", "keeper.failed", "keeper.gone"), box
        wait_until(lambda: not [c for c in pod.containers() if other in c] and len(pod.networks()) == 1, 90, "its containers are left")
    assert pod.containers() == [] and pod.networks() == []


def test_containers_that_nobody_knows_are_removed(tmp_path, pod):
    """Those of an earlier sandbox of this service, whose directory is gone; and none of another service."""
    with Service(tmp_path, {"backends": {"podman": pod.config()}}) as service:
        ident = service.idle()
        label = pod.inspect("cage-%s-agent" % ident)["Config"]["Labels"]["cage.state"]
    pod("run", "--detach", "--name", "cage-lost-agent", "--network", "none", "--ulimit", "nofile=1024:4096", "--ulimit", "nproc=4096:4096",
        "--label", "cage.sandbox=lost", "--label", "cage.state=" + label, "localhost/agent", "sleep", "1000")
    pod("run", "--detach", "--name", "another", "--network", "none", "--ulimit", "nofile=1024:4096", "--ulimit", "nproc=4096:4096",
        "--label", "cage.sandbox=lost", "--label", "cage.state=other", "localhost/agent", "sleep", "1000")
    try:
        with Service(tmp_path, {"backends": {"podman": pod.config()}}):
            wait_until(lambda: "cage-lost-agent" not in pod.containers(), 90, "it is left")
            assert pod.containers() == ["another"]
    finally:
        pod("rm", "--force", "--time", "0", "another")


# ---- images that a create names


class Images:
    """A service whose key signs images, with the test's own image as the one to run."""

    def __init__(self, directory, pod):
        self.pod, self.signatures = pod, directory / "signatures"
        self.signatures.mkdir()
        self.private, self.public = make_key(directory, "cosign")
        self.policies = directory / "policies"
        self.policies.mkdir()
        with open(self.public) as f:
            self.key = " ".join(f.read().split("\n"))
        self.hex = pod("image", "inspect", "--format", "{{.Digest}}", "localhost/agent").strip()[len("sha256:"):]
        self.image = "localhost/agent@sha256:" + self.hex
        (directory / "top.yaml").write_text(json.dumps({"version": 1, "name": "top", "images": [{"registry": "localhost", "repository": "*"}]}))
        self.service = Service(directory, {"ceiling": str(directory / "top.yaml"), "backends": {"podman": pod.config(image="localhost/none"), "local": {}}, "signatures": str(self.signatures),
                                           "policies": str(self.policies),
                                           "limits": {"running": 1},
                                           "profiles": {"signed": {"image": self.image, "policy": self.policy(key=self.key)}}})

    @staticmethod
    def policy(*entries, **entry):
        images = list(entries) or [{"registry": "localhost", "repository": "agent", **entry}]
        return {"inline": json.dumps({"version": 1, "name": "images", "images": images})}

    def sign(self, digest=None, of=None, private=None):
        """digest: under which it is kept; of: that it is over."""
        data = payload("localhost/agent", of or self.hex)
        where = self.signatures / ("sha256-" + (digest or self.hex))
        where.with_suffix(".json").write_bytes(data)
        where.with_suffix(".sig").write_bytes(sign(private or self.private, data))

    def refused(self, reason, **body):
        answer = self.service.post(API, {"command": ["true"], **body})
        assert answer.status == 422 and answer.json.get("reason") == reason, answer
        assert answer.json["errors"][0]["pointer"] == "/image" and answer.json["errors"][0]["detail"].startswith(reason + ": "), answer
        self.service.err.wait("refused: " + re.escape(reason), 10)

    def failed(self, **body):
        """Admitted when it was asked for; the message of what came then."""
        box = self.service.wait(self.service.create(command=["sh", "-c", "echo ran"], **body), "failed")
        assert box["reason"] == "room.failed" and self.service.output(box["id"]) == b"", box
        return box["message"]


@pytest.fixture
def pictures(tmp_path, pod):
    made = Images(tmp_path, pod)
    with made.service:
        yield made
        assert made.pod.containers() == [] and made.pod.networks() == []


def test_an_image_that_is_pinned_runs_by_its_id(pictures, pod):
    ident = pictures.service.idle(image=pictures.image, policy=pictures.policy())
    assert pictures.service.show(ident)["image"] == pictures.image
    assert pictures.service.result(ident, "shell_exec", command="id -un")["stdout"] == "agent\n"
    made = pod.inspect("cage-%s-agent" % ident)
    words = made["Config"]["CreateCommand"]
    assert made["Image"] == pod("image", "inspect", "--format", "{{.Id}}", "localhost/agent").strip() and made["Image"] in words
    assert not [w for w in words if w.startswith("localhost/")] and "--pull=never" in words, words
    pictures.service.request("DELETE", API + "/" + ident)
    wait_until(lambda: pod.containers() == [] and pod.networks() == [], 60, "containers are left")


def test_an_image_that_is_signed_runs(pictures):
    pictures.sign()
    for body in ({"profile": "signed"}, {"image": pictures.image, "policy": pictures.policy(key=pictures.key)}):
        box = pictures.service.run("sh", "-c", "echo ran", **body)
        assert (box["state"], pictures.service.output(box["id"])) == ("succeeded", b"ran\n"), box


@pytest.mark.parametrize("name", ["cosign.pub", '"cosign.pub"', "'cosign.pub'", "%s/cosign.pub"])
def test_a_key_in_a_file_beside_a_policy_of_the_service(pictures, name):
    """It is the one that was there when the policy was taken."""
    pictures.sign()
    key = name.replace("%s", str(pictures.policies))
    (pictures.policies / "keyed.yaml").write_text(
        "version: 1\nname: keyed\nimages:\n  - {repository: agent, key: %s, registry: localhost}  # \u00e4\n  - registry: localhost\n    repository: other\n    key: %s" % (key, key))
    shutil.copy(pictures.public, pictures.policies / "cosign.pub")
    box = pictures.service.run("sh", "-c", "echo ran", image=pictures.image, policy={"name": "keyed"})
    assert (box["state"], pictures.service.output(box["id"])) == ("succeeded", b"ran\n"), box
    shutil.copy(make_key(pictures.signatures, "else")[1], pictures.policies / "cosign.pub")
    pictures.refused("image.bad_signature", image=pictures.image, policy={"name": "keyed"})


@pytest.mark.parametrize("key,at,words", [
    ("none.pub", "policy:6:10: images[0].key: ", "none.pub"), ("key.yaml", "policy:6:10: images[0].key: ", "is not one public key"),
    ('"k\\x65y.yaml"', "policy:6:10: images[0].key: ", ""), (">-\n      good.pub", "policy:6:10: images[0].key: ", "in one line")])
def test_a_key_that_can_not_be_read(pictures, key, at, words):
    shutil.copy(pictures.public, pictures.policies / "good.pub")
    (pictures.policies / "key.yaml").write_text("version: 1\nname: key\nimages:\n  - registry: localhost\n    repository: agent\n    key: %s\n" % key)
    answer = pictures.service.post(API, {"command": ["true"], "image": pictures.image, "policy": {"name": "key"}})
    assert answer.status == 422 and [e["detail"].startswith(at) and words in e["detail"] for e in answer.json["errors"]] == [True], answer


def test_images_that_are_refused(pictures):
    other = "0" * 64
    keyed = pictures.policy(key=pictures.key)
    pictures.refused("image.malformed", image="--privileged", policy=pictures.policy())
    pictures.refused("image.malformed", image="localhost/agent\n@sha256:" + pictures.hex, policy=pictures.policy())
    pictures.refused("image.unpinned", image="localhost/agent", policy=pictures.policy())
    pictures.refused("image.unpinned", image="localhost/agent:latest", policy=pictures.policy())
    pictures.refused("image.not_allowed", image=pictures.image, policy=pictures.policy({"registry": "localhost", "repository": "proxy"}))
    pictures.refused("image.not_allowed", image=pictures.image, policy={"inline": "version: 1\nname: x\n"})
    pictures.refused("image.not_allowed", image=pictures.image)
    pictures.refused("image.not_allowed", image=pictures.image, network={"mode": "none"})
    pictures.refused("image.other_digest", image=pictures.image, policy=pictures.policy(digest="sha256:" + other))
    pictures.refused("image.unsigned", image=pictures.image, policy=keyed)
    pictures.refused("image.unsigned", profile="signed")
    pictures.sign(of=other)
    pictures.refused("image.signed_other", image=pictures.image, policy=keyed)
    pictures.sign(private=make_key(pictures.signatures, "else")[0])
    pictures.refused("image.bad_signature", image=pictures.image, policy=keyed)
    assert pictures.service.get(API).json["items"] == []


def test_what_can_not_have_an_image(pictures):
    for body, words in (({"image": pictures.image, "backend": "local"}, "the backend local are made of no image"),
                        ({"image": "", "backend": "podman"}, "expected"), ({"image": "localhost/" + "a" * 600}, "expected")):
        answer = pictures.service.post(API, {"command": ["true"], **body})
        assert answer.status == 422 and answer.json["errors"][0]["pointer"] == "/image" and words in answer.json["errors"][0]["detail"], answer


def test_an_image_is_judged_again_before_it_runs(pictures):
    """The signature is taken away while the sandbox waits for its turn."""
    service = pictures.service
    pictures.sign()
    first = service.idle(image=pictures.image, policy=pictures.policy())
    ident = service.create(command=["sh", "-c", "echo ran"], image=pictures.image, policy=pictures.policy(key=pictures.key))
    for name in os.listdir(pictures.signatures):
        (pictures.signatures / name).unlink()
    service.request("DELETE", API + "/" + first)
    box = service.wait(ident, "failed")
    assert box["reason"] == "room.failed" and "image.unsigned" in box["message"] and service.output(ident) == b"", box
    wait_until(lambda: pictures.pod.containers() == [] and pictures.pod.networks() == [], 60, "containers are left")


def test_an_image_that_is_not_in_the_storage(pictures):
    image = "localhost/agent@sha256:" + "0" * 64
    assert "podman pull " + image in pictures.failed(image=image, policy=pictures.policy())


def test_an_image_in_a_storage_that_podman_knows_itself(tmp_path, pod):
    """Nobody has said where it is."""
    wrapper = tmp_path / "podman"
    options = dict(zip(pod.options[::2], pod.options[1::2]))
    wrapper.write_text("#!/bin/sh\nexec %s --root %s \"$@\"\n" % (options.pop("--podman"), options.pop("--root")))
    wrapper.chmod(0o755)
    digest = pod("image", "inspect", "--format", "{{.Digest}}", "localhost/agent").strip()
    rules = {"version": 1, "name": "images", "images": [{"registry": "localhost", "repository": "agent"}]}
    words = [w for pair in options.items() for w in pair]
    words += ["--podman", str(wrapper), "--image", "localhost/none", "--admit", "localhost/agent@" + digest]
    k = Keeper(tmp_path / "b", sh("echo ran"), words=["pod=" + w for w in words], policy=rules)
    with k:
        k.end()
        assert k.output()[0] == b"ran\n", k.text("said")


def test_an_image_that_the_storage_has_wrongly(pictures, pod):
    """Its manifest has other bytes than those of its digest."""
    ident = pod("image", "inspect", "--format", "{{.Id}}", "localhost/agent").strip()
    path = os.path.join(pod.dir, "store", "overlay-images", ident, "manifest")
    with open(path, "rb") as f:
        before = f.read()
    try:
        with open(path, "ab") as f:
            f.write(b" ")
        assert "image.mismatch" in pictures.failed(image=pictures.image, policy=pictures.policy())
    finally:
        with open(path, "wb") as f:
            f.write(before)


def test_check(tmp_path, pod):
    service = Service(tmp_path, {"backends": {"podman": pod.config()}})
    line = [binary("cage"), "serve", "--check", "--state", service.state, "--config", service.config_path]
    assert subprocess.run(line, capture_output=True, timeout=60).returncode == 0
    for change, words in (({"image": "localhost/none"}, b"no image localhost/none"), ({"program": "/nonexistent/podman"}, b"/nonexistent/podman"),
                          ({"runtime": "none-such"}, b"the runtime none-such")):
        Service(tmp_path, {"backends": {"podman": pod.config(**change)}})
        done = subprocess.run(line, capture_output=True, timeout=60)
        assert done.returncode == 1 and words in done.stderr, done.stderr
    for key, value, words in (("subnets", "10.0.0.0/30", b"expected NETWORK/BITS"), ("subnets", "10.0.0.1/16", b"expected NETWORK/BITS"), ("uids", "7", b"expected a number"),
                              ("cgroup_manager", "none", b"cgroupfs")):
        Service(tmp_path, "version: 1\nbackends:\n  podman:\n    %s: %s\n" % (key, value))
        done = subprocess.run(line, capture_output=True, timeout=60)
        at = ("%s:4:%d: backends.podman.%s: " % (service.config_path, len(key) + 7, key)).encode()
        assert done.returncode == 2 and at in done.stderr and words in done.stderr and b"--" not in done.stderr, done.stderr
    Service(tmp_path, {"backends": {"podman": {"imag": "x", "root": "relative"}}})
    done = subprocess.run(line, capture_output=True, timeout=60)
    assert done.returncode == 2 and b"did you mean" in done.stderr and b"absolute path" in done.stderr, done.stderr
