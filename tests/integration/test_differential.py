"""Our reading of hosts and URLs against those of others: Python's urllib and http.client, Node's WHATWG URL and its old
url.parse. Where we accept an input, each of them either refuses it or would dial the same host and port. So no client, and no
origin, goes elsewhere with a name that the policy allowed."""
import http.client
import ipaddress
import json
import random
import socket
import subprocess
import urllib.parse
import urllib.request

import pytest
from cagelib.corpora import helper

SEED = 20
COUNT = 6000  # of each kind, before those that are equal
PORTS = {"http": 80, "https": 443}
NODE = r"""
const url = require('url');
const read = (f) => { try { return f(); } catch (e) { return null; } };
const part = (u) => u && u.hostname ? [u.protocol.replace(':', ''), u.hostname, u.port || '', u.pathname || ''] : null;
const inputs = JSON.parse(require('fs').readFileSync(0, 'utf8'));
process.stdout.write(JSON.stringify(inputs.map((s) => [read(() => part(new URL(s))), read(() => part(url.parse(s)))])));
"""

NAMES = ["good.test", "a.good.test", "GOOD.Test", "good.test.", "xn--bcher-kva.test", "a_b.test", "127.0.0.1", "10.0.0.8", "[::1]",
         "[2001:db8::1]", "[::ffff:10.0.0.1]", "[fe80::1%25eth0]", "0x7f.1", "0177.0.0.1", "2130706433", "127.1", "1.2.3.256",
         "1.2.3.4.", "1.2.3.4.5", "0x7f000001", "good.test.0x1", "good.08", "a.0xg", "localhost", "xn--", "xn--a", "a-.test", "-a.test"]
BITS = ["@", "\\", "/", "//", "?", "#", ":", ":80", ":443", ":0", ":00080", ":65536", ":8080", ".", "..", "%2e", "%00", "%40", "%2f", "%",
        "evil.test", "@evil.test", "evil.test@", "user:pw@", ";", ",", "&", "=", "+", "*", "$", "!", "'", "\"", "(", "|", "^", "`", "<", ">",
        "{", "[", "]", " ", "\t", "\r", "\n", "\0", "\x0b", "\x7f", "\x1b", "\u00ad", "\u3002", "\uff0e", "\uff0f", "\u2100", "\u00df",
        "\u0130", "\u200b", "\ufeff", "\u2488", "\U0001d4d0", "0", "1", "a", "A", "-", "_", "~", "xn--"]
PATHS = ["", "/", "/a/b", "/a/../b", "/%2e%2e/x", "/a?x=1", "?x", "/a%2fb", "/~u", "//evil.test/", "/a;b", "/%41", "/x@evil.test", "/a:b"]


def name(random_):
    """One of those above, or labels of any kind of byte that a host may have, and digits more often than in life."""
    if random_.random() < 0.6:
        return random_.choice(NAMES)
    labels = ["".join(random_.choices("abcxyzXY0123456789-_", k=random_.randint(1, 5))) for _ in range(random_.randint(1, 4))]
    return ".".join(labels)


def mutate(random_, text, times):
    for _ in range(times):
        at = random_.randint(0, len(text))
        text = text[:at] + random_.choice(BITS) + text[at + random_.choice((0, 0, 0, 1)):]
    return text


def authority(random_):
    port = random_.choice(["", "", "", ":", ":80", ":443", ":8443", ":1", ":65535", ":080"])
    return mutate(random_, name(random_) + port, random_.choice((0, 0, 1, 1, 2)))


def url(random_):
    scheme = random_.choice(["http://", "https://", "HTTP://", "https://", "https:/", "https:\\\\", "http:", "//"] + ["https://"] * 8)
    return mutate(random_, scheme + authority(random_) + random_.choice(PATHS), random_.choice((0, 0, 0, 1)))


def inputs():
    """(kind, text) pairs, the same ones each time."""
    random_ = random.Random(SEED)
    out = {("a", authority(random_)) for _ in range(COUNT)} | {("u", url(random_)) for _ in range(COUNT)}
    return sorted(out)


