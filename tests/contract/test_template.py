"""infra/azure/main.json holds together, and gives no more than is needed. Each check is a function that says what is wrong, so that
the tests at the end can break a copy of the template and see that it is noticed."""
import ipaddress
import json
import re

import pytest
from contractlib import INFRA, ROOT, arm, expression

STANDBY = {  # what Microsoft wants the provider of standby pools to have: type of what it is given for; None: the resource group
    "5d977122-f97e-4b4d-a52f-6b43003ddb4d": None,  # Azure Container Instances Contributor Role
    "39fcb0de-8844-4706-b050-c28ddbe3ff83": None,  # Standby Container Group Pool Contributor
    "e40ec5ca-96e0-45a2-b4ff-59039f2c2b59": None,  # Managed Identity Contributor
    "f1a07417-d97a-45cb-824c-7a7467783830": None,  # Managed Identity Operator
    "4d97b98b-1d4f-4787-a291-c67834d212e7": "Microsoft.Network/virtualNetworks",  # Network Contributor
    "7f951dda-4ed3-4680-a7ca-43fe172d538d": "Microsoft.ContainerRegistry/registries",  # AcrPull
}
ROLES = {  # built-in role: type of what it is given for
    "7f951dda-4ed3-4680-a7ca-43fe172d538d": "Microsoft.ContainerRegistry/registries",  # AcrPull
    "4633458b-17de-408a-b874-0445c86b69e6": "Microsoft.KeyVault/vaults",  # Key Vault Secrets User
    "3913510d-42f4-4e42-8a64-420c390055eb": "Microsoft.Insights/dataCollectionRules",  # Monitoring Metrics Publisher
}
SECRET = re.compile(r"password|secret(?!BlockThreshold)|token|key$|credential", re.I)
LOCATED = re.compile(r"Microsoft\.(Authorization/|OperationalInsights/workspaces/tables)")
RESERVED = [22, *range(1025, 1028), *range(3389, 3400), 9999, 19000, 19080, 19100, 19390, *range(20000, 30001), *range(49152, 65535)]


def calls(document, name):
    for path, node in expression.expressions(document):
        for call in expression.calls(node):
            if call[1] == name:
                yield path, call[2]


def check_parameters(document):
    used = {args[0][1] for _, args in calls(document, "parameters")}
    for name, parameter in document["parameters"].items():
        if name not in used:
            yield f"parameter {name} is not used"
        if len(parameter.get("metadata", {}).get("description", "")) < 20:
            yield f"parameter {name} is not described"
        if SECRET.search(name) and not parameter["type"].lower().startswith("secure"):
            yield f"parameter {name} is a secret, and of type {parameter['type']}"
        if parameter["type"].lower().startswith("secure") and parameter.get("defaultValue"):
            yield f"parameter {name} has a secret in the template"
    for name in used - set(document["parameters"]):
        yield f"parameter {name} is not declared"
    variables = {args[0][1] for _, args in calls(document, "variables")}
    for name in variables ^ set(document["variables"]):
        yield f"variable {name} is not used, or not declared"


def check_outputs(document):
    for name, output in document["outputs"].items():
        if not output.get("metadata", {}).get("description"):
            yield f"output {name} is not described"
        if re.search(r"listKeys|listCredentials|list\w*\(", json.dumps(output)):
            yield f"output {name} would be a secret in the history of deployments"


def check_versions(document):
    for resource in document["resources"]:
        if not re.fullmatch(r"\d{4}-\d\d-\d\d", resource["apiVersion"]):
            yield f"{resource['type']}: version {resource['apiVersion']} is not one of the stable ones"
    for path, args in calls(document, "reference"):
        if len(args) != 2 or args[1][0] != "text":
            yield f"{path}: reference() without a version"
            continue
        kind = args[0][2][0][1]
        if args[1][1] not in {r["apiVersion"] for r in document["resources"] if r["type"] == kind}:
            yield f"{path}: reference() with another version than the resource's"


def check_names(document):
    template = arm.Template(document)
    ids = [template.id(r) for r in document["resources"]]
    for double in {i for i in ids if ids.count(i) > 1}:
        yield f"{double} is there twice"
    for resource in document["resources"]:
        if not LOCATED.match(resource["type"]) and resource.get("location") != "[parameters('location')]":
            yield f"{resource['name']}: location is {resource.get('location')}"


