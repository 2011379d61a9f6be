#!/usr/bin/python3
"""How long a warm room of Podman's containers takes to be given: from the create to the first instruction of its command, by the
clock of this machine. Rooms are given one at a time, each when the pool is full.

usage: warm_podman.py [--runs N]       as root; $CAGE_BIN has the programs"""
import argparse
import os
import pathlib
import statistics
import sys
import tempfile
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
os.environ.setdefault("CAGE_BIN", os.path.join(ROOT, "build", "release", "bin"))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))

from cagelib.podman import podman  # noqa: E402
from cagelib.proxy import wait_until  # noqa: E402
from cagelib.service import ENDED, Service  # noqa: E402


def give(service):
    """Milliseconds until the create is answered, and until its command runs."""
    wait_until(lambda: service.get("/healthz").json["warm"]["standing"] == 2, 90, "rooms are missing")
    began, clock = time.monotonic(), time.time()
    ident = service.create(profile="p", command=["date", "+%s.%N"])
    answered = time.monotonic() - began
    box = service.wait(ident, *ENDED)
    if ("creating", "warm") not in [(h["state"], h["reason"]) for h in box["history"]]:
        sys.exit("warm_podman.py: it was given none that stood: %s" % box)
    return answered * 1000, (float(service.output(ident)) - clock) * 1000


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    with podman() as pod, tempfile.TemporaryDirectory() as scratch:
        profile = {"limits": {"memory": "128MiB", "disk": "16MiB"}, "lifetime": "10m", "warm": 2}
        config = {"backends": {"podman": pod.config()}, "profiles": {"p": profile}, "limits": {"running": 20, "starts": "100/s"}}
        service = Service(pathlib.Path(scratch), config).start()
        try:
            took = [give(service) for _ in range(runs)]
        finally:
            service.stop()
            wait_until(lambda: not service.keepers(), 90, "keepers are left")
    for what, seen in zip(("answered", "command runs"), zip(*took)):
        print("%-14s median %6.1f ms, best %.1f, slowest %.1f" % (what, statistics.median(seen), min(seen), max(seen)))
    print("load %s" % " ".join("%.1f" % n for n in os.getloadavg()))


if __name__ == "__main__":
    main()
