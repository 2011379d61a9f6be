"""The YAML test suite as policies: what is not YAML never loads, and nothing makes the loader crash, hang or lose its place."""
import concurrent.futures
import os
import re
import subprocess

from cagelib.corpora import load
from cagelib.proxy import SANITIZER, binary

EMPTY = "the file is empty"


def check(path):
    """Exit code and messages of --check; a loader that hangs raises TimeoutExpired."""
    done = subprocess.run([binary(), "--check", "--policy", path], stdin=subprocess.DEVNULL, capture_output=True, timeout=20)
    return done.returncode, done.stderr.decode("utf-8", "backslashreplace")


def complaint(case, path, code, said):
    """What is wrong with that outcome, or None. No case is a policy, so none may load; each error says where it is."""
    where = re.escape(path) + r":\d+:\d+: ."
    if SANITIZER.search(said):
        return "a sanitizer spoke: " + said
    if code != 2:
        return "exit code %d: %s" % (code, said)
    lines = said.splitlines()
    if lines == ["%s: %s" % (path, EMPTY)]:
        return "called empty" if case["fail"] else None
    if not lines or not all(re.match(where, x) for x in lines):
        return "an error without its place: " + said
    if not said.isprintable() and not said.replace("\n", "").isprintable():
        return "unprintable bytes in the message: %r" % said
    return None


def test_yaml_test_suite(tmp_path):
    cases = load("yaml_test_suite")
    paths = [str(tmp_path / ("%03d.yaml" % i)) for i in range(len(cases))]
    for path, case in zip(paths, cases):
        with open(path, "wb") as f:
            f.write(case["yaml"].encode("utf-8", "surrogatepass"))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        outcomes = list(pool.map(check, paths))
    wrong = [(c["id"], c["name"], fault) for c, p, (code, said) in zip(cases, paths, outcomes)
             if (fault := complaint(c, p, code, said))]
    assert not wrong, "%d of %d:\n%s" % (len(wrong), len(cases), "\n".join(map(str, wrong)))
    assert sum(c["fail"] for c in cases) > 50
