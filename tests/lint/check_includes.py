#!/usr/bin/python3
"""Checks what the compiler does not: which folder may include which, where event and TLS headers may be seen, that
sources are plain ASCII, and that each opens with a comment that says what it is. Prints file:line for each offence
and ends with 1 when there is one.

usage: check_includes.py ROOT"""
import os
import re
import sys

# What a folder may include of ours, by prefix. The longest entry that a file's path starts with counts.
ALLOWED = {
    "core/base/": ("core/base/",),
    "core/http/": ("core/http/", "core/base/"),
    "core/policy/": ("core/policy/", "core/base/", "core/http/"),
    "core/audit/": ("core/audit/", "core/base/"),
    "core/net/": ("core/net/", "core/base/"),
    "core/proc/": ("core/proc/", "core/base/", "core/http/", "core/policy/", "core/audit/", "core/net/"),
    "inspectors/": ("inspectors/", "core/base/", "core/http/", "core/policy/", "core/audit/"),
    "proxy/": ("proxy/", "inspectors/", "core/"),
    "dns/": ("dns/", "inspectors/", "core/"),
    "orchestrator/": ("orchestrator/", "inspectors/", "core/"),
    "images/": ("core/base/",),
    "tests/": ("tests/", "proxy/", "dns/", "orchestrator/", "inspectors/", "core/"),
}
# Headers of libraries that only these may see: sockets and TLS end at the net layer.
GUARDED = {
    "event2/": ("core/net/", "core/proc/", "proxy/", "dns/", "orchestrator/", "tests/"),
    "openssl/ssl.h": ("core/net/", "proxy/", "dns/", "orchestrator/", "tests/"),
    "openssl/": ("core/policy/", "core/audit/", "core/http/ws_nonce.c", "core/net/", "core/proc/key_file.c", "core/proc/placeholder.c", "proxy/", "dns/", "orchestrator/", "tests/"),
    "ares": ("core/net/", "dns/", "tests/"),
    "yaml.h": ("core/policy/", "inspectors/scan/mkcatalogue.c", "tests/"),
}
INCLUDE = re.compile(rb'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SKIPPED = {"build", ".git"}


def sources(root):
    for directory, names, files in os.walk(root):
        names[:] = sorted(n for n in names if n not in SKIPPED)
        for name in sorted(files):
            if name.endswith((".c", ".h")):
                yield os.path.relpath(os.path.join(directory, name), root)


def include_offence(path, quoted, header):
    """What is wrong with this include in this file, or None."""
    if quoted:
        folder = max((f for f in ALLOWED if path.startswith(f)), key=len, default=None)
        if folder is None:
            return "a source outside the known folders"
        if not header.startswith(ALLOWED[folder]):
            return "%s may not include \"%s\"" % (folder, header)
        return None
    guard = max((g for g in GUARDED if header.startswith(g)), key=len, default=None)
    if guard and not path.startswith(GUARDED[guard]):
        return "<%s> may not be seen here" % header
    return None


def offences(path, content):
    lines = content.split(b"\n")
    if not content.lstrip().startswith((b"/*", b"//")):
        yield 1, "does not open with a comment"
    for number, line in enumerate(lines, 1):
        if any(b > 0x7e or (b < 0x20 and b != 9) for b in line):
            yield number, "a byte outside printable ASCII"
        include = INCLUDE.match(line)
        what = include and include_offence(path, include.group(1) == b'"', include.group(2).decode("latin-1"))
        if what:
            yield number, what


def main(root):
    found = 0
    for path in sources(root):
        with open(os.path.join(root, path), "rb") as f:
            for number, what in offences(path, f.read()):
                print("%s:%d: %s" % (path, number, what))
                found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else "."))
