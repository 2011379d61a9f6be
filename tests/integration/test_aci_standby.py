"""Standby pools: what their groups are made of, how one is taken, that none is used twice or shows a secret, and what happens without one."""
import base64
import json
import os
import re
import subprocess
import threading
import time

import pytest
from cagelib.aci import IMAGES, Aci, small
from cagelib.arm import Arm, Script, trouble
from cagelib.arm_standby import Standby
from cagelib.given import Given
from cagelib.proxy import binary, policy, wait_until
from cagelib.service import Service
from test_aci import LINES, SPEC, SUBSCRIPTION, config_of, container, lines

LIMITS = "mem=1G,cpu=1"
NETWORK = "/subscriptions/%s/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/v/subnets/locked" % SUBSCRIPTION
IDENTITY = "/subscriptions/%s/resourceGroups/net/providers/Microsoft.ManagedIdentity/userAssignedIdentities/i" % SUBSCRIPTION
BY_VALUE = policy({"id": "api", "hosts": ["api.test"], "secrets": ["key"]}, secrets=[{"id": "key", "from": {"env": "API_KEY"}}])
BY_VAULT = policy({"id": "api", "hosts": ["api.test"], "secrets": ["key"]},
                  secrets=[{"id": "key", "from": {"keyvault": "https://demo.vault.azure.net/secrets/key"}}])


def words_of(arm, *words, options=(), images=IMAGES):
    """(code, lines of stdout, stderr)"""
    line = [small(), *arm.words("--state", "test", "--region", "westeurope", *images), *options, *words]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, env={**os.environ, **arm.env()}, check=False)
    return done.returncode, done.stdout.split("\n")[:-1], done.stderr


def make(arm, *wanted, **more):
    code, names, err = words_of(arm, "pools", *(wanted or ("2:" + LIMITS,)), **more)
    assert code == 0, err
    return names


def standby(names, limits=LIMITS):
    """Options of a run that may take one of these."""
    return {"options": [w for n in names for w in ("--standby", n)], "run": ["--limit", limits]}


def run(arm, where, names, *command, options=(), **more):
    given = standby(names)
    with Aci(arm, where, *given["options"], *options, run=given["run"], **more) as aci:
        answer = aci.run(*(command or ("true",)))
        assert aci.end() == 0, aci.text()
        return answer, aci.text()


def puts(arm, part):
    return [p for m, p in arm.asked if m == "PUT" and part in p]


def maps(group):
    return {c["name"]: Given(c["properties"]["configMap"]["keyValuePairs"]["run"]) for c in group.body["properties"]["containers"]}


# ---- pools

def test_pools_are_made_kept_changed_and_removed(tmp_path):
    with Arm() as arm:
        (name,) = make(arm, options=["--subnet", NETWORK])
        pool, profile = arm.standby.pools[name], arm.standby.profiles[name]
        assert pool.body["properties"] == {
            "elasticityProfile": {"maxReadyCapacity": 2, "refillPolicy": "always"},
            "containerGroupProperties": {"containerGroupProfile": {"id": profile["id"], "revision": 1}, "subnetIds": [{"id": NETWORK}]}}
        assert pool.body["location"] == profile["location"] == "westeurope" and pool.body["tags"] == profile["tags"] == {"cage.state": "test"}
        assert make(arm, options=["--subnet", NETWORK]) == [name] and len(puts(arm, "/cage-")) == 2, "once more is not the same"
        assert make(arm, "5:" + LIMITS, options=["--subnet", NETWORK]) == [name] and pool.capacity == 5 and len(puts(arm, "/cage-")) == 3
        assert make(arm, "1:" + LIMITS, "1:" + LIMITS, options=["--subnet", NETWORK]) == [name] and pool.capacity == 2
        assert words_of(arm, "pool-show")[:2] == (0, [name + " running=2 creating=0 deleting=0 health=healthy"])
        others = make(arm, "1:" + LIMITS, "3:mem=2G,cpu=2")
        assert len(set(others)) == 2 and name not in others and set(arm.standby.pools) == set(arm.standby.profiles) == set(others)
        assert all(p["properties"]["revision"] == 1 for p in arm.standby.profiles.values())
        with_other_image = make(arm, "1:" + LIMITS, images=[*IMAGES[:1], IMAGES[1].replace("a" * 64, "e" * 64), *IMAGES[2:]])
        assert with_other_image[0] not in others
        assert words_of(arm, "pools", options=["--state", "another"])[0] == 0 and list(arm.standby.pools) == with_other_image
        assert words_of(arm, "pools")[:2] == (0, []) and not arm.standby.pools and not arm.standby.profiles


