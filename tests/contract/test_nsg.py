"""Who may talk to whom in infra/azure: the rules of main.json, put to packets. The rules are read as Azure documents them
(contractlib/nsg.py); that Azure does what it documents is what only a subscription can tell."""
import re

import pytest
from contractlib import arm, nsg

AGENT, OTHER_AGENT, GATEWAY, FRONT = "10.60.1.4", "10.60.1.9", "10.60.2.4", "10.60.0.4"
PEERED, WORLD = "10.99.0.1", "203.0.113.9"
ORCHESTRATOR = "10.60.3.4"
WEB = "93.184.215.14"  # an address of the Internet; those for documentation count as reserved

# (subnet, direction, protocol, from, to, port): access
TABLE = [
    ("locked", "Outbound", "Tcp", AGENT, FRONT, 8080, "Allow"),
    ("locked", "Outbound", "Tcp", AGENT, FRONT, 53, "Allow"),
    ("locked", "Outbound", "Udp", AGENT, FRONT, 53, "Allow"),
    ("locked", "Outbound", "Udp", AGENT, FRONT, 8080, "Deny"),
    ("locked", "Outbound", "Tcp", AGENT, FRONT, 8081, "Deny"),
    ("locked", "Outbound", "Tcp", AGENT, FRONT, 443, "Deny"),
    ("locked", "Outbound", "Tcp", AGENT, FRONT, 8443, "Deny"),
    ("locked", "Outbound", "Tcp", AGENT, GATEWAY, 8443, "Deny"),
    ("locked", "Outbound", "Tcp", AGENT, "10.60.0.5", 8080, "Deny"),
    ("locked", "Outbound", "Tcp", AGENT, GATEWAY, 8080, "Deny"),
    ("locked", "Outbound", "Tcp", AGENT, GATEWAY, 5300, "Deny"),
    ("locked", "Outbound", "Tcp", AGENT, GATEWAY, 19390, "Deny"),
    ("locked", "Outbound", "Tcp", AGENT, OTHER_AGENT, 8080, "Deny"),
    ("locked", "Outbound", "Tcp", AGENT, OTHER_AGENT, 19390, "Deny"),
    ("locked", "Outbound", "Udp", AGENT, OTHER_AGENT, 53, "Deny"),
    ("locked", "Outbound", "Tcp", AGENT, PEERED, 443, "Deny"),
    ("locked", "Outbound", "Tcp", AGENT, WEB, 443, "Deny"),
    ("locked", "Outbound", "Tcp", AGENT, WEB, 80, "Deny"),
    ("locked", "Outbound", "Udp", AGENT, WEB, 53, "Deny"),
    ("locked", "Outbound", "Udp", AGENT, WEB, 443, "Deny"),
    ("locked", "Outbound", "Tcp", AGENT, "1.1.1.1", 853, "Deny"),
    ("locked", "Outbound", "Icmp", AGENT, WEB, 0, "Deny"),
    ("locked", "Outbound", "Udp", AGENT, nsg.HOST, 53, "Deny"),
    ("locked", "Outbound", "Tcp", AGENT, nsg.HOST, 53, "Deny"),
    ("locked", "Outbound", "Tcp", AGENT, nsg.METADATA, 80, "Deny"),
    ("locked", "Outbound", "Tcp", AGENT, nsg.LICENCES, 1688, "Deny"),
    ("locked", "Inbound", "Tcp", WORLD, AGENT, 19390, "Allow"),
    ("locked", "Inbound", "Tcp", WORLD, AGENT, 22, "Deny"),
    ("locked", "Inbound", "Udp", WORLD, AGENT, 19390, "Deny"),
    ("locked", "Inbound", "Tcp", GATEWAY, AGENT, 8080, "Deny"),
    ("locked", "Inbound", "Tcp", OTHER_AGENT, AGENT, 8080, "Deny"),
    ("locked", "Inbound", "Tcp", nsg.HOST, AGENT, 8080, "Deny"),
    ("egress", "Outbound", "Tcp", GATEWAY, WEB, 443, "Allow"),
    ("egress", "Outbound", "Tcp", GATEWAY, WEB, 80, "Allow"),
    ("egress", "Outbound", "Tcp", GATEWAY, WEB, 22, "Deny"),
    ("egress", "Outbound", "Tcp", GATEWAY, WEB, 25, "Deny"),
    ("egress", "Outbound", "Udp", GATEWAY, WEB, 443, "Deny"),
    ("egress", "Outbound", "Udp", GATEWAY, WEB, 53, "Deny"),
    ("egress", "Outbound", "Tcp", GATEWAY, AGENT, 443, "Deny"),
    ("egress", "Outbound", "Tcp", GATEWAY, FRONT, 8080, "Deny"),
    ("egress", "Outbound", "Tcp", GATEWAY, PEERED, 443, "Deny"),
    ("egress", "Outbound", "Udp", GATEWAY, nsg.HOST, 53, "Allow"),
    ("egress", "Outbound", "Tcp", GATEWAY, nsg.METADATA, 80, "Allow"),
    ("egress", "Outbound", "Tcp", GATEWAY, nsg.LICENCES, 1688, "Deny"),
    ("egress", "Inbound", "Tcp", AGENT, GATEWAY, 8080, "Allow"),
    ("egress", "Inbound", "Tcp", AGENT, GATEWAY, 5300, "Allow"),
    ("egress", "Inbound", "Udp", AGENT, GATEWAY, 5300, "Allow"),
    ("egress", "Inbound", "Tcp", ORCHESTRATOR, GATEWAY, 8443, "Allow"),
    ("egress", "Inbound", "Tcp", ORCHESTRATOR, GATEWAY, 8080, "Deny"),
    ("egress", "Inbound", "Udp", ORCHESTRATOR, GATEWAY, 8443, "Deny"),
    ("egress", "Inbound", "Tcp", AGENT, GATEWAY, 8443, "Deny"),
    ("egress", "Inbound", "Tcp", PEERED, GATEWAY, 8443, "Deny"),
    ("egress", "Inbound", "Tcp", WORLD, GATEWAY, 8443, "Deny"),
    ("egress", "Inbound", "Tcp", AGENT, GATEWAY, 8081, "Deny"),
    ("egress", "Inbound", "Tcp", AGENT, GATEWAY, 8082, "Deny"),
    ("egress", "Inbound", "Udp", AGENT, GATEWAY, 8080, "Deny"),
    ("egress", "Inbound", "Tcp", GATEWAY, "10.60.2.5", 8080, "Deny"),
    ("egress", "Inbound", "Tcp", PEERED, GATEWAY, 8080, "Deny"),
    ("egress", "Inbound", "Tcp", WORLD, GATEWAY, 8080, "Deny"),
    ("egress", "Inbound", "Tcp", WORLD, GATEWAY, 19390, "Allow"),
    ("egress", "Inbound", "Tcp", nsg.HOST, GATEWAY, 8080, "Allow"),
    ("egress", "Inbound", "Tcp", nsg.HOST, GATEWAY, 5300, "Allow"),
    ("egress", "Inbound", "Tcp", nsg.HOST, GATEWAY, 8081, "Deny"),
    ("frontend", "Outbound", "Tcp", FRONT, WEB, 443, "Deny"),
    ("frontend", "Outbound", "Tcp", FRONT, AGENT, 443, "Deny"),
    ("frontend", "Inbound", "Tcp", AGENT, "10.60.0.5", 8080, "Deny"),
    ("frontend", "Inbound", "Tcp", nsg.HOST, "10.60.0.5", 8080, "Deny"),
]


