"""cage azure up, plan and down against a stand-in for Azure: what is sent, what is shown, what goes wrong on the way, and that nothing is
made twice or left behind."""
import base64
import json
import os
import random
import re
import signal
import socket
import subprocess
import time
import urllib.parse

import pytest

from cagelib.arm import GROUP, SUBSCRIPTION, Arm, Group, Script, trouble
from cagelib.arm_deployments import CONTAINERS, ROOT, VERSION, Deployments, ResourceGroup, Worked
from cagelib.arm_standby import POOL, PROFILE, Pool
from cagelib.cage_run import Terminal
from cagelib.proxy import SANITIZER, binary, wait_until

SOURCE = os.path.join(os.path.dirname(__file__), "..", "..")
BASE = "%s/resourceGroups/%s" % (ROOT, GROUP)
WORDS = ["429", "drop", "lose", *(pytest.param(w, marks=pytest.mark.slow) for w in ("503", "500", "401"))]
OURS = {"cage.owner": "cage-azure"}
SECRET = 'Tr0ub4dor&3 "quoted" \u00e9 value'


def small():
    """The same program with the times of limits/small_azure.h."""
    return os.path.join(os.path.dirname(binary()), "..", "tests", "cage-azure-small")


def words(arm, verb, *more, location="westeurope"):
    where = ["--location", location] if location and verb != "down" else []
    return [verb, *arm.words(), *where, *more]


def azure(arm, verb, *more, program=None, env=None, location="westeurope", seconds=120, stdin=subprocess.DEVNULL):
    done = subprocess.run([*(program or [small()]), *words(arm, verb, *more, location=location)], capture_output=True, text=True, timeout=seconds, stdin=stdin,
                          env={**os.environ, **arm.env(), **(env or {})}, check=False)
    assert not SANITIZER.search(done.stderr), done.stderr
    return done


def asked(arm, *methods):
    """Requests of these methods, without those for tokens."""
    return [(m, p) for m, p in arm.asked if m in methods and "token" not in p]


def template(resources=None, parameters=None, outputs=None):
    names = resources or {"one": [], "two": ["one"], "three": ["one"], "four": ["two", "three"]}
    return {"$schema": "https://schema.management.azure.com/schemas/2019-04-01/deploymentTemplate.json#", "contentVersion": "1.0.0.0", "parameters": parameters or {},
            "resources": [{"type": "Test.Things/things", "apiVersion": "2020-01-01", "name": n, "location": "westeurope",
                           "dependsOn": ["[resourceId('Test.Things/things', '%s')]" % x for x in needs]} for n, needs in names.items()],
            "outputs": outputs or {"where": {"type": "string", "value": "somewhere"}}}


def written(path, value):
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return str(path)


def lines_of(text, state):
    return [line.split(None, 1)[1] for line in text.splitlines() if line.startswith(state + " ")]


# ---- up

@pytest.mark.parametrize("style", ["async", "location", "none"])
def test_the_real_template_from_nothing(style):
    """Every resource is told from its beginning to its end, once each, and the outputs last."""
    with Arm() as arm:
        azure_ = Deployments(arm, style)
        done = azure(arm, "up")
        assert done.returncode == 0 and done.stderr == "", done
        group = azure_.groups[GROUP]
        assert group.tags == {"cage.owner": "cage-azure"} and group.location == "westeurope"
        assert len(group.resources) == 30 - 7 and len(azure_.taken) == 1  # no gateway yet, and no roles of standby pools
        told = lines_of(done.stdout, "Succeeded")
        assert len(told) == len(set(told)) == 23 and "Microsoft.KeyVault/vaults/cage-abcdefghijklm" in told
        assert re.search(r"^proxyUrl +http://10\.60\.0\.4:8080$", done.stdout, re.M)
        assert done.stdout.index("made in westeurope") < done.stdout.index("Succeeded") < done.stdout.index("proxyUrl")


def test_once_more_changes_nothing_and_is_one_deployment_more():
    with Arm() as arm:
        azure_ = Deployments(arm)
        assert azure(arm, "up").returncode == 0
        assert azure(arm, "up", location=None).returncode == 0
        assert len(azure_.taken) == 2 and len(azure_.groups[GROUP].resources) == 23
        assert [p for m, p in asked(arm, "PUT") if "deployments" not in p] == [BASE + "?api-version=" + VERSION]


def test_what_programs_get():
    with Arm() as arm:
        Deployments(arm)
        done = azure(arm, "up", "--json")
        answer = json.loads(done.stdout)
        assert done.returncode == 0 and answer["state"] == "Succeeded" and answer["group"] == GROUP and answer["deployment"] == "cage"
        assert answer["outputs"]["nameServer"] == "10.60.0.4" and lines_of(done.stderr, "Succeeded")


def test_an_azure_that_can_not_be_reached():
    """Said at the first try, and once: who waits knows for what."""
    with Arm() as arm:
        Deployments(arm)
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            done = azure(arm, "plan", "--endpoint", "http://127.0.0.1:%d" % nobody.getsockname()[1])
    lines = done.stderr.splitlines()
    assert done.returncode == 1 and len([x for x in lines if x.endswith(": asked again")]) == 1 and "can't be reached: " in lines[0], done


def test_no_wait():
    with Arm() as arm:
        azure_ = Deployments(arm, takes=1000)
        done = azure(arm, "up", "--no-wait")
        assert done.returncode == 0 and "has begun" in done.stdout and len(azure_.taken) == 1 and "operations" not in str(arm.asked)


def test_a_group_elsewhere_and_one_that_nobody_said_where(tmp_path):
    with Arm() as arm:
        azure_ = Deployments(arm)
        done = azure(arm, "up", location=None)
        assert done.returncode == 2 and "--location" in done.stderr and not asked(arm, "PUT")
        azure_.groups[GROUP] = ResourceGroup(GROUP, "northeurope", {})
        done = azure(arm, "up")
        assert done.returncode == 2 and "in northeurope" in done.stderr and not asked(arm, "PUT")
        azure_.groups[GROUP].gone_at = time.time() + 1000
        done = azure(arm, "up", location=None)
        assert done.returncode == 1 and "being deleted" in done.stderr and not asked(arm, "PUT")


def test_a_resource_that_fails(tmp_path):
    """Which one, why, and all that is nested in it; also where an answer is text in a message."""
    inner = json.dumps({"error": {"code": "Deepest", "message": "a quota of 3", "details": [{"code": "Deeper", "message": "in it"}]}})
    wrong = {"error": {"code": "Outer", "message": "it failed", "details": [{"code": "Middle", "message": inner}]}}
    with Arm() as arm:
        azure_ = Deployments(arm, fails=lambda resource, ident: wrong if resource["name"] == "three" else None)
        done = azure(arm, "up", "--template", written(tmp_path / "t.json", template()))
        assert done.returncode == 1, done
        for text in ("Test.Things/things/three: Outer: it failed", "Test.Things/things/three: Deepest: a quota of 3", "Test.Things/things/three: Deeper: in it", "cage: Failed"):
            assert text in done.stderr, done.stderr
        assert "somewhere" not in done.stdout and set(azure_.groups[GROUP].resources) == {BASE + "/providers/Test.Things/things/" + n for n in ("one", "two")}
        assert lines_of(done.stdout, "Failed") == ["Test.Things/things/three"]
        azure_.fails_with = lambda resource, ident: None
        assert azure(arm, "up", "--template", str(tmp_path / "t.json")).returncode == 0 and len(azure_.groups[GROUP].resources) == 4


def test_a_deployment_that_is_not_taken(tmp_path):
    with Arm() as arm:
        Deployments(arm)
        bad = template()
        del bad["contentVersion"]
        done = azure(arm, "up", "--template", written(tmp_path / "t.json", bad))
        assert done.returncode == 1 and "InvalidTemplate: Deployment template parse failed." in done.stderr


# ---- parameters

SOME = {"name": {"type": "string", "minLength": 2, "maxLength": 5}, "size": {"type": "int", "minValue": 1, "maxValue": 9, "defaultValue": 3},
        "kind": {"type": "String", "allowedValues": ["big", "small"], "defaultValue": "big"}, "flag": {"type": "bool", "defaultValue": False},
        "list": {"type": "array", "minLength": 1, "defaultValue": [1]}, "thing": {"type": "object", "defaultValue": {}}, "key": {"type": "secureString", "maxLength": 40, "defaultValue": ""},
        "keys": {"type": "secureObject", "defaultValue": {}}}


