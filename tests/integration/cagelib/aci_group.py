"""A container group of Azure, run from the very body that cage-aci asks for it with: Podman's containers in one network, with Docker's
capabilities and a seccomp profile that refuses namespaces, the volumes as directories. The images are this machine's own files."""
import base64
import os
import shutil
import subprocess

from .container import CAPABILITIES, podman

HELPER = "65532:65532"


class AciGroup:
    """body: of the PUT. group: container.Group, whose network and root it has. Use as a context manager."""

    def __init__(self, body, group, directory, agent_user="0:0"):
        self.body, self.group, self.dir = body["properties"], group, str(directory)
        self.helper_names = [c["name"] for c in self.body["containers"] if c["name"] != "agent"]
        self.users = {**dict.fromkeys(self.helper_names, HELPER), "agent": agent_user}
        self.names = {}
        os.makedirs(self.dir)
        for volume in self.body["volumes"]:
            self.make_volume(volume)
        self.install()

    def make_volume(self, volume):
        path = os.path.join(self.dir, volume["name"])
        os.makedirs(path)
        os.chmod(path, 0o777)
        for name, text in volume.get("secret", {}).items():
            with open(os.path.join(path, name), "wb") as f:
                f.write(base64.b64decode(text, validate=True))

    def install(self):
        """What the init container does."""
        (init,) = self.body["initContainers"]
        assert init["properties"]["command"] == ["/usr/bin/cage-install", "/cage"] and [m["name"] for m in init["properties"]["volumeMounts"]] == ["tools"]
        for name in ("cage-gate", "cage-inside"):
            shutil.copy(os.path.join(self.group.programs, name), os.path.join(self.dir, "tools", name))

    def line(self, name):
        (properties,) = (c["properties"] for c in self.body["containers"] if c["name"] == name)
        words = ["run", "--rm", "--name", self.names[name], "--init=false", "--network", "container:" + self.group.first, "--user", self.users[name],
                 "--ulimit", "nofile=1024:4096", "--ulimit", "nproc=4096:4096", "--cap-drop", "all", *(w for c in CAPABILITIES for w in ("--cap-add", c)),
                 "--security-opt", "seccomp=" + os.path.join(self.group.dir, "docker.json"), "--volume", "/usr:/usr:ro", "--hostname", name, "--no-hosts",
                 "--volume", "%s:/opt/cage:ro" % self.group.programs, "--env", "PATH=/opt/cage:/usr/sbin:/usr/bin:/sbin:/bin", "--tmpfs", "/var/lib:mode=1777",
                 "--tmpfs", "/tmp:mode=1777"]
        for mount in properties.get("volumeMounts", ()):
            words += ["--volume", "%s:%s%s" % (os.path.join(self.dir, mount["name"]), mount["mountPath"], ":ro" if mount["readOnly"] else "")]
        for variable in properties["environmentVariables"]:
            words += ["--env", "%s=%s" % (variable["name"], variable.get("value", variable.get("secureValue")))]
        command = [w.replace("/usr/bin/cage-", "/opt/cage/cage-") for w in properties["command"]]  # where the gate's image has its own
        return podman(self.group.dir, *words, "--rootfs", os.path.join(self.group.dir, "root"), *command)

    def start(self, name):
        self.names[name] = self.group.name()
        return subprocess.Popen(self.line(name), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        self.helpers = {name: self.start(name) for name in self.helper_names}
        return self

    def run_agent(self, seconds=180):
        process = self.start("agent")
        out, err = process.communicate(timeout=seconds)
        return process.returncode, out, err

    def __exit__(self, *_):
        for name in self.names.values():
            self.group.remove(name)
        self.said = {name: process.communicate(timeout=60) for name, process in self.helpers.items()}