def wrong(document, **given):
    """The packets of the table about which the rules say something else."""
    subnets = nsg.subnets(arm.Template(document, **given))
    return [row for row in TABLE if subnets[row[0]].decide(*row[1:6])[0] != row[6]]


@pytest.mark.parametrize("row", TABLE, ids=lambda r: "-".join(str(x) for x in r))
def test_packet(row):
    subnet, *packet, access = row
    assert nsg.subnets(arm.Template(arm.load()))[subnet].decide(*packet)[0] == access


def test_what_rules_can_not_close():
    """The host's own channel to its guests has no tag. The gate closes it; README.md says so."""
    locked = nsg.subnets(arm.Template(arm.load()))["locked"]
    assert locked.decide("Outbound", "Tcp", AGENT, nsg.HOST, 80) == ("Allow", nsg.UNFILTERED)
    assert locked.decide("Outbound", "Tcp", AGENT, nsg.HOST, 32526) == ("Allow", nsg.UNFILTERED)


def test_no_packet_gets_as_far_as_the_default_rules():
    for name, subnet in nsg.subnets(arm.Template(arm.load())).items():
        for direction, source, destination in (("Outbound", AGENT, WEB), ("Outbound", AGENT, GATEWAY), ("Inbound", GATEWAY, AGENT), ("Inbound", WORLD, AGENT)):
            for protocol in ("Tcp", "Udp", "Icmp"):
                rule = subnet.decide(direction, protocol, source, destination, 1)[1]
                assert rule not in {r["name"] for r in nsg.DEFAULTS}, name


