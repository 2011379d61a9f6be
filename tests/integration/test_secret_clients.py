"""Real clients that have a placeholder where their credential would be: it arrives upstream as the real one, and nothing that
the client is shown has it (THREATS T33)."""
import base64
import json
import os
import subprocess
import sys

import pytest
from cagelib import git
from cagelib.checks import logged_pair
from cagelib.content import Watch, assert_unleaked
from cagelib.raw import RawOrigin, serving
from cagelib.proxy import binary, policy
from cagelib.wire import response_bytes

HERE = os.path.dirname(__file__)
FETCH = os.path.join(HERE, "clients", "fetch.mjs")
AGENT = os.path.join(HERE, "..", "quality", "placeholders.py")
HOST, OTHER, GIT_HOST = "api.test", "other.test", "site.test"
KEY = "k3y-0d9f8e7c6b5a49382716"
QUERY = "q+/=&value with blanks 1234"
PASSWORD = "p@ss:w0rd/4d3c2b1a09f8"
BODY = "b0dy\"\\va1ue-77aa66bb55cc"
RANDOM = "r4nd0m-one-5544332211"
VALUES = (KEY, QUERY, PASSWORD, BODY, RANDOM)
P_KEY, P_QUERY, P_PASSWORD, P_BODY = "{{API_KEY}}", "{{QUERY_KEY}}", "{{GIT_TOKEN}}", "{{BODY_KEY}}"
ENV = {"API_KEY": KEY, "QUERY_KEY": QUERY, "GIT_TOKEN": PASSWORD, "BODY_KEY": BODY, "RANDOM_KEY": RANDOM}


def shows_all(request):
    return response_bytes(200, request.head + request.body, [("Content-Type", "text/plain")])


@pytest.fixture(scope="module")
def origin(pki):
    with RawOrigin(serving(shows_all), leaf=pki.leaf(HOST, OTHER)) as running:
        yield running


@pytest.fixture(scope="module")
def cage(start_module_cage, origin, nginx, pki):
    secrets = [{"id": "api", "from": {"env": "API_KEY"}, "placeholder": P_KEY},
               {"id": "query", "from": {"env": "QUERY_KEY"}, "placeholder": P_QUERY, "in": ["query:key"]},
               {"id": "git", "from": {"env": "GIT_TOKEN"}, "placeholder": P_PASSWORD},
               {"id": "body", "from": {"env": "BODY_KEY"}, "placeholder": P_BODY, "in": ["body"]},
               {"id": "random", "from": {"env": "RANDOM_KEY"}}]
    rules = [{"id": "api", "hosts": [HOST], "secrets": ["api", "query", "body", "random"]},
             {"id": "git", "hosts": [GIT_HOST], "secrets": ["git"]}, {"id": "other", "hosts": [OTHER]}]
    pins = {HOST: origin.pin, OTHER: origin.pin, GIT_HOST: nginx.tls_pin}
    return start_module_cage(policy(*rules, pins=pins, trust=[pki.ca_pem], secrets=secrets), "--sandbox", "mine", env=ENV)


@pytest.fixture
def run(cage, tmp_path):
    """Runs a client and returns its output, in which no value may be."""

    def runner(*command, env=None, code=0, **options):
        done = subprocess.run(command, env={**cage.env(), **(env or {})}, cwd=tmp_path, capture_output=True, text=True,
                              timeout=60, **options)
        assert done.returncode == code, done
        assert not any(value in done.stdout + done.stderr for value in VALUES), done
        return done.stdout

    yield runner
    assert_unleaked(cage, *VALUES)


def basic(user, password):
    return "Basic " + base64.b64encode(("%s:%s" % (user, password)).encode()).decode()


# ---- curl

# curl speaks HTTP/2, where names of fields are in lower case.

def test_curl_header(run, cage, origin):
    shown = run("curl", "-sS", "-H", "Authorization: Bearer " + P_KEY, "https://api.test/curl-header")
    assert origin.requests[-1].header("authorization") == "Bearer " + KEY
    assert "authorization: Bearer %s\n" % P_KEY in shown
    request, response = logged_pair(cage, "/curl-header")
    assert (request["injected"], response["redacted"]) == (["api"], ["api"])


def test_curl_basic(run, origin):
    shown = run("curl", "-sS", "-u", "me:" + P_KEY, "https://api.test/curl-basic")
    assert origin.requests[-1].header("authorization") == basic("me", KEY)
    assert "authorization: %s\n" % basic("me", P_KEY) in shown


def test_curl_query(run, cage, origin):
    run("curl", "-sS", "-G", "--data-urlencode", "key=" + P_QUERY, "-d", "page=2", "https://api.test/curl-query")
    assert origin.requests[-1].target == "/curl-query?key=q%2B%2F%3D%26value%20with%20blanks%201234&page=2"
    request, _ = logged_pair(cage, "/curl-query?key=&page=")
    assert request["injected"] == ["query"]


def test_curl_at_another_host(run, cage, origin):
    watch = Watch(origin)
    shown = json.loads(run("curl", "-sS", "-H", "Authorization: Bearer " + P_KEY, "https://other.test/"))
    assert shown["reason"] == "secret.misplaced"
    watch.assert_nothing_left()


# ---- random placeholders