@pytest.mark.parametrize("given, said", [
    (["--set", "nmae=abc"], 'parameter nmae: the template has none of that name; did you mean "name"?'),
    (["--set", "NAME=abc"], 'did you mean "name"?'),
    ([], "parameter name: it has no default, and was not given"),
    (["--set", "name=a"], "parameter name: expected 2 to 5 characters, and it has 1\n"),
    (["--set", "name=abcdef"], "parameter name: expected 2 to 5 characters, and it has 6\n"),
    (["--set", "name=abc", "--set", "size=ten"], "parameter size: expected an integer"),
    (["--set", "name=abc", "--set", "size=10"], "parameter size: expected a number, 1 to 9\n"),
    (["--set", "name=abc", "--set", "list=[]"], "parameter list: expected at least 1 items, and it has 0\n"),
    (["--set", "name=abc", "--set-env", "key=LONG"], "parameter key: expected at most 40 characters\n"),
    (["--set", "name=abc", "--set", "size=1.5"], "parameter size: expected an integer"),
    (["--set", "name=abc", "--set", "kind=Big"], 'parameter kind: expected one of ["big","small"]'),
    (["--set", "name=abc", "--set", "flag=yes"], "parameter flag: expected true or false"),
    (["--set", "name=abc", "--set", "list={}"], "parameter list: expected a list, as JSON"),
    (["--set", "name=abc", "--set", "thing=[]"], "parameter thing: expected an object, as JSON"),
    (["--set", "name=abc", "--set", "key=12345678"], "parameter key: it is secure, and command lines can be read by everybody"),
    (["--set", "name=abc", "--set-env", "key=NOT_THERE"], "parameter key: there is no variable NOT_THERE"),
    (["--set", "name=abc", "--set-env", "key=SHORT"], "parameter key: a secure value has at least 8 bytes"),
    (["--set", "name=abc", "--set-file", "key=/nonexistent"], "parameter key: --set-file /nonexistent: No such file"),
    (["--set", "name"], "expected NAME=VALUE"),
])
@pytest.mark.parametrize("verb", ["up", pytest.param("plan", marks=pytest.mark.slow)])
def test_wrong_parameters(tmp_path, verb, given, said):
    """Nothing is asked of Azure for them."""
    with Arm() as arm:
        done = azure(arm, verb, "--template", written(tmp_path / "t.json", template(parameters=SOME)), *given, env={"SHORT": "1234567", "LONG": 41 * "x"})
        assert done.returncode == 2 and said in done.stderr and not arm.asked, done.stderr
        assert "1234567" not in done.stderr and "abcdef" not in done.stderr


GATEWAY = ["proxyImage", "dnsImage", "shipImage", "policy", "intakeCertificate", "intakeKey", "intakeToken"]


POLICY = "version: 1\nname: gateway\nrules:\n  - {id: api, hosts: [api.example.com]}\n"


def real():
    """With the real times, and cage-proxy beside it, which is asked about policies."""
    return [os.path.join(os.path.dirname(binary()), "cage-azure")]


def gateway_files(tmp_path, pki, **other):
    """{parameter: path}, of a gateway that could work but for what is other."""
    leaf = pki.leaf("10.60.0.4")
    texts = {**{name: "cage/%s@sha256:%s" % (name[:-5], 64 * "a") for name in GATEWAY[:3]}, "policy": POLICY, "intakeToken": 32 * "t" + "\n",
             "intakeCertificate": open(leaf.cert, encoding="ascii").read(), "intakeKey": open(leaf.key, encoding="ascii").read(), **other}
    return {name: written(tmp_path / name, text) for name, text in texts.items()}


def of_files(files):
    return [word for name, path in files.items() for word in ("--set-file", "%s=%s" % (name, path))]


@pytest.mark.parametrize("verb", ["up", "plan"])
def test_a_gateway_without_what_it_needs(tmp_path, pki, verb):
    """All of it is named, and nothing asked of Azure; what is given but empty is as good as none. With all of it, it is made."""
    given = ["--set", "deployGateway=true"]
    files = gateway_files(tmp_path, pki)
    with Arm() as arm:
        azure_ = Deployments(arm)
        for missing in (GATEWAY, GATEWAY[1:5], GATEWAY[5:]):
            rest = of_files({name: path for name, path in files.items() if name not in missing})
            done = azure(arm, verb, *given, *rest, *(["--set", "policy="] if "policy" in missing else []), program=real())
            said = ["cage azure: parameter %s: it is needed with deployGateway=true, and was not given" % name for name in missing]
            assert done.returncode == 2 and done.stderr.splitlines() == said and not arm.asked, done
        done = azure(arm, verb, *given, *of_files(files), program=real())
        assert done.returncode == 0 and done.stderr == "", done
        assert verb == "plan" or len(azure_.groups[GROUP].resources) == 24
        assert verb == "up" or "24 to create" in done.stdout


IMAGE = "expected an image of the registry by its digest, NAME@sha256: and 64 hex digits"


@pytest.mark.parametrize("name, text, said", [
    ("proxyImage", "cage/proxy:1", IMAGE + ', and got "cage/proxy:1"'), ("dnsImage", "cage/dns@sha256:abc", IMAGE), ("shipImage", "Cage/ship@sha256:" + 64 * "a", IMAGE),
    ("proxyImage", "x.azurecr.io/cage/proxy@sha256:" + 64 * "a", IMAGE), ("proxyImage", "cage/proxy:1@sha256:" + 64 * "a", IMAGE), ("proxyImage", "p" * 600 + "@sha256:" + 64 * "a", IMAGE),
    ("prefix", "C_GE", 'expected 2 to 8 lower-case letters and digits, a letter first, and got "C_GE"'), ("prefix", "1cage", "expected 2 to 8 lower-case letters and digits, a letter first"), ("prefix", "c", "expected 2 to 8 characters"),
    ("gatewayAddress", "gateway.local", 'expected an IPv4 address, and got "gateway.local"'), ("gatewayAddress", "::ffff:1.2.3", "expected an IPv4 address"),
    ("gatewayAddress", "010.60.0.4", "expected an IPv4 address"), ("gatewayAddress", "gateway.example.com", "expected 7 to 15 characters"),
    ("intakeToken", 31 * "t" + "\n", "expected 32 to 511 characters, as cage-gateway wants it"), ("intakeToken", 512 * "t", "expected at most 511 characters"),
    ("intakeCertificate", "no certificate", "no certificate in PEM form"), ("intakeKey", "no key of any kind", "no private key in PEM form without a password"),
    ("policy", "version: 2\nnme: x\n", '{path}:2:1: nme: unknown key; did you mean "name"?'), ("policy", "\x1b[2J", "{path}:"),
])
def test_a_gateway_that_can_not_work(tmp_path, pki, name, text, said):
    """The parameter is named, and what is wrong with it; nothing is asked of Azure, and no secret shown."""
    files = gateway_files(tmp_path, pki, **{name: text})
    with Arm() as arm:
        done = azure(arm, "up", "--set", "deployGateway=true", *of_files(files), program=real())
        assert done.returncode == 2 and not arm.asked, done
    assert "cage azure: parameter %s: %s" % (name, said.format(path=files[name])) in done.stderr and {line.split(": ")[1] for line in done.stderr.splitlines()} == {"parameter " + name}, done.stderr
    assert "tttt" not in done.stderr and "any kind" not in done.stderr and "\x1b" not in done.stderr


def test_all_faults_of_a_gateway_at_once(tmp_path, pki):
    """A key of another certificate among them; the lines of the policy stand where they are in its file, or name the parameter that came from a variable."""
    files = gateway_files(tmp_path, pki, proxyImage="proxy", dnsImage="dns", shipImage="ship", prefix="C_GE", gatewayAddress="gateway.local", policy="version: 2\n", intakeToken="short-token",
                          intakeKey=open(pki.leaf("other.test").key, encoding="ascii").read())
    with Arm() as arm:
        done = azure(arm, "up", *of_files(files), program=real())
        assert done.returncode == 2 and not arm.asked, done
        lines = done.stderr.splitlines()
        assert {line.split(": ")[1] for line in lines} == {"parameter " + name for name in files if name != "intakeCertificate"}
        assert "cage azure: parameter intakeKey: it is not the key of the first certificate of intakeCertificate" in lines
        assert 'cage azure: parameter policy: %s:1:10: version: expected 1, got "2"' % files["policy"] in lines
        agent = os.path.join(SOURCE, "policies", "aider.yaml")  # its key is in a variable, which the gateway does not have, whoever has it here
        done = azure(arm, "up", "--set-file", "policy=" + agent, env={"ANTHROPIC_API_KEY": 40 * "k"}, program=real())
        assert done.returncode == 2 and re.search("parameter policy: %s:[0-9:]+: .*: it is not set, nor in the gateway's container\n" % agent, done.stderr) and not arm.asked, done
        done = azure(arm, "up", "--set-env", "policy=THE_POLICY", env={"THE_POLICY": "version: 2\n"}, program=real())
        assert done.returncode == 2 and 'parameter policy: policy:1:10: version: expected 1' in done.stderr and not arm.asked, done


def test_a_policy_that_can_not_be_checked(tmp_path, pki):
    """No cage-proxy beside the program: it is refused."""
    with Arm() as arm:
        done = azure(arm, "up", *of_files(gateway_files(tmp_path, pki)))
        assert done.returncode == 2 and "parameter policy: it could not be checked: cage-proxy has to be beside this program" in done.stderr and not arm.asked, done


