"""cage-gate with a program behind it, as root and as an ordinary user."""
import os
import shutil
import subprocess
import tempfile

from cagelib.proxy import binary

PATH = "/usr/local/bin:/usr/bin:/bin"
UNLOCKED = 78
AGENT = 1000  # the agent's uid inside, and outside when root runs the gate
ORDINARY = 4711  # a uid that nobody has


def users():
    return ("root", "ordinary") if os.geteuid() == 0 else ("ordinary",)


class Gate:
    """Who runs it is `user`. `directory` belongs to the agent outside, and can be reached by everybody."""

    def __init__(self, user):
        self.user = user
        self.directory = tempfile.mkdtemp(prefix="cage-room-", dir="/tmp")
        self.program = os.path.join(self.directory, "cage-gate")
        shutil.copy(os.path.join(os.path.dirname(binary()), "cage-gate"), self.program)
        self.prefix = []
        self.owner = os.geteuid()
        if os.geteuid() == 0:
            self.owner = AGENT if user == "root" else ORDINARY
        if os.geteuid() == 0 and user == "ordinary":
            self.prefix = ["setpriv", "--reuid=%d" % ORDINARY, "--regid=%d" % ORDINARY, "--clear-groups"]
        os.chmod(self.directory, 0o755)
        os.chown(self.directory, self.owner, -1)

    def path(self, name):
        return os.path.join(self.directory, name)

    def write(self, name, text=""):
        """A file of the agent's, with its directories."""
        path = self.path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)
        for at in (path, os.path.dirname(path)):
            os.chown(at, self.owner, -1)
        return path

    def line(self, *options, mode="netns"):
        return [*self.prefix, self.program, "--mode", mode, "--env", "PATH=" + PATH, *options]

    def run(self, *options, command, mode="netns", before=(), env=None, **more):
        """What came of it: returncode, stdout, stderr. before: a command that runs the gate."""
        line = [*before, *self.line(*options, mode=mode), "--", *command]
        return subprocess.run(line, capture_output=True, text=True, timeout=60, env=env, **more)

    def sh(self, script, *options, **more):
        return self.run(*options, command=("/bin/sh", "-c", script), **more)

    def python(self, script, *options, **more):
        return self.run(*options, command=("/usr/bin/python3", "-c", script), **more)

    def close(self):
        shutil.rmtree(self.directory)
