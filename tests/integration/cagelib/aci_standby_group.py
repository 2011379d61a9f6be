"""A group that stands ready, run with Podman from what cage-aci asks for. All config maps lie where each container sees them, which may be
more than Azure shows: they are files of a volume that is there before there is anything in it."""
import os

from .aci_group import AciGroup
from .container import podman


class StandbyGroup(AciGroup):
    """body: of a group that was taken, as a GET would tell of it. Use as a context manager; all of it waits until give()."""

    def __init__(self, body, group, directory, **more):
        super().__init__(body, group, directory, **more)
        self.maps = os.path.join(self.dir, "maps")
        for one in self.body["containers"]:
            os.makedirs(os.path.join(self.maps, one["name"]))

    def line(self, name):
        words = super().line(name)
        at = words.index("--rootfs")
        return [*words[:at], "--volume", self.maps + ":/mnt/configmap:ro", *words[at:]]

    def __enter__(self):
        self.helpers = {name: self.start(name) for name in ("proxy", "dns", "agent")}
        return self

    def pid(self, name):
        """Of its first process; None: it does not run yet."""
        out = self.group.output(podman(self.group.dir, "inspect", "--format", "{{.State.Pid}}", self.names[name]))
        return int(out) if out and int(out) > 0 else None

    def give(self, *names, piece=None):
        """piece: bytes that are written at a time."""
        for one in self.body["containers"]:
            if names and one["name"] not in names:
                continue
            text = one["properties"]["configMap"]["keyValuePairs"]["run"].encode()
            with open(os.path.join(self.maps, one["name"], "run"), "wb", buffering=0) as f:
                for at in range(0, len(text), piece or len(text)):
                    f.write(text[at:at + (piece or len(text))])

    def end(self, seconds=180):
        out, err = self.helpers["agent"].communicate(timeout=seconds)
        return self.helpers["agent"].returncode, out, err

    def __exit__(self, *_):
        for name in self.names.values():
            self.group.remove(name)
        self.said = {name: process.communicate(timeout=60) for name, process in self.helpers.items() if name != "agent"}
        self.helpers["agent"].wait(60)
        for stream in (self.helpers["agent"].stdout, self.helpers["agent"].stderr):
            stream.close()
