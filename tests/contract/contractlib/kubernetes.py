"""Kubernetes' manifests of infra/kubernetes: reading them as kustomize puts them together, as far as the tests need it, and the properties
that we use, of the kinds that we use, with their types. What is not in the table is an error: a property that is misspelt is one
that the API server drops without a word."""
import yaml

from . import INFRA

FOLDER = INFRA / "kubernetes"
VARIANTS = ("pod", "split")


class Map:
    """Any names, with values of one kind."""

    def __init__(self, of):
        self.of = of


PORT = (int, str)  # a number or a name
QUANTITY = str
PROTOCOL = {"TCP", "UDP"}

# {kind: {property: type}}. A type is a Python type or several, a set of words, [type] for a list, Map, or the name of a kind here.
# A property with ! has to be there.
KINDS = {
    "ObjectMeta": {"name!": str, "labels": Map(str)},
    "TemplateMeta": {"labels!": Map(str)},
    "Namespace": {"apiVersion!": {"v1"}, "kind!": {"Namespace"}, "metadata!": "ObjectMeta"},
    "Service": {"apiVersion!": {"v1"}, "kind!": {"Service"}, "metadata!": "ObjectMeta", "spec!": "ServiceSpec"},
    "ServiceSpec": {"clusterIP": str, "selector!": Map(str), "ports!": ["ServicePort"]},
    "ServicePort": {"name!": str, "protocol!": PROTOCOL, "port!": int, "targetPort!": PORT},
    "NetworkPolicy": {"apiVersion!": {"networking.k8s.io/v1"}, "kind!": {"NetworkPolicy"}, "metadata!": "ObjectMeta", "spec!": "NetworkPolicySpec"},
    "NetworkPolicySpec": {"podSelector!": "Selector", "policyTypes!": [{"Ingress", "Egress"}], "ingress": ["IngressRule"], "egress": ["EgressRule"]},
    "Selector": {"matchLabels": Map(str)},
    "IngressRule": {"from!": ["Peer"], "ports!": ["PolicyPort"]},
    "EgressRule": {"to!": ["Peer"], "ports!": ["PolicyPort"]},
    "Peer": {"namespaceSelector": "Selector", "podSelector": "Selector", "ipBlock": "IPBlock"},
    "IPBlock": {"cidr!": str, "except": [str]},
    "PolicyPort": {"protocol!": PROTOCOL, "port!": int},
    "Deployment": {"apiVersion!": {"apps/v1"}, "kind!": {"Deployment"}, "metadata!": "ObjectMeta", "spec!": "DeploymentSpec"},
    "DeploymentSpec": {"replicas": int, "strategy": "Strategy", "selector!": "Selector", "template!": "PodTemplate"},
    "Strategy": {"type!": {"Recreate", "RollingUpdate"}},
    "Job": {"apiVersion!": {"batch/v1"}, "kind!": {"Job"}, "metadata!": "ObjectMeta", "spec!": "JobSpec"},
    "JobSpec": {"backoffLimit": int, "activeDeadlineSeconds": int, "ttlSecondsAfterFinished": int, "template!": "PodTemplate"},
    "PodTemplate": {"metadata!": "TemplateMeta", "spec!": "PodSpec"},
    "PodSpec": {"restartPolicy": {"Always", "OnFailure", "Never"}, "automountServiceAccountToken": bool, "enableServiceLinks": bool,
                "terminationGracePeriodSeconds": int, "dnsPolicy": {"None", "Default", "ClusterFirst"}, "dnsConfig": "DnsConfig",
                "securityContext": "PodSecurityContext", "initContainers": ["Container"], "containers!": ["Container"], "volumes": ["Volume"]},
    "DnsConfig": {"nameservers": [str]},
    "PodSecurityContext": {"runAsNonRoot": bool, "seccompProfile": "SeccompProfile", "sysctls": ["Sysctl"]},
    "SeccompProfile": {"type!": {"RuntimeDefault"}},
    "Sysctl": {"name!": str, "value!": str},
    "Container": {"name!": str, "image!": str, "restartPolicy": {"Always"}, "command": [str], "args": [str], "workingDir": str, "env": ["EnvVar"],
                  "ports": ["ContainerPort"], "readinessProbe": "Probe", "livenessProbe": "Probe", "securityContext": "SecurityContext",
                  "resources": "Resources", "volumeMounts": ["VolumeMount"]},
    "EnvVar": {"name!": str, "value!": str},
    "ContainerPort": {"name!": str, "containerPort!": int, "protocol!": PROTOCOL},
    "Probe": {"httpGet!": "HttpGet", "periodSeconds": int},
    "HttpGet": {"path!": str, "port!": PORT},
    "SecurityContext": {"runAsUser": int, "runAsGroup": int, "allowPrivilegeEscalation": bool, "readOnlyRootFilesystem": bool, "capabilities": "Capabilities"},
    "Capabilities": {"drop": [str]},
    "Resources": {"requests!": "Amounts", "limits!": "Amounts"},
    "Amounts": {"cpu!": QUANTITY, "memory!": QUANTITY},
    "VolumeMount": {"name!": str, "mountPath!": str, "subPath": str, "readOnly": bool},
    "Volume": {"name!": str, "emptyDir": "EmptyDir", "configMap": "ConfigMapVolume", "secret": "SecretVolume"},
    "EmptyDir": {"sizeLimit!": QUANTITY},
    "ConfigMapVolume": {"name!": str},
    "SecretVolume": {"secretName!": str, "defaultMode": int},
}


def wrong(value, kind, path):
    """What does not fit, with the path to it."""
    if isinstance(kind, str):
        yield from wrong_object(value, KINDS[kind], path)
    elif isinstance(kind, list):
        if not isinstance(value, list) or not value:
            yield f"{path}: no list, or an empty one"
        else:
            for i, inner in enumerate(value):
                yield from wrong(inner, kind[0], f"{path}/{i}")
    elif isinstance(kind, Map):
        for key, inner in value.items() if isinstance(value, dict) else [("", value)]:
            yield from wrong(inner, kind.of, f"{path}/{key}")
    elif isinstance(kind, set):
        if value not in kind:
            yield f"{path}: {value!r} is none of {sorted(kind)}"
    elif not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        yield f"{path}: {value!r} is no {kind}"


def wrong_object(value, properties, path):
    if not isinstance(value, dict):
        yield f"{path}: no object"
        return
    known = {p.rstrip("!"): k for p, k in properties.items()}
    for name in value:
        if name not in known:
            yield f"{path}/{name}: not known"
        else:
            yield from wrong(value[name], known[name], f"{path}/{name}")
    for name in properties:
        if name.endswith("!") and name[:-1] not in value:
            yield f"{path}/{name[:-1]}: missing"


def read(path):
    return [d for d in yaml.safe_load_all(path.read_text()) if d is not None]


def kustomization(variant):
    (found,) = read(FOLDER / variant / "kustomization.yaml")
    return found


def objects(variant):
    """All that a variant names, as it stands in the files."""
    made = []
    for name in kustomization(variant)["resources"]:
        made += objects(name[3:]) if name.startswith("../") else read(FOLDER / variant / name)
    return made


def pods(found):
    """(name, labels, spec) of every pod that they would make."""
    for o in found:
        if o["kind"] in ("Job", "Deployment"):
            template = o["spec"]["template"]
            yield o["metadata"]["name"], template["metadata"]["labels"], template["spec"]


def containers(spec):
    return [*spec.get("initContainers", []), *spec["containers"]]
