"""The base that everything starts from: Debian's image from a registry, by its digest, or what debootstrap makes of the
packages of the archive that this machine uses. The state of that archive is recorded as the hash of its Release files."""
import email.utils
import hashlib
import os
import re
import shutil
import subprocess
import urllib.request

from . import apt, plan
from .buildah import temporary
from .say import Failed, say

SUITE = "bookworm"
RELEASE_SECONDS = 60
REGISTRY_SECONDS = 90
DEBOOTSTRAP_SECONDS = 1200
ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C", "DEBIAN_FRONTEND": "noninteractive"}
PROXY = ("http_proxy", "https_proxy", "no_proxy")
# What differs from one run to the next, or is of this machine.
LEFT_OVER = ("var/log", "var/cache/apt", "var/lib/apt/lists", "var/cache/ldconfig", "var/cache/debconf", "tmp", "run")
LEFT_OVER_FILES = ("etc/machine-id", "etc/hostname", "etc/resolv.conf", "var/lib/dpkg/status-old", "var/lib/dpkg/diversions-old",
                   "var/lib/dpkg/statoverride-old", "etc/passwd-", "etc/group-", "etc/shadow-", "etc/gshadow-", "etc/subuid-", "etc/subgid-")


class Base:
    """image: what FROM is given. about: one line on where it is from."""

    def __init__(self, image, about):
        self.image, self.about = image, about


def from_registry(buildah):
    """By digest, which is checked by whoever pulls it. Returns None and says why where it can't be had."""
    image = plan.pinned_base()
    say("asking the registry for %s" % image)
    try:
        done = buildah.run("pull", "--quiet", image, seconds=REGISTRY_SECONDS)
        reason = done.stderr.strip().splitlines()[-1:] if done.returncode else None
    except Failed as error:
        reason = [str(error)]
    if reason is None:
        return Base(image, "%s, pulled by its digest" % image)
    say("it can't be had: %s" % ((reason or ["no reason given"])[0])[:300])
    return None


def release(source, suite):
    url = "%s/dists/%s/InRelease" % (source.uri, suite)
    try:
        with urllib.request.urlopen(url, timeout=RELEASE_SECONDS) as answer:
            return answer.read()
    except OSError as error:
        raise Failed("the archive of this machine's apt configuration does not answer for %s: %s" % (suite, error)) from None


def archive_state(found):
    """The hash over all Release files, in the order of their suites, and the newest of their dates: the base depends on
    these and not on our commit."""
    total, newest = hashlib.sha256(), 0
    for suite, source in sorted(((suite, source) for source in found for suite in source.suites), key=lambda pair: pair[0]):
        text = release(source, suite)
        total.update(text)
        date = re.search(rb"^Date: (.+)$", text, re.M)
        newest = max(newest, int(email.utils.parsedate_to_datetime(date[1].decode()).timestamp()) if date else 0)
    return total.hexdigest(), newest


def in_own_mounts(*words, log, seconds):
    """debootstrap mounts /proc in what it makes; this machine is not to see that."""
    line = ["unshare", "--mount", "--propagation", "private", "--", *words]
    with open(log, "a") as out:
        done = subprocess.run(line, stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=seconds,
                              env={**ENVIRONMENT, **{k: os.environ[k] for k in PROXY if k in os.environ}})
    if done.returncode != 0:
        with open(log, errors="replace") as f:
            say("the end of %s:\n%s" % (log, "".join(f.readlines()[-15:])))
        raise Failed("%s failed" % words[0])


def clean(root):
    for name in LEFT_OVER:
        path = os.path.join(root, name)
        for entry in os.scandir(path) if os.path.isdir(path) else ():
            shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry.path)
    for name in LEFT_OVER_FILES:
        path = os.path.join(root, name)
        if os.path.lexists(path):
            os.unlink(path)


def make_root(root, found, log):
    words = ["debootstrap", "--force-check-gpg", "--variant=minbase", SUITE, root, found[0].uri]
    if found[0].signed_by and os.path.isfile(found[0].signed_by):
        words.insert(1, "--keyring=" + found[0].signed_by)
    in_own_mounts(*words, log=log, seconds=DEBOOTSTRAP_SECONDS)
    with open(os.path.join(root, "etc/apt/sources.list"), "w") as f:
        f.write(apt.as_list(found))
    shutil.copy("/etc/resolv.conf", os.path.join(root, "etc/resolv.conf"))
    for words in (["update"], ["upgrade", "-y", "--no-install-recommends"]):
        in_own_mounts("chroot", root, "apt-get", "-q", *words, log=log, seconds=DEBOOTSTRAP_SECONDS)
    clean(root)


def pack(root, tar, epoch):
    subprocess.run(["tar", "-C", root, "--sort=name", "--mtime=@%d" % epoch, "--numeric-owner", "--exclude=./dev/*", "--exclude=./proc/*",
                    "--exclude=./sys/*", "-cf", tar, "."], check=True, timeout=300)


def from_debootstrap(buildah, cached, expected):
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        raise Failed("a debootstrap base needs root and debootstrap (apt-get install debootstrap); or use --base registry", 2)
    found = apt.sources(SUITE)
    state, date = archive_state(found)
    if expected and state != expected:
        raise Failed("the archive has another state: its Release files have the hash %s, not %s" % (state, expected))
    image = "localhost/cage/debian:%s-%s" % (SUITE, state[:16])
    about = "debootstrap --variant=minbase %s, archive state sha256:%s" % (SUITE, state)
    if cached and buildah.has(image):
        return Base(image, about + " (made before)")
    say("making a base with debootstrap, which takes a minute or two")
    with temporary() as directory:
        root = os.path.join(directory, "root")
        make_root(root, found, os.path.join(buildah.logs, "debootstrap.log"))
        pack(root, os.path.join(directory, "root.tar"), date)
        buildah.build(image, plan.containerfile("debian"), directory, labels=["cage.base.archive=sha256:" + state], cached=cached, epoch=date)
    return Base(image, about)


def choose(buildah, kind, cached, expected=None):
    """kind: auto, registry or debootstrap."""
    if kind != "debootstrap":
        base = from_registry(buildah)
        if base:
            return base
        if kind == "registry":
            raise Failed("the base can't be had from the registry; --base debootstrap makes one without it")
    return from_debootstrap(buildah, cached, expected)
