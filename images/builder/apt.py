"""Where this machine gets its Debian packages from: whatever mirror it uses, a debootstrap base uses too."""
import glob
import os
import re

from .say import Failed

MAIN = "main"


class Source:
    """One archive: its address and suites."""

    def __init__(self, uri, suites, signed_by):
        self.uri, self.suites, self.signed_by = uri.rstrip("/"), suites, signed_by


def one_line(text):
    for line in text.splitlines():
        found = re.match(r"\s*deb\s+(?:\[(.*?)\]\s*)?(\S+)\s+(\S+)\s+(.*)", line)
        if found and MAIN in found[4].split():
            signed = re.search(r"signed-by=(\S+)", found[1] or "")
            yield Source(found[2], [found[3]], signed[1] if signed else None)


def fields(paragraph):
    """Of deb822; lines that go on are joined."""
    lines = [line for line in paragraph.splitlines() if not line.startswith("#")]
    joined = re.sub(r"\n[ \t]+", " ", "\n".join(lines))
    return {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in joined.splitlines())}


def deb822(text):
    for paragraph in re.split(r"\n\s*\n", text):
        f = fields(paragraph)
        if "deb" in f.get("types", "").split() and MAIN in f.get("components", "").split() and f.get("enabled", "yes") != "no":
            for uri in f.get("uris", "").split():
                yield Source(uri, f.get("suites", "").split(), f.get("signed-by"))


def sources(suite, directory="/etc/apt"):
    """Those that have the suite, its updates or its security fixes; the one with the suite itself comes first."""
    out = []
    for path in [os.path.join(directory, "sources.list"), *sorted(glob.glob(os.path.join(directory, "sources.list.d", "*")))]:
        if not os.path.isfile(path) or not path.endswith((".list", ".sources")):
            continue
        with open(path) as f:
            out += (deb822 if path.endswith(".sources") else one_line)(f.read())
    names = (suite, suite + "-updates", suite + "-security")
    for source in out:
        source.suites = [s for s in source.suites if s in names]
    out = [s for s in out if s.suites]
    if not any(suite in s.suites for s in out):
        raise Failed("the apt configuration of this machine names no archive with %s; use --base registry, or add one to /etc/apt" % suite, 2)
    return sorted(out, key=lambda s: suite not in s.suites)


def as_list(found):
    """The same as lines of a sources.list, whose keys are those of the base."""
    return "".join("deb %s %s main\n" % (s.uri, suite) for s in found for suite in s.suites)