def ids_in(template, value):
    """(path, id) of each resourceId() and extensionResourceId() in it."""
    for path, node in expression.expressions(value):
        for call in expression.calls(node):
            if call[1] in ("resourceId", "extensionResourceId"):
                yield path, template.evaluate(call)


def check_references(document):
    template = arm.Template(document)
    declared = template.declared()
    for path, found in ids_in(template, {k: document[k] for k in ("resources", "outputs")}):
        if found not in declared:
            yield f"{path}: {found} is not declared"


def check_order(document):
    """What a resource names has to be there before it; whatever else it waits for has to be declared, and nothing waits for itself."""
    template = arm.Template(document)
    declared = template.declared()
    waits = {}
    for resource in document["resources"]:
        own = template.id(resource)
        waits[own] = {template.value(d) for d in resource.get("dependsOn", [])}
        named = {declared.get(i) for _, i in ids_in(template, {k: v for k, v in resource.items() if k != "dependsOn"})} - {own, None}
        parent = own.rsplit("/", 2)[0]
        if resource["type"].count("/") > 1:
            named.add(parent)
        for missing in named - waits[own]:
            yield f"{own} does not wait for {missing}"
        for stray in waits[own] - set(declared):
            yield f"{own} waits for {stray}, which is not declared"
    done = set()
    while any(ready := [i for i in waits if i not in done and waits[i] & set(waits) <= done]):
        done.update(ready)
    for stuck in set(waits) - done:
        yield f"{stuck} waits for itself"


def check_roles(document):
    template = arm.Template(document)
    resources = template.resources()
    given = []
    for role in (r for r in resources.values() if r["type"] == "Microsoft.Authorization/roleAssignments"):
        kind = role["properties"]["roleDefinitionId"].rsplit("/", 1)[1]
        scope = resources.get(role.get("scope"), {}).get("type")
        if kind not in ROLES:
            yield f"role {kind} is not one that is meant"
        elif scope != ROLES[kind]:
            yield f"role {kind} is given for {scope or 'the resource group'}"
        if role["properties"].get("principalType") != "ServicePrincipal":
            yield f"role {kind}: principalType"
        given.append(role["properties"]["principalId"])
    identities = {f"[{i}.principalId]" for i, r in resources.items() if r["type"].endswith("/userAssignedIdentities")}
    if sorted(given) != sorted(identities):
        yield f"an identity has no role, or more than one: {given}"


def check_standby(document):
    """Nothing for nobody; and for who is named, just these."""
    before, provider = arm.Template(document).resources(), "00000000-0000-0000-0000-00000000000b"
    after = arm.Template(document, standbyPoolPrincipalId=provider).resources()
    more = [r for i, r in after.items() if i not in before]
    found = {r["properties"].get("roleDefinitionId", "").rsplit("/", 1)[-1]: after.get(r.get("scope"), {}).get("type") for r in more}
    if found != STANDBY or len(more) != len(STANDBY):
        yield f"standby pools: {found}"
    for role in more:
        if (role["properties"]["principalId"], role["properties"]["principalType"]) != (provider, "ServicePrincipal"):
            yield f"standby pools: a role for {role['properties']['principalId']}"


def check_services(document):
    template = arm.Template(document, deployGateway=True)
    of = lambda kind: next(iter(template.of_type(kind).values()))["properties"]  # noqa: E731
    vault, registry = of("Microsoft.KeyVault/vaults"), of("Microsoft.ContainerRegistry/registries")
    for key in ("enableRbacAuthorization", "enablePurgeProtection", "enableSoftDelete"):
        if vault.get(key) is not True:
            yield f"vault: {key}"
    if vault["networkAcls"] != {"bypass": "None", "defaultAction": "Deny", "ipRules": [], "virtualNetworkRules": [{"id": subnet_id(template, "egress")}]}:
        yield "vault: others than the gateway reach it"
    if vault.get("accessPolicies"):
        yield "vault: access policies"
    if registry.get("adminUserEnabled") is not False or registry.get("anonymousPullEnabled") is not False:
        yield "registry: admin or everybody"
    if of("Microsoft.OperationalInsights/workspaces")["features"].get("disableLocalAuth") is not True:
        yield "workspace: keys"


