"""A container group of Azure, run from the very body that cage-aci asks for it with: Podman's containers in one network, with Docker's
capabilities and a seccomp profile that refuses namespaces, the volumes as directories. The images are this machine's own files. Files that
the platform mounts into each container, as runtimes of Kubernetes do: one resolv.conf and one hosts for all of them."""
import base64
import glob
import os
import shutil
import subprocess

from .container import CAPABILITIES, podman

RESOLV = "search internal.cloudapp.test\nnameserver 168.63.129.16\n"
HOSTS = "127.0.0.1 localhost\n10.9.8.7 agent proxy dns\n"
HELPER = "65532:65532"


class AciGroup:
    """body: of the PUT. group: container.Group, whose network and root it has. Use as a context manager."""

    def __init__(self, body, group, directory, agent_user="0:0", platform=True, vault=None, mode=""):
        self.body, self.group, self.dir = body["properties"], group, str(directory)
        self.helper_names = [c["name"] for c in self.body["containers"] if c["name"] != "agent"]
        self.users = {**dict.fromkeys(self.helper_names, HELPER), "agent": agent_user}
        self.names = {}
        self.mode = mode  # of what the platform mounts: ":ro"
        self.vault = {r["name"]: vault[r["secretReferenceUri"]] for r in self.body.get("secretReferences", ())}
        self.platform = ("resolv.conf", "hosts") if platform else ()
        os.makedirs(self.dir)
        for name, text in (("resolv.conf", RESOLV), ("hosts", HOSTS)):
            with open(os.path.join(self.dir, name), "w", encoding="ascii") as f:
                f.write(text)
        for volume in self.body["volumes"]:
            self.make_volume(volume)
        self.install()

    def make_volume(self, volume):
        path = self.empty(volume["name"])
        for name, text in volume.get("secret", {}).items():
            with open(os.path.join(path, name), "wb") as f:
                f.write(base64.b64decode(text, validate=True))

    def empty(self, name):
        path = os.path.join(self.dir, name)
        os.makedirs(path, exist_ok=True)  # a container that is started again has what it had
        os.chmod(path, 0o777)
        return path

    def install(self):
        """What the init container does."""
        (init,) = self.body["initContainers"]
        assert init["properties"]["command"] == ["/usr/bin/cage-install", "/cage"] and [m["name"] for m in init["properties"]["volumeMounts"]] == ["tools"]
        for name in ("cage-gate", "cage-inside"):
            shutil.copy(os.path.join(self.group.programs, name), os.path.join(self.dir, "tools", name))

    def rights(self, name, properties):
        """Those of Docker; those that a confidential group says."""
        context = properties.get("securityContext")
        if not context:
            return ["--user", self.users[name], *(w for c in CAPABILITIES for w in ("--cap-add", c))]
        assert not context["privileged"] and not context["allowPrivilegeEscalation"] and context["capabilities"]["drop"] == ["ALL"]
        return ["--user", "%d:%d" % (context["runAsUser"], context["runAsGroup"]), "--security-opt", "no-new-privileges",
                *(w for c in context["capabilities"]["add"] for w in ("--cap-add", c))]

    def value_of(self, variable):
        reference = variable.get("secureValueReference")
        return self.vault[reference] if reference else variable.get("value", variable.get("secureValue"))

    def line(self, name):
        (properties,) = (c["properties"] for c in self.body["containers"] if c["name"] == name)
        words = ["run", "--rm", "--name", self.names[name], "--init=false", "--network", "container:" + self.group.first,
                 "--ulimit", "nofile=1024:4096", "--ulimit", "nproc=4096:4096", "--cap-drop", "all", *self.rights(name, properties),
                 *(w for path in glob.glob("/etc/java-*") for w in ("--volume", "%s:%s:ro" % (path, path))),
                 *(w for n in self.platform for w in ("--volume", "%s/%s:/etc/%s%s" % (self.dir, n, n, self.mode))),
                 "--security-opt", "seccomp=" + os.path.join(self.group.dir, "docker.json"), "--volume", "/usr:/usr:ro", "--hostname", name, "--no-hosts",
                 "--volume", "%s:/opt/cage:ro" % self.group.programs, "--env", "PATH=/opt/cage:/usr/sbin:/usr/bin:/sbin:/bin", "--volume", self.empty("lib-" + name) + ":/var/lib",
                 "--tmpfs", "/tmp:mode=1777"]
        for mount in properties.get("volumeMounts", ()):
            words += ["--volume", "%s:%s%s" % (os.path.join(self.dir, mount["name"]), mount["mountPath"], ":ro" if mount["readOnly"] else "")]
        for variable in properties["environmentVariables"]:
            words += ["--env", "%s=%s" % (variable["name"], self.value_of(variable))]
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