def test_ports_are_parameters():
    subnets = nsg.subnets(arm.Template(arm.load(), egressPorts=["443"], dnsPort=5353))
    assert subnets["egress"].decide("Outbound", "Tcp", GATEWAY, WEB, 80)[0] == "Deny"
    assert subnets["egress"].decide("Inbound", "Udp", AGENT, GATEWAY, 5353)[0] == "Allow"
    assert subnets["egress"].decide("Inbound", "Udp", AGENT, GATEWAY, 5300)[0] == "Deny"
    assert subnets["locked"].decide("Outbound", "Udp", AGENT, FRONT, 53)[0] == "Allow"


def rules():
    for resource in arm.load()["resources"]:
        for rule in resource.get("properties", {}).get("securityRules", []):
            yield resource["name"], rule["name"]


def place(group, name):
    return re.search(r"-(\w+)'", group)[1], name


# The last of its kind, behind rules by name that say the same: what it catches has none of their tags.
SECOND_WALLS = {("locked", "no-network"), ("locked", "no-internet"), ("egress", "no-network"), ("locked", "nothing-else-out")}


@pytest.mark.parametrize("group, name", rules())
def test_a_rule_that_is_removed_is_missed(group, name):
    document = arm.load()
    (resource,) = [r for r in document["resources"] if r["name"] == group and "securityRules" in r.get("properties", {})]
    listed = resource["properties"]["securityRules"]
    listed[:] = [r for r in listed if r["name"] != name]
    assert bool(wrong(document)) == (place(group, name) not in SECOND_WALLS)


def test_both_walls_to_the_network_removed_are_missed():
    for where, names in (("locked", {"no-network", "nothing-else-out"}), ("locked", {"no-internet", "nothing-else-out", "no-network"}), ("egress", {"no-network", "nothing-else-out"})):
        document = arm.load()
        for resource in document["resources"]:
            if f"-{where}'" in resource["name"] and "securityRules" in resource.get("properties", {}):
                listed = resource["properties"]["securityRules"]
                listed[:] = [r for r in listed if r["name"] not in names]
        assert wrong(document), names


# In `locked` the default route makes every address one of the network: no-network decides before them.
BEHIND_NO_NETWORK = {("locked", "no-internet"), ("locked", "nothing-else-out")}


@pytest.mark.parametrize("key, value, unseen", [("access", "Allow", BEHIND_NO_NETWORK), ("direction", "Inbound", SECOND_WALLS)])
def test_a_rule_that_is_turned_round_is_missed(key, value, unseen):
    for group, name in rules():
        document = arm.load()
        for resource in document["resources"]:
            for rule in resource.get("properties", {}).get("securityRules", []):
                if (resource["name"], rule["name"]) == (group, name) and rule["properties"][key] != value:
                    rule["properties"][key] = value
                    assert bool(wrong(document)) == (place(group, name) not in unseen), (group, name)
