"""Which images a policy lets in, seen through cage image check: keys and signatures are made with openssl as docs/admission.md has it."""
import base64
import hashlib
import json
import os
import subprocess

import pytest

from cagelib import signing
from cagelib.proxy import SANITIZER, binary
from cagelib.signing import make_key, sign

SECONDS = 60
REGISTRY, REPOSITORY = "ghcr.example.com", "org/agent"
NAME = REGISTRY + "/" + REPOSITORY
HEX = hashlib.sha256(b"a manifest").hexdigest()
OTHER_HEX = hashlib.sha256(b"another manifest").hexdigest()
IMAGE = NAME + "@sha256:" + HEX


def payload(name=NAME, digest=HEX, **more):
    return signing.payload(name, digest, **more)


class Place:
    """A policy, a key and a directory of signatures."""

    def __init__(self, directory):
        self.directory = directory
        self.private, self.public = make_key(directory, "cosign")
        self.signatures = directory / "signatures"
        self.signatures.mkdir()
        self.policy(key="cosign.pub")

    def policy(self, *entries, **entry):
        images = list(entries) or [{"registry": REGISTRY, "repository": REPOSITORY, **entry}]
        text = {"version": 1, "name": "test", "images": images}
        (self.directory / "policy.yaml").write_text(json.dumps(text))

    def put(self, data, signature, digest=HEX):
        (self.signatures / ("sha256-%s.json" % digest)).write_bytes(data)
        (self.signatures / ("sha256-%s.sig" % digest)).write_bytes(signature)

    def put_signed(self, data=None, private=None, digest=HEX):
        data = payload() if data is None else data
        self.put(data, sign(private or self.private, data), digest)

    def run(self, image=IMAGE, signatures=True):
        words = [binary("cage"), "image", "check", "--policy", str(self.directory / "policy.yaml"), image]
        words += ["--signatures", str(self.signatures)] if signatures else []
        done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS)
        assert not SANITIZER.search(done.stderr), done.stderr
        return done

    def admits(self, image=IMAGE, **more):
        done = self.run(image, **more)
        assert done.returncode == 0 and done.stdout.startswith("admitted: "), done

    def refuses(self, reason, image=IMAGE, **more):
        done = self.run(image, **more)
        assert done.returncode == 1 and done.stdout.startswith("refused: %s: " % reason), done
        assert done.stdout.count("\n") == 1 and done.stderr == ""

    def refuses_policy(self, what):
        done = self.run()
        assert done.returncode == 2 and done.stdout == "" and what in done.stderr, done


@pytest.fixture
def place(tmp_path):
    return Place(tmp_path)


# ---- names ----

def test_without_a_word_about_images_there_are_none(place):
    (place.directory / "policy.yaml").write_text("version: 1\nname: test\n")
    place.refuses("image.not_allowed")


def test_listed_images_need_no_signature_without_a_key(place):
    place.policy()
    place.admits()
    place.admits(signatures=False)


@pytest.mark.parametrize("image", [NAME, NAME + ":latest", REGISTRY + ":443/" + REPOSITORY, REGISTRY + ":443/" + REPOSITORY + ":1"])
def test_a_tag_is_not_enough(place, image):
    place.policy()
    place.refuses("image.unpinned", image)


@pytest.mark.parametrize("name", [
    "ghcr.example.com.evil.test/org/agent", "evil.test/ghcr.example.com/org/agent", "xghcr.example.com/org/agent", "ghcr-example.com/org/agent",
    "example.com/org/agent", "ghcr.example.com:443/org/agent", "ghcr.example.com:5000/org/agent", "localhost/org/agent",
    "ghcr.example.com/org/agents", "ghcr.example.com/org", "ghcr.example.com/org/agent/x", "ghcr.example.com/agent", "ghcr.example.com/org-agent",
])
def test_names_that_look_alike(place, name):
    place.policy()
    place.refuses("image.not_allowed", name + "@sha256:" + HEX)


