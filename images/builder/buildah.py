"""buildah, with the options that make the same image of the same files: one time for everything, no label with its own
version, and each instruction a layer whether or not an earlier build can be used."""
import json
import os
import shutil
import subprocess
import tempfile

from .say import Failed, say

ULIMITS = ("nofile=1024:4096", "nproc=4096:4096")  # the defaults are refused where the machine allows less
PULLED = "cage-images-build"
TAIL = 25  # lines of a failed command


class Buildah:
    """store: a directory for images instead of the machine's own. logs: where the output of each build goes."""

    def __init__(self, store, epoch, logs):
        if not shutil.which("buildah"):
            raise Failed("buildah is not installed; as root: apt-get install --no-install-recommends buildah", 2)
        self.epoch, self.logs = epoch, logs
        self.store = ["--root", os.path.join(store, "store"), "--runroot", os.path.join(store, "run")] if store else []
        self.runtime = ["--runtime", "runc"] if not shutil.which("crun") and shutil.which("runc") else []

    def run(self, *words, seconds=120, cwd=None):
        line = ["buildah", *self.store, *words]
        try:
            return subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds, cwd=cwd)
        except subprocess.TimeoutExpired:
            raise Failed("buildah %s did not end within %d s" % (words[0], seconds)) from None

    def checked(self, *words, seconds=120, cwd=None):
        done = self.run(*words, seconds=seconds, cwd=cwd)
        if done.returncode != 0:
            raise Failed("buildah %s failed: %s" % (words[0], done.stderr.strip()[-2000:]))
        return done.stdout.strip()

    def has(self, image):
        return self.run("inspect", "--type", "image", image).returncode == 0

    def build(self, tag, containerfile, context, args=(), labels=(), secrets=(), cached=True, epoch=None, seconds=3600):
        words = ["bud", "--layers", "--force-rm", "--timestamp", str(epoch or self.epoch), "--identity-label=false", "--format", "oci", "--network", "host",
                 "--pull-never", *self.runtime, "--tag", tag, "--file", containerfile]
        words += [] if cached else ["--no-cache"]
        for option, values in (("--ulimit", ULIMITS), ("--build-arg", args), ("--label", labels), ("--secret", secrets)):
            for value in values:
                words += [option, value]
        self.logged(tag, [*words, context], seconds)

    def logged(self, tag, words, seconds):
        path = os.path.join(self.logs, tag.split("/")[-1].split(":")[0] + ".log")
        with open(path, "w") as log:
            try:
                done = subprocess.run(["buildah", *self.store, *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, timeout=seconds)
            except subprocess.TimeoutExpired:
                raise Failed("%s was not built within %d s; see %s" % (tag, seconds, path)) from None
        if done.returncode != 0:
            with open(path, errors="replace") as log:
                say("the end of %s:\n%s" % (path, "".join(log.readlines()[-TAIL:])))
            raise Failed("%s could not be built" % tag)

    def publish(self, tag, directory):
        """Writes the image as an OCI layout, and has the store hold that very form, so that one digest names it here,
        in the layout, and in a registry that it is pushed to: as buildah leaves it, layers are not compressed."""
        if os.path.exists(directory):
            shutil.rmtree(directory)
        layout = "oci:%s:%s" % (directory, tag.rsplit(":", 1)[1])
        self.checked("push", "--format", "oci", tag, layout, seconds=900)
        if self.digest(tag) != layout_digest(directory):
            self.replace(tag, directory)

    def replace(self, tag, directory):
        """An image that a container uses stays, and the build fails: nothing is forced in a store that others use too."""
        names = self.names(tag)
        for name in names:
            self.checked("rmi", name)
        with temporary() as place:
            os.symlink(directory, os.path.join(place, PULLED))  # buildah calls an image by the path that it came from
            pulled = self.checked("pull", "--quiet", "oci:%s:%s" % (PULLED, tag.rsplit(":", 1)[1]), seconds=900, cwd=place).splitlines()[-1]
        for name in names:
            self.checked("tag", pulled, name)
        self.checked("rmi", "localhost/" + PULLED)

    def names(self, tag):
        """All that the image is called."""
        image = self.checked("images", "--no-trunc", "--format", "{{.ID}}", tag).split()[0]
        lines = self.checked("images", "--no-trunc", "--format", "{{.ID}} {{.Name}}:{{.Tag}}").splitlines()
        return [name for known, name in map(str.split, lines) if known == image and "<none>" not in name]

    def digest(self, tag):
        return self.checked("images", "--format", "{{.Digest}}", tag).split("\n")[0]


def layout_digest(directory):
    with open(os.path.join(directory, "index.json")) as f:
        return json.load(f)["manifests"][0]["digest"]


def temporary():
    return tempfile.TemporaryDirectory(prefix="cage-images-")