def test_a_template_of_ones_own_is_not_judged_by_names_of_ours(tmp_path):
    own = template(parameters={name: {"type": "string", "defaultValue": ""} for name in ("prefix", "policy", "proxyImage")})
    with Arm() as arm:
        Deployments(arm)
        given = [word for name in own["parameters"] for word in ("--set", name + "=What I Want")]
        done = azure(arm, "up", "--template", written(tmp_path / "t.json", own), *given)
        assert done.returncode == 0 and done.stderr == "", done


def test_what_is_refused_is_not_said_to_be_missing(tmp_path):
    with Arm() as arm:
        done = azure(arm, "up", "--set", "deployGateway=true", "--set", "intakeKey=12345678", "--set-file", "policy=/nonexistent")
        assert done.returncode == 2 and not arm.asked and "12345678" not in done.stderr
        assert done.stderr.count("intakeKey") == 1 and done.stderr.count("parameter policy:") == 1 and done.stderr.count("was not given") == 5, done.stderr
        done = azure(arm, "up", "--template", written(tmp_path / "t.json", template(parameters=SOME)), "--set-file", "name=/nonexistent")
        assert done.returncode == 2 and done.stderr == "cage azure: parameter name: --set-file /nonexistent: No such file or directory\n", done


def test_a_file_of_parameters_that_is_none(tmp_path):
    """The file is named in each line, and what one looks like; nothing is said to be missing."""
    form = 'expected {"parameters": {"NAME": {"value": ...}}}'
    with Arm() as arm:
        for text, said in ((template(), "it is a template, and no file of parameters"), ({"name": "x"}, "it has no parameters"), ([], "it has no parameters")):
            file = written(tmp_path / "p.json", text)
            done = azure(arm, "up", "--template", written(tmp_path / "t.json", template(parameters=SOME)), "--parameters", file)
            assert done.returncode == 2 and done.stderr == "cage azure: --parameters %s: %s: %s\n" % (file, said, form) and not arm.asked, done
        file = written(tmp_path / "p.json", {"parameters": {"name": {"value": "abc"}, "sice": {"value": 1}, "flag": True}})
        done = azure(arm, "up", "--template", str(tmp_path / "t.json"), "--parameters", file)
        assert done.returncode == 2 and [line.split(": ")[1:3] for line in done.stderr.splitlines()] == [["--parameters " + file, "parameter sice"], ["--parameters " + file, "parameter flag"]], done


def test_roles_of_standby_pools():
    """Given when their provider is named, and not before."""
    with Arm() as arm:
        azure_ = Deployments(arm)
        assert azure(arm, "up").returncode == 0 and len(azure_.groups[GROUP].resources) == 23
        assert azure(arm, "up", "--set", "standbyPoolPrincipalId=00000000-0000-0000-0000-00000000000b").returncode == 0
        assert len(azure_.groups[GROUP].resources) == 29


def test_all_that_is_wrong_is_said_at_once(tmp_path):
    with Arm() as arm:
        file = written(tmp_path / "p.json", {"parameters": {"sice": {"value": 1}, "kind": {"value": "none"}, "flag": {}}})
        done = azure(arm, "up", "--template", written(tmp_path / "t.json", template(parameters=SOME)), "--parameters", file, "--set", "size=0")
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 5, done.stderr


def test_values_as_they_are_sent(tmp_path):
    """By their types; the command line counts more than the file."""
    policy = "version: 1\nname: \"x\"\n"
    file = written(tmp_path / "p.json", {"$schema": "x", "contentVersion": "1.0.0.0", "parameters": {
        "name": {"value": "file"}, "size": {"value": 4}, "keys": {"reference": {"keyVault": {"id": "/v"}, "secretName": "s"}}}})
    with Arm() as arm:
        azure_ = Deployments(arm)
        more = dict(SOME, text={"type": "string"})
        done = azure(arm, "up", "--template", written(tmp_path / "t.json", template(parameters=more)), "--parameters", file, "--set", "name=line", "--set", "flag=true",
                     "--set", 'list=["80", 443]', "--set", 'thing={"a": {"b": null}}', "--set-file", "text=" + written(tmp_path / "policy.yaml", policy),
                     "--set-env", "key=THE_KEY", env={"THE_KEY": SECRET})
        assert done.returncode == 0, done
        assert azure_.taken[0].body["properties"]["parameters"] == {
            "name": {"value": "line"}, "size": {"value": 4}, "flag": {"value": True}, "list": {"value": ["80", 443]}, "thing": {"value": {"a": {"b": None}}},
            "text": {"value": policy}, "key": {"value": SECRET}, "keys": {"reference": {"keyVault": {"id": "/v"}, "secretName": "s"}}}
        assert azure_.taken[0].body["properties"]["mode"] == "Incremental"


def test_a_template_that_is_none(tmp_path):
    with Arm() as arm:
        for text in ("{", "[]", "{}", '{"a": 1, "a": 2}', json.dumps({**template(), "$schema": "x"})):
            done = azure(arm, "up", "--template", written(tmp_path / "t.json", text))
            assert done.returncode == 2 and str(tmp_path / "t.json") in done.stderr and not arm.asked, text
        big = template({"n%d" % i: [] for i in range(40000)})
        done = azure(arm, "up", "--template", written(tmp_path / "t.json", big))
        assert done.returncode == 1 and "4 MiB" in done.stderr and not arm.asked, done.stderr


# ---- secure values

def secure_template(tmp_path):
    return written(tmp_path / "t.json", template(parameters=SOME, outputs={"key": {"type": "securestring", "value": "[parameters('key')]"}, "said": {"type": "string", "value": "[parameters('key')]"},
                                                                           "name": {"type": "string", "value": "[parameters('name')]"}}))


def pieces():
    return (SECRET, json.dumps(SECRET)[1:-1], "ub4dor", "0therS3cret")


@pytest.mark.parametrize("verb", ["up", "plan"])
def test_no_secure_value_is_shown(tmp_path, verb):
    """Whatever Azure answers: outputs, errors, errors in errors, changes of properties."""
    echoed = "the value '%s' is bad" % SECRET
    wrong = {"error": {"code": "Bad", "message": json.dumps({"error": {"code": "Inner", "message": echoed}}), "details": [{"code": "X", "message": echoed}]}}
    secure = ["--set", "name=abc", "--set-env", "key=THE_KEY", "--set-file", "keys=" + written(tmp_path / "keys.json", {"a": ["0therS3cret!"]})]
    with Arm() as arm:
        azure_ = Deployments(arm, changes={"Test.Things/things": [{"path": "p", "propertyChangeType": "Modify", "before": "0therS3cret!", "after": SECRET}]})
        group = azure_.groups[GROUP] = ResourceGroup(GROUP, "westeurope", {})
        group.resources[BASE + "/providers/Test.Things/things/one"] = {"type": "Test.Things/things", "name": "one", "needs": []}
        for fails in (None, lambda resource, ident: wrong):
            azure_.fails_with = fails or (lambda resource, ident: None)
            for more in ((), ("--json",)):
                done = azure(arm, verb, "--template", secure_template(tmp_path), *secure, *more, env={"THE_KEY": SECRET})
                assert done.returncode == (1 if fails and verb == "up" else 0), done
                for piece in pieces():
                    assert piece not in done.stdout + done.stderr, (piece, done)
                assert "(secure)" in done.stdout + done.stderr
        assert group.deployments.keys() == ({"cage"} if verb == "up" else set())
        assert not any(d.tags["cage.digest"] != "none" for d in azure_.taken)


ENCODED = (urllib.parse.quote(SECRET, safe=""), urllib.parse.quote_plus(SECRET), base64.b64encode(SECRET.encode()).decode(), base64.urlsafe_b64encode(b"a=" + SECRET.encode()).decode(),
           urllib.parse.quote(base64.b64encode(b"b" + SECRET.encode()).decode(), safe=""))


@pytest.mark.parametrize("style", ["async", "location", "none"])
@pytest.mark.parametrize("verb", ["up", "plan"])
def test_no_secure_value_of_a_refusal_is_shown(tmp_path, verb, style):
    """In the form that most services have for errors, and in the one of some."""
    said = {"code": "Bad", "message": "not '%s'" % SECRET}
    with Arm() as arm:
        azure_ = Deployments(arm, style)
        azure_.groups[GROUP] = ResourceGroup(GROUP, "westeurope", {})
        mixed = {"error": {"code": "Bad", "message": "it says " + json.dumps(json.dumps(said)).replace("T", "\\\\u0054")}}
        encoded = [{"error": {"code": "Bad", "message": "(secure) of before, " + text}} for text in ENCODED]
        for answer in ({"error": said}, said, {"error": {**said, "details": [said]}}, mixed, SECRET, [SECRET], *encoded):
            azure_.put = lambda *_, answer=answer: (400, answer, {})
            azure_.what_if = lambda *_, answer=answer: (azure_.later(202, 0, lambda: (400, answer, {})) if style == "location" else None) or (400, answer, {})
            done = azure(arm, verb, "--template", secure_template(tmp_path), "--set", "name=abc", "--set-env", "key=THE_KEY", env={"THE_KEY": SECRET})
            assert done.returncode == 1 and re.search(r"Bad: (not ')?\(secure\)|status 400", done.stderr), done
            assert not [p for p in (*pieces(), *ENCODED) if p in done.stdout + done.stderr], done