def subnet_id(template, name):
    (network,) = [i for i, r in template.resources().items() if r["type"] == "Microsoft.Network/virtualNetworks"]
    return f"{network}/subnets/{name}"


def check_network(document):
    template = arm.Template(document)
    resources = template.resources()
    (network,) = template.of_type("Microsoft.Network/virtualNetworks").values()
    subnets = {s["name"]: s["properties"] for s in network["properties"]["subnets"]}
    ranges = {n: ipaddress.ip_network(s["addressPrefix"]) for n, s in subnets.items()}
    space = ipaddress.ip_network(network["properties"]["addressSpace"]["addressPrefixes"][0])
    for name, subnet in subnets.items():
        delegated = [d["properties"]["serviceName"] for d in subnet.get("delegations", [])]
        if delegated != ([] if name == "frontend" else ["Microsoft.ContainerInstance/containerGroups"]):
            yield f"{name}: delegated to {delegated}"
        if name != "frontend" and ranges[name].prefixlen > 24:
            yield f"{name}: smaller than /24"
        if not ranges[name].subnet_of(space) or any(ranges[name].overlaps(r) for n, r in ranges.items() if n != name):
            yield f"{name}: {ranges[name]}"
        if subnet.get("defaultOutboundAccess") is not False:
            yield f"{name}: Azure gives it a way out of its own"
        if ("natGateway" in subnet) != (name == "egress"):
            yield f"{name}: NAT"
    routes = resources[subnets["locked"]["routeTable"]["id"]]["properties"] if "routeTable" in subnets["locked"] else {}
    if [r["properties"] for r in routes.get("routes", [])] != [{"addressPrefix": "0.0.0.0/0", "nextHopType": "None"}] or routes["disableBgpRoutePropagation"] is not True:
        yield "locked: routes lead somewhere"
    front = template.parameter("gatewayAddress")
    if ipaddress.ip_address(front) not in list(ranges["frontend"])[4:-1]:
        yield "the load balancer's address is none of its subnet that Azure leaves free"


def check_rules(document):
    for resource in document["resources"]:
        rules = [r["properties"] for r in resource.get("properties", {}).get("securityRules", [])]
        for rule in rules:
            if not 0 < len(rule.get("description", "")) <= 140:
                yield f"{resource['name']}: a rule without a description that Azure takes"
            if not 100 <= rule["priority"] <= 4096:
                yield f"{resource['name']}: priority {rule['priority']}"
        order = [(r["direction"], r["priority"]) for r in rules]
        if len(set(order)) != len(order):
            yield f"{resource['name']}: two rules of one priority"


def check_ship(template, group):
    """Where proxy and dns write their logs is where cage-ship reads them; of both it sees nothing else, neither sees the other's, and it has the identity that may send."""
    proxy, dns, ship = ({**c["properties"], "mounts": {m["name"]: m for m in c["properties"]["volumeMounts"]}} for name in ("proxy", "dns", "ship") for c in group["containers"] if c["name"] == name)
    given = dict(zip(ship["command"][1::2], ship["command"][2::2]))
    outputs = template.value(template.document["outputs"])
    written = proxy["command"][proxy["command"].index("--log-dir") + 1]
    asked = dict(zip(dns["command"][1::2], dns["command"][2::2]))
    file = asked.get("--log", "-")
    if set(proxy["mounts"]) & set(ship["mounts"]) != {"log"} or proxy["mounts"]["log"]["mountPath"] != written:
        yield "ship: what it shares with the proxy is not the log alone"
    if set(dns["mounts"]) & set(ship["mounts"]) != {"dns-log"} or dns["mounts"]["dns-log"]["mountPath"] != file.rpartition("/")[0] or not file.endswith(".jsonl"):
        yield "ship: what it shares with dns is not the log alone"
    if set(dns["mounts"]) & set(proxy["mounts"]) != {"policy"}:
        yield "dns: what it shares with the proxy is not the policy alone"
    if int(asked.get("--log-turn", 1 << 60)) > 1 << 30:
        yield "dns: a log that fills the disk"
    roots = [ship["command"][i + 1] for i, word in enumerate(ship["command"]) if word == "--logs"]
    if [ship["mounts"][name]["mountPath"] for name in ("log", "dns-log") if ship["mounts"].get(name, {}).get("readOnly") is True] != roots:
        yield "ship: the logs"
    if not any(given["--state"].startswith(m["mountPath"] + "/") for m in ship["mounts"].values() if not m.get("readOnly")):
        yield "ship: it forgets how far it was"
    for option, output in (("--endpoint", "logIngestionEndpoint"), ("--rule", "logRuleId"), ("--stream", "logStream")):
        if given[option] != outputs[output]["value"]:
            yield f"ship: {option}"
    if given["--credentials"] != "identity" or ship["environmentVariables"] != [{"name": "AZURE_CLIENT_ID", "secureValue": outputs["shipClientId"]["value"]}]:
        yield "ship: another identity"