@pytest.mark.parametrize("image", [
    "ghcr.example.com@evil.test/org/agent@sha256:" + HEX, "user:pw@ghcr.example.com/org/agent@sha256:" + HEX, "https://" + IMAGE, "docker://" + IMAGE,
    "ghcr.example.com:0443/org/agent@sha256:" + HEX, "ghcr.example.com:/org/agent@sha256:" + HEX, "ghcr.example.com./org/agent@sha256:" + HEX,
    "GHCR.example.com/org/agent@sha256:" + HEX, "ghcr.example.com//org/agent@sha256:" + HEX, "ghcr.example.com/org/../org/agent@sha256:" + HEX,
    "ghcr.example.com/org%2fagent@sha256:" + HEX, "ghcr.example.com/org/agent:1@sha256:" + HEX, "org/agent@sha256:" + HEX, "agent", "",
    NAME + "@sha256:" + HEX.upper(), NAME + "@sha256:" + HEX[:-1], NAME + "@md5:" + HEX[:32], IMAGE + "\n", IMAGE + " ", " " + IMAGE,
    "gh\u0441r.example.com/org/agent@sha256:" + HEX, NAME + "/a" * 300 + "@sha256:" + HEX,
])
def test_names_that_are_none(place, image):
    place.policy()
    place.refuses("image.malformed", image)


def test_patterns_of_repositories(place):
    place.policy(repository="org/**")
    place.admits()
    place.admits(REGISTRY + "/org/a/b@sha256:" + HEX)
    place.refuses("image.not_allowed", REGISTRY + "/organ/agent@sha256:" + HEX)
    place.policy(repository="org/*-agent")
    place.admits(REGISTRY + "/org/my-agent@sha256:" + HEX)
    place.refuses("image.not_allowed", REGISTRY + "/org/x/my-agent@sha256:" + HEX)


def test_a_digest_in_the_policy(place):
    place.policy(digest="sha256:" + HEX)
    place.admits()
    place.refuses("image.other_digest", NAME + "@sha256:" + OTHER_HEX)


# ---- signatures ----

def test_signed(place):
    place.refuses("image.unsigned")
    place.refuses("image.unsigned", signatures=False)
    place.put_signed()
    place.admits()
    place.put_signed(payload(optional={"creator": "x"}))
    place.admits()


def test_as_the_documentation_has_it(place):
    docs = os.path.join(os.path.dirname(__file__), "..", "..", "docs", "admission.md")
    with open(docs, encoding="utf-8") as f:
        section = f.read().split("### Without cosign")[1].split("\n## ")[0]
    script = "\n".join(section.split("```")[1::2]).replace("registry.example.com", REGISTRY)
    os.unlink(place.public)
    subprocess.run(["sh", "-ec", script], cwd=place.directory, env={**os.environ, "HEX": HEX}, check=True, capture_output=True, timeout=SECONDS)
    place.signatures = place.directory
    place.admits()


def test_tampered_payload(place):
    place.put(payload().replace(b"null", b"{}"), sign(place.private, payload()))
    place.refuses("image.bad_signature")
    place.put(payload() + b"\n", sign(place.private, payload()))
    place.refuses("image.bad_signature")


def test_tampered_signature(place):
    good = base64.b64decode(sign(place.private, payload()))
    for at in range(0, len(good), 7):
        bad = bytearray(good)
        bad[at] ^= 1
        place.put(payload(), base64.b64encode(bytes(bad)))
        place.refuses("image.bad_signature")
    for text in (b"", b"x", good, base64.b64encode(good)[:-4], base64.b64encode(good + b"\0"), b" " + base64.b64encode(good),
                 base64.b64encode(bytes.fromhex("3006020100020100")), base64.b64encode(bytes.fromhex("3006020101020101"))):
        place.put(payload(), text)
        place.refuses("image.bad_signature")


def test_a_line_break_behind_a_signature_is_none_of_it(place):
    place.put(payload(), sign(place.private, payload()) + b"\n")
    place.admits()


def test_another_key(place):
    other, _ = make_key(place.directory, "other")
    place.put_signed(private=other)
    place.refuses("image.bad_signature")


