#!/usr/bin/python3
"""How good the inspectors are, as two tables: what the default policy says to traffic that is harmless, and how many
credentials of each format of the catalogue it finds in each view. Everything goes through a cage-proxy of its own to an
origin on loopback. docs/quality.md says more.

usage: quality.py [--write] [--values N] [--seed N] [--only FORMAT]...   (CAGE_BIN: the directory of cage-proxy)
Ends with 1 when a harmless request was blocked or a credential missed."""
import argparse
import base64
import collections
import http.client
import json
import os
import socket
import socketserver
import sys
import tempfile
import threading
import time
import urllib.parse
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "tests", "integration"), os.path.join(ROOT, "tests", "unit", "scan"), HERE]

from cagelib.content import (BROTLI, LINE, ZSTD, brotli, gzipped, json_escaped, percent, raw_deflate,  # noqa: E402
                             zstd)
from cagelib.pki import Pki  # noqa: E402
from cagelib.proxy import Cage, policy  # noqa: E402
from cagelib.raw import RawOrigin  # noqa: E402
from cagelib.wire import Truncated, Wire, chunked, request_bytes, response_bytes  # noqa: E402
from catalogue_lint import Format, read_catalogue  # noqa: E402
from document import write_document  # noqa: E402
from generate import generate  # noqa: E402