def check_gateway(document):
    template = arm.Template(document, deployGateway=True, proxyImage="cage/proxy@sha256:0", dnsImage="cage/dns@sha256:0", shipImage="cage/ship@sha256:0", policy="version: 1\n")
    (group,) = template.of_type("Microsoft.ContainerInstance/containerGroups").values()
    (balancer,) = template.of_type("Microsoft.Network/loadBalancers").values()
    p = group["properties"]
    if p["subnetIds"] != [{"id": subnet_id(template, "egress")}]:
        yield "gateway: in another subnet"
    ports = {(x["protocol"], x["port"]) for x in p["ipAddress"]["ports"]}
    if ports != {(x["protocol"], x["port"]) for c in p["containers"] for x in c["properties"].get("ports", [])} or len(p["ipAddress"]["ports"]) > 5:
        yield "gateway: ports of the group and of its containers"
    for port in {port for _, port in ports} & set(RESERVED):
        yield f"gateway: port {port} is Azure's own"
    behind = {(r["properties"]["protocol"].upper(), r["properties"]["backendPort"]) for r in balancer["properties"]["loadBalancingRules"]}
    if behind != ports:
        yield f"load balancer: {behind} leads to {ports}"
    if {(r["properties"]["protocol"], r["properties"]["frontendPort"]) for r in balancer["properties"]["loadBalancingRules"]} != {("Tcp", 8080), ("Tcp", 8443), ("Tcp", 53), ("Udp", 53)}:
        yield "load balancer: ports of agents, and of their orchestrator"
    (pool,) = balancer["properties"]["backendAddressPools"]
    (member,) = pool["properties"]["loadBalancerBackendAddresses"]
    if not member["properties"]["ipAddress"].endswith(".ipAddress.ip]") or member["properties"]["subnet"] != {"id": subnet_id(template, "egress")}:
        yield "load balancer: the group is not in its pool"
    command = next(c["properties"]["command"] for c in p["containers"] if c["name"] == "proxy")
    fronts = {f"{template.parameter('gatewayAddress')}:{r['properties']['frontendPort']}" for r in balancer["properties"]["loadBalancingRules"] if r["properties"]["backendPort"] in (8080, 8443)}
    if fronts != {value for option, value in zip(command, command[1:]) if option == "--never"}:
        yield "gateway: a rule of a policy leads to its own front"
    volumes = {v["name"] for v in p["volumes"]}
    for container in p["containers"]:
        mounts = {m["name"]: m for m in container["properties"]["volumeMounts"]}
        if not set(mounts) <= volumes or (container["name"] != "ship" and mounts["policy"].get("readOnly") is not True):
            yield f"{container['name']}: volumes"
        if any("secureValue" not in e for e in container["properties"].get("environmentVariables", [])):
            yield f"{container['name']}: a variable that everybody can read"
    yield from check_ship(template, p)
    if p["imageRegistryCredentials"][0].get("password") or p["imageRegistryCredentials"][0]["identity"] not in group["identity"]["userAssignedIdentities"]:
        yield "gateway: pulls with something else than its identity"


def columns(document):
    return {c["name"]: c["type"] for c in document["variables"]["logColumns"]}


