#!/usr/bin/python3
"""What the default policy says to real agents: each CLI answers one prompt through a cage-proxy of its own, and a stub
on loopback plays the servers. Everything runs in a network namespace that has only loopback, with a fresh home and a
made-up key of the right format. Nothing of what they send is kept. docs/quality.md says more.

usage: agents.py [--write] [--only AGENT]..., or --packages: what npm has to install
CAGE_BIN: the directory of cage-proxy. AGENTS_DIR: where the CLIs are installed, if not by ./dev agents. CAGE_AGENTS: where
stub.js is.
Ends with 1 when an agent did not complete its prompt or something was blocked."""
import argparse
import collections
import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.normpath(os.path.join(HERE, "..", ".."))
sys.path[:0] = [os.path.join(ROOT, "tests", "integration"), os.path.join(ROOT, "tests", "unit", "scan"), HERE]

from cagelib.pki import Pki  # noqa: E402
from cagelib.proxy import Cage, bound, client_env, policy, wait_until  # noqa: E402
from catalogue_lint import Format, read_catalogue  # noqa: E402
from document import write_document  # noqa: E402
from generate import generate  # noqa: E402

CATALOGUE = os.path.join(ROOT, "policies", "catalogue.yaml")
MARKS = ("<!-- agents: ./dev quality --write -->\n", "<!-- end of agents -->\n")
PROMPT = "What does this repository do?"
ANSWER = "STUB-ANSWER-42"
STUB_PIN = "127.0.0.1:28443"  # nobody else is in the namespace
SECONDS = 150  # for one agent
PACKAGES = "node@22 @anthropic-ai/claude-code @openai/codex @google/gemini-cli @qwen-code/qwen-code opencode-ai ws"
DOWNLOADED = os.path.join(ROOT, "build", "agents")  # by ./dev agents
INSIDE = "CAGE_AGENTS_INSIDE"  # set in the namespace
SIOCSIFFLAGS, IFF_UP = 0x8914, 1

# Where agents look for what to know about a project. They send what they find along.
CONTEXT_FILES = ("CLAUDE.md", "AGENTS.md", "GEMINI.md", "QWEN.md")


class Agent:
    """One CLI: its command without the prompt, the variable and the format of its key, the hosts that it talks to.
    Names under a wildcard are allowed and lead nowhere: only the hosts are played by the stub."""

    def __init__(self, package, command, key_variable, key_format, hosts, wildcards=(), env=None, debug=()):
        self.package, self.command, self.name = package, command.split(), command.split()[0]
        self.debug = list(debug)  # options that make it say more, in files of its own too
        self.key_variable, self.key_format = key_variable, key_format
        self.hosts, self.wildcards, self.env = hosts.split(), list(wildcards), env or {}

    def rule_host(self, host):
        """The host as the rule has it."""
        return next((w for w in self.wildcards if host not in self.hosts and host.endswith(w[1:])), host)


AGENTS = (
    Agent("@anthropic-ai/claude-code", "claude -p", "ANTHROPIC_API_KEY", "anthropic-api", "api.anthropic.com",
          debug=["--debug"]),
    Agent("@openai/codex", "codex exec --skip-git-repo-check", "CODEX_API_KEY", "openai-project",
          "api.openai.com chatgpt.com ab.chatgpt.com api.github.com github.com"),
    Agent("@google/gemini-cli", "gemini --skip-trust -p", "GEMINI_API_KEY", "google-api-key",
          "generativelanguage.googleapis.com play.googleapis.com"),
    Agent("@qwen-code/qwen-code", "qwen -p", "OPENAI_API_KEY", "deepseek-key",  # Alibaba's keys look the same
          "dashscope.aliyuncs.com gb4w8c3ygj-default-sea.rum.aliyuncs.com",
          env={"OPENAI_BASE_URL": "https://dashscope.aliyuncs.com/compatible-mode/v1",
               "OPENAI_MODEL": "qwen3-coder-plus"}),
    Agent("opencode-ai", "opencode run -m anthropic/claude-sonnet-4-5", "ANTHROPIC_API_KEY", "anthropic-api",
          "api.anthropic.com models.opencode.ai", wildcards=["*.npmjs.org"]),
)


def say(text):
    print("agents: " + text, file=sys.stderr, flush=True)


# ---- where everything is

def modules():
    return os.path.abspath(os.path.join(os.environ.get("AGENTS_DIR") or DOWNLOADED, "node_modules"))


