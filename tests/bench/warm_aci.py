#!/usr/bin/python3
"""What cage itself adds to a group of Azure: from the create to the PUT that asks for the group, with and without a standby pool, against
our stand-in for Azure on this machine, which answers at once. What Azure takes on top of that only a subscription can tell.

usage: warm_aci.py [--runs N]       $CAGE_BIN has the programs"""
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

from cagelib.aci import IMAGES  # noqa: E402
from cagelib.arm import GROUP, SUBSCRIPTION, Arm, Script  # noqa: E402
from cagelib.proxy import wait_until  # noqa: E402
from cagelib.service import Service  # noqa: E402


def ask(service, arm, profile):
    """Milliseconds until the PUT, how many requests came before it, and whether the group stood."""
    before, began = len(arm.asked), time.time()
    ident = service.create(profile=profile, command=["true"])
    wait_until(lambda: "cage-" + ident in arm.groups, 60, "no group is asked for")
    made = arm.groups["cage-" + ident].made
    asked = [m for m, p in arm.asked[before:] if "/containerGroups/cage-%s?" % ident in p or "/usages" in p]
    return (made - began) * 1000, asked.index("PUT"), "cage-" + ident in [n for n, _ in arm.standby.taken]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    with Arm(script=lambda body: Script([], 600)) as arm, tempfile.TemporaryDirectory() as scratch:
        os.environ.update(arm.env())
        azure = {"subscription": SUBSCRIPTION, "group": GROUP, "regions": ["westeurope"], "credentials": "identity", "endpoint": arm.url,
                 **dict(zip(("image", "proxy_image", "dns_image", "gate_image"), IMAGES[1::2]))}
        config = {"backends": {"aci": azure}, "limits": {"running": 200, "starts": "100/s"},
                  "profiles": {"warm": {"warm": 4, "limits": {"memory": 1 << 30}}, "cold": {"limits": {"memory": 2 << 30}}}}
        with Service(pathlib.Path(scratch), config) as service:
            wait_until(lambda: ask(service, arm, "warm")[2], 30, "no pool is known")
            for profile in ("warm", "cold"):
                took = [ask(service, arm, profile) for _ in range(runs)]
                if {stood for _, _, stood in took} != {profile == "warm"}:
                    sys.exit("warm_aci.py: %s: not as it should be: %s" % (profile, took))
                ms = [t for t, _, _ in took]
                print("%s median %6.1f ms, best %.1f, slowest %.1f; %d requests before the PUT" % (profile, statistics.median(ms), min(ms), max(ms), took[-1][1]))
    print("load %s" % " ".join("%.1f" % n for n in os.getloadavg()))


if __name__ == "__main__":
    main()
