"""cage-gate between two networks that a test makes: the one it is started in, and that of a peer which sees every frame.

The first is as hostile as its owner could make it: it forwards, routes 127/8 and has the peer as its default route. The
peer also owns the metadata addresses."""
import array
import contextlib
import os
import shutil
import socket
import struct
import subprocess
import tempfile

from . import netns

OWN, PEER, OWN6, PEER6 = "10.77.0.1", "10.77.0.2", "fd77::1", "fd77::2"
METADATA = ("169.254.169.254", "168.63.129.16")
LINK_LOCAL = "fe80::77"
HOSTILE = ("ipv4/ip_forward=1", "ipv4/conf/all/route_localnet=1", "ipv4/conf/all/accept_source_route=1",
           "ipv4/conf/gate0/accept_source_route=1", "ipv4/conf/all/rp_filter=0", "ipv4/conf/gate0/rp_filter=0",
           "ipv4/ping_group_range=0 65534")
SENTINEL = 9999
ORDINARY = 54321  # a uid that nobody has
KINDS = ("END", "PROXY", "CAPTURED", "DNS_UDP", "DNS_TCP", "WATCH")
HEADER = struct.Struct("=IHH")
MAGIC = 0x65676163
# Attacks that only mean something where sockets are handed out: of a network of its own, any socket may be had.
SHARED_ONLY = {"every_protocol", "many_threads", "storm_killed", "storm_interrupted", "storm_full", "storm_nonsense"}
NEIGHBOUR_DISCOVERY = set(range(133, 138)) | {143}


def program(name):
    """cage-gate, or a helper of the tests."""
    return os.path.join(os.environ["CAGE_BIN"], "" if name.startswith("cage") else "../tests", name)


@contextlib.contextmanager
def everybodys_copies(*names):
    """A directory with copies of these programs that each user may run."""
    directory = tempfile.mkdtemp(prefix="cage-gate-")
    try:
        os.chmod(directory, 0o755)
        for name in names:
            shutil.copy(program(name), directory)
            os.chmod(os.path.join(directory, name), 0o755)
        yield directory
    finally:
        shutil.rmtree(directory)


def what_left(frame):
    """What a frame is to us: a port, a group, or a word; None for what the kernel says to its neighbours anyway."""
    ethertype = struct.unpack_from("!H", frame, 12)[0]
    if ethertype == 0x0806:
        return "arp"
    if ethertype == 0x86dd:
        protocol, at = frame[20], 54
        if protocol == 0:
            return None  # listener reports of the kernel's own groups
        if protocol == 58:
            return None if frame[at] in NEIGHBOUR_DISCOVERY else "icmp6"
    elif ethertype == 0x0800:
        protocol, at = frame[23], 14 + 4 * (frame[14] & 15)
        if protocol == 2:
            return "igmp"
        if protocol == 1:
            return "icmp"
    else:
        return "ethertype %04x" % ethertype
    return struct.unpack_from("!H", frame, at + 2)[0] if protocol in (6, 17, 136) else "protocol %d" % protocol


def hardware_address(device):
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0) as s:
        s.bind((device, 0))
        return ":".join("%02x" % b for b in s.getsockname()[4])