def stub_path():
    return os.path.join(os.environ.get("CAGE_AGENTS") or os.path.join(ROOT, "..", "shared", "agents"), "stub.js")


def search_path():
    return os.path.join(modules(), ".bin") + ":/usr/local/bin:/usr/bin:/bin"


def version(agent):
    """None when it is not installed."""
    try:
        with open(os.path.join(modules(), agent.package, "package.json"), encoding="utf-8") as file:
            return json.load(file)["version"]
    except FileNotFoundError:
        return None


def why_not():
    """What is missing for a run; empty when all is there."""
    if not any(version(agent) for agent in AGENTS):
        return "no agent in %s; ./dev agents downloads them, or AGENTS_DIR says where they are" % modules()
    if not os.path.exists(stub_path()):
        return "no %s (set CAGE_AGENTS)" % stub_path()
    if not shutil.which("node", path=search_path()):
        return "no node to run the stub with"
    if subprocess.run([*namespace(), "true"], stderr=subprocess.DEVNULL).returncode != 0:
        return "no network namespace can be made here, and without one the agents could reach the network"
    return ""


# ---- the namespace

def namespace():
    return ["unshare", "--net"] if os.geteuid() == 0 else ["unshare", "--map-root-user", "--net"]


def enter_namespace():
    os.environ[INSIDE] = "1"
    os.execvp("unshare", [*namespace(), sys.executable, "-B", *sys.argv])


def loopback_only():
    """Turns loopback on; ends the program when there is a way out."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        fcntl.ioctl(sock, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
    with open("/proc/self/net/route", encoding="ascii") as file:
        if len(file.readlines()) > 1:
            sys.exit("agents: this namespace has a route to somewhere")


# ---- one agent

class Stub:
    """The servers of one agent, with a certificate for their names."""

    def __init__(self, directory, hosts):
        self.pki = Pki(directory)
        leaf = self.pki.leaf(*hosts)
        os.rename(leaf.cert, os.path.join(directory, "leaf.pem"))
        os.rename(leaf.key, os.path.join(directory, "leaf.key"))
        self.log = os.path.join(directory, "stub.jsonl")
        env = {"PATH": search_path(), "PKI": directory, "LOG": self.log, "STUB_PORT": STUB_PIN.split(":")[1],
               "PROXY_PORT": "0", "ANSWER": ANSWER}
        self.process = subprocess.Popen(bound("KILL", ["node", stub_path()]), env=env, stdin=subprocess.DEVNULL)
        wait_until(lambda: self.events("listening"), 20, "the stub does not start")

    def events(self, name):
        if not os.path.exists(self.log):
            return []
        with open(self.log, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file.read().split("\n")[:-1]]
        return [line for line in lines if line["ev"] == name]

    def websockets(self):
        """How often one was tried, and how often it came about."""
        opened = len(self.events("ws-upgrade"))
        return opened + sum("sec-websocket-key" in line["headers"] for line in self.events("request")), opened

    def stop(self):
        self.process.kill()
        self.process.wait()


class Result:
    """What became of one agent's prompt. txns: what the log says about each request, in its order."""

    def __init__(self, agent, completed, lines, websockets):
        self.agent, self.completed, self.websockets = agent, completed, websockets
        self.body_bytes = sum(line.get("inspected_out", 0) for line in lines)
        txns = collections.defaultdict(list)
        for line in lines:
            if "conn" in line and "decision" in line:
                txns[line["conn"], line.get("txn")].append(line)
        self.txns = list(txns.values())

    def said(self, decision):
        """How often each thing was said by the lines of that decision."""
        return collections.Counter(self._words(line) for lines in self.txns
                                   for line in lines if line["decision"] == decision and self._is_first(line, lines))

    @staticmethod
    def _is_first(line, lines):
        return line is next(x for x in lines if x["decision"] == line["decision"])

    def _words(self, line):
        found = ("`%s`%s in %s%s" % (f["reason"], " (%s)" % f["id"] if f.get("id") else "", f["where"],
                                     ", as " + f["view"] if f.get("view") else "") for f in line.get("findings", []))
        said = "; ".join(dict.fromkeys(found)) or "`%s`" % line.get("reason")
        return "%s to %s" % (said, self.agent.rule_host(line["host"]))


def made_up_key(agent):
    with open(CATALOGUE, encoding="ascii") as file:
        entries = read_catalogue(file, lambda line, what: sys.exit("%s:%d: %s" % (CATALOGUE, line, what)))
    entry = next(e for e in entries if e["id"] == agent.key_format)
    return generate(entry, Format(entry), 1, "agents")[0]


