"""Real clients, with nothing but the usual variables set: they work where a rule allows it, and show the reason where
none does. test_matrix.py has more of them."""
import json
import os
import subprocess

import pytest
from cagelib import git
from cagelib.checks import logged_pair
from cagelib.proxy import policy

CLIENTS = "curl curl-f curl-plain s-client".split()


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


def test_git_pushes_in_chunks(run, cage, nginx, tmp_path):
    env = {**git.ENV, **git.OVER_H1}
    url = "https://site.test" + git.make_repository(nginx, "repo.git")
    done = run("git", "clone", "-q", url, "work", env=env)
    assert done.returncode == 0, done.stderr
    # larger than git's postBuffer, so the push goes out in chunks
    (tmp_path / "work" / "data").write_bytes(os.urandom(3 << 20))
    for command in (["add", "data"], ["commit", "-qm", "data"], ["push", "-q", "origin", "HEAD:main"]):
        done = run("git", "-C", "work", *command, env=env)
        assert done.returncode == 0, done.stderr
    done = run("git", "clone", "-q", url, "again", env=env)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "again" / "data").read_bytes() == (tmp_path / "work" / "data").read_bytes()
    logged_pair(cage, "/git/repo.git/git-receive-pack", method="POST")


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
