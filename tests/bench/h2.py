#!/usr/bin/python3
"""HTTP/2 through cage and through nginx as a reverse proxy, to the same origin, by turns: CPU per request, CPU for 100 MB in
both directions, and memory with 1,000 requests under way over 10 connections. Needs nginx, h2load and root (a network
namespace of its own); figures are medians, CPU is that of the whole process tree.

usage: h2.py DIR_OF_CAGE_PROXY [REPEATS=5]"""
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time

NAMESPACE = "CAGE_H2_IN_NETNS"
PROXY_CORE, LOAD_CORE = "0", "1"
ORIGIN, REVERSE, CAPTURED = 18443, 18444, 443
SIZE = 100_000_000


def enter_namespace():
    if not os.environ.get(NAMESPACE):
        os.environ[NAMESPACE] = "1"
        os.execvp("unshare", ["unshare", "-n", "sh", "-c", 'ip link set lo up && exec "$@"', "sh", sys.executable] + sys.argv)


def import_cagelib(programs):
    os.environ["CAGE_BIN"] = programs
    sys.dont_write_bytecode = True
    sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
    from cagelib.pki import Pki
    return Pki


# ---- programs

NGINX = """user root; worker_processes 1; daemon off; pid {dir}/{name}.pid; error_log {dir}/{name}.err;
events {{ worker_connections 8192; }}
http {{
	access_log off; client_body_temp_path {dir}/{name}-body; proxy_temp_path {dir}/{name}-proxy;
	fastcgi_temp_path {dir}/{name}-f; uwsgi_temp_path {dir}/{name}-u; scgi_temp_path {dir}/{name}-s;
	keepalive_requests 1000000000; client_max_body_size 0; proxy_ssl_session_reuse on;
	http2_max_concurrent_streams 1000;
	ssl_certificate {cert}; ssl_certificate_key {key};
	{more}
}}
"""
ORIGIN_CONF = """server {{ listen 127.0.0.1:{origin} ssl http2; root {dir}/www;
	location /take {{ client_body_buffer_size 128m; proxy_http_version 1.1;
		proxy_pass http://127.0.0.1:18480; }} }}
server {{ listen 127.0.0.1:18480; location / {{ return 200 taken; }} }}"""
REVERSE_CONF = """upstream origin {{ server 127.0.0.1:{origin}; keepalive 1024; keepalive_requests 1000000000; }}
server {{ listen 127.0.0.1:{reverse} ssl http2; location / {{ proxy_pass https://origin; proxy_http_version 1.1;
	proxy_set_header Connection ""; proxy_set_header Host site.test; proxy_ssl_name site.test; proxy_ssl_server_name on;
	proxy_ssl_verify on; proxy_ssl_trusted_certificate {ca}; proxy_request_buffering off; proxy_buffering on; proxy_max_temp_file_size 0; }} }}"""
POLICY = """version: 1
name: bench
rules:
  - {{id: site, hosts: [site.test], limits: {{body: 1GiB}}}}
upstream:
  resolve: {{site.test: "127.0.0.1:{origin}"}}
  trust: [{ca}]
"""


