"""The manifests of infra/kubernetes: only properties that Kubernetes has, and what they must and must not allow. As in
test_template.py each check says what is wrong, and the tests at the end break the manifests and look that it is noticed."""
import copy
import glob
import ipaddress
import os
import re
import subprocess

import pytest
from contractlib import ROOT, kubernetes
from contractlib.kubernetes import FOLDER, VARIANTS, containers, objects, pods

SECRETS = {"cage-secrets", "cage-ca"}
PRIVATE = ("10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.100.0.1", "127.0.0.1", "168.63.129.16")
GATE = "/cage/cage-gate"


def check_properties(found):
    for o in found:
        if o.get("kind") not in kubernetes.KINDS:
            yield f"kind {o.get('kind')}"
        else:
            yield from kubernetes.wrong(o, o["kind"], f"{o['kind']} {o['metadata']['name']}")


def check_namespace(found):
    (namespace,) = [o for o in found if o["kind"] == "Namespace"]
    for mode in ("enforce", "audit", "warn"):
        if namespace["metadata"].get("labels", {}).get(f"pod-security.kubernetes.io/{mode}") != "restricted":
            yield f"namespace: {mode} is not restricted"


def check_pods(found):
    """What the level "restricted" wants, and more: no token, a read-only root, limits."""
    for name, _, spec in pods(found):
        if spec.get("automountServiceAccountToken") is not False or spec.get("enableServiceLinks") is not False:
            yield f"{name}: a token, or links to services"
        for key in ("hostNetwork", "hostPID", "hostIPC", "shareProcessNamespace", "serviceAccountName"):
            if key in spec:
                yield f"{name}: {key}"
        context = spec.get("securityContext", {})
        if context.get("runAsNonRoot") is not True or context.get("seccompProfile") != {"type": "RuntimeDefault"}:
            yield f"{name}: securityContext of the pod"
        if any(s["name"] != "net.ipv4.ip_unprivileged_port_start" for s in context.get("sysctls", [])):
            yield f"{name}: a sysctl"
        if any(set(v) - {"name", "emptyDir", "configMap", "secret"} for v in spec["volumes"]):
            yield f"{name}: a volume of another kind"
        for container in containers(spec):
            yield from (f"{name}/{container['name']}: {x}" for x in check_container(container))


def check_container(container):
    context = container.get("securityContext", {})
    if context.get("privileged") or context.get("allowPrivilegeEscalation") is not False:
        yield "privileges"
    if context.get("capabilities") != {"drop": ["ALL"]}:
        yield "capabilities"
    if context.get("readOnlyRootFilesystem") is not True:
        yield "the root can be written"
    if not context.get("runAsUser"):
        yield "root, or whoever the image says"
    if context.get("runAsUser") != (1000 if container["name"] == "agent" else 65532):
        yield f"user {context.get('runAsUser')}"
    if not {"cpu", "memory"} <= set(container.get("resources", {}).get("limits", {})):
        yield "no limits"
    if re.search(r":latest$", container["image"]):
        yield "an image of any version"


def check_secrets(found):
    for name, _, spec in pods(found):
        secret = {v["name"]: v["secret"]["secretName"] for v in spec["volumes"] if "secret" in v}
        volumes = {v["name"] for v in spec["volumes"]}
        mounted = set()
        for container in containers(spec):
            mounts = container.get("volumeMounts", [])
            mounted |= {m["name"] for m in mounts}
            if {m["name"] for m in mounts} & set(secret) and container["name"] != "proxy":
                yield f"{name}/{container['name']} has a secret"
            for mount in mounts:
                if (mount["name"] in secret or mount["mountPath"].startswith("/etc/")) and mount.get("readOnly") is not True:
                    yield f"{name}/{container['name']}: {mount['mountPath']} can be written"
            for variable in container.get("env", []):
                if "valueFrom" in variable or re.search(r"sk-|AKIA", variable.get("value", "")):
                    yield f"{name}/{container['name']}: {variable['name']}"
            if "envFrom" in container:
                yield f"{name}/{container['name']}: envFrom"
        if mounted != volumes:
            yield f"{name}: volumes that nobody has, or that are not there: {mounted ^ volumes}"
        if any(c["name"] == "proxy" for c in containers(spec)) and set(secret.values()) != SECRETS:
            yield f"{name}: the proxy has {set(secret.values())}"
    if any(o["kind"] == "Secret" for o in found):
        yield "a Secret in the manifests"