NAMES = [SECRET.replace('"', ""), "x" + SECRET.replace('"', "") + "y", urllib.parse.quote(SECRET.replace('"', ""))]


@pytest.mark.parametrize("more", [(), ("--json",)], ids=["table", "json"])
def test_no_secure_value_is_shown_as_a_name_or_a_number(tmp_path, monkeypatch, more):
    """Names of outputs, names in them and in what changes; numbers, as such and in text."""
    value = NAMES[0]
    told = {value: {"type": "String", "value": "v"}, "other": {"type": "Object", "value": {n: [{n: 1}] for n in NAMES}}, "pins": {"type": "Array", "value": [8765432187654321, 12345678.5, 87654321, 7]}}
    monkeypatch.setattr(Worked, "outputs", lambda self: told)
    keys = written(tmp_path / "keys.json", {"pin": 8765432187654321, "list": [12345678.5], "short": 7, "text": "87654321"})
    words = ["--template", secure_template(tmp_path), "--set", "name=abc", "--set-env", "key=THE_KEY", "--set-file", "keys=" + keys, *more]
    delta = [{"path": "tags." + value, "propertyChangeType": "Modify", "before": {value: 8765432187654321}, "after": [{n: [n]} for n in NAMES]}]
    with Arm() as arm:
        azure_ = Deployments(arm, changes={"Test.Things/things": delta})
        group = azure_.groups[GROUP] = ResourceGroup(GROUP, "westeurope", {})
        group.resources[BASE + "/providers/Test.Things/things/one"] = {"type": "Test.Things/things", "name": "one", "needs": []}
        done = [azure(arm, verb, *words, env={"THE_KEY": value}) for verb in ("plan", "up")]
        azure_.put = lambda *_: (400, {"error": {"code": "Bad", "message": "neither 8765432187654321 nor 12345678.5"}}, {})
        done.append(azure(arm, "up", *words, env={"THE_KEY": value}))
    assert [d.returncode for d in done] == [0, 0, 1], done
    for d in done:
        text = d.stdout + d.stderr
        assert not [x for x in (*NAMES, "ub4dor", "87654321", "12345678") if x in text] and "(secure)" in text, d
    assert "other" in done[1].stdout and re.search(r"\b7\b", done[1].stdout), done[1]


def test_no_secure_value_is_in_proc(tmp_path):
    """Neither in the command line nor in the environment, also of children (az), while it is being used."""
    tools = tmp_path / "tools"
    tools.mkdir()
    written(tools / "az", "#!/bin/sh\ncat /proc/self/environ /proc/$PPID/environ /proc/self/cmdline /proc/$PPID/cmdline > %s/seen 2>&1\n"
            "echo '{\"accessToken\": \"eyJ0eXAiOiJKV1Qi.Zm9v.1\", \"tokenType\": \"Bearer\"}'\n" % tmp_path)
    os.chmod(tools / "az", 0o755)
    with Arm() as arm:
        Deployments(arm)
        done = azure(arm, "up", "--template", secure_template(tmp_path), "--set", "name=abc", "--set-env", "key=THE_KEY", "--credentials", "az",
                     env={"THE_KEY": SECRET, "PATH": "%s:%s" % (tools, os.environ["PATH"])})
        assert done.returncode == 0, done
        seen = (tmp_path / "seen").read_bytes()
        assert b"set-env" in seen and b"Tr0ub4dor" not in seen


# ---- trouble

@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("method, ending", [("GET", GROUP), ("PUT", GROUP), ("GET", "/cage"), ("PUT", "/cage"), ("GET", "/operations"), ("GET", "/token")])
def test_up_through_trouble(tmp_path, word, method, ending):
    """Two of them in a row, each kind at each kind of request: one deployment, one group. A token that is refused is not asked for again."""
    with Arm(trouble=trouble((method, ending, (1,) if word == "401" else (1, 2), word))) as arm:
        azure_ = Deployments(arm, takes=0.3 if word == "lose" else 0.03)
        done = azure(arm, "up", "--template", written(tmp_path / "t.json", template()))
        if (ending, word) == ("/token", "401"):
            assert done.returncode == 1 and "no token" in done.stderr and not azure_.taken, done
            return
        assert done.returncode == 0 and re.search(r"^where +somewhere$", done.stdout, re.M), done
        assert len(azure_.taken) == 1 and len(azure_.groups[GROUP].resources) == 4, arm.asked


def test_an_answer_that_is_lost_and_a_deployment_that_is_quick(tmp_path):
    """It has ended when it is looked for: it is known by its attempt, and not asked for again."""
    with Arm(trouble=trouble(("PUT", "/cage", (1,), "lose"))) as arm:
        azure_ = Deployments(arm, takes=0)
        assert azure(arm, "up", "--template", written(tmp_path / "t.json", template())).returncode == 0
        assert len(azure_.taken) == 1 and len([1 for m, p in asked(arm, "PUT") if "deployments" in p]) == 1


def test_a_deployment_that_is_seen_late(tmp_path):
    with Arm() as arm:
        azure_ = Deployments(arm, unseen=0.3)
        done = azure(arm, "up", "--template", written(tmp_path / "t.json", template()))
        assert done.returncode == 0 and len(azure_.taken) == 1, done
        azure_.fails_with = lambda resource, ident: {"error": {"code": "New", "message": "it fails"}}
        done = azure(arm, "up", "--template", str(tmp_path / "t.json"))  # the good end of the one before is not taken for that of this one
        assert done.returncode == 1 and "New: it fails" in done.stderr and len(azure_.taken) == 2, done


def test_trouble_that_does_not_pass(tmp_path):
    with Arm(trouble=trouble(("PUT", "/cage", range(10000), "503"))) as arm:
        azure_ = Deployments(arm)
        done = azure(arm, "up", "--template", written(tmp_path / "t.json", template()))
        assert done.returncode == 1 and done.stderr and not azure_.taken


def test_one_that_is_under_way(tmp_path):
    """The same one is followed; another one is waited for, and ours comes after it."""
    with Arm() as arm:
        azure_ = Deployments(arm, takes=0.4)
        file = written(tmp_path / "t.json", template())
        assert azure(arm, "up", "--template", file, "--no-wait").returncode == 0
        done = azure(arm, "up", "--template", file)
        assert done.returncode == 0 and "it is followed" in done.stderr and len(azure_.taken) == 1
        assert azure(arm, "up", "--template", file, "--no-wait").returncode == 0
        other = written(tmp_path / "other.json", template({"five": []}))
        done = azure(arm, "up", "--template", other)
        assert done.returncode == 0 and "comes after it" in done.stderr and len(azure_.taken) == 3 and len(azure_.groups[GROUP].resources) == 5


def test_secure_values_are_never_taken_for_the_same(tmp_path):
    with Arm() as arm:
        azure_ = Deployments(arm, takes=0.3)
        line = ["--template", secure_template(tmp_path), "--set", "name=abc", "--set-env", "key=THE_KEY"]
        assert azure(arm, "up", *line, "--no-wait", env={"THE_KEY": SECRET}).returncode == 0
        assert azure(arm, "up", *line, env={"THE_KEY": "an0ther value"}).returncode == 0
        assert [d.body["properties"]["parameters"]["key"]["value"] for d in azure_.taken] == [SECRET, "an0ther value"]


def start(arm, verb, *more, env=None, location="westeurope"):
    return subprocess.Popen([small(), *words(arm, verb, *more, location=location)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, **arm.env(), **(env or {})})


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c(tmp_path, number):
    with Arm() as arm:
        azure_ = Deployments(arm, takes=0.5)
        file = written(tmp_path / "t.json", template())
        process = start(arm, "up", "--template", file)
        wait_until(lambda: any("/operations" in p for _, p in arm.asked), 30, "it does not watch")
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
        assert process.returncode == 130 and "the deployment goes on" in err and "somewhere" not in out
        assert "az deployment group cancel --subscription %s --resource-group %s --name cage" % (SUBSCRIPTION, GROUP) in err
        assert azure(arm, "up", "--template", file).returncode == 0 and len(azure_.taken) == 1 and len(azure_.groups[GROUP].resources) == 4


def test_ctrl_c_before_it_has_begun(tmp_path):
    """In the first look at a deployment of that name, which Azure does not answer yet."""
    with Arm(trouble=trouble(("GET", "/cage", range(10000), "503"))) as arm:
        azure_ = Deployments(arm)
        process = start(arm, "up", "--template", written(tmp_path / "t.json", template()))
        wait_until(lambda: any("/deployments/cage?" in p for _, p in arm.asked), 30, "it does not look")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 130 and "this deployment has not begun" in err and not azure_.taken, err


RUNS = 200 if os.environ.get("CAGE_SLOW") else 12