CATALOGUE = os.path.join(ROOT, "policies", "catalogue.yaml")
MARKS = ("<!-- figures: ./dev quality --write -->\n", "<!-- end of figures -->\n")
HOST = "quality.test"
BIG = 100 * 1000 * 1000
BIG_SECONDS = 180  # for all bodies of that size together
FILLER = LINE * (65536 // len(LINE))


# ---- the views: each makes from a text the rest of a request, or None where the text can't stand there

class Sent:
    """One request, ready to be written."""

    def __init__(self, body=b"", target="/", fields=(), chunks=None):
        fields = [("Host", HOST), *fields]
        if chunks is None:
            self.bytes = request_bytes("POST", "http://%s%s" % (HOST, target), fields, body)
        else:
            head = request_bytes("POST", "http://%s%s" % (HOST, target), [*fields, ("Transfer-Encoding", "chunked")])
            self.bytes = head + chunked(*chunks)


def note(text):
    return b"note: " + text + b"\n"


def body_of(make):
    return lambda text: Sent(make(text), fields=[("Content-Type", "text/plain")])


def in_json(encoded):
    return b'{"data": "' + encoded + b'"}'


def coded(name, encode):
    return lambda text: Sent(encode(note(text)), fields=[("Content-Type", "text/plain"), ("Content-Encoding", name)])


def in_header(text):
    if any(byte < 0x20 and byte != 9 or byte > 0x7e for byte in text):
        return None  # lines can't stand in a field
    return Sent(b"x", fields=[("X-Note", "note: %s -" % text.decode("ascii"))])  # blanks at the ends are not of the value


def in_query(text):
    return Sent(b"x", target="/?note=" + urllib.parse.quote(text, safe="/:@!$'()*,;"))


def in_path(text):
    return Sent(b"x", target="/notes/" + urllib.parse.quote(text, safe=":@!$'()*,=&+"))


VIEWS = [
    ("plain", body_of(note)),
    ("JSON string", body_of(lambda text: json.dumps({"text": text.decode("ascii")}).encode())),
    ("percent, every byte", body_of(lambda text: b"note=" + percent(text))),
    ("percent twice", body_of(lambda text: b"note=" + percent(percent(text)))),
    ("base64, alignment 0", body_of(lambda text: in_json(base64.b64encode(text)))),
    ("base64, alignment 1", body_of(lambda text: in_json(base64.b64encode(b"\n" + text)))),
    ("base64, alignment 2", body_of(lambda text: in_json(base64.b64encode(b"\n\n" + text)))),
    ("base64url", body_of(lambda text: in_json(base64.urlsafe_b64encode(text).rstrip(b"=")))),
    ("hex", body_of(lambda text: in_json(text.hex().encode()))),
    ("hex with ':'", body_of(lambda text: in_json(text.hex(":").encode()))),
    ("JSON, every character \\u", body_of(lambda text: in_json(json_escaped(text)))),
    ("gzip", coded("gzip", gzipped)),
    ("deflate (zlib)", coded("deflate", zlib.compress)),
    ("deflate (raw)", coded("deflate", raw_deflate)),
    ("br", coded("br", brotli)),
    ("zstd", coded("zstd", zstd)),
    ("UTF-16LE", body_of(lambda text: note(text).decode("ascii").encode("utf-16-le"))),
    ("UTF-16BE", body_of(lambda text: note(text).decode("ascii").encode("utf-16-be"))),
    ("chunks of one byte", lambda text: Sent(chunks=[bytes([byte]) for byte in note(text)])),
    ("header value", in_header),
    ("query value", in_query),
    ("path segment", in_path),
]
LIBRARIES = {"br": BROTLI, "zstd": ZSTD}  # encoders that Python lacks


# ---- sending

class Client:
    """One kept-alive connection, made anew when it was ended."""

    def __init__(self, cage):
        self.cage = cage
        self.wire = None

    def ask(self, send):
        """send(wire) writes a request. The refusal's reason, or "" when it went through. A connection that was closed
        between two requests is no answer: once more on a new one."""
        for last in (False, True):
            fresh = self.wire is None
            self.wire = self.wire or Wire(socket.create_connection(("127.0.0.1", self.cage.port), 10))
            try:
                self._write(send)
                answer = self.wire.read_response()
            except (OSError, Truncated):
                self.drop()
                if fresh or last:
                    return "(cut off)"
                continue
            if answer.header("connection").lower() == "close":
                self.drop()
            return answer.header("x-cage-reason") if answer.status >= 400 else ""
        raise AssertionError

    def _write(self, send):
        try:
            send(self.wire)
        except OSError:
            pass  # refused while we still send: the answer is there

    def drop(self):
        if self.wire:
            self.wire.close()
        self.wire = None


class Sink(socketserver.StreamRequestHandler):
    """Takes every request, however large, and keeps nothing: there are tens of thousands of connections."""

    def handle(self):
        while self.rfile.readline(65536):
            fields = http.client.parse_headers(self.rfile)
            if fields.get("Transfer-Encoding"):
                self._skip_chunks()
            else:
                self._skip(int(fields.get("Content-Length", 0)))
            self.wfile.write(response_bytes(200, b"ok\n"))

    def _skip(self, left):
        while left > 0:
            got = len(self.rfile.read1(min(left, 65536)))
            if got == 0:
                raise ConnectionError("cut off")
            left -= got

    def _skip_chunks(self):
        while size := int(self.rfile.readline(65536) or b"0", 16):
            self._skip(size + 2)
        self.rfile.readline(65536)


class Origin(socketserver.ThreadingTCPServer):
    """Use as a context manager."""
    daemon_threads = True
    request_queue_size = 128

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Sink)
        self.pin = "127.0.0.1:%d" % self.server_address[1]
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, request, client_address):
        pass  # connections that are cut off are what this is about

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()


# ---- what is found

class Counts:
    """Per view: how many were sent, found, refused for another reason, missed."""

    def __init__(self):
        self.sent, self.found = collections.Counter(), collections.Counter()
        self.otherwise = collections.Counter()
        self.missed = collections.defaultdict(collections.Counter)  # view -> format -> how often
        self.odd = collections.defaultdict(collections.Counter)  # view -> (format, reason) -> how often

    def add(self, view, name, reason):
        self.sent[view] += 1
        if reason == "secret.detected":
            self.found[view] += 1
        elif reason:
            self.otherwise[view] += 1
            self.odd[view][name, reason] += 1
        else:
            self.missed[view][name] += 1


def send_views(client, counts, samples, skipped):
    for view, make in VIEWS:
        generic_too = make not in (in_header, in_query, in_path)  # those formats are looked for in bodies only
        if not LIBRARIES.get(view, True):
            skipped.append("%s: there is no library with an encoder here" % view)
            continue
        unsendable = 0
        for name, texts in samples:
            for text in texts if generic_too or not name.startswith("generic-") else []:
                request = make(text)
                if request is None:
                    unsendable += 1
                    continue
                counts.add(view, name, client.ask(lambda wire: wire.send(request.bytes)))
        if unsendable:
            skipped.append("%s: %d texts of several lines can't stand there" % (view, unsendable))


