"""The images, built by images/build on a base that debootstrap makes, and run by Podman: as their users are told to, without
capabilities and with a read-only root. Run by ./dev test --all."""
import contextlib
import json
import os
import sys

import pytest
from cagelib import images, netns
from cagelib.podman import allows, listening
from cagelib.proxy import wait_until
from cagelib.service import API, Service

sys.path.insert(0, os.path.join(images.ROOT, "images"))

from builder import oci  # noqa: E402

POLICY = "version: 1\nname: image\nrules:\n  - {id: api, hosts: [api.test]}\n"
SHELLS = ("/bin/sh", "/bin/bash", "/usr/bin/apt-get", "/usr/bin/dpkg", "/usr/bin/perl", "/bin/busybox")


@pytest.fixture(scope="module")
def built():
    out = images.made("proxy", "dns", "gate", "ship", "agent-base")
    yield out
    out.close()


@pytest.fixture(scope="module")
def again():
    out = images.made("--no-cache", "proxy", "dns", "gate")
    yield out
    out.close()


@pytest.fixture
def policy(built):
    path = os.path.join(built.dir, "policy.yaml")
    with open(path, "w") as f:
        f.write(POLICY)
    os.chmod(path, 0o644)
    return ["--volume", path + ":/etc/cage/policy.yaml:ro"]


@pytest.fixture
def running(built, policy):
    names = []

    def start(image):
        name, pid = built.start(image, options=policy)
        names.append(name)
        return name, pid

    yield start
    for name in names:
        built.remove(name)


def until_ready(built, name, pid, admin):
    def answer():
        return images.inside(pid, "curl", "-s", "http://127.0.0.1:%d/readyz" % admin).stdout == "ready\n"

    try:
        wait_until(answer, 30, "not ready")
    except AssertionError:
        pytest.fail("not ready: " + built.logs(name))


@pytest.mark.parametrize("image", ["proxy", "dns", "gate", "ship", "agent-base"])
def test_one_digest_names_an_image(built, image):
    """In the layout, in the store, and in the entry for the policy."""
    digest = built.by[image]["digest"]
    assert built.call("image", "inspect", "--format", "{{.Digest}}", "localhost/cage/" + image).stdout.strip() == digest
    entry = images.build("--output", built.output, "--policy-entry", "--repository", "registry.test/cage", image)
    assert entry.stdout == "images:\n  - {registry: registry.test, repository: cage/%s, digest: \"%s\"}\n" % (image, digest)


def test_the_table_says_sizes(built):
    lines = built.made.stdout.splitlines()
    assert [line.split()[0] for line in lines] == ["proxy", "dns", "gate", "ship", "agent-base"]
    assert all(" MB compressed, " in line and " MB unpacked, " in line for line in lines)


@pytest.mark.parametrize("image,admin", [("proxy", 8081), ("dns", 8082)])
def test_it_serves_without_rights(built, running, image, admin):
    name, pid = running(image)
    until_ready(built, name, pid, admin)
    assert images.status(pid, "Uid") == ["65532"] * 4
    assert images.status(pid, "Gid") == ["65532"] * 4
    assert images.status(pid, "CapEff") == images.status(pid, "CapBnd") == ["0000000000000000"]


def test_the_proxy_refuses_and_says_why(built, running):
    name, pid = running("proxy")
    until_ready(built, name, pid, 8081)
    told = images.inside(pid, "curl", "-s", "--noproxy", "", "--proxy", "http://127.0.0.1:8080", "http://other.test/")
    assert '"host.not_allowed"' in told.stdout, (told, built.logs(name))


def test_dns_answers_what_is_not_allowed_itself(built, running):
    name, pid = running("dns")
    until_ready(built, name, pid, 8082)
    told = images.inside(pid, "dig", "+short", "-p", "5300", "@127.0.0.1", "other.test")
    assert told.stdout == "192.0.2.1\n", (told, built.logs(name))


@pytest.mark.parametrize("image", ["proxy", "dns"])
def test_without_a_policy_it_does_not_start(built, image):
    done = built.run(image)
    assert done.returncode == 2 and "/etc/cage/policy.yaml" in done.stderr


@pytest.mark.parametrize("image", ["proxy", "dns", "gate", "ship"])
def test_no_shell(built, image):
    for program in SHELLS:
        done = built.run(image, "-c", "true", options=["--entrypoint", program])
        assert done.returncode == 127, (program, done)


@pytest.mark.parametrize("image", ["proxy", "dns", "gate", "ship"])
def test_nothing_but_what_it_needs(built, image):
    """All that can be run is our own programs and the loader of the libraries."""
    found = oci.Image(built.by[image]["layout"])
    programs = sorted(p for p in [*found.files, *found.links] if p.startswith(("usr/bin", "usr/sbin", "usr/libexec", "bin", "sbin")))
    assert programs == {"gate": ["usr/bin/cage-install", "usr/bin/cage-relay", "usr/libexec/cage/cage-gate", "usr/libexec/cage/cage-inside"],
                        "proxy": ["usr/bin/cage-gateway", "usr/bin/cage-proxy"]}.get(image, ["usr/bin/cage-" + image])
    assert found.config["config"]["User"] == "65532:65532"
    assert not [p for p in found.files if p.startswith(("var/log", "var/cache", "etc/machine-id", "root"))]