def test_killed_at_any_moment(tmp_path):
    """And run again: nothing is doubled, and it ends well."""
    file = written(tmp_path / "t.json", template())
    chance = random.Random(7)
    for i in range(RUNS):
        with Arm() as arm:
            azure_ = Deployments(arm, takes=0.05)
            process = start(arm, "up", "--template", file)
            try:
                process.wait(chance.uniform(0, 0.5))
            except subprocess.TimeoutExpired:
                process.kill()
            process.communicate()
            done = azure(arm, "up", "--template", file)
            assert done.returncode == 0 and "somewhere" in done.stdout, (i, done)
            assert len(azure_.groups) == 1 and azure_.groups[GROUP].tags and len(azure_.groups[GROUP].resources) == 4
            assert len([d for d in azure_.taken if any(d is not e and d.made < e.made < d.done for e in azure_.taken)]) == 0, "two at the same time"


# ---- plan

def changed(arm):
    return [(m, p) for m, p in asked(arm, "PUT", "DELETE", "PATCH", "POST") if not p.split("?")[0].endswith("/whatIf")]


@pytest.mark.parametrize("style", ["async", "location", "none"])
def test_plan(tmp_path, style):
    """A line for each resource, what changes in it, how many; and nothing is changed."""
    delta = [{"path": "properties.rules", "propertyChangeType": "Array", "children": [
        {"path": "0", "propertyChangeType": "Modify", "children": [{"path": "port", "propertyChangeType": "Modify", "before": 80, "after": 443}]},
        {"path": "1", "propertyChangeType": "Delete", "before": {"port": 22}}]}, {"path": "tags.new", "propertyChangeType": "Create", "after": "a\x1b[2Jb"}]
    with Arm() as arm:
        azure_ = Deployments(arm, style)
        assert azure(arm, "up", "--template", written(tmp_path / "t.json", template({"one": [], "two": [], "old": []}))).returncode == 0
        arm.asked.clear()
        azure_.changes = {"Test.Things/things": delta}
        del azure_.groups[GROUP].resources[BASE + "/providers/Test.Things/things/two"]
        done = azure(arm, "plan", "--template", written(tmp_path / "t.json", template({"one": [], "two": []})))
        assert done.returncode == 0 and done.stderr == "", done
        assert done.stdout.splitlines() == [
            "~ Modify      Test.Things/things/one", "      ~ properties.rules", "        ~ 0", "          ~ port: 80 -> 443", '        - 1: {"port":22}',
            '      + tags.new: "a\\u001B[2Jb"', "+ Create      Test.Things/things/two", "* Ignore      Test.Things/things/old", "",
            "1 to create, 1 to modify, 0 to delete, 1 left alone"]
        assert not changed(arm) and [p for m, p in asked(arm, "POST")]
        azure_.changes = {}
        done = azure(arm, "plan", "--template", str(tmp_path / "t.json"), "--json")
        assert [c["changeType"] for c in json.loads(done.stdout)["changes"]] == ["NoChange", "Create", "Ignore"] and not changed(arm)


def test_plan_without_a_group():
    """What up would make of the template, with names as far as they are known here. Azure is asked for the group alone."""
    with Arm() as arm:
        Deployments(arm)
        done = azure(arm, "plan", "--set", "prefix=shop")
        lines = [line for line in done.stdout.splitlines() if line.startswith("+ Create")]
        assert done.returncode == 0 and "all would be new" in done.stdout and len(lines) == 23 and "--location" not in done.stdout
        assert done.stdout.endswith("23 to create, 0 to modify, 0 to delete\n7 more of the template are not made, as parameters say: standbyPoolPrincipalId, deployGateway\n"), done.stdout
        for name in ("networkSecurityGroups shop-locked", "registries shop...", "vaults shop-...", "roleAssignments ...", "tables shop-log/CageLog_CL"):
            assert [line for line in lines if line.endswith(name)], (name, lines)
        assert "[" not in done.stdout and not changed(arm) and not asked(arm, "POST")
        done = azure(arm, "plan", location=None)
        assert done.returncode == 0 and done.stdout.endswith("up will want --location, to make the resource group\n"), done
        done = azure(arm, "plan", "--set", "standbyPoolPrincipalId=00000000-0000-0000-0000-00000000000b", "--json")
        assert len(json.loads(done.stdout)["changes"]) == 29 and {"changeType": "Create", "type": "Microsoft.Network/virtualNetworks", "name": "cage-network"} in json.loads(done.stdout)["changes"]


@pytest.mark.parametrize("name, shown", [
    ("plain", "plain"), ("[concat('a''b', parameters('name'), '-', 3)]", "a'babc-3"), ("[format('{0}{1}', parameters('key'))]", "......"), ("[toLower(parameters('name'))]", "..."),
    ("[reference('x').y]", "..."), ("[format('{0}', reference('x').y)]", "..."), ("[concat(", "..."), ("['a", "..."), ("[concat('a') ]x", "..."), ("[" + 60 * "concat(" + 60 * ")" + "]", "..."),
    ("[concat(%s)]" % ",".join(9 * ["'a'"]), "..."), ("[parameters('size')]", "..."), ("[concat()]", "..."), ("[[literal]", "..."), ("[]", "..."),
])
def test_names_of_a_plan(tmp_path, name, shown):
    """Whatever stands there, it is short, and no secure value."""
    with Arm() as arm:
        Deployments(arm)
        file = written(tmp_path / "t.json", template({name: []}, parameters=SOME))
        done = azure(arm, "plan", "--template", file, "--set", "name=abc", "--set-env", "key=THE_KEY", env={"THE_KEY": SECRET})
        assert done.returncode == 0 and "\n+ Create      Test.Things/things %s\n" % shown in done.stdout, done


@pytest.mark.parametrize("condition, shown", [
    ("[parameters('flag')]", None), (False, None), ("[not(parameters('flag'))]", " (if its condition holds)"), ("[parameters('none')]", " (if its condition holds)"), (True, ""),
    ("[not(empty(parameters('name')))]", ""), ("[not(empty(parameters('list')))]", " (if its condition holds)"),
])
def test_conditions_of_a_plan(tmp_path, condition, shown):
    one = template({"one": []}, parameters=SOME)
    one["resources"][0]["condition"] = condition
    with Arm() as arm:
        Deployments(arm)
        done = azure(arm, "plan", "--template", written(tmp_path / "t.json", one), "--set", "name=abc")
        assert done.returncode == 0 and ("+ Create      Test.Things/things one%s\n" % shown in done.stdout if shown is not None else "0 to create" in done.stdout), done


@pytest.mark.parametrize("style", ["async", "location", "none"])
def test_plan_that_azure_refuses(tmp_path, style):
    with Arm() as arm:
        azure_ = Deployments(arm, style)
        azure_.groups[GROUP] = ResourceGroup(GROUP, "westeurope", {})
        bad = template()
        del bad["contentVersion"]
        done = azure(arm, "plan", "--template", written(tmp_path / "t.json", bad))
        assert done.returncode == 1 and "InvalidTemplate" in done.stderr
        azure_.what_if = lambda *_: azure_.later(202, 0, lambda: (400, {"error": {"code": "Outer", "message": "no", "details": [{"code": "Inner", "message": "why"}]}}, {})) or (
            400, {"error": {"code": "Outer", "message": "no", "details": [{"code": "Inner", "message": "why"}]}}, {})
        done = azure(arm, "plan", "--template", written(tmp_path / "t.json", template()))
        assert done.returncode == 1 and "Outer: no" in done.stderr and "Inner: why" in done.stderr, done


@pytest.mark.parametrize("word", ["429", "503", "500", "drop", "lose"])
def test_plan_through_trouble(tmp_path, word):
    with Arm(trouble=trouble(("POST", "/whatIf", (1, 2), word), ("GET", GROUP, (1,), word))) as arm:
        azure_ = Deployments(arm)
        azure_.groups[GROUP] = ResourceGroup(GROUP, "westeurope", {})
        done = azure(arm, "plan", "--template", written(tmp_path / "t.json", template()))
        assert done.returncode == 0 and "4 to create" in done.stdout and not changed(arm), done


# ---- down

def with_sandboxes(arm, n=3):
    for i in range(n):
        name = "cage-box%d" % i
        arm.groups[name] = Group(name, {"location": "westeurope", "tags": {"cage.sandbox": "box%d" % i}, "properties": {"containers": []}}, Script(seconds=1000), 0)


def with_pools(arm, *names, tags=None):
    """Pools with their profiles, as cage-aci makes them."""
    tags = {"cage.state": "5b1c"} if tags is None else tags
    for name in names:
        ident = "%s/providers/%s/%s" % (BASE, PROFILE, name)
        arm.standby.profiles[name] = {"id": ident, "name": name, "type": PROFILE, "location": "westeurope", "tags": tags, "properties": {"revision": 1}}
        body = {"location": "westeurope", "tags": tags, "properties": {"elasticityProfile": {"maxReadyCapacity": 2}}}
        arm.standby.pools[name] = Pool(name, body, arm.standby.number, 0, 0)


def removed_kinds(arm):
    """Of pools, container groups and profiles, in the order in which they were asked to go: repetitions count once."""
    kinds = [k for _, p in asked(arm, "DELETE") for k in (POOL, CONTAINERS, PROFILE) if "/providers/%s/" % k in p]
    return [k for i, k in enumerate(kinds) if i == 0 or kinds[i - 1] != k]


