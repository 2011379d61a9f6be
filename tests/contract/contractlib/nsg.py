"""Which rule of a network security group decides about a packet, as Azure documents it: the first that matches by priority,
the default rules last. The services of the host (168.63.129.16, 169.254.169.254) are no matter of rules unless a rule
names the tag of the service; what has no tag can't be closed by rules at all (docs: "What is IP address 168.63.129.16")."""
import ipaddress

HOST = "168.63.129.16"
METADATA = "169.254.169.254"
LICENCES = "23.102.135.246"
# (address, ports): what the tag is about.
PLATFORM = {"AzurePlatformDNS": (HOST, {53}), "AzurePlatformIMDS": (METADATA, {80}), "AzurePlatformLKM": (LICENCES, {1688})}
UNFILTERED = "unfiltered"


def default(name, direction, priority, access, source="*", destination="*"):
    return {"name": name, "properties": {
        "direction": direction, "priority": priority, "access": access, "protocol": "*", "sourcePortRange": "*", "destinationPortRange": "*",
        "sourceAddressPrefix": source, "destinationAddressPrefix": destination}}


DEFAULTS = [
    default("AllowVnetInBound", "Inbound", 65000, "Allow", "VirtualNetwork", "VirtualNetwork"),
    default("AllowAzureLoadBalancerInBound", "Inbound", 65001, "Allow", source="AzureLoadBalancer"),
    default("DenyAllInBound", "Inbound", 65500, "Deny"),
    default("AllowVnetOutBound", "Outbound", 65000, "Allow", "VirtualNetwork", "VirtualNetwork"),
    default("AllowInternetOutBound", "Outbound", 65001, "Allow", destination="Internet"),
    default("DenyAllOutBound", "Outbound", 65500, "Deny"),
]


class Subnet:
    """One of the network, with its rules. `routes`: what of its route table counts as VirtualNetwork."""

    def __init__(self, network, rules, routes=()):
        self.network = [ipaddress.ip_network(n) for n in (*network, *routes)]
        self.space = [ipaddress.ip_network(n) for n in network]
        self.rules = sorted(rules + DEFAULTS, key=lambda r: (r["properties"]["direction"], r["properties"]["priority"]))

    def is_in(self, prefix, address, port):
        where = ipaddress.ip_address(address)
        if prefix == "*":
            return True
        if prefix == "VirtualNetwork":
            return any(where in n for n in self.network)
        if prefix == "Internet":
            return where.is_global and not any(where in n for n in self.space)
        if prefix == "AzureLoadBalancer":
            return address == HOST
        if prefix in PLATFORM:
            return (address, port in PLATFORM[prefix][1]) == (PLATFORM[prefix][0], True)
        return where in ipaddress.ip_network(prefix)

    def matches(self, rule, direction, protocol, source, destination, port):
        p = rule["properties"]
        prefixes = lambda side: p.get(f"{side}AddressPrefixes") or [p[f"{side}AddressPrefix"]]  # noqa: E731
        return (p["direction"] == direction and p["protocol"] in ("*", protocol)
                and any(self.is_in(x, source, None) for x in prefixes("source"))
                and any(self.is_in(x, destination, port) for x in prefixes("destination"))
                and any(in_range(x, port) for x in p.get("destinationPortRanges") or [p["destinationPortRange"]]))

    def decide(self, direction, protocol, source, destination, port):
        """("Allow" or "Deny", name of the rule)."""
        of_host = direction == "Outbound" and destination in (HOST, METADATA, LICENCES)
        for rule in self.rules:
            if of_host and rule["properties"]["destinationAddressPrefix"] not in PLATFORM:
                continue
            if self.matches(rule, direction, protocol, source, destination, port):
                return rule["properties"]["access"], rule["name"]
        return "Allow", UNFILTERED


def in_range(text, port):
    if text == "*":
        return True
    low, _, high = text.partition("-")
    return int(low) <= port <= int(high or low)


def subnets(template):
    """{name: Subnet} of the network of an evaluated template."""
    (network,) = template.of_type("Microsoft.Network/virtualNetworks").values()
    groups = template.resources()
    space = network["properties"]["addressSpace"]["addressPrefixes"]
    found = {}
    for subnet in network["properties"]["subnets"]:
        p = subnet["properties"]
        rules = groups[p["networkSecurityGroup"]["id"]]["properties"]["securityRules"]
        routes = groups[p["routeTable"]["id"]]["properties"]["routes"] if "routeTable" in p else []
        found[subnet["name"]] = Subnet(space, rules, [r["properties"]["addressPrefix"] for r in routes])
    return found