def check_gate(found):
    """Where the proxy is in the agent's own network, the agent begins with the gate and nothing else is reachable on loopback."""
    for name, _, spec in pods(found):
        agents = [c for c in containers(spec) if c["name"] == "agent"]
        proxies = [c for c in containers(spec) if c["name"] in ("proxy", "dns")]
        if not agents or not proxies:
            continue
        (agent,) = agents
        command = agent.get("command", [])
        if command[:3] != [GATE, "--mode", "seccomp"] or command[-1] != "--" or not agent.get("args"):
            yield f"{name}: the agent does not begin with the gate"
        passed = {b for a, b in zip(command, command[1:]) if a == "--env"}
        if {v["name"] for v in agent["env"]} - passed:
            yield f"{name}: variables that the gate does not let in: {sorted({v['name'] for v in agent['env']} - passed)}"
        (mount,) = [m for m in agent["volumeMounts"] if m["mountPath"] == "/cage"] or [{}]
        if mount.get("readOnly") is not True:
            yield f"{name}: the agent can change the gate"
        if [c["name"] for c in spec["initContainers"]][0] != "gate" or not all(c.get("restartPolicy") == "Always" for c in spec["initContainers"][1:]):
            yield f"{name}: order of the containers"
        for proxy in proxies:
            args = proxy["args"]
            if args[args.index("--admin") + 1] != "off" or not args[args.index("--listen") + 1].startswith("127.0.0.1:"):
                yield f"{name}/{proxy['name']}: listens where others get at it"


def matches(selector, labels):
    return all(labels.get(k) == v for k, v in selector.get("matchLabels", {}).items())


def reachable(found, labels, direction):
    """What the policies let a pod with these labels reach, or be reached by: (policies that hold, [(peer, ports)])."""
    holding = [o["spec"] for o in found if o["kind"] == "NetworkPolicy" and matches(o["spec"]["podSelector"], labels) and direction in o["spec"]["policyTypes"]]
    key, side = ("egress", "to") if direction == "Egress" else ("ingress", "from")
    return holding, [(peer, {(p["protocol"], p["port"]) for p in rule["ports"]}) for spec in holding for rule in spec.get(key, []) for peer in rule[side]]


def allows(peers, address, protocol, port):
    where = ipaddress.ip_address(address)
    for peer, ports in peers:
        if "ipBlock" in peer and (protocol, port) in ports and where in ipaddress.ip_network(peer["ipBlock"]["cidr"]):
            if not any(where in ipaddress.ip_network(e) for e in peer["ipBlock"].get("except", [])):
                return True
    return False


NAMES = [("UDP", 53), ("TCP", 53)]


def check_network(found):
    for labels in ({"app": "anything"}, {}):
        for direction in ("Egress", "Ingress"):
            holding, peers = reachable(found, labels, direction)
            if not holding or peers:
                yield f"{direction} of a pod that no rule is about"
    for name, labels, spec in pods(found):
        out, into = reachable(found, labels, "Egress")[1], reachable(found, labels, "Ingress")[1]
        if any(c["name"] == "proxy" for c in containers(spec)):
            yield from (f"{name}: {x}" for x in check_way_out(out))
        elif out != [({"podSelector": {"matchLabels": {"app": "cage-gateway"}}}, {("TCP", 8080), ("UDP", 5300), ("TCP", 5300)})]:
            yield f"{name}: reaches {out}"
        wanted = [({"podSelector": {"matchLabels": {"app": "cage-agent"}}}, {("TCP", 8080), ("UDP", 5300), ("TCP", 5300)})] if labels["app"] == "cage-gateway" else []
        if into != wanted:
            yield f"{name}: is reached by {into}"


def check_way_out(out):
    if not (allows(out, "93.184.215.14", "TCP", 443) and allows(out, "93.184.215.14", "TCP", 80)):
        yield "the world is out of reach"
    for address in PRIVATE:
        if allows(out, address, "TCP", 443) or allows(out, address, "TCP", 80):
            yield f"{address} is in reach"
    if allows(out, "93.184.215.14", "TCP", 22) or allows(out, "93.184.215.14", "UDP", 443) or allows(out, "93.184.215.14", "UDP", 53):
        yield "other ports are in reach"
    names = [(p, ports) for p, ports in out if "ipBlock" not in p]
    wanted = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}, "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}}}
    if names != [(wanted, set(NAMES))]:
        yield f"reaches pods: {names}"