def environment(agent, cage, scratch):
    return {"PATH": search_path(), "LANG": "C.UTF-8", "TERM": "dumb", "HOME": os.path.join(scratch, "home"),
            "TMPDIR": os.path.join(scratch, "tmp"), **client_env(cage.port, cage.ca_dir), **agent.env,
            agent.key_variable: made_up_key(agent)}


def make_project(scratch):
    for name in ("home", "tmp", "project"):
        os.mkdir(os.path.join(scratch, name))
    for name in CONTEXT_FILES:
        shutil.copy(os.path.join(ROOT, "README.md"), os.path.join(scratch, "project", name))
    return os.path.join(scratch, "project")


def ask(agent, env, project, more=()):
    """Runs it; what it printed and its exit code. Nothing of it runs on."""
    process = subprocess.Popen(bound("KILL", [*agent.command, PROMPT, *more]), env=env, cwd=project, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        output = process.communicate(timeout=SECONDS)[0].decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        output = "not done after %d s" % SECONDS
    try:
        os.killpg(process.pid, signal.SIGKILL)  # it, or what it left running
    except ProcessLookupError:
        pass
    return output, process.wait()


def answers(agent, cage, scratch):
    """Whether the prompt was answered; says what the agent said if not."""
    output, code = ask(agent, environment(agent, cage, scratch), make_project(scratch))
    if code == 0 and ANSWER in output:
        return True
    say("%s did not answer: %s" % (agent.name, "".join(c for c in output[-1000:] if c.isprintable() or c == "\n")))
    return False


def run(agent, directory):
    os.mkdir(directory)
    stub = Stub(os.path.join(directory, "stub"), agent.hosts)
    cage = None
    try:
        cage = Cage(os.path.join(directory, "cage"), policy(
            {"id": agent.name, "hosts": agent.hosts + agent.wildcards}, trust=[stub.pki.ca_pem],
            pins={host: STUB_PIN for host in agent.hosts}))
        completed = answers(agent, cage, directory)
    finally:
        code = cage.stop() if cage else 1
        stub.stop()
    if code != 0:
        sys.exit("cage-proxy ended with %s:\n%s" % (code, cage.stderr.text()))
    return Result(agent, completed, cage.log.lines(), stub.websockets())


# ---- the report

def cell(said):
    """How often, and what was said."""
    return "; ".join("%d %s" % (n, what) for what, n in said.items()) or "0"


def report(results, missing):
    yield "| agent | completed | requests | body bytes | blocked | flagged | failed | websocket |\n"
    yield "|---|---|---|---|---|---|---|---|\n"
    for r in results:
        tried, opened = r.websockets
        yield "| %s %s | %s | %d | %d | %s | %s | %s | %s |\n" % (
            r.agent.name, version(r.agent), "yes" if r.completed else "NO", len(r.txns), r.body_bytes,
            cell(r.said("block")), cell(r.said("flag")), cell(r.said("error")),
            "%d tried, %d opened" % (tried, opened) if tried else "-")
    if missing:
        yield "\nNot installed: %s.\n" % ", ".join(missing)


def main():
    arguments = argparse.ArgumentParser(prog="agents.py", description="sends what real agents send")
    arguments.add_argument("--write", action="store_true", help="put the table into docs/quality.md")
    arguments.add_argument("--only", action="append", choices=[agent.name for agent in AGENTS],
                           help="this agent alone; may be repeated")
    arguments.add_argument("--packages", action="store_true", help="print the names of the packages, and end")
    options = arguments.parse_args()
    if options.packages:
        print(PACKAGES)
        return 0
    missing = why_not() if INSIDE not in os.environ else ""
    if missing:
        say("SKIPPED, real agents were not measured: " + missing)
        return 0
    if INSIDE not in os.environ:
        enter_namespace()
    loopback_only()
    wanted = [agent for agent in AGENTS if not options.only or agent.name in options.only]
    with tempfile.TemporaryDirectory(prefix="cage-agents-", ignore_cleanup_errors=True) as directory:
        results = [run(agent, os.path.join(directory, agent.name)) for agent in wanted if version(agent)]
    text = "".join(report(results, [agent.name for agent in wanted if not version(agent)]))
    sys.stdout.write("### Real agents\n\n" + text)
    if options.write:
        write_document(MARKS, text)
    return 1 if any(not r.completed or r.said("block") for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
