#!/usr/bin/python3
"""Real agents whose key is a placeholder: each CLI answers one prompt through a cage-proxy of its own, against the stub of
agents.py, in a network namespace that has only loopback. The real key must reach the server in every request to the model,
and nothing that the agent was shown, wrote or printed may have it; nothing may be blocked.

usage: placeholders.py [--json] [--write] [AGENT]...
Prints a table, or one JSON object for each agent, never a key; --write puts the table into docs/quality.md. Ends with 1 when
something is not as it should be, and with 77 and the reason on stderr where it can't be run. The environment is that of
agents.py."""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]

import agents  # noqa: E402
from cagelib.log import validate  # noqa: E402
from cagelib.proxy import Cage, policy  # noqa: E402
from document import write_document  # noqa: E402

MARKS = ("<!-- placeholders: ./dev agents --write -->\n", "<!-- end of placeholders -->\n")

# Where a key stands in what an agent sends.
KEY_FIELDS = ("x-api-key", "authorization", "x-goog-api-key")


def placeholder(agent):
    """Not one that the README has: it is in the project, so agents send it along, and there it would be misplaced."""
    return "{{KEY-OF-%s}}" % agent.name.upper()


def start(agent, directory, stub, key):
    secret = {"id": "key", "from": {"env": agent.key_variable}, "placeholder": placeholder(agent)}
    rule = {"id": "model", "hosts": agent.hosts + agent.wildcards, "secrets": ["key"]}
    return Cage(os.path.join(directory, "cage"), policy(
        rule, trust=[stub.pki.ca_pem], pins={host: agents.STUB_PIN for host in agent.hosts}, secrets=[secret]),
        env={agent.key_variable: key})


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


def kind(text, agent, key):
    return "real" if key in text else "placeholder" if placeholder(agent) in text else "neither"


def kinds_sent(stub, agent, key):
    """What the fields of keys held, in all requests and handshakes that have one."""
    lines = stub.events("request") + stub.events("ws-upgrade")
    values = [line["headers"][name] for line in lines for name in KEY_FIELDS if name in line["headers"]]
    return sorted({kind(value, agent, key) for value in values})


def echo(agent, env, project, key):
    """What comes back of a key from a server that repeats it."""
    done = subprocess.run(["curl", "-sS", "-H", "X-Api-Key: " + placeholder(agent), "https://%s/echo" % agent.hosts[0]], env=env,
                          cwd=project, stdin=subprocess.DEVNULL, capture_output=True, timeout=agents.SECONDS)
    return kind(done.stdout.decode("utf-8", "replace"), agent, key)


def prompt(agent, directory, stub, cage, key):
    """Asks, and looks at all that the agent has seen."""
    project = agents.make_project(directory)
    env = {**agents.environment(agent, cage, directory), agent.key_variable: placeholder(agent)}
    output, code = agents.ask(agent, env, project, agent.debug)
    files = list(files_below(*(os.path.join(directory, name) for name in ("home", "tmp", "project"))))
    shown = [path[len(directory):] for path in files if holds(path, key)] + ["output"] * (key in output)
    return {"agent": agent.name, "answered": code == 0 and agents.ANSWER in output, "arrived": kinds_sent(stub, agent, key),
            "echo": echo(agent, env, project, key), "files": len(files), "shown": shown, "websockets": stub.websockets(),
            "http": sorted({line["proto"] for line in stub.events("request")})}


def log_says(cage, key):
    lines = cage.log.lines()
    decided = [line for line in lines if line["event"] in ("request", "connect", "message")]
    return {"requests": sum(line["event"] == "request" for line in decided),
            "injected": sum(line.get("injected") == ["key"] for line in decided),
            "blocked": sum(line["decision"] == "block" for line in decided),
            "redacted": sum("redacted" in line for line in lines),
            "in_log": key.encode() in b"\n".join(cage.log.raw_lines()) or key in cage.stderr.text()}


def measure(agent, directory):
    key = agents.made_up_key(agent)
    os.mkdir(directory)
    stub = agents.Stub(os.path.join(directory, "stub"), agent.hosts)
    cage = None
    try:
        cage = start(agent, directory, stub, key)
        seen = prompt(agent, directory, stub, cage, key)
    finally:
        code = cage.stop() if cage else 1
        stub.stop()
    cage.assert_left_clean()
    assert code == 0, cage.stderr.text()
    validate(cage.log.raw_lines())
    return {**seen, **log_says(cage, key)}


def is_good(seen):
    return (seen["answered"] and seen["arrived"] == ["real"] and seen["echo"] == "placeholder" and seen["injected"] > 0 and
            not (seen["shown"] or seen["blocked"] or seen["in_log"]))


def report(results):
    yield "| agent | answered | requests | injected | blocked | key arrived | key shown | websockets | server spoke |\n"
    yield "|---|---|---|---|---|---|---|---|---|\n"
    for r in results:
        version = agents.version(next(a for a in agents.AGENTS if a.name == r["agent"]))
        yield "| %s %s | %s | %d | %d | %d | %s | %s | %s | %s |\n" % (
            r["agent"], version, "yes" if r["answered"] else "NO", r["requests"], r["injected"], r["blocked"],
            ", ".join(r["arrived"]) or "NO", ", ".join(r["shown"]) or "no", r["websockets"][1] or "-",
            ", ".join("HTTP/" + x for x in r["http"]))


def main():
    arguments = argparse.ArgumentParser(prog="placeholders.py", description="lets real agents answer a prompt without a key")
    arguments.add_argument("--json", action="store_true", help="print what was seen as JSON")
    arguments.add_argument("--write", action="store_true", help="put the table into docs/quality.md")
    arguments.add_argument("agent", nargs="*", help="these agents alone; all that are installed unless given")
    options = arguments.parse_args()
    if unknown := set(options.agent) - {agent.name for agent in agents.AGENTS}:
        arguments.error("no agent %s" % ", ".join(unknown))
    wanted = [agent for agent in agents.AGENTS if not options.agent or agent.name in options.agent]
    if agents.INSIDE not in os.environ:
        missing = agents.why_not() or ("" if any(map(agents.version, wanted)) else "none of them is in AGENTS_DIR")
        if missing:
            print("no real agent was run: " + missing, file=sys.stderr)
            return 77
        agents.enter_namespace()
    agents.loopback_only()
    with tempfile.TemporaryDirectory(prefix="cage-agents-", ignore_cleanup_errors=True) as directory:
        results = [measure(agent, os.path.join(directory, agent.name)) for agent in wanted if agents.version(agent)]
    table = "".join(report(results))
    sys.stdout.write("".join(json.dumps(r) + "\n" for r in results) if options.json else table)
    if options.write:
        write_document(MARKS, table)
    return 0 if all(map(is_good, results)) else 1


if __name__ == "__main__":
    sys.exit(main())
