"""main.bicep says what main.json says: every parameter, variable, resource, property and output."""
import pytest
from contractlib import INFRA, arm, bicep, expression

SOURCE = (INFRA / "azure" / "main.bicep").read_text()


def canonical(value):
    """With one spelling of expressions, and without an order where there is none."""
    if isinstance(value, dict):
        made = {canonical(k): canonical(v) for k, v in value.items()}
        if isinstance(made.get("dependsOn"), list):
            made["dependsOn"].sort()
        return made
    if isinstance(value, list):
        return [canonical(v) for v in value]
    return f"[{expression.write(expression.parse(value))}]" if expression.is_expression(value) else value


def differences(a, b, path=""):
    if isinstance(a, dict) and isinstance(b, dict):
        for key in sorted({*a, *b}):
            if key not in a or key not in b:
                yield f"{path}/{key}: only in {'main.json' if key in b else 'main.bicep'}"
            else:
                yield from differences(a[key], b[key], f"{path}/{key}")
    elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
        for i, (x, y) in enumerate(zip(a, b)):
            yield from differences(x, y, f"{path}/{i}")
    elif a != b or type(a) is not type(b):
        yield f"{path}: {a!r} in main.bicep, {b!r} in main.json"


def by_name(template):
    return template | {"resources": {f"{r['type']} {r['name']}": r for r in template["resources"]}}


def compare(source, document):
    return list(differences(by_name(canonical(bicep.compile_text(source))), by_name(canonical(document))))


def test_they_say_the_same():
    assert compare(SOURCE, arm.load()) == []


@pytest.mark.parametrize("old, new", [
    ("defaultOutboundAccess: false", "defaultOutboundAcess: false"),
    ("priority: 310", "priority: 311"),
    ("access: 'Deny'", "access: 'Allow'"),
    ("loadBalancers@2025-05-01", "loadBalancers@2025-07-01"),
    ("enablePurgeProtection: true", "enablePurgeProtection: false"),
    ("param dnsPort int = 5300", "param dnsPort int = 5301"),
    ("@minValue(53)\n", ""),
    ("param policy string", "@secure()\nparam policy string"),
    ("output nameServer string = gatewayAddress", "output nameServer string = addressSpace"),
    ("  dependsOn: [\n    logTable\n  ]\n", ""),
    ("scope: vault", "scope: registry"),
    ("{ name: 'ms', type: 'dynamic' }\n", ""),
    ("= if (deployGateway) {", "= {"),
    ("parent: workspace", "parent: network"),
    ("id: natAddress.id", "id: nat.id"),
    ("'${registry.properties.loginServer}/${dnsImage}'", "'${registry.properties.loginServer}/${proxyImage}'"),
    ("= if (!empty(standbyPoolPrincipalId)) {", "= if (empty(standbyPoolPrincipalId)) {"),
    ("'/var/log/cage', readOnly: true", "'/var/log/cage'"),
    ("] : []", "] : [\n]\n// the same"),
])
def test_what_is_changed_in_one_alone_is_found(old, new):
    assert old in SOURCE
    found = compare(SOURCE.replace(old, new, 1), arm.load())
    assert bool(found) == ("the same" not in new)


@pytest.mark.parametrize("text, why", [
    ("param a string = b", "b is not declared"),
    ("resource a 'T/x@1' = {\n  name: 'a' location: 'b'\n}", "line 2"),
    ("module a 'b.bicep' = {\n}", "module"),
    ("var a = [for x in y: x]", "line 1"),
    ("@export()\nparam a string", "@export"),
])
def test_what_is_not_understood_is_refused(text, why):
    with pytest.raises(bicep.Broken, match=why):
        bicep.compile_text(text)


def test_expressions_of_both_kinds():
    made = bicep.compile_text("param a string\nvar b = 'x${a}{y}'\nvar c = a\nvar d = concat([\n  a\n  1\n], [])\nvar e = [\n  true\n  'it\\'s'\n]\n")["variables"]
    assert made == {"b": "[format('x{0}{{y}}', parameters('a'))]", "c": "[parameters('a')]", "d": "[concat(createArray(parameters('a'), 1), createArray())]", "e": [True, "it's"]}
    with pytest.raises(expression.Broken):
        expression.parse("[concat('a' 'b')]")
