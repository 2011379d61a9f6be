#!/usr/bin/python3
"""Real agents in the locked room: each CLI answers one prompt in `cage run --agent NAME`, with the ready policy of that agent and
the stub of agents.py in place of its servers, once as the env kit has it and once without proxy variables, where what it opens
is captured. The agent has a placeholder; the real key must reach the server in every request to the model, and nothing that
the agent was shown, wrote or printed may have it. What is blocked is only what the ready policies leave out.

usage: rooms.py [--json] [--write] [AGENT]...
Prints a table, or one JSON object for each run, never a key; --write puts the table into docs/quality.md. Ends with 1 when
something is not as it should be, and with 77 and the reason on stderr where it can't be run. The environment is that of
agents.py; CAGE_BIN has cage, cage-gate, cage-proxy and cage-dns."""
import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE]

import agents  # noqa: E402
from cagelib.log import Log, validate  # noqa: E402
from cagelib.proxy import binary, bound  # noqa: E402
from document import write_document  # noqa: E402
from placeholders import KEY_FIELDS, files_below, holds  # noqa: E402

MARKS = ("<!-- rooms: ./dev agents --write -->\n", "<!-- end of rooms -->\n")
PRESETS = {"claude": "claude-code", "codex": "codex", "gemini": "gemini-cli", "qwen": "qwen-code", "opencode": "opencode"}
ROOM_UID = 1000
WAYS = ("proxy", "captured")

# The agent, and then a copy of all that it has written.
SCRIPT = '"$@"; code=$?; cp -rx "$HOME" /tmp/. /kept 2>/dev/null; exit $code'
NO_PROXY = [x for name in ("http", "https", "all") for x in ("-u" + name + "_proxy", "-u" + name.upper() + "_PROXY")] + ["-uNODE_USE_ENV_PROXY"]


def write_policy(agent, directory, stub):
    """The ready policy as it is, and where the stub is."""
    name = PRESETS[agent.name] + ".yaml"
    with open(os.path.join(agents.ROOT, "policies", name), encoding="utf-8") as file:
        text = file.read()
    upstream = {"trust": [stub.pki.ca_pem], "resolve": {host: agents.STUB_PIN for host in agent.hosts}}
    policies = os.path.join(directory, "policies")  # with nothing in it that is shown
    os.mkdir(policies)
    with open(os.path.join(policies, name), "w", encoding="utf-8") as file:
        file.write("%s\nupstream: %s\n" % (text, json.dumps(upstream)))
    return policies


def make_kept(directory):
    path = os.path.join(directory, "kept")
    os.mkdir(path)
    if os.geteuid() == 0:
        os.chown(path, ROOM_UID, ROOM_UID)
    return path


def command(agent, directory, way):
    project = agents.make_project(directory)
    modules = agents.modules()
    return [binary("cage"), "run", "--agent", PRESETS[agent.name], "--workspace", project, "--bind-ro", modules,
            "--bind", make_kept(directory) + ":/kept", "--env", "PATH=" + agents.search_path(),
            "--log", os.path.join(directory, "log"), "--ca-dir", os.path.join(directory, "ca"), "--", "sh", "-c", SCRIPT, "sh",
            *(["env", *NO_PROXY] if way == "captured" else []), *agent.command, agents.PROMPT]