class Networks:
    """Both networks; this thread is in the first one meanwhile."""

    def __init__(self, stack):
        with netns.namespace():
            self.peer = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        stack.callback(os.close, self.peer)
        stack.enter_context(netns.namespace())
        netns.run("ip", "link", "add", "gate0", "type", "veth", "peer", "name", "peer0", "netns", "/proc/%d/fd/%d" % (os.getpid(), self.peer))
        with self.in_peer():
            for address in (PEER + "/24", PEER6 + "/64", LINK_LOCAL + "/64", *(m + "/32" for m in METADATA)):
                netns.run("ip", "addr", "add", address, "dev", "peer0", *(["nodad"] if ":" in address else []))
            netns.run("ip", "link", "set", "peer0", "up")
            self.sniffer = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
            self.sniffer.setsockopt(socket.SOL_SOCKET, 33, 8 << 20)  # SO_RCVBUFFORCE: nothing may be missed
            self.sniffer.bind(("peer0", 3))
            self.sniffer.settimeout(20)
            mac = hardware_address("peer0")
        stack.callback(self.sniffer.close)
        for address in (OWN + "/24", OWN6 + "/64", "fe80::1/64"):
            netns.run("ip", "addr", "add", address, "dev", "gate0", *(["nodad"] if ":" in address else []))
        netns.run("ip", "link", "set", "gate0", "up")
        own_mac = hardware_address("gate0")
        with self.in_peer():
            netns.run("ip", "neigh", "replace", OWN, "lladdr", own_mac, "dev", "peer0", "nud", "permanent")
        for address in (PEER, PEER6, LINK_LOCAL):
            netns.run("ip", "neigh", "replace", address, "lladdr", mac, "dev", "gate0", "nud", "permanent")
        netns.run("ip", "route", "add", "default", "via", PEER)
        for setting in HOSTILE:
            name, value = setting.split("=")
            with open("/proc/sys/net/" + name, "w") as f:
                f.write(value)
        self.index = socket.if_nametoindex("gate0")
        self.wait_for_carrier()

    def wait_for_carrier(self):
        """The kernel takes a moment to see that both ends of a new cable are up; multicast has no route before."""
        for _ in range(2000):
            if "state UP" in subprocess.run(["ip", "link", "show", "gate0"], capture_output=True, text=True, timeout=20).stdout:
                return
        raise AssertionError("gate0 does not come up")

    @contextlib.contextmanager
    def in_peer(self):
        here = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        try:
            netns.check(netns.libc.setns(self.peer, netns.CLONE_NEWNET), "setns")
            yield
        finally:
            netns.check(netns.libc.setns(here, netns.CLONE_NEWNET), "setns")
            os.close(here)

    def seen(self, *awaited):
        """What has reached the peer since the last time, up to a datagram that says so, and to what is awaited."""
        mark = os.urandom(8)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.sendto(mark, (PEER, SENTINEL))
        found, marked = set(), False
        while not marked or not found.issuperset(awaited):
            frame, where = self.sniffer.recvfrom(65535)
            if where[2] == socket.PACKET_OUTGOING:
                continue
            if frame.endswith(mark):
                marked = True
            else:
                found.add(what_left(frame))
        return found - {None}


@contextlib.contextmanager
def networks():
    with contextlib.ExitStack() as stack:
        yield Networks(stack)


class Gate:
    """A running gate, with this test as its launcher where handoff is asked for."""

    def __init__(self, directory, command, *options, mode="netns", ordinary=False, handoff=False, env=("PATH=/usr/sbin:/usr/bin:/sbin:/bin",),
                 wrapper=()):
        self.ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.ours.settimeout(20)
        self.ready, ready = os.pipe()
        line = [os.path.join(directory, "cage-gate"), "--mode", mode, "--ready", str(ready), "--bind", directory, *options]
        if handoff:
            line += ["--handoff", str(theirs.fileno())]
        for variable in env:
            line += ["--env", variable]
        if ordinary:
            wrapper = ["setpriv", "--reuid", str(ORDINARY), "--regid", str(ORDINARY), "--clear-groups", "--inh-caps=-all", *wrapper]
        self.process = subprocess.Popen([*wrapper, *line, "--", *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True, cwd="/", pass_fds=(theirs.fileno(), ready))
        theirs.close()
        os.close(ready)
        self.sockets = []

    def take(self):
        """The sockets that are handed over, as (kind, socket); they are closed at the end."""
        while True:
            data, control, flags, _ = self.ours.recvmsg(64, socket.CMSG_SPACE(4))
            magic, version, kind = HEADER.unpack(data)
            assert (magic, version, flags & socket.MSG_CTRUNC) == (MAGIC, 1, 0)
            if KINDS[kind] == "END":
                return self.sockets
            fds = array.array("i", control[0][2])
            assert len(fds) == 1
            handed = socket.socket(fileno=fds[0])
            handed.settimeout(20)
            self.sockets.append((KINDS[kind], handed))

    def go(self):
        self.ours.send(b"g")

    def mode(self):
        """What the gate said when the agent was locked in; empty when it was not."""
        with open(self.ready, closefd=False) as f:
            return f.readline()

    def finish(self):
        """Exit code, stdout, stderr."""
        out, err = self.process.communicate(timeout=90)
        return self.process.returncode, out, err

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.process.kill()
        self.process.communicate()
        for _, handed in self.sockets:
            handed.close()
        self.ours.close()
        os.close(self.ready)