class Program:
    """A process on a core. Its CPU and memory are those of all its children."""

    def __init__(self, command, core, port):
        self.process = subprocess.Popen(["taskset", "-c", core] + command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.wait_for(port)

    def wait_for(self, port):
        for _ in range(400):
            listening = subprocess.run(["ss", "-Hltn", "sport = :%d" % port], stdout=subprocess.PIPE).stdout
            if listening:
                return
            time.sleep(0.025)
        sys.exit("h2.py: nothing listens on port %d" % port)

    def pids(self):
        found = [self.process.pid]
        for pid in found:
            with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
                found += [int(p) for p in f.read().split()]
        return found

    def cpu(self):
        ticks = 0
        for pid in self.pids():
            with open("/proc/%d/stat" % pid) as f:
                fields = f.read().rsplit(")", 1)[1].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def memory_kb(self):
        total = 0
        for pid in self.pids():
            with open("/proc/%d/smaps_rollup" % pid) as f:
                total += int(re.search(r"Pss:\s+(\d+)", f.read()).group(1))
        return total

    def stop(self):
        self.process.terminate()
        self.process.wait(30)


def write(path, text):
    with open(path, "w") as f:
        f.write(text)
    return path


def start_nginx(where, leaf, name, more, core, port, **names):
    conf = NGINX.format(dir=where, name=name, cert=leaf.cert, key=leaf.key, more=more.format(dir=where, **names))
    return Program(["nginx", "-e", where + "/start.err", "-c", write("%s/%s.conf" % (where, name), conf)], core, port)


def start_cage(where, programs, ca):
    policy = write(where + "/policy.yaml", POLICY.format(origin=ORIGIN, ca=ca))
    return Program([programs + "/cage-proxy", "--policy", policy, "--listen", "127.0.0.1:18080", "--transparent",
                    "127.0.0.1:%d" % CAPTURED, "--admin", "off", "--ca-dir", where + "/ca", "--log", where + "/log.jsonl"],
                   PROXY_CORE, CAPTURED)


# ---- load

def h2load(port, *args, path="/small"):
    out = subprocess.run(["taskset", "-c", LOAD_CORE, "h2load", *args, "--connect-to", "127.0.0.1:%d" % port,
                          "https://site.test" + path], stdout=subprocess.PIPE, timeout=600).stdout.decode()
    done = re.search(r"requests: (\d+) total.* (\d+) succeeded, (\d+) failed", out)
    codes = re.search(r"status codes: (\d+) 2xx", out)
    if not done or done.group(1) != codes.group(1):
        sys.exit("h2.py: not all requests succeeded:\n" + out)
    return int(done.group(1))


def cost(program, port, *args, path="/small"):
    """CPU seconds per request."""
    before = program.cpu()
    count = h2load(port, *args, path=path)
    return (program.cpu() - before) / count


def compare(what, targets, repeats, *args, path="/small", unit=1e6, name="us"):
    figures = {t: [] for t in targets}
    for _ in range(repeats):
        for target, (program, port) in targets.items():
            figures[target].append(cost(program, port, *args, path=path) * unit)
    medians = {t: statistics.median(v) for t, v in figures.items()}
    print("%-28s nginx %8.1f %s   cage %8.1f %s   ratio %.2f" %
          (what, medians["nginx"], name, medians["cage"], name, medians["cage"] / medians["nginx"]), flush=True)


def memory(targets):
    """With so many requests under way for a while: the peak, after a first and after a fourth round."""
    program, port = targets["cage"]
    seen = []
    for _ in range(4):
        load = subprocess.Popen(["taskset", "-c", LOAD_CORE, "h2load", "-n", "10000", "-c", "10", "-m", "100", "--connect-to",
                                 "127.0.0.1:%d" % port, "https://site.test/64k"], stdout=subprocess.DEVNULL)
        peak = 0
        while load.poll() is None:
            peak = max(peak, program.memory_kb())
            time.sleep(0.05)
        seen.append(peak)
    print("1,000 streams, 10 connections: peak of the whole tree by round %s kB" % " ".join(map(str, seen)))


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    enter_namespace()
    programs, repeats = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 5
    pki_class = import_cagelib(programs)
    where = tempfile.mkdtemp(prefix="cage-h2-")
    for name in ("pki", "www"):
        os.mkdir(os.path.join(where, name))
    pki = pki_class(where + "/pki")
    leaf = pki.leaf("site.test")
    write(where + "/www/small", "x" * 1024)
    write(where + "/www/64k", "x" * 65536)
    body = write(where + "/www/large", "the quick brown fox jumps over the lazy dog\n" * (SIZE // 44))
    started = []
    try:
        started.append(start_nginx(where, leaf, "origin", ORIGIN_CONF, LOAD_CORE, ORIGIN, origin=ORIGIN))
        started.append(start_nginx(where, leaf, "reverse", REVERSE_CONF, PROXY_CORE, REVERSE, origin=ORIGIN, reverse=REVERSE,
                                   ca=pki.ca_pem))
        started.append(start_cage(where, programs, pki.ca_pem))
        targets = {"nginx": (started[1], REVERSE), "cage": (started[2], CAPTURED)}
        for _, port in targets.values():
            h2load(port, "-n", "2000", "-c", "10", "-m", "10")
        compare("GET 1 KB, 10x10 streams", targets, repeats, "-n", "20000", "-c", "10", "-m", "10")
        compare("GET 1 KB, 10x100 streams", targets, repeats, "-n", "20000", "-c", "10", "-m", "100")
        compare("GET 100 MB", targets, repeats, "-n", "2", "-c", "1", "-m", "1", path="/large", unit=1e3, name="ms")
        compare("POST 100 MB", targets, repeats, "-n", "2", "-c", "1", "-m", "1", "-d", body, path="/take", unit=1e3, name="ms")
        memory(targets)
    finally:
        for program in reversed(started):
            program.stop()


main()