@pytest.mark.parametrize("more", [(), ("--only-ours",)])
def test_down_of_pools(tmp_path, more):
    """They go first, since they make groups anew; their profiles go last, since a pool needs its own."""
    with Arm() as arm:
        azure_ = Deployments(arm)
        group = azure_.groups[GROUP] = ResourceGroup(GROUP, "westeurope", {} if more else {"cage.owner": "cage-azure"})
        assert azure(arm, "up", "--template", written(tmp_path / "t.json", template())).returncode == 0
        with_sandboxes(arm)
        with_pools(arm, "cage-one", "cage-two")
        if more:
            with_pools(arm, "theirs", tags={"cage": "other"})
        done = azure(arm, "down", "--yes", *more)
        assert done.returncode == 0 and removed_kinds(arm) == [POOL, CONTAINERS, PROFILE], done
        assert not arm.groups and set(arm.standby.pools) == set(arm.standby.profiles) == ({"theirs"} if more else set())
        assert not more or not group.resources


@pytest.mark.parametrize("style", ["async", "location", "none"])
@pytest.mark.parametrize("protected", [True, False])
def test_down(style, protected):
    """Sandboxes first, then all of the group; the vault is purged, or it is said until when its name stays taken."""
    with Arm(style) as arm:
        azure_ = Deployments(arm, style, protected=protected)
        assert azure(arm, "up").returncode == 0
        with_sandboxes(arm, 20)
        arm.asked.clear()
        done = azure(arm, "down", "--yes")
        assert done.returncode == 0, done
        assert "workspace cage-log: deleted; Azure keeps it" in done.stdout
        assert "gone, and all that was in it" in done.stdout and "Microsoft.KeyVault/vaults " in done.stdout
        assert not azure_.groups and not arm.groups and len(azure_.removed) == 1
        deletes = [p for _, p in asked(arm, "DELETE")]
        assert len(deletes) == 21 and deletes[-1].split("?")[0] == BASE
        if protected:
            assert "its name stays taken until 20" in done.stdout and "az keyvault recover" in done.stdout and len(azure_.deleted_vaults) == 1
        else:
            assert "vault cage-abcdefghijklm: purged" in done.stdout and not azure_.deleted_vaults


def test_down_of_what_is_not_there():
    """A vault that a `down` which was cut off has left is purged all the same; one of somebody else is not."""
    with Arm() as arm:
        azure_ = Deployments(arm, protected=False)
        done = azure(arm, "down")
        assert done.returncode == 0 and "There is no resource group" in done.stdout
        for name, tags in (("ours", {"cage.owner": "cage-azure"}), ("theirs", {})):
            azure_.forget("%s/providers/Microsoft.KeyVault/vaults/%s" % (BASE, name), {"type": "Microsoft.KeyVault/vaults", "name": name, "tags": tags}, time.time())
        assert azure(arm, "down").returncode == 2 and len(azure_.deleted_vaults) == 2
        assert azure(arm, "down", "--yes").returncode == 0 and list(azure_.deleted_vaults) == ["theirs"] and not asked(arm, "DELETE")


@pytest.mark.parametrize("more", [(), ("--only-ours",)])
@pytest.mark.parametrize("left", [True, False])
def test_down_after_one_that_was_cut_off_behind_the_vault(tmp_path, more, left):
    """Nothing that is left, if anything is, is a vault: the deleted one is purged all the same, if it is ours."""
    with Arm() as arm:
        azure_ = Deployments(arm, protected=False)
        group = azure_.groups[GROUP] = ResourceGroup(GROUP, "westeurope", {} if more else OURS)
        if left:
            assert azure(arm, "up", "--template", written(tmp_path / "t.json", template())).returncode == 0 and group.resources
        for name, tags in (("ours", OURS), ("theirs", {})):
            azure_.forget("%s/providers/Microsoft.KeyVault/vaults/%s" % (BASE, name), {"type": "Microsoft.KeyVault/vaults", "name": name, "tags": tags}, time.time())
        done = azure(arm, "down", "--yes", *more)
        assert done.returncode == 0 and "vault ours: purged" in done.stdout and list(azure_.deleted_vaults) == ["theirs"] and not (GROUP in azure_.groups and group.resources), done


def test_down_of_a_group_of_somebody_else():
    with Arm() as arm:
        azure_ = Deployments(arm)
        azure_.groups[GROUP] = ResourceGroup(GROUP, "westeurope", {"owner": "them"})
        done = azure(arm, "down", "--yes")
        assert done.returncode == 1 and "was not made by cage azure up" in done.stderr and not asked(arm, "DELETE", "POST")


@pytest.mark.parametrize("style", ["async", "location", "none"])
def test_only_ours(style):
    """In an order in which nothing is in the way, and what somebody else has there stays."""
    with Arm(style) as arm:
        azure_ = Deployments(arm, style, protected=False)
        group = azure_.groups[GROUP] = ResourceGroup(GROUP, "westeurope", {"owner": "them"})
        assert azure(arm, "up", "--set", "standbyPoolPrincipalId=00000000-0000-0000-0000-00000000000b").returncode == 0 and group.tags == {"owner": "them"}
        theirs = BASE + "/providers/Microsoft.KeyVault/vaults/theirs"
        group.resources[theirs] = {"type": "Microsoft.KeyVault/vaults", "name": "theirs", "apiVersion": "2024-11-01", "needs": []}
        with_sandboxes(arm, 2)
        arm.groups["other"] = Group("other", {"location": "westeurope", "properties": {"containers": []}}, Script(seconds=1000), 0)
        blocked = azure(arm, "down", "--yes", "--only-ours")
        assert blocked.returncode == 1 and "of ours are left" in blocked.stderr and "InUseResourceCannotBeDeleted" in blocked.stderr, blocked
        assert list(arm.groups) == ["other"] and "cage" in group.deployments
        del arm.groups["other"]
        done = azure(arm, "down", "--yes", "--only-ours")
        assert done.returncode == 0 and "Nothing of ours is left" in done.stdout, done
        assert list(group.resources) == [theirs] and not group.deployments and not azure_.deleted_vaults
        done = azure(arm, "down", "--yes", "--only-ours")
        assert done.returncode == 0 and "Nothing in the resource group cage-test is ours" in done.stdout


def test_only_ours_purges_no_vault_of_somebody_else():
    """Also if they delete it while ours is removed."""
    with Arm() as arm:
        azure_ = Deployments(arm, protected=False)
        group = azure_.groups[GROUP] = ResourceGroup(GROUP, "westeurope", {"owner": "them"})
        assert azure(arm, "up").returncode == 0
        theirs = BASE + "/providers/Microsoft.KeyVault/vaults/theirs"
        group.resources[theirs] = {"type": "Microsoft.KeyVault/vaults", "name": "theirs", "apiVersion": "2024-11-01", "needs": []}

        def they_delete(method, path, _):
            if method == "DELETE" and theirs in group.resources:
                azure_.forget(theirs, group.resources.pop(theirs), time.time())
        arm.trouble = they_delete
        done = azure(arm, "down", "--yes", "--only-ours")
        assert done.returncode == 0 and "vault cage-abcdefghijklm: purged" in done.stdout and list(azure_.deleted_vaults) == ["theirs"], done


def test_a_group_that_goes_while_it_is_looked_at():
    """As the one does that an earlier down asked for: what is left of it is found all the same."""
    with Arm() as arm:
        azure_ = Deployments(arm, protected=False)
        assert azure(arm, "up").returncode == 0
        group = azure_.groups[GROUP]

        def it_goes(_, path, __):
            if path.endswith("/resources") and GROUP in azure_.groups:
                for ident, resource in group.resources.items():
                    azure_.forget(ident, resource, time.time())
                del azure_.groups[GROUP]
        arm.trouble = it_goes
        done = azure(arm, "down", "--yes")
        assert done.returncode == 0 and done.stderr == "" and "is gone" in done.stdout and not azure_.deleted_vaults, done


def test_a_group_that_does_not_go():
    with Arm() as arm:
        azure_ = Deployments(arm, keeps=2)
        assert azure(arm, "up").returncode == 0
        done = azure(arm, "down", "--yes")
        assert done.returncode == 0 and "ScopeLocked: The vault can't be deleted." in done.stderr and not azure_.groups, done
    with Arm() as arm:
        azure_ = Deployments(arm, keeps=1000)
        assert azure(arm, "up").returncode == 0
        done = azure(arm, "down", "--yes")
        assert done.returncode == 1 and "is still there" in done.stderr and "are left:" in done.stderr and "cage-network" in done.stdout, done


def test_down_while_up_is_under_way(tmp_path):
    """A deployment that runs is canceled: it would make anew what is removed."""
    with Arm() as arm:
        azure_ = Deployments(arm, takes=2)
        assert azure(arm, "up", "--template", written(tmp_path / "t.json", template()), "--no-wait").returncode == 0
        done = azure(arm, "down", "--yes")
        assert done.returncode == 0 and "deployment cage: canceled" in done.stdout and not azure_.groups, done


