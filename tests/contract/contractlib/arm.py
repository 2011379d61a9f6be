"""A template with its parameters put in: expressions evaluated as far as that can be done without Azure. What only a
deployment knows, such as reference(), becomes a text that names it."""
import base64
import json

from . import INFRA, expression

GROUP = "/subscriptions/00000000-0000-0000-0000-000000000000/resourceGroups/cage"
TEMPLATE = INFRA / "azure" / "main.json"
# Elements of a resource that have an id of their own without being resources of the template.
ELEMENTS = {
    "Microsoft.Network/virtualNetworks/subnets": "subnets",
    "Microsoft.Network/loadBalancers/frontendIPConfigurations": "frontendIPConfigurations",
    "Microsoft.Network/loadBalancers/backendAddressPools": "backendAddressPools",
    "Microsoft.Network/loadBalancers/probes": "probes",
}


def load():
    return json.loads(TEMPLATE.read_text())


def extension_id(scope, kind, *names):
    parts = kind.split("/")
    if len(parts) != len(names) + 1:
        raise expression.Broken(f"{kind} wants {len(parts) - 1} names, not {names}")
    return scope + "/providers/" + parts[0] + "".join(f"/{a}/{b}" for a, b in zip(parts[1:], names))


def resource_id(kind, *names):
    return extension_id(GROUP, kind, *names)


class Unknown(str):
    """What only a deployment knows. As a text it looks like an expression, for schemas that allow one there."""


class Template:
    """`given` are values of parameters; the others have their defaults."""

    def __init__(self, document, **given):
        self.document = document
        self.given = given

    def parameter(self, name):
        if name in self.given:
            return self.given[name]
        return self.value(self.document["parameters"][name]["defaultValue"])

    def variable(self, name):
        return self.value(self.document["variables"][name])

    def call(self, name, arguments):
        if name == "if":  # the other branch may be about what is not there
            return self.evaluate(arguments[1 if self.evaluate(arguments[0]) else 2])
        args = [self.evaluate(a) for a in arguments]
        functions = {
            "parameters": self.parameter,
            "variables": self.variable,
            "format": lambda text, *values: text.format(*values),
            "string": str,
            "concat": lambda *lists: [x for one in lists for x in one],
            "createArray": lambda *items: list(items),
            "createObject": lambda *pairs: dict(zip(pairs[::2], pairs[1::2])),
            "base64": lambda text: base64.b64encode(text.encode()).decode(),
            "resourceId": resource_id,
            "extensionResourceId": extension_id,
            "subscriptionResourceId": lambda kind, name: f"/subscriptions/S/providers/{kind}/{name}",
            "guid": lambda *parts: "guid:" + "|".join(parts).replace("/", "."),  # one name, not a path
            "uniqueString": lambda *parts: "abcdefghijklm",
            "resourceGroup": lambda: {"id": GROUP, "location": "westeurope"},
            "subscription": lambda: {"tenantId": "00000000-0000-0000-0000-00000000000a"},
            "reference": lambda of, *version: Unknown(f"[{of}]"),
            "not": lambda one: not one,
            "empty": lambda one: not one,
            "json": lambda text: Unknown(f"[json('{text}')]"),  # a decimal, of which schemas say that it is an integer or an expression
            "true": lambda: True,
            "false": lambda: False,
        }
        if name not in functions:
            raise expression.Broken(f"{name}() is not known here")
        return functions[name](*args)

    def evaluate(self, node):
        kind = node[0]
        if kind in ("text", "number"):
            return node[1]
        if kind == "call":
            return self.call(node[1], node[2])
        of, key = self.evaluate(node[1]), node[2] if kind == "member" else self.evaluate(node[2])
        if isinstance(of, Unknown):
            return Unknown(f"{of[:-1]}.{key}]")
        return of[key]

    def value(self, value):
        """A piece of the template without expressions."""
        if isinstance(value, dict):
            return {self.value(k): self.value(v) for k, v in value.items()}
        if isinstance(value, list):
            return [self.value(v) for v in value]
        if expression.is_expression(value):
            return self.evaluate(expression.parse(value))
        return value

    def id(self, resource):
        scope = self.value(resource["scope"]) if "scope" in resource else GROUP
        names = self.value(resource["name"])
        return extension_id(scope, resource["type"], *([names] if "scope" in resource else names.split("/")))

    def resources(self):
        """Those that are deployed, by id."""
        return {self.id(r): self.value(r) for r in self.document["resources"] if self.value(r.get("condition", True))}

    def declared(self):
        """Ids of all resources, whatever their condition, and of their elements: {id: id of the resource}."""
        found = {}
        for resource in self.document["resources"]:
            own = self.id(resource)
            found[own] = own
            for kind, key in ELEMENTS.items():
                if kind.rpartition("/")[0] == resource["type"]:
                    for element in resource["properties"][key]:
                        found[f"{own}/{key}/{self.value(element['name'])}"] = own
        return found

    def of_type(self, kind):
        return {r["name"]: r for r in self.resources().values() if r["type"] == kind}