@pytest.mark.parametrize("word", ["429", "503", "500", "drop", "lose", "401"])
@pytest.mark.parametrize("method, ending", [("PUT", "Pools/NAME"), ("PUT", "Profiles/NAME"), ("GET", "containerGroupProfiles"), ("GET", "Pools/NAME"), ("DELETE", "Pools/NAME")])
def test_trouble_with_pools(tmp_path, word, method, ending):
    """Sooner or later, by the next run at the latest, it is as it should be, and no profile was sent twice."""
    with Arm() as arm:
        (name,) = make(arm)
        words_of(arm, "pools")
        arm.trouble = trouble((method, ending.replace("NAME", name), (1,), word))
        for wanted in (["1:" + LIMITS], []):
            if words_of(arm, "pools", *wanted)[0] != 0:
                assert words_of(arm, "pools", *wanted)[0] == 0
            assert len(arm.standby.pools) == len(arm.standby.profiles) == len(wanted)
            assert all(p["properties"]["revision"] == 1 for p in arm.standby.profiles.values())


def test_nothing_of_a_run_is_in_a_profile(tmp_path):
    """Each container waits, with the program that its command begins with; no volume, variable or tag says anything."""
    with Arm() as arm:
        (name,) = make(arm, options=["--identity", IDENTITY, "--registry", "r.azurecr.io", "--map-dir", "/maps"])
        body = arm.standby.profiles[name]
    assert "identity" not in body and body["properties"]["imageRegistryCredentials"] == [{"server": "r.azurecr.io", "identity": IDENTITY}]
    for ident, first in (("agent", "/cage/cage-gate"), ("proxy", "cage-proxy"), ("dns", "cage-dns")):
        one = container(body, ident)
        assert one["command"] == ["/cage/cage-inside", "--await", "/maps/%s/run" % ident, "--", first] and one["environmentVariables"] == [] and "configMap" not in one
        assert [m["readOnly"] for m in one["volumeMounts"] if m["name"] == "tools"] == [True]
    assert all(v["emptyDir"] == {} and set(v) == {"name", "emptyDir"} for v in body["properties"]["volumes"])
    assert {m["name"] for m in container(body, "agent")["volumeMounts"]} == {"tools", "workspace", "used"}, "the agent has what is the proxy's"
    assert body["properties"]["restartPolicy"] == "Never"


@pytest.mark.parametrize("wanted, options, why", [
    (["x"], [], "expected N:LIMITS"), (["1"], [], "expected N:LIMITS"), (["100000:mem=1G"], [], "expected N:LIMITS"), (["1:mem=x"], [], "mem"),
    (["1:mem=1G"], ["--sku", "Confidential"], "confidential"), (["1:mem=1G"], ["--topology", "split", "--gateway", "10.0.0.4:8080"], "split"),
    (["1:mem=1G"], ["--map-dir", "maps"], "--map-dir")])
def test_wrong_wishes(tmp_path, wanted, options, why):
    with Arm() as arm:
        code, names, err = words_of(arm, "pools", *wanted, options=options)
        assert code == 2 and names == [] and why in err and not arm.asked


# ---- taking