def check_log(document):
    schema = json.loads((ROOT / "docs" / "log.schema.json").read_text())["properties"]
    kinds = {"integer": {"int", "long"}, "boolean": {"boolean"}, "object": {"dynamic"}, "array": {"dynamic"}}
    found = columns(document)
    for name in set(found) ^ set(schema):
        yield f"log: column {name}"
    for name in set(found) & set(schema):
        if found[name] not in kinds.get(schema[name].get("type"), {"string"}):
            yield f"log: {name} is {found[name]}"
    template = arm.Template(document)
    (table,) = [r for r in template.resources().values() if r["type"].endswith("/tables")]
    (rule,) = template.of_type("Microsoft.Insights/dataCollectionRules").values()
    if table["properties"]["schema"]["columns"] != [{"name": "TimeGenerated", "type": "dateTime"}, *template.variable("logColumns")]:
        yield "log: columns of the table"
    if {n: s["columns"] for n, s in rule["properties"]["streamDeclarations"].items()} != {"Custom-CageLog_CL": template.variable("logColumns")}:
        yield "log: columns of the stream"
    (flow,) = rule["properties"]["dataFlows"]
    if not flow["streams"] == ["Custom-CageLog_CL"] == [flow["outputStream"]] or f"Custom-{table['name'].split('/')[1]}" != flow["outputStream"]:
        yield "log: the stream does not end in the table"


# Of Kusto, what the alerts and the cookbook use.
KQL = {"where", "and", "or", "between", "ago", "join", "kind", "leftanti", "leftsemi", "distinct", "project", "on", "startswith", "in", "by", "summarize", "extend", "order", "asc", "desc", "top", "let", "dynamic",
       "arg_min", "arg_max", "count", "sum", "min", "max", "count_distinct", "count_distinctif", "make_set", "array_length", "tostring", "todouble", "todatetime", "isnotempty", "isnotnull",
       "bin", "round", "percentile", "percentiles", "datetime_diff", "ingestion_time", "false", "true", "mv", "expand"}


def check_query(name, query, document):
    """Words that are neither columns nor Kusto's nor made by the query itself, properties and reasons that no line has."""
    schema = json.loads((ROOT / "docs" / "log.schema.json").read_text())
    properties = {*schema["properties"]["ms"]["properties"], *schema["properties"]["findings"]["items"]["properties"]}
    bare = re.sub(r'"[^"]*"|\b\d+(\.\d+)?[a-z]*\b', "", query)
    made = {m for m in re.findall(r"(?<![.$\w])([A-Za-z_]\w*) = ", bare)} | {f"percentile_{n}_{p}" for n, p in re.findall(r"percentiles?\((\w+)[^)]*\b(\d+)", query)}
    made |= {f"percentile_{n}_{p}" for n, ps in re.findall(r"percentiles\((\w+), ([\d, ]+)\)", query) for p in ps.split(", ")}
    for dot, word in set(re.findall(r"(\.?)(\$?[A-Za-z_]\w*)", bare)):
        if word in ("$left", "$right") or (dot and word in properties) or word in {*columns(document), "TimeGenerated", "CageLog_CL"} | (set() if dot else KQL | made):
            continue
        yield f"{name}: {word} is no column"
    for listed in re.findall(r'reason (?:==|startswith|in) \(?((?:"[^"]+"(?:, )?)+)', query):
        for text in re.findall(r'"([^"]+)"', listed):
            if not any(r.startswith(text) for r in schema["$defs"]["reason"]["enum"]):
                yield f"{name}: there is no reason {text}"
    for text in re.findall(r'event (?:==|in) \(?((?:"[^"]+"(?:, )?)+)', query):
        for word in re.findall(r'"([^"]+)"', text):
            if word not in schema["properties"]["event"]["enum"]:
                yield f"{name}: there is no event {word}"


def check_alerts(document):
    known = {*columns(document), "TimeGenerated"}
    queries = []
    for alert in arm.Template(document).of_type("Microsoft.Insights/scheduledQueryRules").values():
        (condition,) = alert["properties"]["criteria"]["allOf"]
        queries.append(condition["query"])
        yield from check_query(alert["name"], condition["query"], document)
        for dimension in condition.get("dimensions", []):
            if dimension["name"] not in known:
                yield f"{alert['name']}: dimension {dimension['name']}"
    for wanted in ("log.unavailable", "leftanti", "secret."):
        if not any(wanted in q for q in queries):
            yield f"no alert for {wanted}"


