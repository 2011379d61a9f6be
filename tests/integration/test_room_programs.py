"""Real programs in the locked room: those that developers and agents use most do their work unchanged, with the variables of
the env kit and, where a program has its own way to the network, without them."""
import os
import shutil
import subprocess

import pytest
from cagelib import registries
from cagelib.cage_run import Room
from cagelib.git import ENV as GIT_ENV
from cagelib.git import make_repository
from cagelib.proxy import binary, policy

HERE = os.path.dirname(os.path.abspath(__file__))
BASE = "https://site.test"
SINK, SINK6 = "192.0.2.1", "2001:db8::1"
OWN, OWN6 = "192.0.2.2", "2001:db8::2"

# What the kit says about a proxy, and the words about it in what the kit tells Java.
PROXY = "http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY WGETRC NODE_USE_ENV_PROXY".split()
WITHOUT = 'unset %s; export JAVA_TOOL_OPTIONS="$(echo "$JAVA_TOOL_OPTIONS" | sed "s/-Dhttps*[.]proxy[^ ]*//g")"; ' % " ".join(PROXY)
# Nothing that names a certificate either: programs then trust what this machine trusts.
SYSTEM = WITHOUT + "unset SSL_CERT_FILE SSL_CERT_DIR REQUESTS_CA_BUNDLE CURL_CA_BUNDLE GIT_SSL_CAINFO PIP_CERT NODE_EXTRA_CA_CERTS JAVA_TOOL_OPTIONS; "


@pytest.fixture(scope="module")
def rules(nginx, pki):
    return policy({"id": "site", "hosts": ["site.test"]}, {"id": "plain", "hosts": ["plain.test"], "ports": [80]},
                  pins={"site.test": nginx.tls_pin, "plain.test": nginx.plain_pin}, trust=[pki.ca_pem])


@pytest.fixture
def room(tmp_path, rules):
    room = Room(tmp_path, rules)
    if subprocess.run([binary("cage-gate"), "--probe"], capture_output=True, timeout=20).returncode != 0:
        pytest.skip("NOT TESTED, nothing can be locked in here")
    yield room
    room.check_logs()
    blocked = [line for line in room.log.lines() if line.get("decision") == "block" and line.get("address") != "203.0.113.9"]
    assert not blocked, blocked


both_ways = pytest.mark.parametrize("way", ["", WITHOUT], ids=["by-proxy", "captured"])
three_ways = pytest.mark.parametrize("way", ["", WITHOUT, SYSTEM], ids=["by-proxy", "captured", "system-trust"])


def need(*programs):
    for program in programs:
        if not shutil.which(program, path="/usr/bin:/bin:/usr/sbin"):
            pytest.skip("NOT TESTED, there is no %s here" % program)


def works(done, *words):
    assert done.returncode == 0, done.stdout + done.stderr
    for word in words:
        assert word in done.stdout, done.stdout + done.stderr


# ---- clients


@three_ways
@pytest.mark.parametrize("command", [
    "curl -sS %s/hello.txt", "wget -q -O - %s/hello.txt",
    "/usr/bin/python3 -c 'import urllib.request as u; print(u.urlopen(\"%s/hello.txt\", timeout=20).read().decode())'"], ids=["curl", "wget", "python"])
def test_clients(room, way, command):
    works(room.sh(way + command % BASE), "hello from the origin")


@both_ways
def test_python_requests(room, way):
    works(room.sh(way + "/usr/bin/python3 -c 'import requests; print(requests.get(\"%s/hello.txt\", timeout=20).text)'" % BASE), "hello from the origin")


@both_ways
def test_node_fetch(room, way):
    """It knows no proxy before Node 24, and only with a variable since."""
    works(room.sh(way + "node -e 'fetch(\"%s/hello.txt\").then(r => r.text()).then(console.log)'" % BASE), "hello from the origin")


@three_ways
def test_git_clone(room, nginx, tmp_path, way):
    path = make_repository(nginx, "clone-%s.git" % abs(hash(way)))
    work = str(tmp_path / "work")
    bare = os.path.join(nginx.dir, path.lstrip("/"))
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "file").write_text("in the repository\n")
    for command in (["init", "-q", "-b", "main"], ["add", "file"], ["commit", "-q", "-m", "first"], ["push", "-q", bare, "main"]):
        subprocess.run(["git", "-C", work, *command], env={**os.environ, **GIT_ENV}, check=True, timeout=60)
    works(room.sh(way + "git clone -q %s%s /tmp/cloned && cat /tmp/cloned/file" % (BASE, path)), "in the repository")


@three_ways
def test_java(room, way):
    """It reads none of the usual variables, and its trust store has a format of its own."""
    need("java", "javac")
    script = way + "mkdir /tmp/classes && javac -d /tmp/classes %s/clients/Fetch.java && java -cp /tmp/classes Fetch GET %s/hello.txt" % (HERE, BASE)
    works(room.sh(script, options=["--bind-ro", HERE]), "200 ", "hello from the origin")


# ---- packages


@both_ways
def test_npm(room, nginx, way):
    need("npm")
    registry = registries.make_npm(nginx, BASE)
    works(room.sh(way + "cd /tmp && npm install --no-audit --no-fund --registry %s %s >&2 && node -p 'require(\"%s\")'" % (
        registry, registries.NAME, registries.NAME)), registries.SAYS)


