"""The whole body of a group, held against a file for each topology (golden/): what changes in it is seen, and has to be wanted. Of what is random there
stands what it is. CAGE_GOLDEN=1 writes the files anew, to be read before they are kept: for each value, who may see it, and who needs it."""
import base64
import json
import os
import re
import socket

import pytest
from cagelib.aci import Aci
from cagelib.arm import SUBSCRIPTION, Arm, Script
from cagelib.gateway import SUBNET, Gateway
from cagelib.proxy import policy, wait_until
from cagelib.wire import Wire
from test_aci_split import FIRST, Intake
from test_gateway import origin, shared  # noqa: F401 (fixtures)

IDENTITY = "/subscriptions/%s/resourceGroups/net/providers/Microsoft.ManagedIdentity/userAssignedIdentities/" % SUBSCRIPTION
RULES = policy(rules=[{"id": "api", "hosts": ["api.test"], "secrets": ["key", "far"]}],
               secrets=[{"id": "key", "from": {"env": "API_KEY"}, "placeholder": "{{API_KEY}}"},
                        {"id": "far", "from": {"keyvault": "https://v.vault.azure.net/secrets/key/0123456789abcdef0123456789abcdef"}, "placeholder": "{{FAR_KEY}}"}])
ALL = ("--sku", "Confidential", "--subnet", SUBNET, "--identity", IDENTITY + "pull", "--identity", IDENTITY + "vault", "--identity-client", "c11e0000",
       "--registry", "r.azurecr.io", "--vault-secrets", "reference")
KINDS = {"group": ((), {}), "group-all": (ALL, {"rules": RULES, "env": {"API_KEY": "sk-real-value-of-the-key"}, "run": ("--out", "123456")}),
         "split": (("--gateway-dns", "10.60.0.4:53"), {})}


def without_chance(body, text_of_policy):
    """With words in the place of what is not the same each time."""
    for volume in body["properties"]["volumes"]:
        for name, value in volume.get("secret", {}).items():
            data = base64.b64decode(value)
            if name == "policy.yaml":
                assert data.decode() == text_of_policy
            else:
                assert len(data) == 32 and len(set(data)) > 8
            volume["secret"][name] = "<base64 of %s>" % (name if name == "policy.yaml" else "32 random bytes")
    return json.loads(re.sub(r"//box:[A-Za-z0-9_-]{43}@", "//box:<random token>@", json.dumps(body)))


@pytest.mark.parametrize("kind", KINDS)
def test_the_body_of_a_group(tmp_path, pki, kind):
    def answer(method, _):
        if method == "PUT":
            return 201, {}, json.dumps({"id": "box", "env": {"API_KEY": "{{API_KEY}}"}, "log": FIRST})
        return (204, {}, "") if method == "DELETE" else (200, {"Cage-Log-Next": FIRST}, "")
    options, more = KINDS[kind]
    with Intake(pki, answer) as intake, Arm() as arm:
        if kind == "split":
            options, more = (*intake.words, *options), {"env": Gateway.aci_env(), "rules": RULES}
        with Aci(arm, tmp_path, *options, **more) as aci:
            assert aci.put("a", b"b")[2] == "exit 0" if kind == "group-all" else True
            assert aci.run("agent", "--flag")[2] == "exit 0" and aci.end() == 0, aci.text()
        bodies = [t["liveRequest"]["body"] for t in arm.traffic if t["liveRequest"]["method"] == "PUT"]
    assert len(bodies) == 1
    files = [v["secret"].pop("files") for v in bodies[0]["properties"]["volumes"] if v["name"] == "files"]
    assert [b"a" in base64.b64decode(f) for f in files] == [True] * (kind == "group-all")
    body = without_chance(bodies[0], (tmp_path / "policy.yaml").read_text())
    path = os.path.join(os.path.dirname(__file__), "golden", "aci-%s.json" % kind)
    if os.environ.get("CAGE_GOLDEN"):
        with open(path, "w", encoding="utf-8") as f:
            f.write(json.dumps(body, indent=1, sort_keys=True) + "\n")
    with open(path, encoding="utf-8") as f:
        assert body == json.load(f)


# ---- an address that changes

LINES = [(0.02 * i, "line %d" % i) for i in range(40)]


def test_a_group_that_has_another_address(tmp_path):
    """Azure has started its helpers anew, twice: nothing of ours leads to the address of a group, so the run goes on and all logs are taken."""
    decision = '{"schema":"cage.log/1","seq":%d}'
    others = {name: [(0.02 * i, decision % i) for i in range(40)] for name in ("proxy", "dns")}
    with Arm(script=lambda body: Script(LINES, 1, 3, others=others, moves=(0.3, 0.6))) as arm, Aci(arm, tmp_path) as aci:
        assert aci.run("true") == ("".join(text + "\n" for _, text in LINES).encode(), b"", "exit 3") and aci.end() == 0, aci.text()
        seen = {t["liveResponse"]["body"].get("properties", {}).get("ipAddress", {}).get("ip") for t in arm.traffic}
        assert {"10.60.0.4", "10.60.0.5", "10.60.0.6"} <= seen and [g.puts for g in arm.gone] == [1]
        assert not [p for _, p in arm.asked if "10.60.0." in p] and "10.60.0." not in aci.text()
    for name in ("log.jsonl", "log.jsonl.dns"):
        assert (tmp_path / name).read_text() == "".join(decision % i + "\n" for i in range(40))


def test_an_identity_is_not_an_address(tmp_path, shared, origin):
    """Of a gateway too: who has the token is the sandbox, wherever he comes from, and his decisions are in its log."""
    rules = policy({"id": "web", "hosts": ["a.test"], "ports": [80]}, pins={"a.test": origin.pin})
    with Arm(script=lambda body: Script(LINES, 1000, moves=(0.1,))) as arm, Aci(arm, tmp_path, *shared.aci_words(), env=shared.aci_env(), rules=rules) as aci:
        aci.send(b"R", 1, b"\0true\0")
        wait_until(lambda: arm.groups, 20, "it is not made")
        variables = next(c["properties"]["environmentVariables"] for c in arm.groups["cage-box"].body["properties"]["containers"] if c["name"] == "agent")
        user = re.match(r"http://([^@]+)@", next(v["secureValue"] for v in variables if v["name"] == "HTTP_PROXY"))[1]
        who = "Basic " + base64.b64encode(user.encode()).decode()
        for number in (2, 3):
            with Wire(socket.create_connection((shared.host, shared.proxy_port), 10, ("127.0.0.%d" % number, 0))) as wire:
                url = "http://a.test/from-%d" % number
                assert wire.exchange("GET", url, [("Host", "a.test"), ("Proxy-Authorization", who), ("Connection", "close")]).status == 200
            wait_until(lambda: "/from-%d" % number in (tmp_path / "log.jsonl").read_text(), 20, "no line")
        assert aci.end() == 1 and not arm.groups