def cookbook():
    """(heading, query) of docs/azure-logs.md."""
    heading = None
    for match in re.finditer(r"^### ([^\n]*)$|^```kql\n(.*?)^```$", (ROOT / "docs" / "azure-logs.md").read_text(), re.M | re.S):
        heading = match[1] or heading
        if match[2]:
            yield heading, match[2]


def check_cookbook(document):
    queries = list(cookbook())
    if len(queries) < 15:
        yield "the cookbook has fewer queries than it should have"
    for heading, query in queries:
        yield from check_query(heading, query, document)
        if query.count("(") != query.count(")") or query.count('"') % 2 or "CageLog_CL" not in query:
            yield f"{heading}: is no query"


CHECKS = [check_parameters, check_outputs, check_versions, check_names, check_references, check_order, check_roles, check_standby, check_services, check_network,
          check_rules, check_gateway, check_log, check_alerts, check_cookbook]


@pytest.mark.parametrize("check", CHECKS, ids=lambda c: c.__name__)
def test_template(check):
    assert list(check(arm.load())) == []


def test_form():
    document = arm.load()
    assert list(document) == ["$schema", "contentVersion", "parameters", "variables", "resources", "outputs"]
    assert document["$schema"].endswith("/2019-04-01/deploymentTemplate.json#")
    assert document["contentVersion"] == "1.0.0.0"


def test_every_expression_can_be_evaluated():
    """With the gateway and without: no function that this does not know, no variable or parameter that is not there."""
    for deploy in (False, True):
        template = arm.Template(arm.load(), deployGateway=deploy)
        assert len(template.resources()) == len(template.document["resources"]) - len(STANDBY) - (not deploy)
        assert template.value(template.document["outputs"])["proxyUrl"]["value"] == "http://10.60.0.4:8080"


def test_names_are_such_as_azure_takes():
    template = arm.Template(arm.load(), prefix="eightchr")
    (registry,), (vault,) = (template.of_type(k) for k in ("Microsoft.ContainerRegistry/registries", "Microsoft.KeyVault/vaults"))
    assert re.fullmatch(r"[a-z0-9]{5,50}", registry)
    assert re.fullmatch(r"[a-z][a-z0-9-]{2,23}", vault)


def test_readme_has_every_parameter_and_rule():
    text = (INFRA / "azure" / "README.md").read_text()
    document = arm.load()
    missing = [n for n in (*document["parameters"], *document["outputs"]) if f"`{n}`" not in text]
    missing += [r["name"] for x in document["resources"] for r in x.get("properties", {}).get("securityRules", []) if f"`{r['name']}`" not in text]
    assert missing == []


def test_readme_names_outputs_that_are_there():
    text = (INFRA / "azure" / "README.md").read_text()
    named = {name for block in re.findall(r"^```yaml\n(.*?)^```$", text, re.M | re.S) for name in re.findall(r"\$(\w+)", block)}
    assert {"pullIdentityId", "proxyIdentityId", "proxyClientId"} < named and named - {"ID"} <= set(arm.load()["outputs"])


def test_bounds_of_the_intake_are_those_of_the_gateway():
    """An empty default leaves no place for a minLength."""
    limits = (ROOT / "core" / "base" / "limits.h").read_text()
    token = arm.load()["parameters"]["intakeToken"]
    assert token["maxLength"] + 1 == int(re.search(r"define LIMIT_GATEWAY_TOKEN (\d+)", limits).group(1))
    assert f"{re.search('define LIMIT_GATEWAY_TOKEN_MIN ([0-9]+)', limits).group(1)} to {token['maxLength']} characters" in token["metadata"]["description"]
    address = arm.load()["parameters"]["gatewayAddress"]
    assert (address["minLength"], address["maxLength"]) == (len("0.0.0.0"), len("255.255.255.255"))