def check_service(found):
    for service in (o for o in found if o["kind"] == "Service"):
        (pod,) = [(labels, spec) for _, labels, spec in pods(found) if matches({"matchLabels": service["spec"]["selector"]}, labels)]
        listening = {(p["protocol"], p["containerPort"]) for c in pod[1]["containers"] for p in c["ports"]}
        if {(p["protocol"], p["targetPort"]) for p in service["spec"]["ports"]} != listening:
            yield "service: leads to ports where nobody listens, or not to all"
        for container in pod[1]["containers"]:
            listens = container["args"][container["args"].index("--listen") + 1]
            if {p["containerPort"] for p in container["ports"]} != {int(listens.rsplit(":", 1)[1])}:
                yield f"service: {container['name']} listens on {listens}"
        for name, _, spec in pods(found):
            for container in containers(spec):
                variables = {v["name"]: v["value"] for v in container.get("env", [])}
                if "GATEWAY" in variables and not [variables["GATEWAY"]] == spec["dnsConfig"]["nameservers"] == [service["spec"]["clusterIP"]]:
                    yield f"{name}: another gateway than the service"


CHECKS = [check_properties, check_namespace, check_pods, check_secrets, check_gate, check_network, check_service]


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_manifests(variant, check):
    assert list(check(objects(variant))) == []


@pytest.mark.parametrize("variant", VARIANTS)
def test_kustomization(variant):
    """Every file is named, every image has a digest, and every name that is replaced is there."""
    found = kubernetes.kustomization(variant)
    files = {os.path.basename(f) for f in glob.glob(str(FOLDER / variant / "*"))}
    generated = {name for g in found.get("configMapGenerator", []) for name in g["files"]}
    assert files == {"kustomization.yaml", *generated, *(r for r in found["resources"] if not r.startswith("../"))}
    images = {c["image"] for _, _, spec in pods(objects(variant)) for c in containers(spec)}
    assert images == {i["name"] for i in found["images"]}
    assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", i["digest"]) for i in found["images"])
    maps = {v["configMap"]["name"] for _, _, spec in pods(objects(variant)) for v in spec["volumes"] if "configMap" in v}
    made = {g["name"] for k in (found, kubernetes.kustomization("base")) for g in k.get("configMapGenerator", [])}
    assert maps == made | {"cage-certificate"}


def test_variables_are_the_same_in_both():
    """But for how the proxy is reached."""
    found = {}
    for variant in VARIANTS:
        (agent,) = [c for _, _, spec in pods(objects(variant)) for c in spec["containers"] if c["name"] == "agent"]
        found[variant] = {v["name"]: v["value"].replace("$(GATEWAY)", "127.0.0.1") for v in agent["env"] if v["name"] != "GATEWAY"}
    assert found["pod"] == found["split"]


def programs():
    """(program, its options) of every container that runs one of ours."""
    for variant in VARIANTS:
        for _, _, spec in pods(objects(variant)):
            for c in containers(spec):
                if c["name"] in ("proxy", "dns"):
                    yield variant, f"cage-{c['name']}", c["args"]
                elif c.get("command", [""])[0] == GATE:
                    yield variant, "cage-gate", c["command"]


@pytest.mark.parametrize("variant, program, args", programs())
def test_options_are_such_as_the_programs_have(variant, program, args):
    said = subprocess.run([os.path.join(os.environ.get("CAGE_BIN", ROOT / "build/asan/bin"), program), "--help"], capture_output=True, text=True, timeout=30)
    known = set(re.findall(r"--[a-z][a-z-]*", said.stdout))
    assert {a for a in args if re.match("--.", a)} <= known


