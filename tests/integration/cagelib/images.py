"""Images as images/build makes them, in a store of their own, and containers of them that have no rights."""
import json
import os
import shutil
import subprocess
import tempfile

import pytest

from . import container

ROOT = os.path.normpath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
BUILD = os.path.join(ROOT, "images", "build")
SECONDS = 1500
CONFINED = ("--network", "none", "--read-only", "--cap-drop", "all", "--security-opt", "no-new-privileges", "--ulimit", "nofile=1024:4096", "--ulimit",
            "nproc=4096:4096")


def build(*words, env=None, seconds=SECONDS):
    return subprocess.run([BUILD, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds, env=env)


def unmount_below(directory):
    """The storage library binds its directory to itself, and leaves that."""
    with open("/proc/self/mounts") as f:
        places = [line.split()[1] for line in f]
    for place in sorted((p for p in places if p.startswith(directory + "/")), reverse=True):
        subprocess.run(["umount", place], capture_output=True, timeout=30)


class Built:
    """What was built. by: its images as images.json has them."""

    def __init__(self, *words):
        self.dir = tempfile.mkdtemp(prefix="cage-images-test-")
        os.chmod(self.dir, 0o755)
        self.store, self.output = os.path.join(self.dir, "images"), os.path.join(self.dir, "output")
        self.count, self.by = 0, {}
        try:
            self.build(*words)
        except BaseException:  # its time was over
            self.close()
            raise

    def build(self, *words):
        """One more, on what is there."""
        self.made = build("--store", self.store, "--output", self.output, *words)
        if self.made.returncode == 0:
            with open(os.path.join(self.output, "images.json")) as f:
                self.by = json.load(f)["images"]

    def podman(self, *words):
        return ["podman", "--runtime", "runc", "--cgroup-manager", "cgroupfs", "--root", os.path.join(self.store, "store"), "--runroot",
                os.path.join(self.store, "run"), "--tmpdir", os.path.join(self.store, "tmp"), *words]

    def backend(self):
        """`podman` of serve.yaml, with these images."""
        places = {name: os.path.join(self.store, where) for name, where in (("root", "store"), ("runroot", "run"), ("tmpdir", "tmp"),
                                                                           ("network_config_dir", "net"))}
        return {"program": shutil.which("podman"), "runtime": "runc", "cgroup_manager": "cgroupfs", "subnets": "10.214.0.0/16", **places}

    def call(self, *words, seconds=120):
        return subprocess.run(self.podman(*words), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds)

    def name(self):
        self.count += 1
        return "cage-image-%d-%d" % (os.getpid(), self.count)

    def run(self, image, *command, options=()):
        """To its end."""
        return self.call("run", "--rm", "--name", self.name(), *CONFINED, *options, "localhost/cage/" + image, *command)

    def start(self, image, *command, options=()):
        """Returns its name and the process that it is."""
        name = self.name()
        done = self.call("run", "--detach", "--name", name, *CONFINED, *options, "localhost/cage/" + image, *command)
        if done.returncode != 0:
            raise container.NoPodman(done.stderr)
        return name, int(self.call("inspect", "--format", "{{.State.Pid}}", name).stdout)

    def logs(self, name):
        done = self.call("logs", name)
        return done.stdout + done.stderr

    def remove(self, name):
        self.call("rm", "--force", "--volumes", "--time", "5", name)

    def sbom(self, image):
        with open(self.by[image]["sbom"]) as f:
            return json.load(f)

    def close(self):
        self.call("rm", "--all", "--force", "--time", "0")
        unmount_below(self.dir)
        shutil.rmtree(self.dir)


def made(*words, on=None):
    """A build without a registry, of the programs of this run, that has to succeed. on: what was built before, which stays."""
    words = ("--base", "debootstrap", "--programs", os.environ["CAGE_BIN"], *words)
    built = on or Built(*words)
    if on:
        on.build(*words)
    if built.made.returncode != 0:
        if not on:
            built.close()
        pytest.fail("images/build: " + built.made.stderr[-4000:])
    return built


def inside(pid, *command):
    """A program of this machine in the network of a container."""
    return subprocess.run(["nsenter", "--target", str(pid), "--net", "--", *command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=30)


def status(pid, field):
    with open("/proc/%d/status" % pid) as f:
        return next(line.split(":", 1)[1].split() for line in f if line.startswith(field + ":"))
