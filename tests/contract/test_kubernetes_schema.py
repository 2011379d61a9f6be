"""The manifests of infra/kubernetes as kustomize makes them, against the OpenAPI description of Kubernetes (swagger.json of its API,
CAGE_K8S_SPEC, default ../shared/kubernetes/swagger.json), made strict. Both are no part of this tree: where one is missing, that is said."""
import json
import shutil
import subprocess

import jsonschema
import pytest
import yaml
from contractlib import elsewhere, kubernetes
from contractlib.kubernetes import FOLDER, VARIANTS

SPEC = elsewhere("CAGE_K8S_SPEC", "kubernetes/swagger.json")


def strict(node):
    """Every object knows its properties; what may be a number or a text may be both."""
    if isinstance(node, dict):
        if node.get("format") == "int-or-string":
            return {"type": ["integer", "string"]}
        made = {k: strict(v) for k, v in node.items()}
        if isinstance(made.get("properties"), dict) and made.get("type") == "object":
            made.setdefault("additionalProperties", False)
        return made
    return [strict(v) for v in node] if isinstance(node, list) else node


@pytest.fixture(scope="module")
def description():
    if not SPEC.exists():
        pytest.skip(f"NOT TESTED, no description of the API of Kubernetes at {SPEC}")
    return strict({"definitions": json.loads(SPEC.read_text())["definitions"]})


def errors(description, found):
    group, _, version = found["apiVersion"].rpartition("/")
    names = [n for n, d in description["definitions"].items()
             if {"group": group, "version": version, "kind": found["kind"]} in d.get("x-kubernetes-group-version-kind", [])]
    if len(names) != 1:
        return [f"{found['apiVersion']} {found['kind']} is not known"]
    schema = description | {"$ref": f"#/definitions/{names[0]}"}
    return [f"{'/'.join(map(str, e.absolute_path))}: {e.message}" for e in jsonschema.Draft4Validator(schema).iter_errors(found)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_objects(description, variant):
    for found in kubernetes.objects(variant):
        assert errors(description, found) == []


def test_what_is_wrong_is_found(description):
    (job,) = [o for o in kubernetes.objects("pod") if o["kind"] == "Job"]
    job["spec"]["template"]["spec"]["initContainers"][1]["restartPolcy"] = "Always"
    assert errors(description, job)


def made(variant):
    if not shutil.which("kubectl"):
        pytest.skip("NOT TESTED, no kubectl to put the manifests together with")
    done = subprocess.run(["kubectl", "kustomize", FOLDER / variant], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return [d for d in yaml.safe_load_all(done.stdout)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_kustomize(variant):
    """All objects come out, in the namespace, with images by digest and the policy in its map."""
    found = made(variant)
    kinds = sorted(o["kind"] for o in found)
    maps = [o for o in found if o["kind"] == "ConfigMap"]
    assert kinds == sorted([*(o["kind"] for o in kubernetes.objects(variant)), *("ConfigMap" for _ in maps)])
    assert all(o["metadata"].get("namespace") == "cage" for o in found if o["kind"] != "Namespace")
    (policy,) = [m for m in maps if m["metadata"]["name"].startswith("cage-policy-")]
    assert policy["data"]["policy.yaml"] == (FOLDER / "base" / "policy.yaml").read_text()
    for _, _, spec in kubernetes.pods(found):
        assert {v["configMap"]["name"] for v in spec["volumes"] if v["name"] == "policy"} <= {policy["metadata"]["name"]}
        assert all("@sha256:" in c["image"] for c in kubernetes.containers(spec))


def test_the_address_of_the_gateway_is_chosen_once(tmp_path):
    shutil.copytree(FOLDER, tmp_path / "kubernetes")
    service = tmp_path / "kubernetes/split/gateway.yaml"
    service.write_text(service.read_text().replace("clusterIP: 10.96.0.80", "clusterIP: 172.20.9.9"))
    (agent,) = [spec for name, _, spec in kubernetes.pods(made(tmp_path / "kubernetes/split")) if name == "cage-agent"]
    assert agent["dnsConfig"]["nameservers"] == ["172.20.9.9"]
    assert {"name": "GATEWAY", "value": "172.20.9.9"} in agent["containers"][0]["env"]