@both_ways
def test_pip(room, nginx, way):
    index = registries.make_pip(nginx, BASE)
    works(room.sh(way + "/usr/bin/python3 -m pip install -q --disable-pip-version-check --target /tmp/lib --index-url %s %s >&2 &&"
                  "PYTHONPATH=/tmp/lib /usr/bin/python3 -c 'import %s as m; print(m.says)'" % (index, registries.NAME, registries.NAME.replace("-", "_"))), registries.SAYS)


@both_ways
@pytest.mark.parametrize("base", [BASE, "http://plain.test"], ids=["https", "http"])
def test_apt(room, nginx, tmp_path, way, base):
    """Nobody in the room is root, so it keeps its lists elsewhere, and a package is fetched and not installed."""
    path = registries.make_apt(nginx, tmp_path)
    script = """mkdir -p /tmp/apt/lists/partial /tmp/apt/cache/archives/partial /tmp/apt/etc && cd /tmp/apt && touch status
        echo 'deb [trusted=yes] %s%s ./' > etc/sources.list
        cat > apt.conf <<X
Dir::State "/tmp/apt"; Dir::State::status "/tmp/apt/status"; Dir::Cache "/tmp/apt/cache"; Dir::Etc "/tmp/apt/etc"; APT::Sandbox::User "";
X
        export APT_CONFIG=/tmp/apt/apt.conf
        apt-get -q update >&2 && apt-get -q download %s >&2 && dpkg-deb -f *.deb Description""" % (base, path, registries.NAME)
    works(room.sh(way + script), registries.SAYS)


# ---- certificates


NSS = """
import ctypes, os
nss = ctypes.CDLL("libnss3.so")
print("opened", nss.NSS_InitReadWrite(("sql:%s/.pki/nssdb" % os.environ["HOME"]).encode()))
nss.PK11_FindCertFromNickname.restype = ctypes.c_void_p
print("found", nss.PK11_FindCertFromNickname(b"cage", None) is not None)
"""


def test_nss_database(room):
    """As Chromium opens it, which it does only where it may change it; the second run has it from the first."""
    need("certutil")
    for _ in range(2):
        done = room.sh("certutil -V -n cage -u L -d sql:$HOME/.pki/nssdb && certutil -L -d sql:$HOME/.pki/nssdb && /usr/bin/python3 -c '%s'" % NSS)
        works(done, "certificate is valid", "C,,", "opened 0", "found True")


# ---- names


def test_addresses_of_both_families(room):
    """Also for those who want only families that this machine has: apt, wget, Chromium."""
    done = room.run("/usr/bin/python3", "-c", """
import socket
for family in (socket.AF_UNSPEC, socket.AF_INET, socket.AF_INET6):
    for flags in (0, socket.AI_ADDRCONFIG):
        print(*sorted({x[4][0] for x in socket.getaddrinfo("a.denied.test", 443, family, socket.SOCK_STREAM, 0, flags)}))
""")
    assert done.stdout.splitlines() == ["%s %s" % (SINK, SINK6)] * 2 + [SINK] * 2 + [SINK6] * 2, done.stderr


@pytest.mark.parametrize("compiler", ["cc", "musl-gcc"])
def test_getaddrinfo(room, tmp_path, compiler):
    program = str(tmp_path / "getaddrinfo")
    subprocess.run([compiler, "-o", program, os.path.join(HERE, "clients", "getaddrinfo.c")], check=True, timeout=60)
    done = room.run("/tmp/ask", "a.denied.test", options=["--bind-ro", program + ":/tmp/ask"])
    assert sorted(done.stdout.split()) == [SINK, SINK6], done.stderr


def test_getent(room):
    done = room.sh("getent ahostsv4 a.denied.test; getent ahostsv6 a.denied.test; getent ahosts site.test; getent hosts cage.internal")
    works(done, SINK + " ", SINK6 + " ", "127.0.0.1 ", "cage.internal")


def test_answers_of_the_resolver_are_no_attempts(room):
    """Questions to any resolver are answered, and neither they nor talk with oneself counts as a way out."""
    done = room.run("/usr/bin/python3", "-c", """
import socket
question = b"\\x12\\x34\\x01\\0\\0\\x01\\0\\0\\0\\0\\0\\0\\x04site\\x04test\\0\\0\\x01\\0\\x01"
for family, resolver in ((socket.AF_INET, "203.0.113.53"), (socket.AF_INET6, "2001:db8::53")):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.settimeout(20)
    s.sendto(question, (resolver, 53))
    print(s.recvfrom(512)[0][:2].hex())
for family, own in ((socket.AF_INET, "%s"), (socket.AF_INET6, "%s")):
    server = socket.create_server((own, 3000), family=family)
    client = socket.create_connection((own, 3000), 20)
    peer = socket.socket(family, socket.SOCK_DGRAM)
    peer.sendto(b"x", (own, 3001))
print(socket.socket().connect_ex(("203.0.113.9", 22)))
""" % (OWN, OWN6))
    assert done.stdout.split() == ["1234", "1234", "111"], done.stdout + done.stderr
    room.log.wait(address="203.0.113.9", reason="connect.captured")
    captured = [(line["address"], line["port"]) for line in room.log.lines() if line.get("reason") == "connect.captured"]
    assert captured == [("203.0.113.9", 22)]
