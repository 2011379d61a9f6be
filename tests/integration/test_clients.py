"""Real clients, with nothing but the usual variables set: they work where a rule allows it, and show the reason where
none does."""
import json
import os
import subprocess
import sys

import pytest
from cagelib.checks import logged_pair
from cagelib.proxy import policy

CLIENTS = "curl curl-f curl-plain wget git requests node s-client".split()
FETCH = os.path.join(os.path.dirname(__file__), "clients", "fetch.mjs")


@pytest.fixture(scope="module")
def cage(start_module_cage, nginx, pki):
    rules = [{"id": "site", "hosts": ["site.test"]}, {"id": "plain", "hosts": ["plain.test"], "ports": [80]}]
    pins = {"site.test": nginx.tls_pin, "plain.test": nginx.plain_pin}
    pins.update({name + ".denied.test": nginx.tls_pin for name in CLIENTS})
    return start_module_cage(policy(*rules, pins=pins, trust=[pki.ca_pem]))


@pytest.fixture
def run(cage, tmp_path):
    """Runs a client and returns what became of it; its output is text."""

    def runner(*command, env=None, **options):
        return subprocess.run(command, env={**cage.env(), **(env or {})}, cwd=tmp_path, capture_output=True, text=True,
                              timeout=60, **options)

    return runner


def assert_blocked(cage, nginx, host):
    """One line in the log, nothing at the origin."""
    line = cage.log.wait(host=host)
    assert (line["decision"], line["enforced"], line["reason"], line["status"]) == ("block", True, "host.not_allowed", 403)
    assert len(cage.log.find(host=host)) == 1
    assert not [hit for hit in nginx.hits() if hit.split(" ")[2] == host]


def test_curl_allowed(run, cage, nginx):
    done = run("curl", "-sS", "https://site.test/hello.txt?curl=secret")
    assert (done.returncode, done.stdout) == (0, "hello from the origin\n"), done.stderr
    assert nginx.wait_hit("/hello.txt?curl=secret").startswith("https GET site.test /hello.txt?curl=secret 200 ")
    request, response = logged_pair(cage, "/hello.txt?curl=")
    assert (request["rule"], request["scheme"], request["method"], request["port"]) == ("site", "https", "GET", 443)
    assert response["status"] == 200 and response["inspected_in"] == 22


def test_curl_posts_a_body(run, cage):
    done = run("curl", "-sS", "-d", "some data", "https://site.test/echo/curl-post")
    assert json.loads(done.stdout)["length"] == 9
    _, response = logged_pair(cage, "/echo/curl-post", method="POST")
    assert response["inspected_out"] == 9 and response["bytes_out"] > 9


def test_curl_refused_shows_the_reason(run, cage, nginx):
    done = run("curl", "-sS", "https://curl.denied.test/")
    assert done.returncode == 0
    assert json.loads(done.stdout)["reason"] == "host.not_allowed"
    assert_blocked(cage, nginx, "curl.denied.test")
    failing = run("curl", "-sSf", "https://curl-f.denied.test/")
    assert failing.returncode == 22 and "403" in failing.stderr


def test_curl_plain_http(run, cage, nginx):
    done = run("curl", "-sS", "http://plain.test/hello.txt?over=http")
    assert done.stdout == "hello from the origin\n", done.stderr
    assert nginx.wait_hit("/hello.txt?over=http").startswith("http GET plain.test")
    request, _ = logged_pair(cage, "/hello.txt?over=", scheme="http")
    assert (request["rule"], request["port"]) == ("plain", 80)


def test_curl_plain_http_refused(run, cage, nginx):
    done = run("curl", "-sS", "http://curl-plain.denied.test/")
    assert json.loads(done.stdout)["reason"] == "host.not_allowed"
    assert_blocked(cage, nginx, "curl-plain.denied.test")


def test_wget_allowed(run, cage, nginx):
    done = run("wget", "-qO-", "--ca-certificate=" + cage.ca_pem, "https://site.test/hello.txt?wget=")
    assert done.stdout == "hello from the origin\n", done.stderr
    nginx.wait_hit("/hello.txt?wget=")
    logged_pair(cage, "/hello.txt?wget=")


