"""Podman containers as Docker would have them: its capabilities, and a seccomp profile of ours that refuses what Docker's
refuses. The files of the image are this machine's own /usr, so that nothing is downloaded. A group of containers shares
one network, as that of an ACI container group."""
import contextlib
import json
import os
import shutil
import subprocess
import tempfile

from .proxy import wait_until

CAPABILITIES = ("CHOWN", "DAC_OVERRIDE", "FSETID", "FOWNER", "MKNOD", "NET_RAW", "SETGID", "SETUID", "SETFCAP", "SETPCAP", "NET_BIND_SERVICE",
                "SYS_CHROOT", "KILL", "AUDIT_WRITE")
NAMESPACES = 0x7e020000  # of the flags of clone
NEW_LISTENER = 1 << 3
PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
UNLOCKED = 78


class NoPodman(Exception):
    """It does not run here; says why."""


def deny(errno, *names, args=()):
    return {"names": list(names), "action": "SCMP_ACT_ERRNO", "errnoRet": errno, "args": list(args)}


def has_bits(index, bits):
    """One rule for each: a profile can compare a mask with one value only."""
    return [[{"index": index, "value": 1 << n, "valueTwo": 1 << n, "op": "SCMP_CMP_MASKED_EQ"}] for n in range(32) if bits >> n & 1]


def profile(*more):
    """What Docker refuses to a container with its usual capabilities."""
    return {"defaultAction": "SCMP_ACT_ALLOW", "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86", "SCMP_ARCH_X32"], "syscalls": [
        deny(1, "unshare", "setns", "mount", "umount2", "pivot_root", "open_tree", "move_mount", "fsopen", "fsmount", "fsconfig", "fspick",
             "mount_setattr", "bpf", "perf_event_open", "keyctl", "add_key", "request_key", "userfaultfd", "pidfd_getfd", "kcmp", "init_module",
             "finit_module", "delete_module", "kexec_load", "reboot", "swapon", "swapoff", "acct", "name_to_handle_at", "open_by_handle_at"),
        *(deny(1, "clone", args=args) for args in has_bits(0, NAMESPACES)), deny(38, "clone3"),
        deny(22, "socket", args=[{"index": 0, "value": 40, "op": "SCMP_CMP_EQ"}]), *more]}


# A host where the agent can't be locked in at all.
NO_NOTIFIER = [deny(1, "seccomp", args=args) for args in has_bits(1, NEW_LISTENER)]


def with_notifier(path):
    """A platform that has a notifier of its own, whose descriptor runc brings to the socket at path."""
    rules = profile()
    rules["syscalls"].append({"names": ["acct"], "action": "SCMP_ACT_NOTIFY"})
    rules["syscalls"][0]["names"].remove("acct")
    return {**rules, "listenerPath": path}


def podman(directory, *words):
    """Nothing of the machine's own Podman is read or changed."""
    return ["podman", "--runtime", "runc", "--cgroup-manager", "cgroupfs", "--storage-driver", "vfs", "--root", os.path.join(directory, "store"),
            "--runroot", os.path.join(directory, "run"), "--tmpdir", os.path.join(directory, "tmp"), *words]


def make_root(path):
    for name in ("usr", "etc", "proc", "sys", "dev", "tmp", "run", "var", "home", "root"):
        os.makedirs(os.path.join(path, name))
    os.chmod(os.path.join(path, "tmp"), 0o1777)
    os.chmod(os.path.join(path, "root"), 0o700)
    for name in ("bin", "sbin", "lib", "lib64"):
        os.symlink("usr/" + name, os.path.join(path, name))
    for name in ("passwd", "group", "ld.so.cache", "nsswitch.conf"):
        if os.path.exists("/etc/" + name):
            shutil.copy("/etc/" + name, os.path.join(path, "etc", name))
    shutil.copytree("/etc/alternatives", os.path.join(path, "etc/alternatives"), symlinks=True)
    shutil.copytree("/etc/ssl/certs", os.path.join(path, "etc/ssl/certs"), symlinks=True)


