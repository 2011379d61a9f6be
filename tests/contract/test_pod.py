"""The containers of infra/kubernetes/pod, run as the manifest says as far as that goes without Kubernetes: their commands and options,
users, variables and files, without capabilities and privileges, in one network that has nothing but loopback. Images, the
seccomp profile and the read-only root are not there; tests/integration/test_container.py has the gate behind such a profile."""
import contextlib
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

import pytest
from contractlib import ROOT
from contractlib.kubernetes import FOLDER, containers, objects, pods

BIN = pathlib.Path(os.environ.get("CAGE_BIN", ROOT / "build/asan/bin"))
READY_S = 60
TRIES = """
id -u
pwd
curl -s -m 20 https://evil.test/ | grep -o '"reason":"[a-z_.]*"'
curl -s -m 20 http://cage.internal/ | head -c 19; echo
curl -s -m 2 --noproxy '*' http://192.0.2.1/ || echo "alone: $?"
echo "key: $ANTHROPIC_API_KEY"
"""


@pytest.fixture(scope="module")
def network():
    """A network of its own: how to enter it."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED, only root can make a network and change users")
    with subprocess.Popen(["unshare", "--net", "sh", "-c", "ip link set lo up && echo 53 > /proc/sys/net/ipv4/ip_unprivileged_port_start && echo up && read end"],
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as holder:
        try:
            if holder.stdout.readline() != "up\n":
                pytest.skip(f"NOT TESTED, no network can be made here: {holder.stderr.read()}")
            yield ["nsenter", f"--net=/proc/{holder.pid}/ns/net"]
        finally:
            holder.kill()


@pytest.fixture(scope="module")
def files():
    """What the volumes hold: {path in the container of the manifest: path here}."""
    made = pathlib.Path(tempfile.mkdtemp(prefix="cage-test-"))
    for name in ("cage", "etc", "secrets", "certificate", "state/cage", "dns/cage", "workspace", "home"):
        (made / name).mkdir(parents=True)
    for path in (made, *made.rglob("*")):
        path.chmod(0o755)
    for name in ("state/cage", "dns/cage", "workspace", "home"):
        (made / name).chmod(0o777)  # as an emptyDir is
    shutil.copy(BIN / "cage-gate", made / "cage")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-subj", "/CN=cage",
                    "-addext", "basicConstraints=critical,CA:TRUE,pathlen:0", "-addext", "keyUsage=critical,keyCertSign,cRLSign",
                    "-keyout", made / "state/cage/ca.key", "-out", made / "state/cage/ca.pem"], check=True, capture_output=True)
    shutil.copy(made / "state/cage/ca.pem", made / "certificate/ca.pem")
    (made / "secrets/anthropic").write_text("sk-ant-0123456789abcdef")
    for name in ("state/cage/ca.key", "state/cage/ca.pem", "certificate/ca.pem", "secrets/anthropic"):
        (made / name).chmod(0o444)
    policy = (FOLDER / "base/policy.yaml").read_text().replace("/etc/cage-secrets", str(made / "secrets"))
    (made / "etc/policy.yaml").write_text(policy)
    yield {"/etc/cage/": f"{made}/etc/", "/etc/cage-ca": f"{made}/certificate", "/cage/": f"{made}/cage/", "/workspace": f"{made}/workspace",
           "/home/agent": f"{made}/home", "proxy": f"{made}/state", "dns": f"{made}/dns"}
    shutil.rmtree(made)


def here(files, word):
    for there, path in files.items():
        if there.startswith("/") and word.startswith(there):
            return path + word[len(there):]
    return word


def container(name):
    return next(c for _, _, spec in pods(objects("pod")) for c in containers(spec) if c["name"] == name)


def line(network, made, *command):
    user = str(made["securityContext"]["runAsUser"])
    assert made["securityContext"]["capabilities"] == {"drop": ["ALL"]}
    return [*network, "setpriv", "--reuid", user, "--regid", user, "--clear-groups", "--no-new-privs", "--bounding-set", "-all", "--inh-caps", "-all", *command]


@contextlib.contextmanager
def sidecar(network, files, name):
    made = container(name)
    words = line(network, made, str(BIN / f"cage-{name}"), *(here(files, a) for a in made["args"]))
    environment = {"PATH": os.environ["PATH"], "XDG_STATE_HOME": files[name]}  # as the image has it
    with subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_for(process, "ready")
            yield
            process.terminate()
            assert process.wait(30) == 0
        finally:
            process.kill()


def wait_for(process, word):
    end, said = time.monotonic() + READY_S, ""
    while word not in said:
        ready, _, _ = select.select([process.stderr], [], [], max(0, end - time.monotonic()))
        assert ready, said
        more = process.stderr.readline()
        assert more, said
        said += more


def agent(network, files, script):
    made = container("agent")
    words = line(network, made, *(here(files, w) for w in made["command"]), "sh", "-c", script)
    environment = {"PATH": os.environ["PATH"]} | {v["name"]: here(files, v["value"]) for v in made["env"]}
    return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)


def test_an_agent_is_locked_in(network, files):
    with sidecar(network, files, "proxy"), sidecar(network, files, "dns"):
        done = agent(network, files, TRIES)
    assert done.stdout.splitlines() == ["1000", files["/workspace"], '"reason":"host.not_allowed"', "You are in a cage: ", "alone: 28",
                                        "key: {{ANTHROPIC_API_KEY}}"], done
    assert done.returncode == 0


def test_names_are_answered(network, files):
    """Over TCP, as the resolver of the pod says."""
    assert (FOLDER / "pod/resolv.conf").read_text() == "nameserver 127.0.0.1\noptions use-vc\n"
    with sidecar(network, files, "proxy"), sidecar(network, files, "dns"):
        done = agent(network, files, "dig +tcp +short +time=20 @127.0.0.1 evil.test")
    assert (done.returncode, done.stdout) == (0, "192.0.2.1\n"), done


def test_without_a_proxy_nothing_leaves(network, files):
    done = agent(network, files, "curl -s -m 20 https://api.anthropic.com/ || echo $?")
    assert (done.returncode, done.stdout) == (0, "7\n"), done