def test_policy(tmp_path):
    """It holds, with the secret that it names; its placeholder is what agents have."""
    text = (FOLDER / "base" / "policy.yaml").read_text()
    (tmp_path / "anthropic").write_text("sk-ant-0123456789")
    (tmp_path / "policy.yaml").write_text(text.replace("/etc/cage-secrets", str(tmp_path)))
    directory = os.environ.get("CAGE_BIN", ROOT / "build/asan/bin")
    for program in ("cage-proxy", "cage-dns"):
        done = subprocess.run([os.path.join(directory, program), "--policy", tmp_path / "policy.yaml", "--check"], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
    placeholder = re.search(r'placeholder: "(.*)"', text)[1]
    assert all(placeholder in {v["value"] for v in c["env"]} for x in VARIANTS for _, _, s in pods(objects(x)) for c in s["containers"] if c["name"] == "agent")


def of(found, kind, name=None):
    return next(o for o in found if o["kind"] == kind and name in (None, o["metadata"]["name"]))


def container(found, name):
    return next(c for _, _, spec in pods(found) for c in containers(spec) if c["name"] == name)


def pod(found):
    return of(found, "Job")["spec"]["template"]["spec"]


MUTATIONS = {
    "a property that is misspelt": ("pod", lambda f: pod(f).update(automountServiceAcountToken=False)),
    "a number for a text": ("pod", lambda f: container(f, "proxy")["resources"]["limits"].update(cpu=1)),
    "an empty list": ("split", lambda f: of(f, "Service")["spec"].update(ports=[])),
    "baseline": ("pod", lambda f: of(f, "Namespace")["metadata"]["labels"].update({"pod-security.kubernetes.io/enforce": "baseline"})),
    "a token": ("pod", lambda f: pod(f).pop("automountServiceAccountToken")),
    "the host's network": ("split", lambda f: pod(f).update(hostNetwork=True)),
    "privileged": ("pod", lambda f: container(f, "agent")["securityContext"].update(privileged=True)),
    "escalation": ("pod", lambda f: container(f, "agent")["securityContext"].pop("allowPrivilegeEscalation")),
    "a capability": ("pod", lambda f: container(f, "agent")["securityContext"].update(capabilities={"drop": ["ALL"], "add": ["NET_RAW"]})),
    "no capability dropped": ("split", lambda f: container(f, "proxy")["securityContext"].pop("capabilities")),
    "root": ("split", lambda f: container(f, "agent")["securityContext"].update(runAsUser=0)),
    "another seccomp profile": ("pod", lambda f: pod(f)["securityContext"].update(seccompProfile={"type": "Unconfined"})),
    "a root that can be written": ("pod", lambda f: container(f, "agent")["securityContext"].update(readOnlyRootFilesystem=False)),
    "no limits": ("pod", lambda f: container(f, "agent").pop("resources")),
    "a directory of the node": ("pod", lambda f: pod(f)["volumes"].append({"name": "x", "hostPath": {"path": "/"}})),
    "a secret for the agent": ("pod", lambda f: container(f, "agent")["volumeMounts"].append({"name": "secrets", "mountPath": "/s", "readOnly": True})),
    "a secret for dns": ("split", lambda f: container(f, "dns")["volumeMounts"].append({"name": "ca", "mountPath": "/s", "readOnly": True})),
    "a secret in a variable": ("split", lambda f: container(f, "agent")["env"].append({"name": "K", "valueFrom": {"secretKeyRef": {"name": "cage-secrets", "key": "anthropic"}}})),
    "no gate": ("pod", lambda f: container(f, "agent").pop("command")),
    "a gate of another mode": ("pod", lambda f: container(f, "agent")["command"].__setitem__(2, "auto")),
    "a gate that can be changed": ("pod", lambda f: container(f, "agent")["volumeMounts"][0].pop("readOnly")),
    "a variable that does not get in": ("pod", lambda f: container(f, "agent")["env"].append({"name": "MORE", "value": "1"})),
    "a proxy for all": ("pod", lambda f: container(f, "proxy")["args"].__setitem__(3, "0.0.0.0:8080")),
    "an admin port": ("pod", lambda f: container(f, "proxy")["args"].__setitem__(5, "127.0.0.1:8081")),
    "a proxy that is no sidecar": ("pod", lambda f: container(f, "proxy").pop("restartPolicy")),
    "no default": ("pod", lambda f: f.remove(of(f, "NetworkPolicy", "nothing"))),
    "a default for one direction": ("split", lambda f: of(f, "NetworkPolicy", "nothing")["spec"].update(policyTypes=["Ingress"])),
    "metadata in reach": ("pod", lambda f: of(f, "NetworkPolicy", "agent")["spec"]["egress"][1]["to"][0]["ipBlock"]["except"].remove("169.254.0.0/16")),
    "a port more": ("split", lambda f: of(f, "NetworkPolicy", "agent")["spec"]["egress"][0]["ports"].append({"protocol": "TCP", "port": 8081})),
    "the world for an agent": ("split", lambda f: of(f, "NetworkPolicy", "agent")["spec"]["egress"].append(of(f, "NetworkPolicy", "gateway")["spec"]["egress"][1])),
    "every pod as name server": ("pod", lambda f: of(f, "NetworkPolicy", "agent")["spec"]["egress"][0]["to"][0].pop("podSelector")),
    "a gateway for all": ("split", lambda f: of(f, "NetworkPolicy", "gateway")["spec"]["ingress"][0]["from"][0]["podSelector"].pop("matchLabels")),
    "a service to nowhere": ("split", lambda f: of(f, "Service")["spec"]["ports"][1].update(targetPort=53)),
    "another address": ("split", lambda f: of(f, "Service")["spec"].update(clusterIP="10.96.0.81")),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_what_is_broken_is_noticed(name):
    variant, change = MUTATIONS[name]
    found = copy.deepcopy(objects(variant))
    change(found)
    said = []
    for check in CHECKS:
        try:
            said += check(found)
        except (KeyError, ValueError, IndexError) as e:
            said.append(repr(e))
    assert said