class Group:
    """Containers in one network. programs: a directory with what is to be run, at the same path inside."""

    def __init__(self, directory, programs):
        self.dir = directory
        self.programs = programs
        self.count = 0
        make_root(os.path.join(directory, "root"))
        self.write_profile("docker", profile())
        self.write_profile("closed", profile(*NO_NOTIFIER))
        self.write_profile("open", {"defaultAction": "SCMP_ACT_ALLOW"})
        self.first = self.start("sleep", "1000", network="host")  # the network that this thread is in

    def write_profile(self, name, rules):
        with open(os.path.join(self.dir, name + ".json"), "w") as f:
            json.dump(rules, f)

    def line(self, name, *command, user="0:0", rules="docker", network=None, binds=(), fds=0):
        words = ["run", "--rm", "--name", name, "--interactive", "--init=false", "--network", network or "container:" + self.first, "--user", user,
                 "--ulimit", "nofile=1024:4096", "--ulimit", "nproc=4096:4096", "--cap-drop", "all", "--security-opt",
                 "seccomp=" + os.path.join(self.dir, rules + ".json"), "--env", "PATH=" + PATH, "--volume", "/usr:/usr:ro",
                 "--volume", "%s:%s:ro" % (self.programs, self.programs)]
        for capability in CAPABILITIES:
            words += ["--cap-add", capability]
        for path in binds:
            words += ["--volume", "%s:%s" % (path, path)]
        if fds:
            words += ["--preserve-fds", str(fds)]
        return podman(self.dir, *words, "--rootfs", os.path.join(self.dir, "root"), *command)

    def name(self):
        self.count += 1
        return "cage-test-%d-%d" % (os.getpid(), self.count)

    def start(self, *command, **more):
        """One that stays, until the group ends."""
        name = self.name()
        line = self.line(name, *command, **more)
        line.insert(line.index("run") + 1, "--detach")
        done = subprocess.run(line, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise NoPodman(done.stderr)
        return name

    def run(self, *command, **more):
        """One that is run to its end."""
        return subprocess.run(self.line(self.name(), *command, **more), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)

    def popen(self, *command, fds=(), **more):
        """One that goes on beside the test. It gets the descriptors fds as 3 and on. Returns (name, process)."""
        name = self.name()
        words = ["bash", "-c", 'n=3; k=$1; shift; for fd in ${k//,/ }; do eval "exec $((n + 100))<&$fd"; n=$((n + 1)); done; '
                 'for ((i = 3; i < n; i++)); do eval "exec $i<&$((i + 100)) $((i + 100))<&-"; done; exec "$@"', "bash", ",".join(map(str, fds))]
        line = self.line(name, *command, fds=len(fds), **more)
        return name, subprocess.Popen([*words, *line], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, pass_fds=fds)

    def exec(self, name, *command, user="0:0"):
        """Beside what runs in a container already, as an exec probe is."""
        return podman(self.dir, "exec", "--interactive", "--user", user, name, *command)

    @staticmethod
    def output(line):
        """Of a podman; empty: it has failed."""
        done = subprocess.run(line, capture_output=True, text=True, timeout=60)
        return done.stdout.strip() if done.returncode == 0 else ""

    def remove(self, *names):
        subprocess.run(podman(self.dir, "rm", "--force", "--time", "0", *names), capture_output=True, timeout=60)

    def close(self):
        self.remove("--all")


def is_named(directory):
    """By the command line of a process: the cleaning up of a container goes on behind the podman that removed it."""
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open("/proc/%s/cmdline" % pid, "rb") as f:
            if directory.encode() in f.read():
                return True
    return False


@contextlib.contextmanager
def group(programs):
    """In the network of this thread."""
    if not shutil.which("podman"):
        raise NoPodman("podman is not installed (./dev test --all does that)")
    directory = tempfile.mkdtemp(prefix="cage-podman-")
    os.chmod(directory, 0o755)
    made = None
    try:
        made = Group(directory, programs)
        yield made
    finally:
        if made:
            made.close()
        wait_until(lambda: not is_named(directory), 60, "a podman still cleans up in " + directory)
        shutil.rmtree(directory)