def printed(cage, sandbox):
    """The placeholder of RANDOM_KEY, as the launcher of that sandbox gets it."""
    done = subprocess.run([binary(), "--policy", cage.policy_path, "--ca-dir", cage.ca_dir, "--print-env", "--sandbox", sandbox],
                          capture_output=True, text=True, timeout=30, check=True)
    lines = dict(line.split("=", 1) for line in done.stdout.splitlines())
    assert lines["API_KEY"] == P_KEY
    return lines["RANDOM_KEY"]


def test_a_random_placeholder(run, cage, origin):
    mine = printed(cage, "mine")
    assert mine == printed(cage, "mine") and len(mine) == 40
    shown = run("curl", "-sS", "-H", "Authorization: Bearer " + mine, "https://api.test/random")
    assert origin.requests[-1].header("authorization") == "Bearer " + RANDOM
    assert "authorization: Bearer %s\n" % mine in shown


def test_t33_the_placeholder_of_another_sandbox(run, cage, origin):
    watch = Watch(origin)
    theirs = printed(cage, "theirs")
    assert theirs != printed(cage, "mine")
    for host in (HOST, OTHER):
        shown = json.loads(run("curl", "-sS", "-H", "Authorization: Bearer " + theirs, "https://%s/theirs" % host))
        assert shown["reason"] == "secret.misplaced"
        cage.log.wait(host=host, path="/theirs", reason="secret.misplaced", decision="block")
    watch.assert_nothing_left()


# ---- git

GIT = {**git.ENV, **git.OVER_H1}
HELPER = "!f() { echo username=bot; echo 'password=%s'; }; f" % P_PASSWORD
WAYS = {"url": ("https://bot:%s@site.test" % P_PASSWORD, []),
        "extraheader": ("https://site.test", ["-c", "http.extraheader=Authorization: " + basic("bot", P_PASSWORD)]),
        "helper": ("https://site.test", ["-c", "credential.helper=" + HELPER])}


@pytest.fixture(scope="module")
def private(nginx):
    """A repository that only the real password opens."""
    nginx.backend.server.login = "bot:" + PASSWORD
    return git.make_repository(nginx, "private/repo.git")


@pytest.mark.parametrize("way", sorted(WAYS))
def test_git(run, cage, private, tmp_path, way):
    base, options = WAYS[way]

    def run_git(*command):
        return run("git", *options, *command, env=GIT)

    run_git("clone", "-q", base + private, "work")
    # larger than git's postBuffer, so the push goes out in chunks
    (tmp_path / "work" / way).write_bytes(os.urandom(2 << 20))
    for command in (["add", way], ["commit", "-qm", way], ["push", "-q", "origin", "HEAD:main"], ["fetch", "-q", "origin"]):
        run_git("-C", "work", *command)
    run_git("clone", "-q", base + private, "again")
    assert (tmp_path / "again" / way).read_bytes() == (tmp_path / "work" / way).read_bytes()
    assert cage.log.find(host=GIT_HOST, path=private + "/git-receive-pack", injected=["git"], decision="allow")


def test_git_without_the_placeholder(run, private):
    run("git", "clone", "-q", "https://bot:wrong-password@site.test" + private, "no", env=GIT, code=128)


# ---- Python, node

REQUESTS = """
import requests, sys
session = requests.Session()
session.headers["Authorization"] = "Bearer " + sys.argv[2]
answer = session.post(sys.argv[1], json={"key": sys.argv[3], "n": [1, 2]})
assert answer.request.headers["Authorization"] == "Bearer " + sys.argv[2]
print(answer.text)
"""


def test_python_requests(run, cage, origin):
    head, body = run(sys.executable, "-c", REQUESTS, "https://api.test/requests", P_KEY, P_BODY).split("\n\n", 1)
    arrived = origin.requests[-1]
    assert arrived.header("authorization") == "Bearer " + KEY
    assert json.loads(arrived.body) == {"key": BODY, "n": [1, 2]}
    assert int(arrived.header("content-length")) == len(arrived.body)
    assert "Authorization: Bearer %s\n" % P_KEY in head
    assert json.loads(body) == {"key": P_BODY, "n": [1, 2]}
    request, response = logged_pair(cage, "/requests", method="POST")
    assert request["injected"] == ["api", "body"] and response["redacted"] == ["api", "body"]


def test_node_fetch(run, origin):
    body = json.dumps({"key": P_BODY})
    out = run("node", FETCH, "POST", "https://api.test/node", body, "x-api-key", P_KEY, "content-type", "application/json")
    head, body = out.split("\n\n", 1)
    arrived = origin.requests[-1]
    assert head.startswith("200\n") and P_KEY in head
    assert arrived.header("x-api-key") == KEY and json.loads(arrived.body) == {"key": BODY}
    assert json.loads(body) == {"key": P_BODY}


# ---- an agent

def test_claude():
    """One prompt, in a network namespace with only loopback; the servers are played by the shared stub."""
    done = subprocess.run([sys.executable, "-B", AGENT, "--json", "claude"], capture_output=True, text=True, timeout=280)
    if done.returncode == 77:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert seen["answered"], seen
    assert seen["arrived"] == ["real"], seen  # in each request to the model
    assert seen["shown"] == [], seen  # output and files in which the real key stands
    assert seen["files"] > 0
    assert seen["echo"] == "placeholder", seen
    assert not seen["in_log"]
