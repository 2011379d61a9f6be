"""The agents' images, built by images/build on a base that debootstrap makes, and run by Podman as docs/images.md says: read-only,
without capabilities and here without a network. Run by ./dev test --all."""
import json
import os
import sys

import pytest
from cagelib import images

sys.path.insert(0, os.path.join(images.ROOT, "images"))

from builder import oci, plan  # noqa: E402

HOME = ("--mount", "type=tmpfs,destination=/home/agent,chown=true", "--mount", "type=tmpfs,destination=/workspace,chown=true")


def locked(agent):
    """The name and version of its package, as they are locked."""
    with open(os.path.join(images.ROOT, "images", agent, "package.json")) as f:
        (name,) = json.load(f)["dependencies"]
    with open(os.path.join(images.ROOT, "images", agent, "package-lock.json")) as f:
        return name, json.load(f)["packages"]["node_modules/" + name]["version"]


@pytest.fixture(scope="module")
def built():
    """With the first of them; the others are built on the same base, each when its tests come."""
    out = images.made(plan.NPM_AGENTS[0])
    yield out
    out.close()


@pytest.fixture(scope="module", params=plan.NPM_AGENTS)
def agent(built, request):
    if request.param not in built.by:
        images.made(request.param, on=built)
    return request.param


@pytest.fixture(scope="module")
def found(built, agent):
    return oci.Image(built.by[agent]["layout"])


def shell(built, agent, script):
    return built.run(agent, "-c", script, options=[*HOME, "--entrypoint", "/bin/sh"])


def test_it_says_the_version_that_is_locked(built, agent):
    done = built.run(agent, "--version", options=HOME)
    assert done.returncode == 0 and locked(agent)[1] in done.stdout.split("\n")[0].split(" "), done


def test_it_is_nobody_special(built, agent, found):
    done = shell(built, agent, "id -u; id -g; grep -E '^Cap(Eff|Bnd)|^NoNewPrivs' /proc/self/status; touch /usr/x /opt/agent/x; cd /workspace && touch x && ls")
    assert done.stdout.split() == ["1000", "1000", "CapEff:", "0" * 16, "CapBnd:", "0" * 16, "NoNewPrivs:", "1", "x"], done
    assert done.stderr.count("Read-only file system") == 2
    assert found.config["config"]["User"] == "1000:1000"


def test_no_program_of_it_becomes_somebody_else(built, agent):
    """Where user 1000 gets at it."""
    done = shell(built, agent, "find / -xdev -type f -perm /6000 2>/dev/null; echo end")
    assert done.stdout == "end\n", done


def test_there_is_nothing_of_cage_in_it(found):
    assert not [path for path in [*found.files, *found.links] if os.path.basename(path).startswith("cage-") or path.startswith(("cage/", "etc/cage", "var/lib/cage"))]


def test_the_sbom_names_the_agent(built, agent, found):
    document, (name, version) = built.sbom(agent), locked(agent)
    (package,) = [p for p in document["packages"] if (p["name"], p["versionInfo"]) == (name, version)]  # its binary may be a package of the same name
    assert package["externalRefs"][0]["referenceLocator"] == "pkg:npm/%s@%s" % (name.replace("@", "%40"), version)
    assert {f["fileName"][2:]: f["checksums"][0]["checksumValue"] for f in document["files"]} == found.files
    assert not [p for p in document["packages"] if p["name"] == "cage"]


def test_one_digest_names_it(built, agent, found):
    assert built.call("image", "inspect", "--format", "{{.Digest}}", "localhost/cage/" + agent).stdout.strip() == found.digest == built.by[agent]["digest"]


def test_aider_stops_and_says_what_it_lacks(tmp_path):
    """As docs/images.md has it; before anything is made."""
    if not plan.lacks("aider"):
        pytest.fail("aider has its hashes now: build and run it here, as the others")
    done = images.build("--base", "debootstrap", "--store", str(tmp_path / "store"), "--output", str(tmp_path / "output"), "aider")
    command = "pip-compile --generate-hashes -o images/aider/requirements.txt images/aider/requirements.in"
    with open(os.path.join(images.ROOT, "docs", "images.md")) as f:
        assert "`%s`" % command in f.read()
    assert done.returncode == 2 and done.stderr.rstrip().endswith(command) and done.stdout == "", done
    assert os.listdir(tmp_path) == []