@pytest.mark.parametrize("kind", ["rsa", "secp384r1", "secp256k1"])
def test_other_kinds_of_keys(place, kind):
    private, _ = make_key(place.directory, "other", kind)
    place.put_signed(private=private)
    place.refuses("image.bad_signature" if kind == "secp256k1" else "image.unreadable")  # longer than any of P-256
    place.policy(key="other.pub")
    place.refuses_policy('images[0].key: "other.pub" is no ECDSA key on the curve P-256')


def test_a_private_key_is_no_key(place):
    place.policy(key="cosign.key")
    place.refuses_policy('images[0].key: "cosign.key" is not one public key in PEM')


def test_a_key_in_the_policy_itself(place):
    with open(place.public, encoding="ascii") as f:
        text = f.read()
    for key in (" ".join(text.split("\n")), text):  # on one line, and as it is in its file
        place.policy(key=key)
        place.put_signed()
        place.admits()


def test_another_digest(place):
    place.put_signed(payload(digest=OTHER_HEX))
    place.refuses("image.signed_other")
    place.put_signed()
    place.refuses("image.unsigned", NAME + "@sha256:" + OTHER_HEX)


def test_another_repository(place):
    for name in ("ghcr.example.com/org/other", "evil.test/org/agent", NAME + ":latest", NAME + "/", "org/agent", IMAGE):
        place.put_signed(payload(name))
        place.refuses("image.signed_other")


def test_payloads_that_are_none(place):
    good = json.loads(payload())
    more = {**good, "critical": {**good["critical"], "more": 1}}
    type_ = {**good, "critical": {**good["critical"], "type": "atomic container signature"}}
    for data in (b"{}", b"[]", b"x", payload(more=1), json.dumps(more).encode(), json.dumps(type_).encode()):
        place.put_signed(data)
        place.refuses("image.bad_signature")


def test_keys_that_are_there_twice(place):
    image = b'"image": {"docker-manifest-digest": "sha256:%s"}' % HEX.encode()
    other = b'"image": {"docker-manifest-digest": "sha256:%s"}' % OTHER_HEX.encode()
    for double in (other + b", " + image, image + b", " + other, image + b", " + image):
        assert image in payload()
        place.put_signed(payload().replace(image, double))
        place.refuses("image.bad_signature")


def test_payloads_are_bounded(place):
    short = len(payload(optional={"x": ""}))
    place.put_signed(payload(optional={"x": "y" * (16384 - short)}))
    place.admits()
    place.put_signed(payload(optional={"x": "y" * (16385 - short)}))
    place.refuses("image.unreadable")


def test_half_a_signature(place):
    place.put_signed()
    (place.signatures / ("sha256-%s.sig" % HEX)).unlink()
    place.refuses("image.unreadable")


def test_what_is_no_file_is_not_read(place):
    place.put_signed()
    path = place.signatures / ("sha256-%s.sig" % HEX)
    path.unlink()
    os.mkfifo(path)
    place.refuses("image.unreadable")


def test_no_directory(place):
    place.signatures = place.directory / "none"
    place.refuses("image.unreadable")


# ---- several entries ----

def test_one_entry_that_is_met_is_enough(place):
    other, _ = make_key(place.directory, "other")
    entry = {"registry": REGISTRY, "repository": REPOSITORY}
    place.policy({**entry, "key": "cosign.pub"}, {**entry, "key": "other.pub"})
    place.refuses("image.unsigned")
    place.put_signed(private=other)
    place.admits()


def test_the_nearest_entry_says_why(place):
    entry = {"registry": REGISTRY, "repository": REPOSITORY}
    place.policy({**entry, "key": "cosign.pub"}, {**entry, "digest": "sha256:" + OTHER_HEX}, {**entry, "repository": "other"})
    place.refuses("image.unsigned")


# ---- an OCI layout ----

