"""main.json against Microsoft's own JSON Schemas of template resources (CAGE_ACI_SPEC/arm-schemas, default ../shared/aci), as
far as they are there: PROVIDER.VERSION.json, or VERSION/PROVIDER.json as in their repository. They are made strict first: a
property that they do not know is an error."""
import glob
import json

import jsonschema
import pytest
from contractlib import arm, elsewhere

FOLDER = elsewhere("CAGE_ACI_SPEC", "aci") / "arm-schemas"
COMMON = "https://schema.management.azure.com/schemas/common/definitions.json"
EXPRESSION = {"definitions": {"expression": {"type": "string", "pattern": r"^\["}}}
OF_EVERY_RESOURCE = {k: {} for k in ("condition", "dependsOn", "scope", "tags", "location")}


def strict(node):
    """Every object knows its properties. Names of streams are not the few that the schema lists: there are Custom- ones."""
    if isinstance(node, dict):
        made = {k: strict(v) for k, v in node.items() if k != "enum" or "Microsoft-Syslog" not in v}
        if made.get("properties") and isinstance(made["properties"], dict) and made.get("type") == "object":
            made.setdefault("additionalProperties", False)
        return made
    return [strict(v) for v in node] if isinstance(node, list) else node


def schema_of(kind, version):
    """The schema of a resource, or None where no file has it."""
    provider = kind.split("/")[0]
    for path in sorted([*glob.glob(f"{FOLDER}/{provider}.{version}.json"), *glob.glob(f"{FOLDER}/{version}/{provider}*.json")]):
        document = json.load(open(path))
        name = "_".join(kind.split("/")[1:])
        if name in document["resourceDefinitions"]:
            made = strict(document)
            of_resource = made["resourceDefinitions"][name]
            of_resource["properties"] |= OF_EVERY_RESOURCE | of_resource["properties"]
            of_resource["required"].remove("properties")  # an identity needs none, whatever its schema says
            return {"$schema": "http://json-schema.org/draft-04/schema#", "definitions": made["definitions"]} | of_resource
    return None


def errors(resource, schema):
    resolver = jsonschema.RefResolver("", schema, store={COMMON: EXPRESSION})
    found = jsonschema.Draft4Validator(schema, resolver=resolver).iter_errors(resource)
    return [f"{'/'.join(map(str, e.absolute_path))}: {said(e)}" for e in found]


def said(error):
    """Of a choice, what is wrong with the one that is not "an expression"."""
    inner = [e for e in error.context or [] if e.validator != "pattern" and not (e.validator == "type" and e.validator_value == "string")]
    return f"{'/'.join(map(str, inner[0].absolute_path))}: {said(inner[0])}" if inner else error.message[:300]


def resources(kind, version):
    """Before anything is evaluated, and with all values that can be known. The schema is about the last part of a name."""
    document = arm.load()
    evaluated = arm.Template(document, deployGateway=True, proxyImage="p", dnsImage="d", shipImage="s", standbyPoolPrincipalId="00000000-0000-0000-0000-00000000000b").resources().values()
    found = [r for r in (*document["resources"], *evaluated) if (r["type"], r["apiVersion"]) == (kind, version)]
    return [r if r["name"].startswith("[") else r | {"name": r["name"].rsplit("/", 1)[-1]} for r in found]


@pytest.mark.parametrize("kind, version", sorted({(r["type"], r["apiVersion"]) for r in arm.load()["resources"]}))
def test_resources(kind, version):
    schema = schema_of(kind, version)
    if not schema:
        pytest.skip(f"no schema of {kind} {version} in {FOLDER}: not checked against Microsoft's")
    for resource in resources(kind, version):
        assert errors(resource, schema) == []


@pytest.mark.parametrize("change", [
    lambda g: g["properties"].update(restartPolcy="Always"),
    lambda g: g["properties"].update(restartPolicy="Sometimes"),
    lambda g: g["properties"].pop("containers"),
    lambda g: g["properties"]["containers"][0]["properties"]["ports"][0].update(port="8080"),
    lambda g: g["properties"]["containers"][0]["properties"]["volumeMounts"][0].pop("mountPath"),
    lambda g: g["properties"]["ipAddress"].pop("ports"),
    lambda g: g.update(apiVersion="2019-12-01"),
])
def test_what_is_wrong_in_a_group_is_found(change):
    schema = schema_of("Microsoft.ContainerInstance/containerGroups", "2025-09-01")
    if not schema:
        pytest.skip(f"no schema of container groups in {FOLDER}")
    group = resources("Microsoft.ContainerInstance/containerGroups", "2025-09-01")[0]
    change(group)
    assert errors(group, schema)
