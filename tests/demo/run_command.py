#!/usr/bin/python3
"""./dev run -- CMD: starts the proxy with a policy on a free port and runs CMD with the proxy and CA variables set. The
exit code is CMD's; a last line on stderr says what was decided and where the log is.

usage: run_command.py POLICY CMD..."""
import os
import shutil
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))

from cagelib.proxy import Cage, binary, client_env  # noqa: E402


class Command:
    """CMD, until it ends. An interrupt reaches it from the terminal and SIGTERM through us; we go on to stop the proxy."""

    def __init__(self):
        self.process = None
        self.terminated = False
        signal.signal(signal.SIGINT, lambda *_: None)
        signal.signal(signal.SIGTERM, self.terminate)

    def terminate(self, *_):
        self.terminated = True
        if self.process:
            self.process.terminate()

    def run(self, command, env):
        """The exit code as a shell would give it."""
        try:
            self.process = subprocess.Popen(command, env=env)
        except OSError as e:
            print("dev: %s: %s" % (command[0], e.strerror), file=sys.stderr)
            return 127
        if self.terminated:  # by a signal that came before there was a process
            self.process.terminate()
        code = self.process.wait()
        if self.terminated:
            return 128 + signal.SIGTERM
        return 128 - code if code < 0 else code


def summary(lines):
    """What became of each request: its result where there is one, else the decision. A refusal that was only observed
    let the request through."""
    last = {}
    for line in lines:
        if "conn" in line and "decision" in line:
            last[line["conn"], line.get("txn")] = line
    failed = sum(x["decision"] == "error" for x in last.values())
    blocked = sum(x["decision"] == "block" and x["enforced"] for x in last.values())
    return "%d allowed, %d blocked, %d failed" % (len(last) - failed - blocked, blocked, failed)


def placeholders(cage):
    """What the command sees instead of the policy's secrets: in the place of the variables that they come from."""
    told = subprocess.run([binary(), "--print-env", "--policy", cage.policy_path, "--ca-dir", cage.ca_dir], capture_output=True,
                          text=True, timeout=30, check=True)
    return dict(line.split("=", 1) for line in told.stdout.splitlines())


def main(policy_path, command):
    scratch = tempfile.mkdtemp(prefix="cage-run.")
    try:
        cage = Cage(scratch, None, policy_path=os.path.abspath(policy_path))
    except AssertionError as e:  # its first line is about the test library; what cage-proxy said follows
        print("dev: cage-proxy did not start:\n%s" % str(e).partition("\n")[2], file=sys.stderr)
        shutil.rmtree(scratch)
        return 2
    try:
        code = Command().run(command, {**os.environ, **client_env(cage.port, cage.ca_dir), **placeholders(cage)})
    finally:
        cage.stop()
    print("dev: %s; the log is %s (remove its directory when done)" % (summary(cage.log.lines()), cage.log.path),
          file=sys.stderr)
    return code


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1], sys.argv[2:]))
    except KeyboardInterrupt:
        sys.exit(128 + signal.SIGINT)
