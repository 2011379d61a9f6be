"""What images/build is made of, without building anything: the Containerfiles and their pins, the reading of apt's
configuration and of licences, and what it says when it can't go on."""
import glob
import gzip
import hashlib
import io
import json
import os
import re
import sys
import tarfile

import pytest
from cagelib import images

sys.path.insert(0, os.path.join(images.ROOT, "images"))

from builder import apt, licences, oci, plan, sbom  # noqa: E402
from builder.say import Failed  # noqa: E402


def read(*names):
    with open(os.path.join(images.ROOT, *names)) as f:
        return f.read()


def test_every_image_has_a_containerfile():
    assert all(os.path.isfile(plan.containerfile(name)) for name in plan.NEEDS)
    assert sorted(os.listdir(plan.IMAGES)) == sorted([*plan.NEEDS, "debian", "builder", "build", "collect", "CMakeLists.txt"])


def test_one_base_pinned_by_digest():
    bases = {line for path in glob.glob(os.path.join(plan.IMAGES, "*", "Containerfile")) for line in open(path) if line.startswith("ARG BASE=")}
    assert len(bases) == 1
    assert re.fullmatch(r"debian:12-slim@sha256:[0-9a-f]{64}", plan.pinned_base())


@pytest.mark.parametrize("name", sorted(plan.NEEDS))
def test_stages_start_from_arguments_only(name):
    """Or from nothing: what an image is made of is in the arguments that images/build sets."""
    text = read("images", name, "Containerfile")
    froms = re.findall(r"^FROM (\S+)", text, re.M)
    assert set(froms) <= {"scratch"} | {"${%s}" % need for need in plan.NEEDS[name]}
    assert {"${%s}" % need for need in plan.NEEDS[name]} <= set(froms)


@pytest.mark.parametrize("name", plan.PUBLISHED)
def test_published_images_are_not_root(name):
    text = read("images", name, "Containerfile").rsplit("\nFROM ", 1)[1]
    users = re.findall(r"^USER (\S+)", text, re.M)
    assert users in (["65532:65532"], ["1000:1000"]) or (not users and text.startswith("${AGENT_BASE}"))


def test_programs_are_compiled_with_what_dev_installs():
    wanted = re.search(r'^build_packages="([^"]*)"', read("dev"), re.M)[1].split()
    installed = re.search(r"--no-install-recommends ([^&]*?)\nWORKDIR", read("images", "programs", "Containerfile"), re.S)[1].replace("\\", " ").split()
    assert [*installed, "libcmocka-dev"] == wanted  # which is for tests


@pytest.mark.parametrize("name", ["npm", *plan.NPM_AGENTS])
def test_packages_are_locked_by_hash_and_name_no_registry(name):
    lock = json.loads(read("images", name, "package-lock.json"))
    asked = json.loads(read("images", name, "package.json"))
    for version in {**asked.get("dependencies", {}), **asked.get("optionalDependencies", {})}.values():
        assert re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+", version)
    for path, package in lock["packages"].items():
        assert "resolved" not in package
        assert not path or package["integrity"].startswith("sha512-")


def test_order_builds_what_is_needed_first():
    assert plan.order(["claude-code", "proxy"]) == ["npm", "agent-base", "claude-code", "programs", "proxy"]


DEB822 = """Types: deb
# a comment
URIs: http://mirror.test/debian/
Suites: bookworm
 bookworm-updates trixie
Components: main contrib
Signed-By: /key.gpg

Types: deb-src
URIs: http://src.test/
Suites: bookworm
Components: main

Types: deb
Enabled: no
URIs: http://off.test/
Suites: bookworm
Components: main
"""


def test_apt_sources_of_both_forms(tmp_path):
    (tmp_path / "sources.list.d").mkdir()
    (tmp_path / "sources.list").write_text("deb [signed-by=/s.gpg] http://security.test/x bookworm-security main\n# deb http://no.test/ bookworm main\n"
                                           "deb http://other.test/ stable main\n")
    (tmp_path / "sources.list.d" / "debian.sources").write_text(DEB822)
    (tmp_path / "sources.list.d" / "left.bak").write_text("deb http://bak.test/ bookworm main\n")
    found = apt.sources("bookworm", str(tmp_path))
    assert [(s.uri, s.suites, s.signed_by) for s in found] == [
        ("http://mirror.test/debian", ["bookworm", "bookworm-updates"], "/key.gpg"), ("http://security.test/x", ["bookworm-security"], "/s.gpg")]
    assert apt.as_list(found).splitlines()[2] == "deb http://security.test/x bookworm-security main"


def test_apt_without_the_suite(tmp_path):
    with pytest.raises(Failed, match="names no archive with bookworm"):
        apt.sources("bookworm", str(tmp_path))


FORMAT = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\n\nFiles: *\n"