@pytest.mark.parametrize("said, cancel", [("is still active: nothing was removed", (204, None, {})),
                                          ("AuthorizationFailed: no right to it", (403, {"error": {"code": "AuthorizationFailed", "message": "no right to it"}}, {}))])
def test_a_deployment_that_does_not_end(tmp_path, said, cancel):
    """Nothing is removed under one that would make it anew."""
    with Arm() as arm:
        azure_ = Deployments(arm, takes=1000)
        assert azure(arm, "up", "--template", written(tmp_path / "t.json", template()), "--no-wait").returncode == 0
        verb = azure_.verb
        azure_.verb = lambda method, *rest: cancel if rest[-1] == "cancel" else verb(method, *rest)
        done = azure(arm, "down", "--yes")
        assert done.returncode == 1 and said in done.stderr and not asked(arm, "DELETE") and azure_.groups, done


@pytest.mark.parametrize("answer, said", [({"value": [{}] * 100001}, "it is too long"), ({"value": [], "nextLink": "x" * 8192}, "the address of its next page is too long"),
                                          ({"value": "x"}, "a page of it is no list")])
def test_a_list_that_is_none(answer, said):
    with Arm() as arm:
        azure_ = Deployments(arm)
        azure_.groups[GROUP] = ResourceGroup(GROUP, "westeurope", {"cage.owner": "cage-azure"})
        azure_.resources = lambda *_: (200, answer, {})
        done = azure(arm, "down", "--yes")
        assert done.returncode == 1 and "what is there can't be listed: " + said in done.stderr and not asked(arm, "DELETE"), done.stderr


@pytest.mark.parametrize("word", WORDS)
@pytest.mark.parametrize("method, ending", [("GET", GROUP), ("DELETE", GROUP), ("GET", "/resources"), ("GET", "/deletedVaults"), ("POST", "/purge"), ("DELETE", "/cage-box0")])
def test_down_through_trouble(tmp_path, word, method, ending):
    with Arm() as arm:
        azure_ = Deployments(arm, protected=False)
        vault = {**template({"one": []}), "resources": [{"type": "Microsoft.KeyVault/vaults", "apiVersion": "2024-11-01", "name": "v", "location": "westeurope"}]}
        assert azure(arm, "up", "--template", written(tmp_path / "t.json", vault)).returncode == 0
        with_sandboxes(arm)
        arm.trouble = trouble((method, ending, (1,) if word == "401" else (1, 2), word))
        done = azure(arm, "down", "--yes")
        assert done.returncode == 0 and not azure_.groups and not arm.groups and not azure_.deleted_vaults, done


def test_down_killed_at_any_moment():
    chance = random.Random(11)
    for i in range(RUNS // 2):
        with Arm() as arm:
            azure_ = Deployments(arm, takes=0.005, protected=False)
            assert azure(arm, "up").returncode == 0
            with_sandboxes(arm)
            process = start(arm, "down", "--yes", location=None)
            try:
                process.wait(chance.uniform(0, 0.5))
            except subprocess.TimeoutExpired:
                process.kill()
            process.communicate()
            done = azure(arm, "down", "--yes")
            assert done.returncode == 0 and not azure_.groups and not arm.groups and not azure_.deleted_vaults, (i, done)


def test_down_stopped(tmp_path):
    with Arm() as arm:
        azure_ = Deployments(arm, delete_takes=1)
        assert azure(arm, "up", "--template", written(tmp_path / "t.json", template())).returncode == 0
        process = start(arm, "down", "--yes", location=None)
        wait_until(lambda: any(m == "DELETE" for m, _ in arm.asked), 30, "it does not delete")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 130 and "goes on" in err and "cage azure down once more" in err
        assert azure(arm, "down", "--yes").returncode == 0 and not azure_.groups


def test_down_stopped_before_anything_is_asked_for():
    """While it waits for a token: nothing was removed, and that is what it says."""
    with Arm(trouble=trouble(("GET", "/token", range(10000), "503"))) as arm:
        Deployments(arm)
        process = start(arm, "down", "--yes", location=None)
        wait_until(lambda: any("token" in p for _, p in arm.asked), 30, "it asks for no token")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)
        assert process.returncode == 130 and err.endswith("cage azure: stopped: nothing was asked of Azure, and nothing was removed\n"), err


# ---- terminals

def on_terminal(arm, *line):
    before = {k: os.environ.get(k) for k in arm.env()}
    os.environ.update(arm.env(), TERM="xterm")
    try:
        return Terminal([small(), *line])
    finally:
        for key, value in before.items():
            os.environ.pop(key) if value is None else os.environ.update({key: value})


def test_a_terminal_is_drawn_over(tmp_path):
    """One line for each resource, however often it changes."""
    with Arm() as arm:
        Deployments(arm, takes=0.7)
        terminal = on_terminal(arm, *words(arm, "up", "--template", written(tmp_path / "t.json", template())))
        code, seen = terminal.end()
        assert code == 0 and "\x1b[" in seen and "somewhere" in seen, seen
        last = seen.rsplit("\x1b[5A", 1)[1]
        assert len(re.findall(r"Succeeded +Test\.Things/things/\w+", last)) == 4 and "Running" not in last


def test_the_name_has_to_be_typed():
    with Arm() as arm:
        azure_ = Deployments(arm)
        assert azure(arm, "up").returncode == 0
        assert azure(arm, "down").returncode == 2 and not asked(arm, "DELETE")
        terminal = on_terminal(arm, *words(arm, "down"))
        terminal.wait("to remove it: ")
        terminal.type("yes\n")
        code, seen = terminal.end()
        assert code == 1 and "nothing was removed" in seen and not asked(arm, "DELETE")
        terminal = on_terminal(arm, *words(arm, "down"))
        terminal.wait("to remove it: ")
        terminal.type("\x03")
        code, seen = terminal.end()
        assert code == 130 and "stopped: nothing was asked of Azure, and nothing was removed" in seen and "not its name" not in seen and not asked(arm, "DELETE")
        terminal = on_terminal(arm, *words(arm, "down"))
        terminal.wait("to remove it: ")
        terminal.type(GROUP + "\n")
        assert terminal.end()[0] == 0 and not azure_.groups


def deleted_vault(azure_):
    azure_.forget(BASE + "/providers/Microsoft.KeyVault/vaults/v", {"type": "Microsoft.KeyVault/vaults", "name": "v", "tags": OURS}, time.time())


def test_the_name_is_typed_once():
    """An empty group, and a vault that an earlier one has left."""
    with Arm() as arm:
        azure_ = Deployments(arm, protected=False)
        azure_.groups[GROUP] = ResourceGroup(GROUP, "westeurope", OURS)
        deleted_vault(azure_)
        terminal = on_terminal(arm, *words(arm, "down"))
        terminal.wait("to remove it: ")
        terminal.type(GROUP + "\nno\n")
        code, seen = terminal.end()
        assert code == 0 and "This can't be undone" not in seen and "vault v: purged" in seen and not azure_.groups and not azure_.deleted_vaults, seen


def test_the_name_has_to_be_typed_for_vaults():
    """Where they are all that there is, it says so, before and after."""
    with Arm() as arm:
        azure_ = Deployments(arm, protected=False)
        deleted_vault(azure_)
        terminal = on_terminal(arm, *words(arm, "down"))
        terminal.wait("vault v: deleted, and not purged yet")
        terminal.wait("The name of the resource group, to purge them: ")
        terminal.type("yes\n")
        code, seen = terminal.end()
        assert code == 1 and "that is not its name: nothing was purged" in seen and not asked(arm, "DELETE", "POST"), seen
        terminal = on_terminal(arm, *words(arm, "down"))
        terminal.wait("to purge them: ")
        terminal.type(GROUP + "\n")
        assert terminal.end()[0] == 0 and not azure_.deleted_vaults


# ---- the command

def test_cage_azure_and_its_help():
    """`cage` finds cage-azure beside itself, and does not load libcurl for it."""
    cage = os.path.join(os.path.dirname(binary()), "cage")
    texts = [subprocess.run([cage, *line], capture_output=True, text=True, check=True, timeout=60).stdout
             for line in (["azure", "--help"], ["help", "azure"], ["azure", "up", "-h"])]
    assert texts[0] == texts[1] == texts[2] and "--only-ours" in texts[0]
    assert all("%s=" % name in texts[0] for name in GATEWAY)
    assert "azure up|plan|down" in subprocess.run([cage, "--help"], capture_output=True, text=True, check=True, timeout=60).stdout
    assert "libcurl" not in subprocess.run(["ldd", cage], capture_output=True, text=True, check=True, timeout=60).stdout
    with Arm() as arm:
        Deployments(arm)
        done = azure(arm, "plan", program=[cage, "azure"])
        assert done.returncode == 0 and "23 to create" in done.stdout