@pytest.mark.parametrize("image", ["proxy", "dns", "gate", "ship", "agent-base"])
def test_the_sbom_has_every_file_with_its_hash(built, image):
    document, found = built.sbom(image), oci.Image(built.by[image]["layout"])
    assert document["spdxVersion"] == "SPDX-2.3"
    assert {f["fileName"][2:]: f["checksums"][0]["checksumValue"] for f in document["files"]} == found.files
    contained = [r["relatedSpdxElement"] for r in document["relationships"] if r["relationshipType"] == "CONTAINS"]
    assert sorted(contained) == sorted([f["SPDXID"] for f in document["files"]] + [p["SPDXID"] for p in document["packages"][1:]])


@pytest.mark.parametrize("image", ["proxy", "dns"])
def test_the_sbom_knows_where_libraries_come_from(built, image):
    document = built.sbom(image)
    packages = {p["SPDXID"]: p for p in document["packages"]}
    files = {f["SPDXID"]: f["fileName"] for f in document["files"]}
    owner = {files[r["relatedSpdxElement"]]: packages[r["spdxElementId"]]["name"] for r in document["relationships"] if r["relatedSpdxElement"] in files}
    libraries = {path: name for path, name in owner.items() if ".so" in path}
    assert len(libraries) >= 15 and all(name.startswith("lib") or name == "zlib1g" for name in libraries.values()), libraries
    assert owner["./usr/bin/cage-" + image] == "cage"
    assert owner["./etc/ssl/certs/ca-certificates.crt"] == "ca-certificates"
    assert {p["name"]: p for p in document["packages"]}["libssl3"]["externalRefs"][0]["referenceLocator"].startswith("pkg:deb/debian/libssl3@3.")


def test_gate_brings_its_programs_into_a_volume(built):
    volume = os.path.join(built.dir, "volume")
    os.mkdir(volume)
    os.chown(volume, 65532, 65532)
    kept = os.path.join(built.dir, "kept")
    with open(kept, "w") as f:
        f.write("mine")
    os.chmod(kept, 0o666)
    os.symlink("/kept", os.path.join(volume, ".cage-gate.new"))
    for _ in range(2):
        done = built.run("gate", options=["--volume", volume + ":/cage", "--volume", kept + ":/kept"])
        assert done.returncode == 0, done
    assert sorted(os.listdir(volume)) == ["cage-gate", "cage-inside"]
    assert open(kept).read() == "mine"
    probed = built.run("agent-base", "/cage/cage-gate", "--probe", "--json", options=["--volume", volume + ":/cage:ro"])
    assert probed.returncode in (0, 78) and probed.stdout.startswith("{"), probed


def test_gate_as_a_mount_of_the_image(built):
    mount = ["--mount", "type=image,source=localhost/cage/gate,destination=/gate"]
    done = built.run("agent-base", "/gate/usr/libexec/cage/cage-gate", "--help", options=mount)
    assert done.returncode == 0 and "cage-gate" in done.stdout, done


def test_gate_without_a_volume_says_so(built):
    done = built.run("gate")
    assert done.returncode == 1 and "can't open /cage" in done.stderr


def test_agent_base_is_nobody_special(built):
    done = built.run("agent-base", "sh", "-c", "id -u; id -g; node --version; git --version; python3 --version; touch /usr/x /workspace/x; cat /etc/machine-id")
    lines = done.stdout.splitlines()
    assert lines[:2] == ["1000", "1000"] and lines[2].startswith("v22.") and len(lines) == 5, done
    assert done.stderr.count("Read-only file system") == 2


@pytest.mark.parametrize("image", ["proxy", "dns", "gate"])
def test_the_same_digest_twice(built, again, image):
    """From nothing: another base, another store, no cache."""
    assert built.by[image]["digest"] == again.by[image]["digest"]
    assert built.sbom(image) == again.sbom(image)


ASKS = """
import urllib.error, urllib.request
for url in ("http://plain.test/command", "http://other.test/"):
    try:
        print(urllib.request.urlopen(url, timeout=20).status)
    except urllib.error.HTTPError as e:
        print(e.code, e.read().decode())
"""


def test_a_sandbox_of_all_of_them(built, tmp_path):
    """What the service makes of them by itself, and of the agent's by its digest."""
    pinned = "localhost/cage/agent-base@" + built.by["agent-base"]["digest"]
    with netns.or_skip(), listening() as server, contextlib.ExitStack() as stack:
        rules = allows(server, "plain.test")
        lets_in = {**rules, "images": [{"registry": "localhost", "repository": "cage/agent-base"}]}
        profile = {"policy": {"inline": json.dumps(lets_in)}, "image": pinned}
        service = stack.enter_context(Service(tmp_path, {"backends": {"podman": built.backend()}, "profiles": {"pinned": profile}}))
        for body in ({"policy": {"inline": json.dumps(rules)}}, {"profile": "pinned"}):
            box = service.run("python3", "-c", ASKS, **body)
            out = service.output(box["id"]).decode()
            assert box["state"] == "succeeded" and out.startswith("200\n403 ") and "host.not_allowed" in out, (box, out)
            ident = service.idle(**body)
            assert service.result(ident, "shell_exec", command="id -un; node --version")["stdout"].startswith("agent\nv22.")
            assert service.result(ident, "http_request", url="http://plain.test/tool")["status"] == 200
            assert [path for path, _ in server.seen] == ["/command", "/tool"]
            server.seen.clear()
            service.request("DELETE", API + "/" + ident)
        answer = service.post(API, {"command": ["true"], "image": pinned, "policy": {"inline": json.dumps(rules)}})
        assert answer.status == 422 and answer.json["reason"] == "image.not_allowed", answer