@pytest.mark.parametrize("style", ["async", "location", "none"])
def test_one_is_taken(tmp_path, style):
    """By one PUT, without a look at quotas; what stood and what is asked for are just what a group of its own would be."""
    command = ("sh", "-c", "exit 7\n# 'quoted'")
    more = {"options": ["--identity", IDENTITY, "--subnet", NETWORK], "rules": BY_VAULT}
    own = ("--env", "MINE=a b")
    with Arm(style, script=lambda body: Script(LINES, 0.3, 7)) as arm:
        names = make(arm, options=more["options"])
        given = standby(names)
        for where, options in (("warm", [*given["options"], *more["options"]]), ("cold", more["options"])):
            with Aci(arm, tmp_path / where, *options, run=[*given["run"], *own, "--ca-dir", str(tmp_path / "ca")], rules=BY_VAULT) as aci:
                assert aci.run(*command) == (lines(), b"", "exit 7") and aci.end() == 0, aci.text()
        warm, cold = arm.gone
        assert arm.standby.taken == [("cage-box", 1)] and not arm.groups and warm.puts == cold.puts == 1
        assert [p for _, p in arm.asked if "usages" in p] and not any("usages" in p for _, p in arm.asked[:[m for m, _ in arm.asked].index("DELETE")])
    assert warm.body["tags"] == cold.body["tags"] and warm.body["identity"] == cold.body["identity"] and warm.body["properties"]["isCreatedFromStandbyPool"]
    assert warm.body["properties"]["standbyPoolProfile"]["id"].endswith("/Microsoft.StandbyPool/standbyContainerGroupPools/" + names[0])
    for name, its in maps(warm).items():
        one, stood = container(cold.body, name), container(warm.body, name)
        assert [stood["command"][-1], *its.words] == one["command"] and stood["resources"] == one["resources"] and stood["image"] == one["image"]
        assert its.variables == {v["name"]: v["value"] for v in one["environmentVariables"]}
        secret = {v["name"]: v["secret"] for v in cold.body["properties"]["volumes"] if "secret" in v}
        files = {"%s/%s" % (m["mountPath"], f): base64.b64decode(text) for m in one["volumeMounts"] if m["name"] in secret for f, text in secret[m["name"]].items()}
        fingerprint = files.pop("/run/cage/keys/fingerprint.key", None)
        assert its.files == files and its.keys == (["/run/cage/keys/fingerprint.key"] if fingerprint else [])
        assert not fingerprint or base64.b64encode(fingerprint).decode() not in json.dumps(warm.body)


