"""The shared corpora: test inputs that nobody here wrote. CAGE_CORPORA says where they are; without them a test is skipped
aloud, and nothing of them is ever copied here."""
import json
import os

import pytest

ROOT = os.path.join(os.path.dirname(__file__), "..", "..", "..")


def load(name):
    """The cases of one corpus, each a dictionary."""
    directory = os.environ.get("CAGE_CORPORA") or os.path.join(ROOT, "..", "shared", "corpora")
    path = os.path.join(directory, name + ".jsonl")
    if not os.path.exists(path):
        pytest.skip("no corpus at %s (set CAGE_CORPORA)" % os.path.normpath(path))
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def helper(name):
    """A program that the unit tests were built with, beside the binaries."""
    path = os.path.join(os.environ["CAGE_BIN"], "..", "tests", "helper_" + name)
    assert os.path.exists(path), "%s is not built" % path
    return path
