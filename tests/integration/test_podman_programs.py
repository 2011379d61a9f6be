"""What the filter of system calls of Podman's containers lets through: all that real programs need, and no more."""
import os
import shutil

import pytest
from cagelib.podman import PATH
from test_podman import pod, sandbox  # noqa: F401  # pylint: disable=unused-import

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pod_programs")
PROGRAMS = ("curl", "python3", "git", "gcc", "node", "go", "java", "chromium")


def test_system_calls(sandbox):  # noqa: F811
    with open(os.path.join(HERE, "calls.py"), encoding="utf-8") as f:
        script = f.read()
    with sandbox("python3", "-c", script) as k:
        r = k.end()
        out, err = k.output()
    assert r["state"] == "succeeded", err
    assert out.decode().splitlines() == [
        "unknown ENOSYS", "mempolicy ENOSYS", "refused EPERM", "namespaces EPERM", "clone 7", "personality done done done done ENOSYS",
        "netlink done EPROTONOSUPPORT", "pairs done EAFNOSUPPORT", "sockets done done done done EAFNOSUPPORT"]


@pytest.fixture(scope="module")
def whole_machine(pod):  # noqa: F811
    """The root of an agent that has all programs of this machine, and how they are shown."""
    root = os.path.join(pod.dir, "whole")
    for name in ("usr", "etc/alternatives", "proc", "sys", "dev", "tmp", "run", "workspace", "home/agent"):
        os.makedirs(os.path.join(root, name))
    os.chmod(os.path.join(root, "tmp"), 0o1777)
    for name in ("bin", "sbin", "lib", "lib64"):
        os.symlink("usr/" + name, os.path.join(root, name))
    with open(os.path.join(root, "etc/passwd"), "w", encoding="ascii") as f:
        f.write("root:x:0:0::/:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/sh\n")
    shown = ["/usr", "/etc/alternatives", *("/etc/" + n for n in os.listdir("/etc") if n.startswith(("java-", "chromium", "fonts")))]
    return root, [w for path in shown for w in ("--bind-ro", "%s:%s" % (path, path))]


@pytest.mark.parametrize("program", PROGRAMS)
def test_programs_that_agents_use(sandbox, whole_machine, program):  # noqa: F811
    if not shutil.which(program, path=PATH):
        pytest.skip("NOT TESTED, %s is not installed" % program)
    root, shown = whole_machine
    with open(os.path.join(HERE, program + ".sh"), "rb") as f:
        files = {"run.sh": f.read()}
    with sandbox("sh", "-e", "run.sh", options=["--image", root], run=shown, disk="512M", files=files) as k:
        r = k.end(150)
        assert r["state"] == "succeeded" and k.output()[0].endswith(b"hello\n"), k.output()[1].decode() + k.text("said") + r["message"]