def test_none_is_used_twice(tmp_path):
    """Many at once from a pool of three, which fills up while they ask."""
    with Arm(script=lambda body: Script(LINES, 0.2), standby=Standby(fill_takes=0.1)) as arm:
        names = make(arm, "3:" + LIMITS)
        given, failed = standby(names), []

        def one(number):
            with Aci(arm, tmp_path / str(number), *given["options"], run=given["run"], ident="box%d" % number) as aci:
                if aci.run("echo", str(number))[2] != "exit 0" or aci.end() != 0:
                    failed.append(aci.text())

        for at in range(0, 24, 8):
            threads = [threading.Thread(target=one, args=(n,)) for n in range(at, at + 8)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        assert not failed and not arm.groups
        assert sorted(n for n, _ in arm.standby.taken) == sorted("cage-box%d" % n for n in range(24))
        stood = [number for _, number in arm.standby.taken if number]
        assert len(stood) == len(set(stood)) >= 3 and all(g.puts == 1 for g in arm.gone)
        assert {maps(g)["agent"].words[-1] for g in arm.gone} == {str(n) for n in range(24)}


def test_an_empty_pool(tmp_path):
    """Azure makes one of the same profile: it is asked for once, and runs as those that stood do."""
    with Arm(script=lambda body: Script(LINES, 0.3), standby=Standby(fill_takes=1000)) as arm:
        answer, _ = run(arm, tmp_path, make(arm))
        assert answer == (lines(), b"", "exit 0") and arm.standby.taken == [("cage-box", None)] and len(arm.gone) == 1 and arm.gone[0].puts == 1


@pytest.mark.parametrize("word", ["429", "503", "500", "drop", "lose", "401"])
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
def test_trouble_while_one_is_taken(tmp_path, word, method):
    with Arm(trouble=trouble((method, "/containerGroups/cage-box", (1,) if word == "401" else (1, 2), word)), script=lambda body: Script(LINES, 0.3)) as arm:
        assert run(arm, tmp_path, make(arm))[0] == (lines(), b"", "exit 0")
        assert not arm.groups and [g.puts for g in arm.gone] == [1] and [n for n, _ in arm.standby.taken] == ["cage-box"]


def test_a_pool_that_is_gone(tmp_path):
    """It says so, and makes a group of its own."""
    with Arm(script=lambda body: Script(LINES, 0.3)) as arm:
        names = make(arm)
        words_of(arm, "pools")
        answer, said = run(arm, tmp_path, names)
        assert answer[2] == "exit 0" and "could not be taken from its pool, and is made anew: InvalidContainerGroupProfile" in said
        assert len(arm.gone) == 1 and "configMap" not in json.dumps(arm.gone[0].body)


def test_one_that_fails_is_removed_and_made_anew(tmp_path):
    fails = lambda body: Script(LINES, 0.3, fails="Broken" if "configMap" in json.dumps(body) else None)
    with Arm(script=fails) as arm:
        answer, said = run(arm, tmp_path, make(arm))
        assert answer[2] == "exit 0" and "is made anew: Broken" in said and len(arm.gone) == 2 and not arm.groups


@pytest.mark.parametrize("what", ["limits", "image", "value", "large", "none"])
def test_what_is_not_taken_from_a_pool(tmp_path, what):
    """Another group than those that stand, a value that Azure would show, a policy that is too long for a config map."""
    real = "sk-real-value-of-the-key"
    rules = {"value": BY_VALUE, "large": policy(*({"id": "r%d" % i, "hosts": ["h%d.%s.test" % (i, "x" * 50)]} for i in range(5000)))}.get(what)
    options = {"image": ["--image", "registry.test/agent@sha256:" + "f" * 64], "none": []}.get(what, [])
    with Arm(script=lambda body: Script(LINES, 0.2)) as arm:
        names = make(arm)
        given = standby([] if what == "none" else names, "mem=2G,cpu=1" if what == "limits" else LIMITS)
        with Aci(arm, tmp_path, *given["options"], *options, run=given["run"], rules=rules, env={"API_KEY": real}) as aci:
            assert aci.run("true")[2] == "exit 0", aci.text()
            assert aci.end() == 0
        assert arm.standby.taken == [] and len(arm.gone) == 1 and "configMap" not in json.dumps(arm.gone[0].body)
        assert real not in json.dumps([t["liveResponse"] for t in arm.traffic])


def test_one_that_was_taken_is_found_and_removed(tmp_path):
    """Its keeper was killed: the list has it, and what stands in the pool is in no list."""
    with Arm(script=lambda body: Script(LINES, 1000)) as arm:
        given = standby(make(arm))
        with Aci(arm, tmp_path, *given["options"], run=given["run"]) as aci:
            aci.send(b"R", 1, b"\0true\0")
            wait_until(lambda: arm.groups, 20, "it is not taken")
            aci.process.kill()
        assert words_of(arm, "list")[:2] == (0, ["box"]) and words_of(arm, "remove", "box")[0] == 0 and not arm.groups and words_of(arm, "list")[1] == []


def test_more_pools_than_are_looked_at(tmp_path):
    """What is not in the list would be left for ever: that is told."""
    with Arm() as arm:
        (name,) = make(arm)
        for i in range(64):
            arm.standby.profiles["cage-%016x" % i] = {**arm.standby.profiles[name], "name": "cage-%016x" % i}
        code, _, err = words_of(arm, "pools", "2:" + LIMITS)
        assert code == 1 and "more than 64 pools" in err and len(arm.standby.profiles) == 65


# ---- by the service

def profile(**more):
    return {"profiles": {"agent": {"warm": 2, "limits": {"memory": 1 << 30, "cpu": 1}, **more}}}


def check(service):
    line = [binary("cage"), "serve", "--check", "--state", service.state, "--config", service.config_path]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stderr


@pytest.fixture
def azure(monkeypatch):
    with Arm(script=lambda body: Script(LINES, 0.4, 3)) as arm:
        for name, value in arm.env().items():
            monkeypatch.setenv(name, value)
        yield arm


def test_of_the_service(tmp_path, azure):
    """`warm` of a profile is a pool, of which creates get their groups; without it, the next service removes the pool."""
    with Service(tmp_path, {**config_of(azure), **profile()}) as service:
        wait_until(lambda: azure.standby.pools, 30, "no pool is made")
        assert [p.capacity for p in azure.standby.pools.values()] == [2]

        def takes():
            ident = service.create(profile="agent", command=["sh", "-c", "exit 3"])
            box = service.wait(ident, "failed")
            assert (box["exit_code"], service.output(ident)) == (3, lines()), box
            return azure.standby.taken

        wait_until(takes, 60, "none is taken")
        assert azure.standby.taken[0][1] and not [c for c in azure.groups]
        ident = service.create(profile="agent", command=["true"], limits={"memory": 2 << 30})
        service.wait(ident, "failed")
        assert len([g for g in azure.gone if g.name == "cage-" + ident]) == 1 and "cage-" + ident not in [n for n, _ in azure.standby.taken]
        assert check(service)[0] == 0, check(service)
        next(iter(azure.standby.pools.values())).health = "degraded"
        assert check(service)[0] == 1 and "No role is assigned" in check(service)[1]
    assert azure.standby.pools, "the pool went with the service"
    with Service(tmp_path, config_of(azure)):
        wait_until(lambda: not azure.standby.pools and not azure.standby.profiles, 30, "the pool is left")


def test_a_service_without_the_provider(tmp_path, azure):
    """It serves without pools, and the check says why there are none."""
    azure.standby.is_registered = False
    with Service(tmp_path, {**config_of(azure), **profile()}) as service:
        code, said = check(service)
        assert code == 1 and "MissingSubscriptionRegistration" in said
        ident = service.create(profile="agent", command=["true"])
        assert service.wait(ident, "failed")["exit_code"] == 3 and not azure.standby.taken
        service.err.wait(r"cage-aci: .*MissingSubscriptionRegistration", 30)
        service.err.wait(r"they are looked at again in", 10)


def test_a_wrong_configuration_makes_no_pools(tmp_path, azure):
    """It would be wrong at the next try as well: the service does not begin with it."""
    service = Service(tmp_path, {**config_of(azure, identity_client="c"), **profile()})
    for more in (["--check"], []):
        line = [binary("cage"), "serve", *more, "--state", service.state, "--config", service.config_path]
        done = subprocess.run(line, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 2 and re.search(r"serve.yaml:1:\d+: backends.aci.identity_client: there is no identity\n", done.stderr), done
    assert not azure.asked


@pytest.mark.parametrize("more, why", [({"topology": "split"}, "the topology split"), ({"sku": "Confidential"}, "confidential groups"), ({"registry_username": "u"}, "the registry's password")])
def test_what_there_are_no_pools_of(tmp_path, azure, more, why):
    """The configuration is refused, and it is told where."""
    text = "version: 1\nprofiles:\n  agent:\n    warm: 2\nbackends: " + json.dumps(config_of(azure, **more)["backends"]) + "\n"
    code, said = check(Service(tmp_path, text))
    assert code == 2 and re.search(r"serve\.yaml:4:11: profiles\.agent: warm: .*" + why, said), said


def test_a_profile_with_values_of_secrets(tmp_path, azure):
    service = Service(tmp_path, {**config_of(azure), **profile(secrets=["key"])})
    code, said = check(service)
    assert code == 2 and re.search(r"serve\.yaml:1:\d+: profiles\.agent: warm: values of secrets", said), said


# ---- Microsoft's description, and the time

def test_all_that_is_said_is_what_the_api_describes(tmp_path):
    oav = os.environ.get("CAGE_OAV")
    if not oav or not os.path.exists(os.path.join(SPEC, "tools", "validate-traffic.js")):
        pytest.skip("NOT TESTED: CAGE_OAV does not say where npm's oav is (./dev test --all does), or there is no description at " + SPEC)
    options = ["--identity", IDENTITY, "--registry", "r.azurecr.io", "--subnet", NETWORK]
    with Arm(script=lambda body: Script(LINES, 0.3), standby=Standby(fill_takes=0.2)) as arm:
        names = make(arm, "1:" + LIMITS, options=options)
        for ident in ("one", "two"):
            assert run(arm, tmp_path / ident, names, options=options, ident=ident)[0][2] == "exit 0"
        assert words_of(arm, "pools")[0] == 0
        assert len(arm.standby.taken) == 2 and not [t for t in arm.traffic if "StandbyPool/standby" in t["liveRequest"]["url"]]
        arm.write_traffic(tmp_path / "traffic.jsonl")
    done = subprocess.run(["node", os.path.join(SPEC, "tools", "validate-traffic.js"), str(tmp_path / "traffic.jsonl")], capture_output=True, text=True, timeout=240,
                          env={**os.environ, "NODE_PATH": os.path.join(oav, "node_modules")}, check=False)
    assert done.returncode == 0 and done.stdout.rstrip().endswith(" 0 findings"), done.stdout[-4000:] + done.stderr[-1000:]


def test_what_cage_adds(tmp_path):
    """From the command to the PUT that takes a group: one look for a group of that name is all that comes before it."""
    with Arm(script=lambda body: Script(LINES, 0.2)) as arm:
        given = standby(make(arm))
        with Aci(arm, tmp_path, *given["options"], run=given["run"]) as aci:
            asked = len(arm.asked)
            began = time.monotonic()
            aci.send(b"R", 1, b"\0true\0")
            wait_until(lambda: arm.standby.taken, 20, "it is not taken")
            seconds = time.monotonic() - began
            assert [m for m, p in arm.asked[asked:] if "/containerGroups/" in p][:2] == ["GET", "PUT"] and seconds < 5
            aci.end()
    print("from the command to the PUT: %.1f ms" % (1000 * seconds))
