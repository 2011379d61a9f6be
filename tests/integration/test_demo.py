"""The command of the README, ./dev run, without the build."""
import os
import signal
import subprocess
import sys

from cagelib.cage_run import tree
from cagelib.proxy import is_alive, wait_until

DEMO = os.path.join(os.path.dirname(__file__), "..", "demo", "demo.py")
DEV = os.path.join(os.path.dirname(__file__), "..", "..", "dev")
FIRST_LINE = "An agent in a locked room"


def start(tmp_path):
    """With its scratch directory below tmp_path."""
    return subprocess.Popen([sys.executable, "-B", DEMO], env={**os.environ, "TMPDIR": str(tmp_path)}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                            text=True)


def finish(process):
    out, err = process.communicate(timeout=120)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def test_every_decision_of_the_demo_is_as_it_should_be(tmp_path):
    done = finish(start(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    table = [x for x in done.stdout.splitlines() if " block " in x or " allow " in x]
    assert len(table) == 9 and sum(" block " in x for x in table) == 8
    assert '"schema":"cage.log/1"' in done.stdout
    assert "probes, 0 surprises" in done.stdout
    assert done.stderr == ""


def test_an_interrupt_ends_the_demo_quietly(tmp_path):
    process = start(tmp_path)
    assert process.stdout.readline().startswith(FIRST_LINE)
    children = wait_until(lambda: tree(process.pid), 20, "nothing was started")
    process.send_signal(signal.SIGINT)
    done = finish(process)
    assert done.returncode == 130
    assert done.stderr == ""
    wait_until(lambda: not any(is_alive(p) for p in children), 10, "children outlive the demo")


def test_dev_says_what_is_wrong_with_its_arguments():
    for args, said in ((["bogus"], "dev: no command 'bogus'"), (["run", "ls"], "dev: say: "), (["run", "--"], "dev: say: "),
                       (["run", "--policy"], "dev: say: "), (["run", "--policy", "x.yaml"], "dev: say: "),
                       (["run", "--policy", "x.yaml", "--"], "dev: say: ")):
        done = subprocess.run([DEV, *args], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2, args
        assert done.stderr.startswith(said), done.stderr
