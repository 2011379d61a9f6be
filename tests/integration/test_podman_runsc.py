"""Sandboxes whose agent is in gVisor: what is the same as with runc is tested by the same tests, then what is not."""
import os
import signal
import subprocess
import textwrap

import pytest

from cagelib.cage_run import command_line
from cagelib.keeper import Keeper
from cagelib.podman import NoPodman, podman, runsc
from cagelib.proxy import binary, is_alive, wait_until
from cagelib.service import Service
from test_podman import (  # noqa: F401 tests and fixtures that are the same
    REACH, addresses, listener, python, sandbox, service, sh, test_a_command, test_a_directory_as_root,
    test_a_machine_with_an_address_in_that_network_is_refused, test_a_policy_that_is_wrong, test_a_proxy_that_is_killed, test_an_image_that_is_not_there,
    test_asked_to_end, test_limits, test_of_the_service, test_secrets_are_nowhere_but_in_the_proxy, test_t36_nothing_is_sent_past_the_helpers, test_the_service_is_killed_while_containers_run,
    test_the_way_out_is_the_policy, test_tools_and_ports_of_the_service, test_who_is_killed_leaves_nothing)


def processes_of(directory):
    """Those of gVisor, by the place of their container."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        words = command_line(int(pid))
        if words and words[0].startswith("runsc-") and directory in " ".join(words):
            found.append((int(pid), words[0]))
    return found


@pytest.fixture(scope="module")
def pod():
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED, containers of sandboxes are made by root")
    try:
        with podman(runtime=runsc) as made:
            yield made
            assert made.containers() == [] and made.networks() == []
            wait_until(lambda: processes_of(made.dir) == [], 30, "processes are left that podman does not know")
    except NoPodman as why:
        pytest.skip("NOT TESTED, %s" % why)


def test_it_is_gvisor(sandbox, pod):
    """Of the agent alone."""
    with sandbox() as k:
        k.connect()
        out, err, done = k.sh("cat /proc/version")
        assert done == "exit 0" and out == b"Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016\n", (out, err)  # in all of them
        runtimes = {name: pod.inspect(name)["OCIRuntime"] for name in pod.containers()}
    assert os.path.basename(runtimes.pop("cage-box-agent")) == "runsc", runtimes
    assert len(runtimes) == 2 and not [r for r in runtimes.values() if "runsc" in r], runtimes


def test_what_there_is_of_it(sandbox, pod):
    with sandbox() as k:
        k.connect()
        c = pod.inspect("cage-box-agent")
        assert c["HostConfig"]["ReadonlyRootfs"] and c["EffectiveCaps"] in (None, []) and c["BoundingCaps"] in (None, [])
        assert list(c["NetworkSettings"]["Networks"]) == ["cage-box"]
        out, _, done = k.sh("grep -E 'Cap|Seccomp:' /proc/self/status; touch /x || touch /usr/x || touch /etc/x || echo no")
        assert done == "exit 0" and out.count(b"0000000000000000") == 4 and b"Seccomp:\t2" in out and out.endswith(b"no\n"), out
        out, _, _ = k.sh("ip -6 addr; ip -4 route")
        assert b"inet6" not in out and b"default" not in out and b"via" not in out, out


def test_nothing_but_proxy_and_dns_is_reached(sandbox, listener):  # noqa: F811
    """As with runc, by the other name that gVisor has for an address without a route."""
    with sandbox() as k:
        k.connect()
        out, err, done = k.run(*python(REACH % (listener.server_address[1], sorted(set(addresses()) | {"1.1.1.1", "169.254.169.254"}))))
        assert done == "exit 0", err
        lines = out.decode().splitlines()
    assert lines[0] == "helpers open open" and lines[1] == "others of the proxy ['ECONNREFUSED']", lines
    assert "open" not in lines[2] and "ECONNREFUSED" not in lines[2], lines
    assert lines[3] == "world ['EHOSTUNREACH']", lines
    assert "open" not in lines[4] and "ECONNREFUSED" not in lines[4], lines
    assert [x for x in lines[5:] if not x.endswith("refused")] == [], lines
    assert listener.seen == []


def test_system_calls_that_are_refused(sandbox):
    """By the same filter; and threads are made all the same."""
    with sandbox() as k:
        k.connect()
        for script in ("import ctypes; assert ctypes.CDLL(None).unshare(0x10000000) == 0", "import ctypes; assert ctypes.CDLL(None).unshare(0x20000) == 0",
                       "import ctypes; assert ctypes.CDLL(None).mount(b'x', b'/tmp', b'tmpfs', 0, None) == 0", "import os; os.chroot('/tmp')",
                       "import os; os.setuid(0)", "import ctypes; assert ctypes.CDLL(None).ptrace(16, 1, 0, 0) == 0",
                       "import ctypes; assert ctypes.CDLL(None).syscall(425, 1, 0) >= 0", "open('/proc/1/mem', 'rb')",
                       "import os; os.mknod('/tmp/x', 0o60600, os.makedev(254, 0)); open('/tmp/x', 'rb')"):
            assert k.run("python3", "-c", script)[2] == "exit 1", script
        out, err, _ = k.run("python3", "-c", "import threading; t = threading.Thread(target=print, args=['thread']); t.start(); t.join()")
        assert out == b"thread\n", err


def test_memory_and_processes(sandbox):
    """What has more processes than it may ends as a whole, since gVisor does."""
    with sandbox(*python("x = bytearray(400 << 20)"), words=["run=--limit", "run=mem=64M,pids=32,cpu=0.5"]) as k:
        r = k.end()
    assert r["state"] == "failed" and r["reason"] == "oom" and int(r["oom"]) > 0, r
    with sandbox(*python("""
            import os, time
            for n in range(400):
                if os.fork() == 0:
                    time.sleep(60)
                print(n, flush=True)"""), words=["run=--limit", "run=mem=1G,pids=32,cpu=1"]) as k:
        r = k.end()
        assert r["state"] == "failed" and 32 < int(k.output()[0].split()[-1]) < 200, r


def test_much_in_both_directions(sandbox):
    """The keeper's link is a socket that gVisor has taken over."""
    with sandbox() as k:
        k.connect()
        out, _, done = k.run("python3", "-c", "import sys; sys.stdout.write('0123456789abcdef' * 500000)")
        assert done == "exit 0" and out == b"0123456789abcdef" * 500000