def test_docs_of_the_log_know_who_ships():
    """The gateway has a container that does, and no page says that there is none."""
    containers = at(arm.load(), "containerGroups")["properties"]["containers"]
    assert [c["properties"]["command"][0] for c in containers if c["name"] == "ship"] == ["/usr/bin/cage-ship"]
    assert "No image has" not in (ROOT / "docs" / "azure-logs.md").read_text()


def at(document, kind, name=""):
    return next(r for r in document["resources"] if r["type"].endswith(kind) and name in r["name"])


MUTATIONS = {
    "a parameter that nobody uses": lambda d: d["parameters"].update(unused={"type": "string", "metadata": {"description": "something that nobody uses"}}),
    "a parameter without a description": lambda d: d["parameters"]["policy"].pop("metadata"),
    "a password in the open": lambda d: d["parameters"].update(adminPassword=d["parameters"].pop("policy")),
    "a secret in the template": lambda d: d["parameters"]["intakeToken"].update(defaultValue="x" * 40),
    "a preview": lambda d: at(d, "/vaults").update(apiVersion="2026-03-01-preview"),
    "another version in a reference": lambda d: at(d, "/vaults").update(apiVersion="2023-07-01"),
    "a name twice": lambda d: at(d, "userAssignedIdentities", "-ship").update(name=at(d, "userAssignedIdentities", "-pull")["name"]),
    "an id of nothing": lambda d: at(d, "natGateways")["properties"]["publicIpAddresses"][0].update(id="[resourceId('Microsoft.Network/publicIPAddresses', 'other')]"),
    "a subnet that is not there": lambda d: at(d, "virtualNetworks")["properties"]["subnets"][2].update(name="way-out"),
    "nothing to wait for": lambda d: at(d, "virtualNetworks").pop("dependsOn"),
    "waiting for itself": lambda d: at(d, "natGateways")["dependsOn"].append("[resourceId('Microsoft.Network/natGateways', format('{0}-nat', parameters('prefix')))]"),
    "a role for the group": lambda d: at(d, "roleAssignments").pop("scope"),
    "Owner": lambda d: at(d, "roleAssignments")["properties"].update(roleDefinitionId="[subscriptionResourceId('Microsoft.Authorization/roleDefinitions', '8e3af657-a8ff-443c-a75c-2fe8c4bcb635')]"),
    "a role for another": lambda d: at(d, "roleAssignments")["properties"].update(principalId=[r for r in d["resources"] if r["type"].endswith("roleAssignments")][1]["properties"]["principalId"]),
    "a role of standby pools for nobody": lambda d: at(d, "roleAssignments", "standbyPool").pop("condition"),
    "a role of standby pools less": lambda d: d["resources"].remove(at(d, "roleAssignments", "standbyPool")),
    "a role of standby pools for the group": lambda d: at(d, "roleAssignments", "virtualNetworks").pop("scope"),
    "Contributor for standby pools": lambda d: at(d, "roleAssignments", "standbyPool")["properties"].update(roleDefinitionId="[subscriptionResourceId('Microsoft.Authorization/roleDefinitions', 'b24988ac-6180-42a0-ab88-20f7382dd24c')]"),
    "a ship that sees the CA": lambda d: at(d, "containerGroups")["properties"]["containers"][2]["properties"]["volumeMounts"][1].update(name="proxy-state"),
    "a ship that could write the log": lambda d: at(d, "containerGroups")["properties"]["containers"][2]["properties"]["volumeMounts"][0].pop("readOnly"),
    "a ship that could write the log of dns": lambda d: at(d, "containerGroups")["properties"]["containers"][2]["properties"]["volumeMounts"][1].pop("readOnly"),
    "a log of dns that is not shipped": lambda d: [at(d, "containerGroups")["properties"]["containers"][2]["properties"]["command"].pop(3) for _ in range(2)],
    "a log of dns that is elsewhere": lambda d: at(d, "containerGroups")["properties"]["containers"][1]["properties"]["command"].__setitem__(6, "/var/lib/cage/dns.jsonl"),
    "a log of dns without a bound": lambda d: [at(d, "containerGroups")["properties"]["containers"][1]["properties"]["command"].pop(7) for _ in range(2)],
    "a dns that could write the proxy's log": lambda d: at(d, "containerGroups")["properties"]["containers"][1]["properties"]["volumeMounts"].append({"name": "log", "mountPath": "/var/log/cage"}),
    "a log that is elsewhere": lambda d: at(d, "containerGroups")["properties"]["containers"][0]["properties"]["volumeMounts"][3].update(mountPath="/var/lib/cage/log"),
    "a ship with the identity of the vault": lambda d: at(d, "containerGroups")["properties"]["containers"][2]["properties"]["environmentVariables"][0].update(secureValue=d["outputs"]["proxyClientId"]["value"]),
    "no purge protection": lambda d: at(d, "/vaults")["properties"].pop("enablePurgeProtection"),
    "a vault for all": lambda d: at(d, "/vaults")["properties"]["networkAcls"].update(defaultAction="Allow"),
    "an admin of the registry": lambda d: at(d, "/registries")["properties"].update(adminUserEnabled=True),
    "no delegation": lambda d: at(d, "virtualNetworks")["properties"]["subnets"][1]["properties"].pop("delegations"),
    "a NAT for agents": lambda d: at(d, "virtualNetworks")["properties"]["subnets"][1]["properties"].update(natGateway=at(d, "virtualNetworks")["properties"]["subnets"][2]["properties"]["natGateway"]),
    "a way out by default": lambda d: at(d, "virtualNetworks")["properties"]["subnets"][1]["properties"].update(defaultOutboundAccess=True),
    "a route out": lambda d: at(d, "routeTables")["properties"]["routes"][0]["properties"].update(nextHopType="Internet"),
    "no routes": lambda d: at(d, "virtualNetworks")["properties"]["subnets"][1]["properties"].pop("routeTable"),
    "two rules of one priority": lambda d: at(d, "networkSecurityGroups")["properties"]["securityRules"][1]["properties"].update(priority=100),
    "the gateway beside the agents": lambda d: at(d, "containerGroups")["properties"]["subnetIds"][0].update(id=d["outputs"]["lockedSubnetId"]["value"]),
    "a front that rules lead to": lambda d: at(d, "containerGroups")["properties"]["containers"][0]["properties"]["command"].pop(),
    "a port less": lambda d: at(d, "loadBalancers")["properties"]["loadBalancingRules"].pop(),
    "a port of Azure": lambda d: d["parameters"]["dnsPort"].update(defaultValue=1026),
    "a column less": lambda d: d["variables"]["logColumns"].pop(),
    "a column of another type": lambda d: d["variables"]["logColumns"][2].update(type="string"),
    "a stream of another name": lambda d: at(d, "dataCollectionRules")["properties"]["dataFlows"][0].update(outputStream="Custom-Cage_CL"),
    "a query for what is not there": lambda d: at(d, "scheduledQueryRules")["properties"]["criteria"]["allOf"][0].update(query="CageLog_CL | where cause == 1"),
    "a reason that is not there": lambda d: at(d, "scheduledQueryRules")["properties"]["criteria"]["allOf"][0].update(query='CageLog_CL | where reason == "log.unavailble"'),
    "keys in outputs": lambda d: d["outputs"]["vaultUri"].update(value="[listKeys(resourceId('Microsoft.KeyVault/vaults', 'x'), '2024-11-01').key]"),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_what_is_broken_is_noticed(name):
    document = arm.load()
    MUTATIONS[name](document)
    found = []
    for check in CHECKS:
        try:
            found += check(document)
        except (KeyError, ValueError, StopIteration, expression.Broken) as e:
            found.append(repr(e))
    assert found, name


@pytest.mark.parametrize("query, what", [
    ("CageLog_CL | where cause == 1", "cause"), ('CageLog_CL | where reason in ("limit.budget", "limit.bugdet")', "limit.bugdet"), ("CageLog_CL | extend x = todouble(ms.sum)", "sum"),
    ('CageLog_CL | where event == "requests"', "requests"), ("CageLog_CL | sumarize count() by hash", "sumarize"), ("CageLog_CL | where x.host == 1", "x"), ("CageLog | count", "CageLog")])
def test_what_is_wrong_in_a_query_is_noticed(query, what):
    assert any(what in found for found in check_query("q", query, arm.load()))