def test_wget_refused_shows_the_reason(run, cage, nginx):
    done = run("wget", "-O-", "--content-on-error", "--ca-certificate=" + cage.ca_pem, "https://wget.denied.test/")
    assert done.returncode == 8
    assert json.loads(done.stdout)["reason"] == "host.not_allowed"
    assert "403" in done.stderr
    assert_blocked(cage, nginx, "wget.denied.test")


GIT = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_TERMINAL_PROMPT": "0", "GIT_AUTHOR_NAME": "t",
       "GIT_AUTHOR_EMAIL": "t@site.test", "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@site.test"}


def test_git_clones_and_pushes(run, cage, nginx, tmp_path):
    bare = os.path.join(nginx.backend.server.git_root, "repo.git")
    run("git", "init", "-q", "--bare", "-b", "main", bare, env=GIT)
    run("git", "-C", bare, "config", "http.receivepack", "true", env=GIT)
    done = run("git", "clone", "-q", "https://site.test/git/repo.git", "work", env=GIT)
    assert done.returncode == 0, done.stderr
    # larger than git's postBuffer, so the push goes out in chunks
    (tmp_path / "work" / "data").write_bytes(os.urandom(3 << 20))
    for command in (["add", "data"], ["commit", "-qm", "data"], ["push", "-q", "origin", "HEAD:main"]):
        done = run("git", "-C", "work", *command, env=GIT)
        assert done.returncode == 0, done.stderr
    done = run("git", "clone", "-q", "https://site.test/git/repo.git", "again", env=GIT)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again" / "data").read_bytes() == (tmp_path / "work" / "data").read_bytes()
    logged_pair(cage, "/git/repo.git/git-receive-pack", method="POST")


def test_git_refused_shows_the_status(run, cage, nginx):
    done = run("git", "clone", "-q", "https://git.denied.test/git/repo.git", "no", env=GIT)
    assert done.returncode == 128
    assert "403" in done.stderr
    assert_blocked(cage, nginx, "git.denied.test")


REQUESTS = """
import requests, sys
answer = requests.request(sys.argv[1], sys.argv[2], data=sys.argv[3].encode() if len(sys.argv) > 3 else None)
print(answer.status_code)
print(answer.text)
"""


def status_and_body(done):
    assert done.returncode == 0, done.stderr
    status, body = done.stdout.split("\n", 1)
    return int(status), body


def test_python_requests_allowed(run, cage):
    status, body = status_and_body(run(sys.executable, "-c", REQUESTS, "PUT", "https://site.test/echo/requests", "abc"))
    assert status == 200 and json.loads(body)["length"] == 3
    logged_pair(cage, "/echo/requests", method="PUT")


def test_python_requests_refused_shows_the_reason(run, cage, nginx):
    status, body = status_and_body(run(sys.executable, "-c", REQUESTS, "GET", "https://requests.denied.test/"))
    assert status == 403 and json.loads(body)["reason"] == "host.not_allowed"
    assert_blocked(cage, nginx, "requests.denied.test")


def test_node_fetch_allowed(run, cage):
    status, body = status_and_body(run("node", FETCH, "POST", "https://site.test/echo/node", "abcd"))
    assert status == 200 and json.loads(body)["length"] == 4
    logged_pair(cage, "/echo/node", method="POST")


def test_node_fetch_refused_shows_the_reason(run, cage, nginx):
    status, body = status_and_body(run("node", FETCH, "GET", "https://node.denied.test/"))
    assert status == 403 and json.loads(body)["reason"] == "host.not_allowed"
    assert_blocked(cage, nginx, "node.denied.test")


def s_client(run, cage, host, path):
    return run("openssl", "s_client", "-proxy", "127.0.0.1:%d" % cage.port, "-connect", host + ":443", "-servername", host,
               "-CAfile", cage.ca_pem, "-verify_hostname", host, "-verify_return_error", "-quiet", "-ign_eof",
               input="GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n" % (path, host))


def test_openssl_s_client_allowed(run, cage):
    done = s_client(run, cage, "site.test", "/hello.txt?s_client=")
    assert "HTTP/1.1 200" in done.stdout and "hello from the origin" in done.stdout, done.stderr
    logged_pair(cage, "/hello.txt?s_client=")


def test_openssl_s_client_refused_shows_the_reason(run, cage, nginx):
    done = s_client(run, cage, "s-client.denied.test", "/")
    assert "HTTP/1.1 403" in done.stdout and "host.not_allowed" in done.stdout, done.stderr
    assert_blocked(cage, nginx, "s-client.denied.test")