def send_splits(client, counts, samples):
    for name, texts in samples:
        data = note(texts[0])
        for at in range(1, len(data)):
            request = Sent(chunks=[data[:at], data[at:]])
            counts.add("two chunks, cut at every byte", name, client.ask(lambda wire: wire.send(request.bytes)))


def send_big(client, counts, samples, skipped):
    view, end = "end of a body of 100 MB", time.monotonic() + BIG_SECONDS
    for done, (name, texts) in enumerate(samples):
        if time.monotonic() > end:
            skipped.append("%s: %d of %d formats, then the time was over" % (view, done, len(samples)))
            return
        tail = note(texts[0])
        before = BIG - len(tail)

        def send(wire, tail=tail, before=before):
            wire.send(request_bytes("POST", "http://%s/big" % HOST, [("Host", HOST), ("Content-Length", str(BIG))]))
            for _ in range(before // len(FILLER)):
                wire.send(FILLER)
            wire.send(FILLER[:before % len(FILLER)] + tail)

        counts.add(view, name, client.ask(send))


def measure_found(directory, options):
    with open(CATALOGUE, encoding="ascii") as file:
        entries = read_catalogue(file, lambda line, what: sys.exit("%s:%d: %s" % (CATALOGUE, line, what)))
    samples = []
    for entry in entries:
        if not options.only or entry["id"] in options.only:
            made = generate(entry, Format(entry), options.values, options.seed)
            samples.append((entry["id"], [text.encode() for text in entry["hits"] + made]))
    counts, skipped = Counts(), []
    with Origin() as origin:
        cage = Cage(directory, policy({"id": "any", "hosts": [HOST], "ports": [80], "limits": {"body": "128MiB"}},
                                      pins={HOST: origin.pin}))
        client = Client(cage)
        try:
            send_views(client, counts, samples, skipped)
            send_splits(client, counts, samples)
            send_big(client, counts, samples, skipped)
        finally:
            client.drop()
            code = cage.stop()
    if code != 0:
        sys.exit("cage-proxy ended with %s:\n%s" % (code, cage.stderr.text()))
    return counts, skipped, len(samples), sum(len(texts) for _, texts in samples)


def found_table(counts):
    yield "| view | sent | found | refused for another reason | missed |\n|---|---|---|---|---|\n"
    for view, sent in counts.sent.items():
        missed = sum(counts.missed[view].values())
        yield "| %s | %d | %d | %d | %d |\n" % (view, sent, counts.found[view], counts.otherwise[view], missed)


def miss_lines(counts):
    """What was not found, by name."""
    for view, names in counts.missed.items():
        if names:
            yield "- missed in %s: %s\n" % (view, ", ".join("%s (%d)" % pair for pair in sorted(names.items())))
    for view, names in counts.odd.items():
        if names:
            listed = ("%s with `%s` (%d)" % (name, reason, n) for (name, reason), n in sorted(names.items()))
            yield "- in %s: %s\n" % (view, ", ".join(listed))


# ---- what is harmless

def manifest():
    folder = os.path.join(os.environ.get("CAGE_CORPORA") or os.path.join(ROOT, "..", "shared", "corpora"), "benign")
    path = os.path.join(folder, "manifest.jsonl")
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        entries = [json.loads(line) for line in file]
    for entry in entries:
        with open(os.path.join(folder, entry["file"]), "rb") as file:
            entry["data"] = file.read()
        entry["host"] = entry["host"] or "upload.example"
    return entries


def send_benign(cage, entry, number):
    """The decision's line in the log."""
    fields = [("Host", entry["host"]), ("User-Agent", "quality/1"), ("Accept", "*/*"), ("X-Request-Id", "quality-%d" % number)]
    fields += [("Content-Type", entry["content_type"])] if entry["content_type"] else []
    fields += [("Content-Encoding", entry["content_encoding"])] if entry["content_encoding"] else []
    before = len(cage.log.find(event="request"))
    wire = cage.tunnel(entry["host"])
    answer = wire.exchange(entry["method"], entry["path"], fields, entry["data"])
    wire.close()
    for _ in range(250):
        lines = cage.log.find(event="request")
        if len(lines) > before:
            return answer.status, lines[-1]
        time.sleep(0.02)
    sys.exit("no line in the log for %s" % entry["file"])


def measure_benign(directory):
    """(file, kind, status, line) of each; empty without the corpus."""
    entries = manifest()
    if not entries:
        return []
    hosts = sorted({entry["host"] for entry in entries})
    pki = Pki(os.path.join(directory, "pki"))
    out = []
    with RawOrigin(leaf=pki.leaf(*hosts)) as origin:
        cage = Cage(os.path.join(directory, "cage"), policy({"id": "all", "hosts": hosts}, trust=[pki.ca_pem],
                                                            pins={host: origin.pin for host in hosts}))
        try:
            for number, entry in enumerate(entries):
                status, line = send_benign(cage, entry, number)
                out.append((entry, status, line))
        finally:
            cage.stop()
    return out


def kind_of(entry):
    return "lock file" if "lock" in entry["what"] else entry["what"]


def benign_table(results):
    kinds = collections.defaultdict(list)
    for entry, status, line in results:
        kinds[kind_of(entry)].append((entry, status, line))
    yield "| what | requests | bytes | blocked | flagged |\n|---|---|---|---|---|\n"
    for kind, group in kinds.items():
        size = sum(len(entry["data"]) for entry, _, _ in group)
        blocked = sum(line["decision"] == "block" for _, _, line in group)
        flagged = sum(line["decision"] == "flag" for _, _, line in group)
        yield "| %s | %d | %d | %d | %d |\n" % (kind, len(group), size, blocked, flagged)
    yield "| all | %d | %d | %d | %d |\n" % (
        len(results), sum(len(entry["data"]) for entry, _, _ in results),
        sum(line["decision"] == "block" for _, _, line in results), sum(line["decision"] == "flag" for _, _, line in results))


def benign_lines(results):
    """Each block and flag, by name."""
    for entry, status, line in results:
        if line["decision"] == "allow" and status == 200:
            continue
        listed = ("%s: `%s`%s in %s%s" % (f["inspector"], f["reason"], " (%s)" % f["id"] if f.get("id") else "", f["where"],
                                         ", as " + f["view"] if f.get("view") else "") for f in line.get("findings", []))
        yield "- %s: %s (%d), %s\n" % (entry["file"], line["decision"], status, "; ".join(listed) or line.get("reason"))


# ---- the report

def report(benign, found, took):
    counts, skipped, formats, texts = found
    yield "### Harmless traffic\n\n"
    if benign:
        yield from benign_table(benign)
        lines = list(benign_lines(benign))
        yield "\n" + ("".join(lines) if lines else "Nothing was blocked and nothing flagged.\n")
    else:
        yield "NOT MEASURED: there is no corpus (set CAGE_CORPORA).\n"
    yield "\n### Credentials\n\n%d formats, %d texts (the catalogue's own hits, and generated ones).\n\n" % (formats, texts)
    yield from found_table(counts)
    lines = list(miss_lines(counts))
    yield "\n" + ("".join(lines) if lines else "All were found.\n")
    if skipped:
        yield "\nNot sent:\n" + "".join("- %s\n" % what for what in skipped)
    print("quality: %d requests in %d s" % (sum(counts.sent.values()) + len(benign), took), file=sys.stderr)


def main():
    arguments = argparse.ArgumentParser(prog="./dev quality", description="measures what the inspectors find")
    arguments.add_argument("--write", action="store_true", help="put the tables into docs/quality.md")
    arguments.add_argument("--values", type=int, default=3, metavar="N", help="generated values of each format (3)")
    arguments.add_argument("--seed", default="1", help="of the generator (1)")
    arguments.add_argument("--only", action="append", metavar="FORMAT", help="this format alone; may be repeated")
    options = arguments.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="cage-quality-") as directory:
        benign = measure_benign(os.path.join(directory, "benign"))
        found = measure_found(os.path.join(directory, "found"), options)
    text = "".join(report(benign, found, time.monotonic() - began))
    sys.stdout.write(text)
    if options.write:
        write_document(MARKS, text)
    blocked = any(line["decision"] == "block" for _, _, line in benign)
    return 1 if blocked or any(found[0].missed.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
