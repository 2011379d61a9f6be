"""A network namespace of a test's own, with nothing in it but loopback, where every port is free and a firewall can be set
up. Threads and processes that are started inside belong to it."""
import contextlib
import ctypes
import os
import socket
import subprocess

import pytest

CLONE_NEWNET = 0x40000000
NOBODY = 65534
libc = ctypes.CDLL(None, use_errno=True)


class NoNamespace(Exception):
    """It can't be made here; says why."""


def check(result, what):
    if result != 0:
        raise NoNamespace("%s: %s" % (what, os.strerror(ctypes.get_errno())))


def run(*command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=20)
    if done.returncode != 0:
        raise NoNamespace("%s: %s" % (" ".join(command), done.stderr))


@contextlib.contextmanager
def namespace():
    """This thread is in the namespace meanwhile."""
    before = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        check(libc.unshare(CLONE_NEWNET), "unshare")
        try:
            run("ip", "link", "set", "lo", "up")
            yield
        finally:
            check(libc.setns(before, CLONE_NEWNET), "setns")
    finally:
        os.close(before)


@contextlib.contextmanager
def or_skip(*ranges, within=namespace):
    """The namespace, or what else is made of some, with those ranges local in it. Where there can't be any, the test is skipped and says so."""
    with contextlib.ExitStack() as stack:
        try:
            made = stack.enter_context(within())
            make_local(*ranges)
        except NoNamespace as e:
            pytest.skip("NOT TESTED, no network namespace can be made here: %s" % e)
        yield made


def make_local(*ranges):
    """Every address in them is this machine's."""
    for text in ranges:
        run("ip", "addr", "add", text, "dev", "lo")


def redirect(family, *rules, table="cage"):
    """NAT for connections that begin here. family: ip or ip6."""
    lines = ["table %s %s {" % (family, table), "chain out {", "type nat hook output priority -100", *rules, "}", "}"]
    run("nft", "-f", "-", text="\n".join(lines) + "\n")


@contextlib.contextmanager
def extra_redirect(family, *rules):
    """More of it, for a while."""
    redirect(family, *rules, table="extra")
    try:
        yield
    finally:
        run("nft", "delete", "table", family, "extra")


def connect_as_nobody(address, port):
    """A connection of another user, which is how the firewall knows whom to capture."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    os.seteuid(NOBODY)
    try:
        sock = socket.socket(family, socket.SOCK_STREAM)
    finally:
        os.seteuid(0)
    sock.settimeout(10)
    sock.connect((address, port))
    return sock