def ask(argv, env):
    """Runs it; what it printed, its exit code, and the seconds that it took."""
    began = time.monotonic()
    process = subprocess.Popen(bound("KILL", argv), env=env, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        output = process.communicate(timeout=agents.SECONDS)[0].decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        process.terminate()
        output = process.communicate()[0].decode("utf-8", "replace") + "not done after %d s" % agents.SECONDS
    return output, process.wait(), time.monotonic() - began


def kinds_sent(stub, key):
    lines = stub.events("request") + stub.events("ws-upgrade")
    return sorted({"real" if key in line["headers"][name] else "other" for line in lines for name in KEY_FIELDS if name in line["headers"]})


def log_says(agent, log, key):
    lines = log.lines()
    decided = [line for line in lines if line["event"] in ("request", "connect", "message")]
    blocked = collections.Counter("%s %s" % (line["reason"], agent.rule_host(line.get("host") or line["address"]))
                                  for line in decided if line["decision"] == "block")
    return {"requests": sum(line["event"] == "request" and line["decision"] != "block" for line in decided),
            "injected": sum("injected" in line for line in decided), "blocked": dict(blocked),
            "in_log": key.encode() in b"\n".join(log.raw_lines())}


def measure(agent, directory, way):
    key = agents.made_up_key(agent)
    os.makedirs(directory)
    stub = agents.Stub(os.path.join(directory, "stub"), agent.hosts)
    try:
        policies = write_policy(agent, directory, stub)
        env = {"PATH": agents.search_path(), "LANG": "C.UTF-8", "HOME": directory, "CAGE_POLICIES": policies, agent.key_variable: key}
        output, code, seconds = ask(command(agent, directory, way), env)
    finally:
        stub.stop()
    log = Log(os.path.join(directory, "log"))
    validate(log.raw_lines())
    files = list(files_below(*(os.path.join(directory, name) for name in ("kept", "project", "ca/patches"))))
    answered = code == 0 and agents.ANSWER in output
    if not answered:
        agents.say("%s did not answer: %s" % (agent.name, "".join(c for c in output[-2000:] if c.isprintable() or c == "\n").replace(key, "KEY")))
    return {"agent": agent.name, "way": way, "answered": answered, "seconds": round(seconds, 1), "arrived": kinds_sent(stub, key),
            "files": len(files), "shown": [path[len(directory):] for path in files if holds(path, key)] + ["output"] * (key in output),
            "websockets": stub.websockets()[1], **log_says(agent, log, key)}


def is_good(seen):
    """Beyond what the policy leaves out, nothing may have been in the agent's way."""
    reasons = {text.split(" ")[0] for text in seen["blocked"]}
    return (seen["answered"] and seen["arrived"] == ["real"] and seen["injected"] > 0 and not seen["shown"] and not seen["in_log"] and
            reasons <= {"host.not_allowed", "path.not_allowed", "method.not_allowed"})


def report(results):
    yield "| agent | way | answered | allowed | injected | blocked | key arrived | key shown | websockets | seconds |\n"
    yield "|---|---|---|---|---|---|---|---|---|---|\n"
    for r in results:
        version = agents.version(next(a for a in agents.AGENTS if a.name == r["agent"]))
        yield "| %s %s | %s | %s | %d | %d | %s | %s | %s of %d files | %s | %.1f |\n" % (
            r["agent"], version, r["way"], "yes" if r["answered"] else "NO", r["requests"], r["injected"],
            "; ".join("%d %s" % (n, what) for what, n in r["blocked"].items()) or "0", ", ".join(r["arrived"]) or "NO",
            ", ".join(r["shown"]) or "in none", r["files"], r["websockets"] or "-", r["seconds"])


def main():
    arguments = argparse.ArgumentParser(prog="rooms.py", description="lets real agents answer a prompt in the locked room")
    arguments.add_argument("--json", action="store_true", help="print what was seen as JSON")
    arguments.add_argument("--write", action="store_true", help="put the table into docs/quality.md")
    arguments.add_argument("agent", nargs="*", help="these agents alone; all that are installed unless given")
    options = arguments.parse_args()
    if unknown := set(options.agent) - set(PRESETS):
        arguments.error("no agent %s" % ", ".join(unknown))
    wanted = [agent for agent in agents.AGENTS if (not options.agent or agent.name in options.agent) and agents.version(agent)]
    if agents.INSIDE not in os.environ:
        missing = agents.why_not() or ("" if wanted else "none of them is in AGENTS_DIR")
        if missing:
            print("no real agent was run: " + missing, file=sys.stderr)
            return 77
        agents.enter_namespace()
    agents.loopback_only()
    with tempfile.TemporaryDirectory(prefix="cage-rooms-", ignore_cleanup_errors=True) as directory:
        os.chmod(directory, 0o755)
        results = [measure(agent, os.path.join(directory, agent.name, way), way) for agent in wanted for way in WAYS]
    table = "".join(report(results))
    sys.stdout.write("".join(json.dumps(r) + "\n" for r in results) if options.json else table)
    if options.write:
        write_document(MARKS, table)
    return 0 if all(map(is_good, results)) else 1


if __name__ == "__main__":
    sys.exit(main())
