"""What the agent of a group of cage-aci finds around it, emulated with Podman as in test_aci_group.py: names, its rights and limits, and
files that it begins with."""
import base64
import hashlib
import json
import os
import subprocess

import pytest
from cagelib.aci import Aci
from cagelib.aci_group import AciGroup
from cagelib.arm import Arm, Script
from cagelib.dns import Dns
from cagelib.proxy import policy
from cagelib.raw import RawOrigin
from test_aci_group import directory, trust  # noqa: F401 a fixture that is the same
from test_container import USERS, group, networks  # noqa: F401 the same

PUBLIC = "20.0.0.7"
RULES = {"id": "site", "hosts": ["site.test"]}


def body_of(tmp_path, *command, options=(), files=(), run=(), rules=None):
    """What cage-aci would have Azure make."""
    with Arm(script=lambda body: Script()) as arm, Aci(arm, tmp_path / "aci", *options, rules=rules or policy(RULES), run=run) as aci:
        for i, (path, data) in enumerate(files):
            assert aci.put(path, data, ident=7 + i)[2] == "exit 0"
        assert aci.run(*command)[2] == "exit 0", aci.text()
        aci.end()
        return arm.gone[0].body


GO = 'package main\nimport ("fmt"; "net")\nfunc main() { a, e := net.LookupHost("site.test"); fmt.Println(a, e) }\n'
NODE = "const d=require('dns').promises;(async()=>{console.log((await d.lookup('site.test',{family:4})).address,(await d.resolve4('site.test'))[0])})()"
PYTHON = "import socket; print(socket.gethostbyname('site.test'), socket.gethostbyname(socket.gethostname()))"
NAMES = """
unset HTTP_PROXY HTTPS_PROXY http_proxy https_proxy ALL_PROXY all_proxy NO_PROXY no_proxy
cat /etc/resolv.conf
getent ahostsv4 site.test | head -n1 | cut -d' ' -f1
getent ahostsv4 $(hostname) | head -n1
python3 -c "$1"
node -e "$2"
./lookup
getent ahostsv4 other.test | head -n1 | cut -d' ' -f1
echo x >> /etc/resolv.conf || echo shut
"""


def go_program(tmp_path):
    (tmp_path / "lookup.go").write_text(GO)
    program = tmp_path / "lookup"
    done = subprocess.run(["go", "build", "-o", str(program), str(tmp_path / "lookup.go")], capture_output=True, text=True, timeout=240, check=False,
                          env={**os.environ, "CGO_ENABLED": "0", "GOCACHE": str(tmp_path / "gocache"), "GOFLAGS": "-mod=mod", "GO111MODULE": "off", "HOME": str(tmp_path)})
    assert done.returncode == 0, done.stderr
    return program


@pytest.mark.parametrize("platform", [True, False], ids=["mounted", "of the image"])
def test_names_are_asked_of_cage_dns(networks, group, tmp_path, platform):
    """By libc, Python, Node and Go, over TCP and without the proxy's variables: the platform's resolver is gone from resolv.conf, and nothing was sent
    to it. Proxy and dns, which see the same file, still ask the one that they were told of."""
    networks.seen()
    with Dns({"site.test": [PUBLIC], "other.test": [PUBLIC]}) as upstream:
        body = body_of(tmp_path, "sh", "-c", NAMES, "sh", PYTHON, NODE, options=("--resolver", upstream.address))
        with AciGroup(body, group, tmp_path / "group", platform=platform) as made:
            os.rename(go_program(tmp_path), tmp_path / "group" / "workspace" / "lookup")
            code, out, err = made.run_agent()
    lines = out.splitlines()
    assert code == 0 and lines[:2] == ["nameserver 127.0.0.1", "options use-vc"], (out, err, made.said)
    assert lines[2] == PUBLIC and lines[3].split()[0] == "127.0.0.1" and lines[4] == PUBLIC + " 127.0.0.1", (lines, err)
    assert lines[5] == "%s %s" % (PUBLIC, PUBLIC) and lines[6] == "[%s] <nil>" % PUBLIC and lines[7] == "192.0.2.1" and lines[8] == "shut", (lines, err, made.said)
    assert set(upstream.asked) == {"site.test"} and networks.seen() == set()


def test_names_where_resolv_conf_can_not_be_changed(networks, group, tmp_path):
    """No name is found but by the proxy, which is said; nobody else is asked."""
    networks.seen()
    body = body_of(tmp_path, "sh", "-c", "cat /etc/resolv.conf; getent hosts site.test || echo unknown")
    with AciGroup(body, group, tmp_path / "group", mode=":ro") as made:
        code, out, err = made.run_agent()
    assert code == 0 and "168.63.129.16" in out and out.endswith("unknown\n"), (out, err)
    assert "names are found by the proxy alone" in err and networks.seen() == set()


INSIDE = """
import json, os, resource
status = dict(line.split(":", 1) for line in open("/proc/self/status") if ":" in line)
def may_write(path):
    try:
        open(path, "w").close()
        os.unlink(path)
        return True
    except OSError:
        return False
print(json.dumps({
    "status": {k: status[k].split() for k in ("Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb", "NoNewPrivs", "Seccomp")},
    "limits": {k: resource.getrlimit(getattr(resource, "RLIMIT_" + k)) for k in ("NOFILE", "NPROC", "FSIZE", "CORE")},
    "written": [p for p in ("/x", "/etc/x", "/usr/x", "/usr/local/bin/x", "/opt/x", "/var/lib/x", "/var/x", "/run/x", "/home/x", "/root/x", "/cage/x", "/dev/x",
                            "/proc/sys/kernel/x", "/cage/cage-gate", "/cage/cage-inside", "/workspace/x", "/tmp/x") if may_write(p)],
    "environment": sorted(k for k in os.environ if "SECRET" in k or "AZURE" in k or "PASSWORD" in k)}))
"""