def test_a_keeper_that_is_killed_leaves_no_process(tmp_path, pod):
    """Of gVisor there is more than one: none is left in the container's cgroup."""
    k = Keeper(tmp_path / "box", sh("sleep 1000"), words=["pod=" + w for w in pod.options])
    k.start()
    k.connect()
    own = pod.pid("cage-box-agent")
    with open("/proc/%d/cgroup" % own) as f:
        path = next(line.rstrip().split(":", 2)[2] for line in f if ":pids:" in line or line.startswith("0::/libpod"))
    tree = "/sys/fs/cgroup/pids" + path if os.path.isdir("/sys/fs/cgroup/pids") else "/sys/fs/cgroup" + path
    with open(tree + "/cgroup.procs") as f:
        pids = [int(p) for p in f]
    assert len(pids) > 1 and own in pids
    run = k.rundir()
    os.kill(k.process.pid, signal.SIGKILL)
    k.process.wait(10)
    k.sock.close()
    wait_until(lambda: not [p for p in pids if is_alive(p)], 60, "processes are left")
    wait_until(lambda: pod.containers() == [] and pod.networks() == [], 60, "containers are left")
    wait_until(lambda: not os.path.exists(run), 20, "its directory is left")


def test_check(tmp_path, pod):
    service_of = lambda **change: Service(tmp_path, {"backends": {"podman": pod.config(**change)}})  # noqa: E731
    made = service_of()
    line = [binary("cage"), "serve", "--check", "--state", made.state, "--config", made.config_path]
    done = subprocess.run(line, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr
    for runtime in ("runsc-none", "/nonexistent/runsc"):
        service_of(runtime=runtime)
        done = subprocess.run(line, capture_output=True, timeout=60)
        assert done.returncode == 1 and runtime.encode() in done.stderr and b"apt-get install runsc" in done.stderr, done.stderr


def test_a_runsc_that_fails(sandbox, tmp_path):
    """What it said is the reason."""
    broken = tmp_path / "runsc"
    broken.write_text("#!/bin/sh\n[ \"$*\" = --version ] || echo 'no such thing can be had' >&2\nexit 1\n")
    broken.chmod(0o755)
    with sandbox(*sh("echo ran"), options=["--runtime", str(broken)]) as k:
        r = k.end()
        assert k.output() == (b"", b"")
    assert (r["state"], r["reason"]) == ("failed", "room.failed") and "no such thing can be had" in r["message"], r


def test_an_agent_with_ipv6_is_not_run(sandbox, pod, tmp_path):
    """A network that has it again when gVisor copies it: this machine would have an address there."""
    real = dict(zip(pod.options[::2], pod.options[1::2]))["--runtime"]
    wrapper = tmp_path / "runsc"
    wrapper.write_text(textwrap.dedent("""\
        #!/bin/sh
        for id; do :; done
        case " $* " in *" start "*)
            pid=$(%s state "$id" | sed -n 's/.*"pid": *\\([0-9]*\\).*/\\1/p')
            nsenter --net="/proc/$pid/ns/net" sh -c 'for c in default all; do echo 0 >/proc/sys/net/ipv6/conf/$c/disable_ipv6; done' ;;
        esac
        exec %s "$@"
        """ % (real, real)))
    wrapper.chmod(0o755)
    with sandbox(*sh("echo ran"), options=["--runtime", str(wrapper)]) as k:
        r = k.end()
        assert k.output() == (b"", b"")
    assert r["state"] == "failed" and "or IPv6" in k.text("said"), (r, k.text("said"))


def test_probes_of_cage_verify(sandbox):
    """One surprise is gVisor's own."""
    with sandbox() as k:
        k.connect()
        out, err, how = k.run("/run/cage/inside", "--verify")
        surprises = [line.split("\t")[1:3] for line in out.decode().splitlines() if line.startswith("SURPRISE")]
    assert surprises == [["works", "variables of process 1"]] and how == "exit 1", surprises  # docs/podman.md
