#!/usr/bin/python3
"""One prompt of the claude CLI whose key is a placeholder, through a cage-proxy of its own, in a network namespace that has
only loopback (tests/quality/agents.py says more). Prints what became of the key as JSON, never the key.

Ends with 77 and the reason on stderr where it can't be run."""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "tests", "quality")]

import agents  # noqa: E402
from cagelib.log import validate  # noqa: E402
from cagelib.proxy import Cage, policy  # noqa: E402

CLAUDE = agents.AGENTS[0]
HOST = CLAUDE.hosts[0]
PLACEHOLDER = "{{ANTHROPIC_API_KEY}}"


def start(directory, stub, key):
    secret = {"id": "anthropic", "from": {"env": CLAUDE.key_variable}, "placeholder": PLACEHOLDER, "in": ["header:x-api-key"]}
    rule = {"id": "model", "hosts": CLAUDE.hosts, "secrets": ["anthropic"]}
    return Cage(os.path.join(directory, "cage"), policy(rule, trust=[stub.pki.ca_pem], pins={HOST: agents.STUB_PIN},
                                                        secrets=[secret]), env={CLAUDE.key_variable: key})


def run(command, env, directory):
    done = subprocess.run(agents.bound("KILL", command), env=env, cwd=directory, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=agents.SECONDS)
    return done.stdout.decode("utf-8", "replace")


def files_below(*directories):
    for directory in directories:
        for folder, _, names in os.walk(directory):
            yield from (os.path.join(folder, name) for name in names)


def holds(path, key):
    try:
        with open(path, "rb") as file:
            return key.encode() in file.read()
    except OSError:
        return False


def kind(text, key):
    return "real" if key in text else "placeholder" if PLACEHOLDER in text else "neither"


def prompt(directory, stub, cage, key):
    """Asks, and looks at all that the agent has seen."""
    project = agents.make_project(directory)
    env = {**agents.environment(CLAUDE, cage, directory), CLAUDE.key_variable: PLACEHOLDER}
    output = run([*CLAUDE.command, agents.PROMPT, "--debug"], env, project)
    echo = run(["curl", "-sS", "-H", "X-Api-Key: " + PLACEHOLDER, "https://%s/echo" % HOST], env, project)
    files = list(files_below(*(os.path.join(directory, name) for name in ("home", "tmp", "project"))))
    sent = [line["headers"].get("x-api-key", "") for line in stub.events("request") if "/v1/messages" in line["url"]]
    shown = [path[len(directory):] for path in files if holds(path, key)] + ["output"] * (key in output)
    return {"answered": agents.ANSWER in output, "arrived": sorted({kind(value, key) for value in sent}),
            "shown": shown, "files": len(files), "echo": kind(echo, key)}


def measure(directory):
    key = agents.made_up_key(CLAUDE)
    stub = agents.Stub(os.path.join(directory, "stub"), CLAUDE.hosts)
    cage = None
    try:
        cage = start(directory, stub, key)
        seen = prompt(directory, stub, cage, key)
    finally:
        code = cage.stop() if cage else 1
        stub.stop()
    cage.assert_left_clean()
    assert code == 0, cage.stderr.text()
    validate(cage.log.raw_lines())
    return {**seen, "in_log": key.encode() in b"\n".join(cage.log.raw_lines()) or key in cage.stderr.text()}


def main():
    if agents.INSIDE not in os.environ:
        missing = agents.why_not() or ("" if agents.version(CLAUDE) else "no claude in AGENTS_DIR")
        if missing:
            print("no real agent was run: " + missing, file=sys.stderr)
            return 77
        agents.enter_namespace()
    agents.loopback_only()
    with tempfile.TemporaryDirectory(prefix="cage-agent-", ignore_cleanup_errors=True) as directory:
        print(json.dumps(measure(directory)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