# ---- the readers: (scheme, host, port) as they would dial, or None where they refuse

def dialled(host):
    """One spelling for what a resolver makes of a host: a root dot, capitals and the spellings of an address mean nothing."""
    host = host.lower().rstrip(".") if not host.endswith("..") else host.lower()
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        return str(ipaddress.IPv6Address(bare))
    except ValueError:
        pass
    try:
        return socket.inet_ntoa(socket.inet_aton(bare))
    except (OSError, ValueError):
        return bare


def ours(cases):
    """(scheme, host, port, path) for each."""
    lines = "".join("%s %s\n" % (kind, text.encode("utf-8", "surrogatepass").hex()) for kind, text in cases)
    done = subprocess.run([helper("canonical")], input=lines.encode(), capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    out = [None if x == "-" else x.split(" ") for x in done.stdout.decode().splitlines()]
    assert len(out) == len(cases)
    return [x and (x[0], x[1], int(x[2]), x[3]) for x in out]


def as_url(kind, text):
    return text if kind == "u" else "https://%s/" % text


def python_split(text):
    parts = urllib.parse.urlsplit(text)
    if not parts.hostname or parts.scheme not in PORTS:
        return None
    return parts.scheme, parts.hostname, parts.port or PORTS[parts.scheme]


def python_client(text):
    """What urllib.request and http.client connect to."""
    request = urllib.request.Request(text)
    if request.type not in PORTS or not request.host:
        return None
    connection = http.client.HTTPConnection(request.host)
    connection.default_port = PORTS[request.type]
    return request.type, *connection._get_hostport(request.host, None)


def tried(reader, text):
    try:
        return reader(text)
    except (ValueError, http.client.HTTPException, OSError):
        return None


def node(texts):
    """For each text the readings of URL and of url.parse."""
    done = subprocess.run(["node", "--no-deprecation", "-e", NODE], input=json.dumps(texts), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def of_node(part):
    if not part or part[0] not in PORTS:
        return None
    return part[0], part[1], int(part[2] or PORTS[part[0]])


@pytest.fixture(scope="module")
def readings():
    """(text, our reading, {reader: its reading}, Node's path) of each input that we accept."""
    cases = inputs()
    texts = [as_url(*c) for c in cases]
    out = []
    for case, text, our, (whatwg, legacy) in zip(cases, texts, ours(cases), node(texts)):
        if our:
            theirs = {"urlsplit": tried(python_split, text), "http.client": tried(python_client, text),
                      "URL": of_node(whatwg), "url.parse": of_node(legacy)}
            out.append((case, our, theirs, whatwg and whatwg[3]))
    return out


def test_nobody_dials_another_host(readings):
    different = []
    for case, our, theirs, _ in readings:
        for reader, read in theirs.items():
            if read and (read[0], dialled(read[1]), read[2]) != (our[0], dialled(our[1]), our[2]):
                different.append((case, our[:3], reader, read))
    assert not different, "%d:\n%s" % (len(different), "\n".join(map(repr, different[:40])))


def test_our_host_is_no_address_in_disguise(readings):
    """What we call a name, no resolver takes for an address, and an address has its one spelling."""
    for case, our, _, _ in readings:
        assert ":" in our[1] or dialled(our[1]) == our[1], case


def test_the_same_path_as_node(readings):
    for (kind, text), our, theirs, path in readings:
        if kind == "u" and theirs["URL"]:
            assert urllib.parse.unquote_to_bytes(our[3]) == urllib.parse.unquote_to_bytes(path), text


def test_the_inputs_are_worth_it(readings):
    """Many are accepted, by us and by each of the others, and many are not."""
    assert 800 < len(readings) < len(inputs()) * 0.7
    assert len(inputs()) > 3500
    for reader in readings[0][2]:
        assert sum(1 for _, _, theirs, _ in readings if theirs[reader]) > 700, reader