@pytest.mark.parametrize("sku", ["Standard", "Confidential"])
@pytest.mark.parametrize("user", USERS)
def test_t36_rights_and_limits(networks, group, tmp_path, user, sku):
    """No user but its own, no right in any set, none to be had, and nothing to write to but the workspace and /tmp; the limits of the sandbox."""
    networks.seen()
    body = body_of(tmp_path, "python3", "-c", INSIDE, options=("--sku", sku), run=("--limit", "files=333,pids=222,fsize=1M,mem=2G"))
    with AciGroup(body, group, tmp_path / "group", agent_user=USERS[user]) as made:
        os.chmod(tmp_path / "group" / "tools", 0o777)
        code, out, err = made.run_agent()
    assert code == 0, (out, err, made.said)
    found = json.loads(out)
    status = found["status"]
    assert status["Uid"] == status["Gid"] == ["1000"] * 4 and set(status["Groups"]) <= {"1000"}, status
    assert all(int(status[k][0], 16) == 0 for k in ("CapInh", "CapPrm", "CapEff", "CapAmb")) and status["NoNewPrivs"] == ["1"] and status["Seccomp"] == ["2"]
    if user == "root":
        assert int(status["CapBnd"][0], 16) == 0
    assert found["limits"] == {"NOFILE": [333, 333], "NPROC": [222, 222], "FSIZE": [1 << 20, 1 << 20], "CORE": [0, 0]}
    assert found["written"] == ["/workspace/x", "/tmp/x"] and found["environment"] == []
    assert networks.seen() == set()


@pytest.mark.parametrize("user", USERS)
def test_files_that_it_begins_with(group, tmp_path, user):
    """In the workspace, before the command, and the agent's to change."""
    long = bytes(range(256)) * 1000
    body = body_of(tmp_path, "sh", "-c", "cat a/b/text; sha256sum long; echo more >> a/b/text; touch a/b/x; find . -type f | sort; id -u", files=[("a/b/text", b"hello\n"), ("long", long), ("empty", b"")])
    agent = next(c["properties"] for c in body["properties"]["containers"] if c["name"] == "agent")
    assert {"name": "files", "mountPath": "/cage-files", "readOnly": True} in agent["volumeMounts"]
    with AciGroup(body, group, tmp_path / "group", agent_user=USERS[user]) as made:
        code, out, err = made.run_agent()
    assert (code, out) == (0, "hello\n%s  long\n./a/b/text\n./a/b/x\n./empty\n./long\n1000\n" % hashlib.sha256(long).hexdigest()), (out, err)


def test_files_that_are_not_whole(group, tmp_path):
    """What was cut off on its way is not run beside."""
    body = body_of(tmp_path, "echo", "ran", files=[("text", b"hello\n")])
    volume = next(v for v in body["properties"]["volumes"] if v["name"] == "files")
    volume["secret"]["files"] = base64.b64encode(base64.b64decode(volume["secret"]["files"])[:-3]).decode()
    with AciGroup(body, group, tmp_path / "group") as made:
        code, out, err = made.run_agent()
    assert code == 78 and out == "" and "the files that it begins with" in err, (code, out, err)


def test_t34_a_secret_that_azure_has_read(networks, group, pki, tmp_path):
    """The proxy takes it from the variable that it was put into, where nobody finds it any more, and asks no vault."""
    real, where = "sk-real-value-in-the-vault", "https://v.vault.azure.net/secrets/key"
    networks.seen()
    with RawOrigin(leaf=pki.leaf("a.test")) as origin:
        rules = policy({"id": "a", "hosts": ["a.test"], "secrets": ["key"]}, pins={"a.test": origin.pin}, secrets=[{"id": "key", "from": {"keyvault": where}}])
        body = body_of(tmp_path, "sh", "-c", 'curl -sS -o /dev/null -w "%{http_code}\\n" -H "Authorization: Bearer $KEY" https://a.test/key', rules=rules,
                       options=("--identity", "/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i", "--vault-secrets", "reference"))
        made = AciGroup(body, group, tmp_path / "group", vault={where: real})
        trust(tmp_path / "group" / "policy", pki)
        with made:
            code, out, err = made.run_agent()
    assert (code, out) == (0, "200\n"), (err, made.said)
    assert any(real.encode() in r.head for r in origin.requests) and real not in out + err + str(made.said) and networks.seen() == set()


JAVA = """
import java.net.*; import java.net.http.*;
public class Get {
    public static void main(String[] a) throws Exception {
        HttpClient c = HttpClient.newBuilder().proxy(ProxySelector.getDefault()).build();
        System.out.println(c.send(HttpRequest.newBuilder(URI.create(a[0])).build(), HttpResponse.BodyHandlers.ofString()).statusCode());
    }
}
"""


def test_java_trusts_the_proxy(networks, group, pki, tmp_path):
    """By the store that the entry makes of the image's certificates and the proxy's."""
    with RawOrigin(leaf=pki.leaf("a.test")) as origin:
        rules = policy({"id": "a", "hosts": ["a.test"]}, pins={"a.test": origin.pin})
        body = body_of(tmp_path, "java", "-Xmx200m", "Get.java", "https://a.test/java", rules=rules, files=[("Get.java", JAVA.encode())])
        made = AciGroup(body, group, tmp_path / "group")
        trust(tmp_path / "group" / "policy", pki)
        with made:
            code, out, err = made.run_agent()
    assert (code, out) == (0, "200\n"), err[-3000:] + str(made.said)[:100]
    assert [r.head.split(b" ")[1] for r in origin.requests] == [b"/java"]
