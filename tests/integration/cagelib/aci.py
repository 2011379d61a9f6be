"""cage-aci with this test as its keeper, and a stand-in for Azure behind it."""
import json
import os
import subprocess

from .inside import Inside
from .proxy import SANITIZER, binary, policy

IMAGES = ["--image", "registry.test/agent@sha256:" + "a" * 64, "--proxy-image", "registry.test/proxy@sha256:" + "b" * 64,
          "--dns-image", "registry.test/dns@sha256:" + "c" * 64, "--gate-image", "registry.test/gate@sha256:" + "d" * 64]
IMAGES_SPLIT = IMAGES[:2] + IMAGES[6:]  # the others are the gateway's


def images(options):
    return IMAGES_SPLIT if "split" in options else IMAGES


def small():
    """The same program with the times of limits/small_azure.h."""
    return os.path.join(os.path.dirname(binary()), "..", "tests", "cage-aci-small")


class Aci(Inside):
    """One sandbox. Use as a context manager."""

    def __init__(self, arm, directory, *options, ident="box", rules=None, run=(), env=None, regions=("westeurope",), fds=()):
        os.makedirs(str(directory), exist_ok=True)
        self.dir, self.ident = str(directory), ident
        self.takes, self.aside = True, []
        self.said = open(os.path.join(self.dir, "said"), "w+b")
        with open(os.path.join(self.dir, "policy.yaml"), "w", encoding="utf-8") as f:
            json.dump(rules or policy(), f)
        words = [small(), *arm.words(), *(w for r in regions for w in ("--region", r)), *images(options), "--state", "test", *options,
                 "run", "--policy", self.dir + "/policy.yaml", "--ca-dir", self.dir + "/ca", "--log", self.dir + "/log.jsonl", "--sandbox", ident, *run, "--", "x"]
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.said, env={**os.environ, **arm.env(), **(env or {})}, pass_fds=fds)

    def __exit__(self, *_):
        super().__exit__()
        assert not SANITIZER.search(self.text()), self.text()
        self.said.close()

    def text(self):
        with open(self.said.name, encoding="utf-8", errors="replace") as f:
            return f.read()

    def end(self, seconds=30):
        """The keeper leaves: the exit code."""
        self.process.stdin.close()
        return self.process.wait(seconds)
