#!/usr/bin/python3
"""Prints what the driver's tests do not: memory at rest and per session, the CPU of minting, and what many rules cost. Uses
the driver and its files in $BENCH_RUN (default: cage-bench in the directory for temporary files), as tests/bench/run.sh has
left them. Root; a network namespace of its own.

usage: figures.py CAGE_PROXY"""
import asyncio
import contextlib
import hashlib
import json
import multiprocessing
import os
import re
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time

RUN = os.environ.setdefault("BENCH_RUN", os.path.join(tempfile.gettempdir(), "cage-bench"))
NAMESPACE = "CAGE_FIGURES_IN_NETNS"
SESSIONS = 1000
NAMES = 400  # fewer than the burst of new names, so that the rate is not met
REPEATS = 5
SECONDS = 2
HELD_PORT = 18445
EVENTS = 500
GROUP, GROUPS = 60, 8  # connections that are kept for one name, and names


def load_driver():
    sys.path.insert(0, os.path.join(RUN, "driver"))
    sys.dont_write_bytecode = True
    try:
        import bench
    except ImportError:
        sys.exit("figures.py: there is no driver in %s: run ./dev bench first" % RUN)
    return bench


# ---- the proxy

class Proxy:
    """One proxy of the driver's kind, with so many rules and secrets. Use as a context manager."""

    def __init__(self, bench, program, rules=10, port=18801, secrets=0):
        self.bench, self.port, self.secrets = bench, port, secrets
        name = "figures-%d" % port
        log = bench.p(name + ".jsonl")
        if os.path.exists(log):
            os.unlink(log)
        policy = bench.put(name + ".yaml", json.dumps(self.policy(rules)))
        command = [program, "--policy", policy, "--listen", "127.0.0.1:%d" % port, "--admin", "off", "--ca-dir", bench.p("cage-ca"),
                   "--log", log]
        self.process = bench.Proc(command, bench.PC, port, name=name, wait=60)

    def policy(self, count):
        ports = [self.bench.TLS, HELD_PORT]
        rules = [{"id": "bench", "hosts": ["bench.test", "*.bench.test"], "ports": ports, "addresses": ["127.0.0.0/8"]}]
        rules += [{"id": "r%d" % n, "hosts": ["h%d.site%d.example" % (n, n % 100)]} for n in range(count - 1)]
        pins = {"h%d.bench.test" % n: "127.0.0.1:%d" % HELD_PORT for n in range(GROUPS)}
        upstream = {"trust": [self.bench.p("origin-ca.pem")], "resolve": pins}
        out = {"version": 1, "name": "figures", "rules": rules, "upstream": upstream}
        if self.secrets:
            out["secrets"] = [self.secret(n) for n in range(self.secrets)]
            rules[0]["secrets"] = [s["id"] for s in out["secrets"]]
        return out

    def secret(self, number):
        value = hashlib.sha256(b"figure %d" % number).hexdigest()[:44]
        path = self.bench.put("secret-%d" % number, value)
        return {"id": "s%d" % number, "from": {"file": path}, "placeholder": "{{SECRET_%02d}}" % number, "in": ["header:x-api-key"]}

    def pss_kb(self):
        time.sleep(1)  # the log is written meanwhile, and what was used once is given back
        return self.bench.mem_kb(self.process.pids())[1]

    def cpu_seconds(self):
        """On the CPU so far, of all threads of all processes."""
        total = 0
        for pid in self.process.pids():
            for task in os.listdir("/proc/%d/task" % pid):
                with open("/proc/%d/task/%s/schedstat" % (pid, task), encoding="ascii") as f:
                    total += int(f.read().split()[0])
        return total / 1e9

    def load(self, host, port, *args):
        """CPU seconds per request of a run of the load generator."""
        before = self.cpu_seconds()
        command = ["taskset", "-c", self.bench.LC, self.bench.LG, "--connect", "127.0.0.1:%d" % self.port, "--target",
                   "%s:%d" % (host, port), "--ca", self.bench.p("mitm-ca.pem"), "--timeout", "15", *map(str, args)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
        told = json.loads(done.stdout.strip().splitlines()[-1])
        if told["errors"] or told["bad_status"]:
            print("figures.py: errors in a run: %s" % told, file=sys.stderr)
        return (self.cpu_seconds() - before) / max(told["requests"], 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stop()


# ---- sessions

def serve_together(cert, key):
    """An origin that answers a group of requests once all of them are there, so that as many connections are needed."""

    async def handle(reader, writer):
        while not reader.at_eof():
            try:
                await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            waiting.append(writer)
            if len(waiting) == GROUP:
                for each in waiting:
                    each.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
                waiting.clear()

    async def main():
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(cert, key)
        async with await asyncio.start_server(handle, "127.0.0.1", HELD_PORT, ssl=tls, backlog=1000) as server:
            await server.serve_forever()

    waiting = []
    asyncio.run(main())


def start_session(proxy, tls, host, port, path):
    """An intercepted session with one request sent."""
    sock = socket.create_connection(("127.0.0.1", proxy.port), 10)
    authority = "%s:%d" % (host, port)
    sock.sendall(b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (authority.encode(), authority.encode()))
    answer = sock.recv(4096)
    if b" 200 " not in answer:
        sys.exit("figures.py: CONNECT was answered with %r" % answer[:100])
    sock = tls.wrap_socket(sock, server_hostname=host)
    sock.sendall(b"GET %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (path.encode(), authority.encode()))
    return sock


def check_answer(sock):
    answer = sock.recv(65536)
    if b" 200 " not in answer:
        sys.exit("figures.py: the request was answered with %r" % answer[:300])
    return sock


def per_session_kb(bench, program):
    """Sessions one after the other: all of them use one connection to the server."""
    tls = ssl.create_default_context(cafile=bench.p("mitm-ca.pem"))

    def sessions(count):
        return [check_answer(start_session(proxy, tls, bench.HOST, bench.TLS, "/1k")) for _ in range(count)]

    with Proxy(bench, program) as proxy:
        kept = sessions(10)
        before = proxy.pss_kb()
        kept += sessions(SESSIONS)
        kb = (proxy.pss_kb() - before) / SESSIONS
        for sock in kept:
            sock.close()
    return kb


def per_held_session_kb(bench, program):
    """Sessions with a request each at the same time, idle afterwards, each with its connection to the server kept: as many
    to one name as the pool keeps."""
    tls = ssl.create_default_context(cafile=bench.p("mitm-ca.pem"))
    kept = []

    def group(number):
        group_of = [start_session(proxy, tls, "h%d.bench.test" % number, HELD_PORT, "/") for _ in range(GROUP)]
        kept.extend(check_answer(sock) for sock in group_of)

    with Proxy(bench, program) as proxy:
        group(0)
        before = proxy.pss_kb()
        for number in range(1, GROUPS):
            group(number)
        kb = (proxy.pss_kb() - before) / (GROUP * (GROUPS - 1))
        for sock in kept:
            sock.close()
    return kb


# ---- figures

def at_rest(bench, program):
    with Proxy(bench, program) as proxy:
        print("whole proxy at rest          %8.1f MiB PSS" % (proxy.pss_kb() / 1024), flush=True)


def sessions(bench, program):
    kb = per_session_kb(bench, program)
    print("idle session, upstream released %5.1f kB PSS" % kb, flush=True)
    with served(bench, serve_together):
        kb = per_held_session_kb(bench, program)
    print("idle session, upstream held     %5.1f kB PSS" % kb, flush=True)


def minting(bench, program):
    """Names that the policy refuses, which is told inside TLS: no server is involved. The second time they are known."""
    costs = []
    run = ("--names", NAMES, "--requests", NAMES, "--conns", 1, "--new-conn", "--expect", 403)
    for _ in range(REPEATS):
        with Proxy(bench, program) as proxy:
            first, second = (proxy.load("refused.test", 443, *run) for _ in range(2))
            costs.append((first - second) * 1e3)
    print("minting                      %8.3f ms of CPU per new name (%s)" % (statistics.median(costs), spread(costs)), flush=True)


def many_rules(bench, program):
    costs = {10: [], 10000: []}
    with Proxy(bench, program, 10, 18801) as few, Proxy(bench, program, 10000, 18803) as many:
        proxies = {10: few, 10000: many}
        run = ("--path", "/1k", "--conns", 32, "--warmup", 32, "--duration", SECONDS)
        for _ in range(REPEATS):
            for rules, proxy in proxies.items():
                costs[rules].append(proxy.load(bench.HOST, bench.TLS, *run) * 1e6)
    for rules, seen in costs.items():
        print("GET with %5d rules         %8.1f us of CPU per request (%s)" % (rules, statistics.median(seen), spread(seen)), flush=True)
    print("ratio                        %8.2f" % (statistics.median(costs[10000]) / statistics.median(costs[10])), flush=True)


def secrets(bench, program):
    """What ten secrets cost a small request that gets one of them, and a long response that has none in it."""
    runs = {"GET 1 KB with a secret put in": ("--path", "/1k", "--conns", 32, "--warmup", 32, "--duration", SECONDS, "--header",
                                              "X-Api-Key: {{SECRET_03}}"),
            "GET 10 MB through redaction": ("--path", "/10m", "--conns", 4, "--warmup", 4, "--duration", SECONDS)}
    with Proxy(bench, program, port=18801) as without, Proxy(bench, program, port=18803, secrets=10) as with_them:
        for what, run in runs.items():
            costs = {without: [], with_them: []}
            for _ in range(REPEATS):
                for proxy, seen in costs.items():
                    seen.append(proxy.load(bench.HOST, bench.TLS, *run) * 1e6)
            plain, secret = (statistics.median(seen) for seen in costs.values())
            print("%-30s %6.2f times the CPU (%.1f and %.1f us)" % (what, secret / plain, plain, secret), flush=True)


def serve_events(cert, key):
    """An origin that sends an event every few milliseconds, with the time at which it was sent."""

    async def handle(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(EVENTS):
            await asyncio.sleep(0.003)
            event = b"data: %d\n\n" % time.monotonic_ns()
            writer.write(b"%x\r\n%s\r\n" % (len(event), event))
            await writer.drain()
        writer.write(b"0\r\n\r\n")

    async def main():
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(cert, key)
        async with await asyncio.start_server(handle, "127.0.0.1", HELD_PORT, ssl=tls) as server:
            await server.serve_forever()

    asyncio.run(main())


def event_delays(proxy, tls):
    sock = start_session(proxy, tls, "h0.bench.test", HELD_PORT, "/")
    delays = []
    while len(delays) < EVENTS:
        data = sock.recv(65536)
        now = time.monotonic_ns()
        delays += [(now - int(sent)) / 1e6 for sent in re.findall(rb"data: (\d+)\n", data)]
        if not data:
            sys.exit("figures.py: the stream ended early")
    sock.close()
    return delays


def events(bench, program):
    """From the server's write to the client's read, both in Python."""
    tls = ssl.create_default_context(cafile=bench.p("mitm-ca.pem"))
    with served(bench, serve_events), Proxy(bench, program, port=18801) as without, \
            Proxy(bench, program, port=18803, secrets=10) as with_them:
        for what, proxy in (("as it is", without), ("through redaction", with_them)):
            delays = sorted(event_delays(proxy, tls))
            print("an event %-20s %8.3f ms (99 of 100: %.3f)" % (what, statistics.median(delays), delays[len(delays) * 99 // 100]), flush=True)


@contextlib.contextmanager
def served(bench, function):
    """An origin of ours at HELD_PORT."""
    process = multiprocessing.Process(target=function, args=(bench.p("leaf.pem"), bench.p("leaf.key")), daemon=True)
    process.start()
    end = time.monotonic() + 10
    while not bench.listening("127.0.0.1", HELD_PORT) and time.monotonic() < end:
        time.sleep(0.05)
    try:
        yield
    finally:
        process.terminate()
        process.join(10)


def spread(values):
    return "%.3g to %.3g" % (min(values), max(values))


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.rsplit("\n", 1)[1])
    program = os.path.abspath(sys.argv[1])
    if not os.environ.get(NAMESPACE):
        os.environ[NAMESPACE] = "1"
        os.execvp("unshare", ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable, os.path.abspath(__file__), program])
    bench = load_driver()
    origin = bench.start_origin()
    try:
        for figure in (at_rest, sessions, minting, many_rules, secrets, events):
            figure(bench, program)
    finally:
        for process in origin:
            process.stop()


if __name__ == "__main__":
    main()
