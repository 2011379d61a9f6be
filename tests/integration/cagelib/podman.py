"""A Podman of the test's own, with storage, networks and images that nobody else has, in a network namespace of its own. The images are made of this machine's
programs, so that nothing is downloaded."""
import contextlib
import http.server
import json
import os
import re
import shutil
import socket
import socketserver
import subprocess
import tempfile
import threading
import uuid

from . import netns
from .proxy import binary, policy

SECONDS = 60
HOST = "10.88.0.1"  # this machine, on the network that leads out
LAN = "198.51.100.7"  # an address that this machine has elsewhere
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"  # of Debian, whatever else is installed
TOOLS = ("sh", "cat", "ls", "id", "sleep", "true", "date", "env", "head", "grep", "find", "touch", "mkdir", "python3", "ip", "git")


class NoPodman(Exception):
    """It does not run here; says why."""


def libraries(program):
    done = subprocess.run(["ldd", program], capture_output=True, text=True, timeout=30)
    return re.findall(r"(/\S+) \(0x", done.stdout)


def copy(path, root):
    """A file to the same place below root, whatever links lead to it."""
    to = root + path
    if not os.path.exists(to):
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy(os.path.realpath(path), to)


def bare_root(root):
    for name in ("usr/bin", "usr/lib", "etc", "proc", "sys", "dev", "tmp", "run", "workspace", "home/agent"):
        os.makedirs(os.path.join(root, name))
    for name in ("bin", "lib"):
        os.symlink("usr/" + name, os.path.join(root, name))
    os.symlink("usr/lib", os.path.join(root, "lib64"))
    with open(os.path.join(root, "etc/passwd"), "w") as f:
        f.write("root:x:0:0::/:/bin/sh\nagent:x:1000:1000::/home/agent:/bin/sh\n")


def add_program(root, path, name):
    shutil.copy(os.path.realpath(path), os.path.join(root, "usr/bin", name))
    for library in libraries(os.path.realpath(path)):
        copy(library, root)


def helper_root(root, name):
    """As small as the image of a helper is: no shell, and a directory that only its own user can enter."""
    bare_root(root)
    os.makedirs(os.path.join(root, "var/lib/cage"))
    os.chmod(os.path.join(root, "var/lib/cage"), 0o700)
    add_program(root, binary(name), name)
    copy("/etc/ssl/certs/ca-certificates.crt", root)


def agent_root(root):
    bare_root(root)
    for tool in TOOLS:
        add_program(root, shutil.which(tool, path=PATH), tool)
    version = os.path.basename(os.path.realpath(shutil.which("python3", path=PATH)))
    shutil.copytree("/usr/lib/" + version, os.path.join(root, "usr/lib", version), symlinks=True, dirs_exist_ok=True,
                    ignore=shutil.ignore_patterns("__pycache__", "test", "idlelib", "dist-packages", "config-*"))
    for folder, _, names in os.walk("/usr/lib/%s/lib-dynload" % version):
        for library in {lib for n in names for lib in libraries(os.path.join(folder, n))}:
            copy(library, root)


def netavark():
    """The directory of netavark's program; CAGE_NETAVARK names one that is not installed."""
    for folder in (os.environ.get("CAGE_NETAVARK", ""), "/usr/lib/podman", "/usr/libexec/podman"):
        if os.access(os.path.join(folder, "netavark"), os.X_OK):
            return folder
    raise NoPodman("netavark is not installed")