@pytest.mark.parametrize("text,expected", [
    (FORMAT + "License: Expat\n", "MIT"), (FORMAT + "License: GPL-2+\n\nFiles: a\nLicense: Expat\n", "GPL-2.0-or-later AND MIT"),
    (FORMAT + "License: Own-Words\n", None), (FORMAT + "License: public-domain\n", None), ("License: Expat\n", None), ("", None)])
def test_licences_are_claimed_only_where_plain(text, expected):
    assert licences.of_debian(text.encode()) == expected


@pytest.mark.parametrize("text,expected", [("MIT", "MIT"), ("MIT OR Apache-2.0", "MIT OR Apache-2.0"), ("SEE LICENSE IN README.md", None), (None, None),
                                           ({"type": "MIT"}, None)])
def test_licences_of_npm(text, expected):
    assert licences.spdx(text) == expected


class Layout:
    """A small image, layer by layer."""

    def __init__(self, directory):
        self.dir, self.layers = directory, []
        os.makedirs(os.path.join(directory, "blobs", "sha256"))

    def blob(self, data):
        name = hashlib.sha256(data).hexdigest()
        with open(os.path.join(self.dir, "blobs", "sha256", name), "wb") as f:
            f.write(data)
        return {"digest": "sha256:" + name, "size": len(data)}

    def layer(self, files):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for name, data in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
        self.layers.append(self.blob(gzip.compress(out.getvalue())))

    def image(self):
        manifest = self.blob(json.dumps({"config": self.blob(b"{}"), "layers": self.layers}).encode())
        with open(os.path.join(self.dir, "index.json"), "w") as f:
            json.dump({"manifests": [manifest]}, f)
        return oci.Image(self.dir)


STATUS = b"Package: libx1\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1:2.0+b1\nMaintainer: M <m@x.test>\n\nPackage: gone\nStatus: deinstall ok config-files\nVersion: 1\n"


def small_image(tmp_path):
    layout = Layout(str(tmp_path / "layout"))
    layout.layer({"usr/lib/libx.so": b"old", "etc/secret": b"gone later", "a/b/c": b"1", "var/lib/dpkg/status": STATUS,
                  "var/lib/dpkg/info/libx1:amd64.list": b"/lib/libx.so\n/usr/share/doc\n"})
    layout.layer({"usr/lib/libx.so": b"new", "etc/.wh.secret": b"", "a/b/.wh..wh..opq": b"", "a/b/d": b"2", "usr/bin/cage-proxy": b"ours",
                  "opt/node_modules/@s/p/package.json": b'{"name": "@s/p", "version": "1.2.3", "license": "MIT"}',
                  "opt/node_modules/@s/p/dist/package.json": b'{"type": "module"}'})
    return layout.image()


def test_layers_are_read_as_they_lie_on_each_other(tmp_path):
    image = small_image(tmp_path)
    assert "etc/secret" not in image.files and "a/b/c" not in image.files and "a/b/d" in image.files
    assert image.files["usr/lib/libx.so"] == hashlib.sha256(b"new").hexdigest()


def test_sbom_of_a_small_image(tmp_path):
    document = sbom.document("cage/x", small_image(tmp_path), "0.1", 1000000000)
    assert [p["externalRefs"][0]["referenceLocator"] for p in document["packages"][1:]] == [
        "pkg:deb/debian/libx1@1%3A2.0%2Bb1?arch=amd64", "pkg:generic/cage@0.1", "pkg:npm/%40s/p@1.2.3"]
    assert document["creationInfo"]["created"] == "2001-09-09T01:46:40Z"
    files = {f["fileName"]: f["SPDXID"] for f in document["files"]}
    owners = {r["relatedSpdxElement"]: r["spdxElementId"] for r in document["relationships"]}
    assert owners[files["./usr/lib/libx.so"]] == "SPDXRef-Package-deb-libx1-1-2.0-b1"
    assert owners[files["./a/b/d"]] == "SPDXRef-Image"


@pytest.mark.parametrize("words,status,said", [
    (["nonsense"], 2, "no image 'nonsense'; there are: proxy, dns"), (["--base", "moon"], 2, "invalid choice"),
    (["--policy-entry", "--output", "/nonexistent"], 2, "nothing was built into /nonexistent yet")])
def test_wrong_usage_says_what_is_right(words, status, said):
    done = images.build(*words)
    assert done.returncode == status and said in done.stderr


def test_without_buildah_it_says_what_to_install(tmp_path):
    done = images.build("--output", str(tmp_path), "proxy", env={"PATH": str(tmp_path), "SOURCE_DATE_EPOCH": "1"})
    assert done.returncode == 2 and "buildah is not installed; as root: apt-get install" in done.stderr


def test_an_agent_without_hashes_is_not_built(tmp_path):
    if not plan.lacks("aider"):
        return
    done = images.build("--output", str(tmp_path), "aider")
    assert done.returncode == 2 and "pip-compile --generate-hashes" in done.stderr