class Layout:
    """As cosign's tag looks when it is copied out of a registry."""

    def __init__(self, directory):
        self.directory = directory
        (directory / "blobs" / "sha256").mkdir(parents=True)
        (directory / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')

    def blob(self, data):
        digest = hashlib.sha256(data).hexdigest()
        (self.directory / "blobs" / "sha256" / digest).write_bytes(data)
        return {"digest": "sha256:" + digest, "size": len(data), "mediaType": "application/octet-stream"}

    def write(self, *signed, name="sha256-%s.sig" % HEX):
        layers = [{**self.blob(data), "annotations": {"dev.cosignproject.cosign/signature": signature.decode()}} for data, signature in signed]
        manifest = self.blob(json.dumps({"schemaVersion": 2, "config": self.blob(b"{}"), "layers": layers}).encode())
        named = {**manifest, "annotations": {"org.opencontainers.image.ref.name": name}}
        (self.directory / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": [self.blob(b"[]"), named]}))


def test_signatures_in_a_layout(place):
    layout = Layout(place.signatures)
    other, _ = make_key(place.directory, "other")
    good = (payload(), sign(place.private, payload()))
    bad = (payload(), sign(other, payload()))
    layout.write(good)
    place.admits()
    layout.write(good, name=NAME + ":sha256-%s.sig" % HEX)
    place.admits()
    layout.write(bad, good)
    place.admits()
    layout.write(bad)
    place.refuses("image.bad_signature")
    layout.write()
    place.refuses("image.unsigned")
    layout.write(good, name="sha256-%s.sig" % OTHER_HEX)
    place.refuses("image.unsigned")


def test_layouts_that_lie(place):
    layout = Layout(place.signatures)
    layout.write((payload(), sign(place.private, payload())))
    blob = place.signatures / "blobs" / "sha256" / hashlib.sha256(payload()).hexdigest()
    blob.write_bytes(payload() + b" ")
    place.refuses("image.unreadable")
    blob.unlink()
    place.refuses("image.unreadable")
    (place.signatures / "index.json").write_text("{")
    place.refuses("image.unreadable")
    (place.signatures / "index.json").write_text('{"manifests": [{"digest": "sha256:../../../etc/passwd", "annotations": '
                                                 '{"org.opencontainers.image.ref.name": "sha256-%s.sig"}}]}' % HEX)
    place.refuses("image.unreadable")


def test_so_many_signatures_are_looked_at(place):
    layout = Layout(place.signatures)
    good, bad = (payload(), sign(place.private, payload())), (payload(), b"MAYCAQECAQE=")
    layout.write(*[bad] * 63, good)
    place.admits()
    layout.write(*[bad] * 64, good)
    place.refuses("image.bad_signature")


def test_so_many_keys_are_tried(place):
    """Each signature with each key, until one fits or it is too much work."""
    layout = Layout(place.signatures)
    make_key(place.directory, "other")
    entry = {"registry": REGISTRY, "repository": REPOSITORY}
    layout.write(*[(payload(), b"MAYCAQECAQE=")] * 63, (payload(), sign(place.private, payload())))
    place.policy(*[{**entry, "key": "other.pub"}] * 3, {**entry, "key": "cosign.pub"})
    place.admits()
    place.policy(*[{**entry, "key": "other.pub"}] * 4, {**entry, "key": "cosign.pub"})
    place.refuses("image.bad_signature")


def test_an_index_is_bounded(place):
    layout = Layout(place.signatures)
    layout.write((payload(), sign(place.private, payload())))
    index = place.signatures / "index.json"
    index.write_text(index.read_text().ljust(1 << 20))
    place.admits()
    index.write_text(index.read_text() + " ")
    place.refuses("image.unreadable")


# ---- the command ----

def test_usage(place):
    def run(*words):
        done = subprocess.run([binary("cage"), *words], capture_output=True, text=True, timeout=SECONDS)
        assert not SANITIZER.search(done.stderr), done.stderr
        return done
    policy = str(place.directory / "policy.yaml")
    assert run("image", "--help").stdout == run("help", "image").stdout != ""
    assert "cage image check --policy" in run("image", "--help").stdout
    for words, what in ((("image",), "expected check"), (("image", "sign"), "sign: expected check"), (("image", "check", IMAGE), "--policy: is needed"),
                        (("image", "check", "--policy", policy), "expected an image"), (("image", "check", "--policy", policy, IMAGE, "x"), "x: is not expected here"),
                        (("image", "check", "--nope"), "--nope")):
        done = run(*words)
        assert done.returncode == 2 and done.stdout == "" and what in done.stderr, done