class Podman:
    """options: what cage-pod is told of it. backend: who makes its networks, cni or netavark; None: whom it takes itself."""

    def __init__(self, directory, backend=None, runtime="runc"):
        self.dir = directory
        self.program = self.with_backend(backend) if backend else shutil.which("podman")
        self.state = "test-" + uuid.uuid4().hex[:12]
        places = {"--runtime": runtime, "--cgroup-manager": "cgroupfs", "--storage-driver": "overlay", "--root": "store", "--runroot": "run",
                  "--tmpdir": "tmp", "--network-config-dir": "net"}
        self.places = [w for k, v in places.items() for w in (k, v if k in ("--runtime", "--cgroup-manager", "--storage-driver")
                                                              else os.path.join(directory, v))]
        self.options = [*self.places, "--podman", self.program, "--image", "localhost/agent", "--proxy-image", "localhost/proxy",
                        "--dns-image", "localhost/dns", "--subnets", "10.214.0.0/16", "--state", self.state]

    def with_backend(self, backend):
        """A podman with a configuration of the test's own."""
        conf, program = os.path.join(self.dir, "containers.conf"), os.path.join(self.dir, "podman")
        with open(conf, "w", encoding="ascii") as f:
            f.write("[network]\nnetwork_backend = \"%s\"\n" % backend)
            if backend == "netavark":
                f.write("[engine]\nhelper_binaries_dir = [\"%s\"]\n" % netavark())
        with open(program, "w", encoding="ascii") as f:
            f.write("#!/bin/sh\nCONTAINERS_CONF=%s exec %s \"$@\"\n" % (conf, shutil.which("podman")))
        os.chmod(program, 0o755)
        return program

    def __call__(self, *words, check=True):
        done = subprocess.run([self.program, *self.places, "--events-backend", "none", *words], capture_output=True, text=True, timeout=SECONDS,
                              stdin=subprocess.DEVNULL)
        if check and done.returncode != 0:
            raise AssertionError("podman %s: %s" % (words[0], done.stderr))
        return done.stdout

    def make_image(self, name, fill, *changes):
        root = os.path.join(self.dir, "root-" + name)
        fill(root)
        archive = root + ".tar"
        subprocess.run(["tar", "-C", root, "--owner=0", "--group=0", "-cf", archive, "."], check=True, timeout=SECONDS)
        # The sanitizer looks for leaks with ptrace, which is refused in there.
        words = [w for c in ("ENV ASAN_OPTIONS=detect_leaks=0", *changes) for w in ("--change", c)]
        self("import", *words, archive, "localhost/" + name)
        os.unlink(archive)

    def make_images(self):
        for name in ("proxy", "dns"):
            self.make_image(name, lambda root, name=name: helper_root(root, "cage-" + name), "WORKDIR /var/lib/cage", "USER 65532:65532")
        self.make_image("agent", agent_root)

    def config(self, **more):
        """The same as `podman` of serve.yaml."""
        pairs = dict(zip(self.options[::2], self.options[1::2]))
        names = {k: k[2:].replace("-", "_") for k in pairs if k not in ("--podman", "--state")}
        return {"program": pairs["--podman"], **{names[k]: pairs[k] for k in names}, **more}

    def containers(self):
        return self("ps", "--all", "--format", "{{.Names}}").split()

    def networks(self):
        return [n for n in self("network", "ls", "--format", "{{.Name}}").split() if n != "podman"]

    def inspect(self, name):
        return json.loads(self("inspect", name))[0]

    def pid(self, name):
        return self.inspect(name)["State"]["Pid"]

    def remove(self, *more):
        return subprocess.run([binary("cage-pod"), *self.options, "remove", *more], capture_output=True, text=True, timeout=2 * SECONDS)

    def close(self):
        self("rm", "--all", "--force", "--time", "0", "--depend", check=False)
        for name in self.networks():
            self("network", "rm", "--force", name, check=False)


def patched_runsc(directory):
    """gVisor's runtime, of which older ones take the network of every container for that of the machine where the kernel shows them
    rmem_default in it; they are made to look for what the kernel shows only there."""
    with open(shutil.which("runsc"), "rb") as f:
        program = f.read()
    path = os.path.join(directory, "runsc")
    with open(path, "wb") as f:
        f.write(program.replace(b"/proc/sys/net/core/rmem_default", b"/proc/sys/net/core/./dev_weight"))
    os.chmod(path, 0o755)
    return path


def runsc(directory):
    """As it is installed, or as it has to be for this kernel; in a network of the test's own."""
    if not shutil.which("runsc"):
        raise NoPodman("runsc is not installed (./dev test --all does that)")
    return patched_runsc(directory) if os.path.exists("/proc/sys/net/core/rmem_default") else "runsc"


@contextlib.contextmanager
def podman(backend=None, runtime=lambda directory: "runc"):
    """In a network of its own: bridges and rules of the firewall end with it. This thread is in it meanwhile."""
    if not shutil.which("podman"):
        raise NoPodman("podman is not installed (./dev test --all does that)")
    directory = tempfile.mkdtemp(prefix="cage-pod-test-")
    try:
        with netns.namespace():
            netns.run("ip", "link", "add", "lan0", "type", "bridge")
            netns.run("ip", "address", "add", LAN + "/24", "dev", "lan0")
            netns.run("ip", "link", "set", "lan0", "up")
            made = Podman(directory, backend, runtime(directory))
            try:
                made.make_images()
                yield made
            finally:
                made.close()
    except netns.NoNamespace as why:
        raise NoPodman("no network can be made: %s" % why) from why
    finally:
        shutil.rmtree(directory, ignore_errors=True)


class Asked(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.seen.append((self.path, dict(self.headers)))
        self.send_response(200)
        self.send_header("Content-Length", "3")
        self.end_headers()
        self.wfile.write(b"ok\n")

    def log_message(self, *_):
        pass


class Listener(socketserver.ThreadingMixIn, http.server.HTTPServer):
    address_family = socket.AF_INET6
    daemon_threads = True


@contextlib.contextmanager
def listening():
    """Somebody on all addresses of this machine, over IPv4 and IPv6; seen: who was asked what."""
    server = Listener(("::", 0), Asked)
    server.seen = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def allows(server, *hosts, at=HOST, **more):
    """A policy by which these hosts are that server, at an address of this machine."""
    port = server.server_address[1]
    rule = {"id": "plain", "hosts": list(hosts), "ports": [80], **more.pop("rule", {})}
    return policy(rule, pins={h: "%s:%d" % (at, port) for h in hosts}, **more)