@pytest.mark.parametrize("line, said", [
    ([], "cage azure: a command is missing: expected up, plan or down\n"), (["sideways"], "sideways: expected up, plan or down"), (["up", "more"], "more: is not expected here"),
    (["up"], "--subscription: expected"), (["up", "--subscription", SUBSCRIPTION], "--group: expected"), (["up", "--subscription", SUBSCRIPTION, "--group", "a/b"], "--group: expected"),
    (["up", "--subscription", SUBSCRIPTION, "--group", "g", "--name", "a b"], "--name: expected"), (["up", "--subscription", SUBSCRIPTION, "--group", "g", "--endpoint", "http://example.com"], "--endpoint"),
    (["down", "--subscription", SUBSCRIPTION, "--group", "g", "--set", "a=b"], "takes no parameters"), (["up", "--subscription", SUBSCRIPTION, "--group", "g", "--yes"], "are of down alone"),
    (["plan", "--subscription", SUBSCRIPTION, "--group", "g", "--no-wait"], "is of up alone"), (["up", "--nope"], "--nope"), (["up", "--credentials", "x"], "--credentials: expected"),
    (["down", "--subscription", SUBSCRIPTION, "--group", "g", "--location", "westeurope"], "--location: is not for down"),
    *(([verb, "--subscription", text, "--group", "g"], '--subscription: expected the id of a subscription, as 11111111-2222-3333-4444-555555555555, and got "%s"' % text)
      for verb, text in (("up", "my subscription"), ("plan", SUBSCRIPTION[:-1]), ("down", SUBSCRIPTION + "5"), ("up", SUBSCRIPTION.replace("2", "g")), ("up", SUBSCRIPTION.replace("-", "0")))),
    (["up", "--subscription", SUBSCRIPTION, "--group", "g", "--location", "west europe"], '--location: expected a name such as westeurope, and got "west europe"'),
    (["up", "--subscription", SUBSCRIPTION, "--group", "a/b\x1b"], '--group: expected the name of a resource group, and got "a/b\\x1b"'),
    (["up", "--subscription", SUBSCRIPTION, "--group", "g", "--endpoint", "ftp://x"], '--endpoint: expected https://HOST, and got "ftp://x"'),
    (["up", "--subscription", SUBSCRIPTION, "--group", "g", "--endpoint", "https://me:s3cr3t@x"], "--endpoint: expected https://HOST\n"),
])
def test_wrong_usage(line, said):
    done = subprocess.run([small(), *line], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2 and said in done.stderr, done.stderr


def test_what_the_readme_says_of_the_service(tmp_path, pki):
    """Both serve.yaml of infra/azure/README.md, with the outputs of up in them: nothing is wrong with them."""
    with open(os.path.join(SOURCE, "infra", "azure", "README.md"), encoding="utf-8") as f:
        texts = re.findall(r"^```yaml\n(.*?)^```$", f.read(), re.M | re.S)
    with Arm() as arm:
        Deployments(arm)
        outputs = {**json.loads(azure(arm, "up", "--json").stdout)["outputs"], "ID": SUBSCRIPTION}
        outputs.update(registryServer="registry.example.com", proxyClientId=SUBSCRIPTION, logIngestionEndpoint="https://log.example.com", logRuleId="dcr-" + 32 * "0")  # Azure's own
        assert len(texts) == 2
        for text in texts:
            text = re.sub(r"\$(\w+)", lambda m: outputs[m.group(1)], text).replace("sha256:...", "sha256:" + 64 * "a").replace("/etc/cage/intake.pem", pki.ca_pem)
            file = written(tmp_path / "serve.yaml", text.replace("    group: cage", "    endpoint: %s\n    group: %s" % (arm.url, GROUP)))
            line = [os.path.join(os.path.dirname(binary()), "cage"), "serve", "--check", "--state", str(tmp_path / "s"), "--config", file]
            done = subprocess.run(line, capture_output=True, text=True, timeout=60, env={**os.environ, **arm.env(), "CAGE_INTAKE_TOKEN": 32 * "t"}, check=False)
            assert "serve.yaml:" not in done.stderr and done.returncode == (1 if "split" in text else 0), done  # a gateway is not there


def test_where_the_template_is_found(tmp_path):
    (tmp_path / "azure").mkdir()
    written(tmp_path / "azure" / "main.json", template({"only": []}))
    with Arm() as arm:
        Deployments(arm)
        assert "1 to create" in azure(arm, "plan", env={"CAGE_INFRA": str(tmp_path)}).stdout
        assert "23 to create" in azure(arm, "plan").stdout
        done = azure(arm, "plan", env={"CAGE_INFRA": "/nonexistent"})
        assert done.returncode == 2 and "/nonexistent/azure/main.json" in done.stderr


# ---- answers that lie

ESCAPE = "\x1b]0;title\x07\x1b[2J"


def lying(deployments=(), resources=(), vaults=()):
    """A resource group of ours, until it is deleted; all that is asked for is done."""
    gone = set()

    def answer(handler, path, _query, _body, _now):
        low = path.lower()
        lists = {"/resources": resources, "/deployments": deployments, "/deletedvaults": vaults}
        if handler.command in ("POST", "DELETE"):
            gone.add(low)
            return 200, {}, {}
        if low in gone:
            return 404, {"error": {"code": "ResourceNotFound", "message": "x"}}, {}
        if low == BASE.lower():
            return 200, {"id": BASE, "name": GROUP, "location": "westeurope", "tags": OURS, "properties": {}}, {}
        for ending, items in lists.items():
            if low.endswith(ending):
                return 200, {"value": list(items)}, {}
        return 200, {"properties": {"provisioningState": "Succeeded"}}, {}
    return answer


def test_down_purges_no_vault_but_that_which_was_here():
    """The id, the name and the place of a vault that was deleted come from an answer. What is purged has the name that was seen in the group."""
    own, kind = BASE + "/providers/Microsoft.KeyVault/vaults/", "Microsoft.KeyVault/vaults"
    deleted = ROOT + "/providers/Microsoft.KeyVault/locations/westeurope/deletedVaults/"
    vaults = [{"id": deleted + "PRODVAULT", "name": "v1" + ESCAPE, "properties": {"vaultId": own + "v1", "location": "westeurope"}},
              {"id": "/subscriptions/1/resourceGroups/PROD/providers/Microsoft.Web/sites/shop", "name": "x", "properties": {"vaultId": own + "v2", "location": "../../x?"}},
              {"id": deleted + "v3", "name": "v3", "properties": {"vaultId": own + "v1/secrets/v3", "location": "westeurope", "tags": OURS}}]
    with Arm() as arm:
        arm.more.append(lying(resources=[{"id": own + n, "name": n, "type": kind, "location": "w"} for n in ("v1", "v2")], vaults=vaults))
        done = azure(arm, "down", "--yes")
        assert [p.split("?")[0] for _, p in asked(arm, "POST")] == [deleted + "v1/purge"], arm.asked
    assert done.returncode == 1 and "vault v1: purged\n" in done.stdout and "vault v2: can't be purged" in done.stderr and "\x1b" not in done.stdout + done.stderr, done


@pytest.mark.parametrize("only", [False, True])
@pytest.mark.parametrize("name", ["../../../../PROD/providers/Microsoft.Compute/virtualMachines/db/deallocate?x=", "a/b", "a?b", "a#b", "a%2fb", "..", "cage" + ESCAPE, pytest.param("x" * 5000, id="long")])
def test_down_cancels_no_deployment_whose_name_is_none(name, only):
    ident = BASE + "/providers/Microsoft.Resources/deployments/cage"
    with Arm() as arm:
        arm.more.append(lying(deployments=[{"id": ident, "name": name, "tags": OURS, "properties": {"provisioningState": "Running"}}]))
        done = azure(arm, "down", "--yes", *(["--only-ours"] if only else []))
        assert not asked(arm, "POST") and not [p for _, p in arm.asked if "PROD" in p or "/deployments/" in p], arm.asked
    assert done.returncode == 1 and "\x1b" not in done.stdout + done.stderr, done


@pytest.mark.parametrize("status", [400, 200])
def test_a_token_that_an_answer_quotes_is_not_shown(status):
    """In a refusal, and in the error of a deployment that has failed."""
    tags = {}

    def answer(handler, path, _query, body, _now):
        wrong = {"code": "Bad", "message": "header", "details": [{"code": "Inner", "message": handler.headers["Authorization"]}]}
        if tags and path.lower().endswith("/deployments/cage/operations"):
            return 200, {"value": []}, {}
        if not path.lower().endswith("/deployments/cage"):
            return None
        if handler.command == "PUT":
            tags.update(body.get("tags", {}))
            return (status, {"error": wrong}, {}) if status >= 300 else (201, {"properties": {"provisioningState": "Running"}}, {})
        if not tags:
            return None
        return 200, {"tags": tags, "properties": {"provisioningState": "Failed", "error": wrong}}, {}
    with Arm() as arm:
        arm.more.append(answer)
        Deployments(arm)
        done = azure(arm, "up")
    assert done.returncode == 1 and "eyJ0" not in done.stdout + done.stderr, done
    assert "(left out: it holds a secret)" in done.stderr, done
