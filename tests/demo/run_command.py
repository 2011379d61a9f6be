#!/usr/bin/python3
"""./dev run -- CMD: starts the proxy with a policy on a free port and runs CMD with the proxy and CA variables set. The
exit code is CMD's; a last line on stderr says where the log is and what was decided.

usage: run_command.py POLICY CMD..."""
import os
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

from cagelib.proxy import Cage, client_env  # noqa: E402


def run(command, env):
    """The exit code as a shell would give it. Interrupts are for the command; we go on to stop the proxy."""
    signal.signal(signal.SIGINT, lambda *_: None)
    try:
        code = subprocess.run(command, env=env).returncode
    except OSError as e:
        print("dev: %s: %s" % (command[0], e.strerror), file=sys.stderr)
        return 127
    return 128 - code if code < 0 else code


def main(policy_path, command):
    scratch = tempfile.mkdtemp(prefix="cage-run.")
    try:
        cage = Cage(scratch, None, policy_path=os.path.abspath(policy_path))
    except AssertionError as e:
        print("dev: %s" % e, file=sys.stderr)
        return 2
    try:
        code = run(command, {**os.environ, **client_env(cage.port, cage.ca_dir)})
    finally:
        cage.stop()
    lines = [x for x in cage.log.lines() if x["event"] in ("request", "connect")]
    allowed = sum(x["decision"] in ("allow", "flag") for x in lines)
    blocked = sum(x["decision"] == "block" for x in lines)
    print("dev: %d allowed, %d blocked; the log is %s" % (allowed, blocked, cage.log.path), file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
