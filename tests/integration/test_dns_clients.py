"""cage-dns as the resolver of a system: what programs get that ask as they always do, on port 53."""
import json
import os
import subprocess
import sys

import pytest

from cagelib import netns
from cagelib.dns import Nsd
from cagelib.proxy import policy

HERE = os.path.dirname(os.path.abspath(__file__))
PUBLIC, PUBLIC6 = "20.0.0.7", "2a00:1450:4001::7"
SINK, SINK6 = "192.0.2.1", "2001:db8::1"
RULES = [{"id": "site", "hosts": ["site.test", "*.site.test"]}]
ZONES = {"site.test": ["api A " + PUBLIC, "api AAAA " + PUBLIC6, *("many A 20.0.1.%d" % i for i in range(60))]}


@pytest.fixture(scope="module")
def at_home(tmp_path_factory, start_module_dns):
    """A namespace in which cage-dns is the resolver of the system; runs a command there."""
    directory = tmp_path_factory.mktemp("home")
    resolv = directory / "resolv.conf"
    resolv.write_text("nameserver 127.0.0.1\noptions timeout:5 attempts:1\n")
    with netns.or_skip(), Nsd(directory / "nsd", ZONES) as upstream:
        start_module_dns(policy(*RULES), listen=["127.0.0.1:53"], upstream=[upstream.address])

        def run(*command):
            script = 'mount --bind "$0" /etc/resolv.conf && exec "$@"'
            done = subprocess.run(["unshare", "-m", "sh", "-c", script, str(resolv), *command], capture_output=True,
                                  text=True, timeout=60)
            assert done.stderr == "", done.stderr
            return done.stdout.split("\n")[:-1]

        yield run


@pytest.fixture(scope="module", params=["cc", "musl-gcc"])
def getaddrinfo(request, tmp_path_factory):
    """The same small program with glibc and with musl."""
    program = str(tmp_path_factory.mktemp(request.param) / "getaddrinfo")
    subprocess.run([request.param, "-o", program, os.path.join(HERE, "clients", "getaddrinfo.c")], check=True, timeout=60)
    return program


def test_getaddrinfo(at_home, getaddrinfo):
    assert sorted(at_home(getaddrinfo, "api.site.test")) == [PUBLIC, PUBLIC6]
    assert sorted(at_home(getaddrinfo, "www.evil.test")) == [SINK, SINK6]
    assert len(at_home(getaddrinfo, "many.site.test")) == 16


def test_python_asks_both_families_from_one_socket(at_home):
    script = "import socket; print(*sorted({x[4][0] for x in socket.getaddrinfo('api.site.test', 443)}))"
    assert at_home(sys.executable, "-c", script) == ["%s %s" % (PUBLIC, PUBLIC6)]


def test_node_with_both_of_its_resolvers(at_home):
    script = ("const d=require('dns').promises; (async()=>{console.log(JSON.stringify([await d.lookup('api.site.test',{family:4}),"
              "await d.resolve4('api.site.test'),await d.resolve6('api.site.test'),await d.resolve4('www.evil.test')]))})()")
    lookup, four, six, evil = json.loads(at_home("node", "-e", script)[0])
    assert lookup["address"] == PUBLIC and four == [PUBLIC] and six == [PUBLIC6] and evil == [SINK]
