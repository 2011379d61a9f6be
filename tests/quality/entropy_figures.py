#!/usr/bin/python3
"""The figures behind the thresholds of the entropy inspector, as the tables of docs/inspectors.md: how many bits per
byte windows of several lengths have, of random data in some forms against the benign corpus and what lies on this
machine.

usage: entropy_figures.py [CORPORA [DIRECTORY...]]
(default: ../shared/corpora beside the tree; folders below /usr)"""
import base64
import collections
import json
import math
import os
import random
import re
import struct
import sys
import urllib.parse
import zlib

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BODY_WINDOWS = (256, 512, 1024, 4096)
VALUE_WINDOWS = (48, 64, 96)
FILES = 4000  # of one directory
SIZE = 1 << 20  # of one file, at most
VALUE_STEP = 16
TEXTS = (".c", ".h", ".py", ".js", ".ts", ".json", ".md", ".txt", ".html")
URL = re.compile(rb"https?://[^\s\"'<>\\)\]}`|]+")
USER_AGENTS = (
    b"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36",
    b"Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/17.4 "
    b"Safari/605.1.15",
)


def entropy(data):
    n = len(data)
    return math.log2(n) - sum(c * math.log2(c) for c in collections.Counter(data).values()) / n


def windows(data, n):
    return [entropy(data[i:i + n]) for i in range(0, len(data) - n + 1, n)]


def row(name, values):
    """One line of a table: how many, the lowest, 1 %, half, 99 %, the highest."""
    if not values:
        return
    values = sorted(values)
    at = [values[min(len(values) - 1, int(len(values) * share))] for share in (0, .01, .5, .99, 1)]
    print("| %s | %d | %s |" % (name, len(values), " | ".join("%.2f" % v for v in at)))


def head(what):
    print("\n| %s | windows | lowest | 1 %% | half | 99 %% | highest |\n|---|---|---|---|---|---|---|" % what)


def files(directory, endings):
    """The text or binary files below, bounded."""
    count = 0
    for where, folders, names in os.walk(directory):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(where, name)
            if count == FILES or not name.endswith(endings) or os.path.islink(path) or not os.path.isfile(path):
                continue
            count += 1
            with open(path, "rb") as f:
                yield f.read(SIZE)


def undo(data, coding):
    if coding in ("gzip", "deflate"):
        return zlib.decompress(data, 47 if coding == "gzip" else 15)
    return None if coding else data  # zstd is not in Python's library


def corpus(directory):
    """(file, declared type, body with its coding undone)"""
    with open(os.path.join(directory, "benign", "manifest.jsonl")) as f:
        for line in f:
            item = json.loads(line)
            with open(os.path.join(directory, "benign", item["file"]), "rb") as body:
                data = undo(body.read(), item["content_encoding"])
            if data:
                yield item["file"], item["content_type"], data


def bodies(corpora, directories):
    dice = random.Random(1)
    noise = dice.randbytes(2 << 20)
    vector = struct.pack("<65536f", *(dice.gauss(0, .03) for _ in range(65536)))
    groups = collections.defaultdict(list)
    for name, declared, data in corpus(corpora):
        kind = ("gRPC" if "grpc" in declared
                else "multipart with pictures" if "multipart" in declared
                else "JSON with base64" if name.startswith(("llm", "emb"))
                else "PEM" if name.endswith("pem")
                else "JSON, lock files, text")
        if name != "grpc-gzip-frame.bin":
            groups["corpus: " + kind].append(data)
    for directory in directories:
        groups["sources and text of this machine"] += files(directory, TEXTS)
        groups["programs of this machine"] += files(directory, (".so", ".o", ".a", ".pyc"))
    for n in BODY_WINDOWS:
        head("windows of %d bytes" % n)
        row("random or encrypted", windows(noise, n))
        row("base64 of it", windows(base64.b64encode(noise), n))
        row("hex of it", windows(noise.hex().encode(), n))
        row("floats of four bytes", windows(vector, n))
        for name in sorted(groups):
            row(name, [h for data in groups[name] for h in windows(data, n)])


def url_values(corpora, directories):
    texts = [data for _, _, data in corpus(corpora)]
    for directory in directories:
        texts += files(directory, TEXTS)
    values = set()
    for url in {u for text in texts for u in URL.findall(text)}:
        path, _, query = url.partition(b"//")[2].partition(b"#")[0].partition(b"?")
        for value in path.split(b"/")[1:] + re.split(b"[&=]", query):
            values.add(urllib.parse.unquote_to_bytes(value))
    return values


def heads(corpora, directories):
    dice = random.Random(2)
    noise = dice.randbytes(3 * 96 * 3000)
    values = url_values(corpora, directories)
    print("\n%d different path segments and query values of URLs." % len(values))
    for n in VALUE_WINDOWS:
        head("windows of %d bytes" % n)
        row("random bytes, percent-encoded", windows(noise, n)[:3000])
        row("base64 of random", windows(base64.b64encode(noise), n)[:3000])
        row("base32 of random", windows(base64.b32encode(noise), n)[:3000])
        row("hex of random", windows(noise.hex().encode(), n)[:3000])
        long = [v for v in values if len(v) >= n]
        row("URL values, the highest window of each",
            [max(entropy(v[i:i + n]) for i in range(0, len(v) - n + 1, VALUE_STEP)) for v in long])
        row("User-Agent of browsers, with its blanks",
            [entropy(v[i:i + n]) for v in USER_AGENTS for i in range(0, len(v) - n + 1)])


def main(arguments):
    corpora = arguments[0] if arguments else os.path.join(ROOT, "..", "shared", "corpora")
    directories = arguments[1:] or ["/usr/include", "/usr/lib/python3", "/usr/lib/node_modules", "/usr/share/doc"]
    print("Bodies")
    bodies(corpora, directories)
    print("\nValues of heads")
    heads(corpora, directories)


if __name__ == "__main__":
    main(sys.argv[1:])
