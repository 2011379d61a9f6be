"""What `cage serve --check` tells of `backends: {aci: ...}`: all that is wrong with it, where it stands, and nothing is asked of Azure before."""
import os
import re
import signal
import subprocess

import pytest
from cagelib.aci import IMAGES, small
from cagelib.arm import GROUP, SUBSCRIPTION, Arm
from cagelib.cage_run import command_line
from cagelib.gateway import INTAKE_TOKEN, SUBNET
from cagelib.proxy import binary, children_of, is_alive, wait_until

GOOD = {"subscription": SUBSCRIPTION, "group": GROUP, "regions": "[westeurope]", "credentials": "identity", "image": IMAGES[1], "gate_image": IMAGES[7]}
ONE = {**GOOD, "proxy_image": IMAGES[3], "dns_image": IMAGES[5]}
SPLIT = {**GOOD, "topology": "split", "gateway": "10.60.0.4:8080", "intake": "https://10.60.0.4:8443", "subnet": SUBNET}
IDENTITY = "/subscriptions/s/resourceGroups/g/providers/Microsoft.ManagedIdentity/userAssignedIdentities/"


@pytest.fixture
def azure():
    with Arm() as arm:
        yield arm


class Checked:
    """A file with one key in each line of the section, and what is said of it: {key: what}; "" for the section itself."""

    def __init__(self, tmp_path, arm, values, token=INTAKE_TOKEN, more="", env=None):
        values = {**values, "endpoint": arm.url} if "endpoint" not in values else values
        self.keys = list(values)
        lines = ["version: 1", "backends:", "  aci:", *("    %s: %s" % item for item in values.items()), more]
        (tmp_path / "serve.yaml").write_text("\n".join(lines) + "\n")
        env = {**os.environ, **arm.env(), **({"CAGE_INTAKE_TOKEN": token} if token else {}), **(env or {})}
        line = [binary("cage"), "serve", "--check", "--state", str(tmp_path / "s"), "--config", str(tmp_path / "serve.yaml")]
        done = subprocess.run(line, capture_output=True, text=True, timeout=60, env=env, check=False)
        self.code, self.said, self.asked = done.returncode, done.stderr, list(arm.asked)

    def told(self):
        """Each of them has a place, and it is the right one."""
        found = []
        for line in self.said.splitlines():
            parts = re.fullmatch(r"(?:cage-serve: )?\S*serve\.yaml:(\d+):(\d+): backends\.aci(?:\.([a-z_]+)(?:\[\d+\])?)?: (.*)", line)
            assert parts, line
            number, column, key, what = parts.groups()
            assert int(number) == (4 if not key else 4 + self.keys.index(key)) and int(column) >= 5, line
            found.append((key or "", what))
        return found


@pytest.mark.parametrize("values", [ONE, SPLIT, {**ONE, "identity": "[%sa, %sb]" % (IDENTITY, IDENTITY), "identity_client": "c", "resolver": "10.0.0.1", "registry": "r.test:5000"},
                                    {**SPLIT, "gateway_dns": "'[fd00::1]:53'", "identity": IDENTITY + "pull"}], ids=range(4))
def test_what_is_good(tmp_path, azure, values):
    """Then Azure is asked, and a gateway, which is not there."""
    checked = Checked(tmp_path, azure, values)
    assert checked.code == (1 if "topology" in values else 0) and "serve.yaml" not in checked.said and checked.asked, checked.said


@pytest.mark.parametrize("of, key, value, what", [
    (SPLIT, "gateway", "gateway.example.com:8080", "expected ADDRESS:PORT, and no name"), (SPLIT, "gateway", "10.60.0.4", "expected ADDRESS:PORT"),
    (SPLIT, "gateway", "10.60.0.4:0", "expected ADDRESS:PORT"), (SPLIT, "gateway", "10.60.0.4:65536", "expected ADDRESS:PORT"), (SPLIT, "gateway_dns", "dns:53", "no name"),
    (SPLIT, "intake", "http://10.60.0.4:8443", "expected https://HOST:PORT"), (SPLIT, "intake", "http://127.0.0.1:8443", "expected https://HOST:PORT"),
    (SPLIT, "intake", "https://10.60.0.4:84430", "expected https://HOST:PORT"), (SPLIT, "intake", "https://10.60.0.4:8443/v1", "expected https://HOST:PORT"),
    (SPLIT, "intake", "https://", "expected https://HOST:PORT"), (SPLIT, "intake_ca", "/nowhere/ca.pem", "expected a file with certificates"),
    (SPLIT, "intake_ca", "/etc/hostname", "expected a file with certificates"), (SPLIT, "intake_ca", "/etc", "expected a file with certificates"),
    (SPLIT, "subnet", "locked", "expected /subscriptions/ID/resourceGroups/NAME/providers/Microsoft.Network/virtualNetworks/NAME/subnets/NAME"),
    (SPLIT, "subnet", SUBNET + "/x", "expected /subscriptions/"), (SPLIT, "subnet", SUBNET.replace("/v/", "//"), "expected /subscriptions/"),
    (SPLIT, "subnet", IDENTITY + "i", "expected /subscriptions/"), (SPLIT, "proxy_image", IMAGES[3], "leave it out"), (SPLIT, "dns_image", IMAGES[5], "leave it out"),
    (SPLIT, "identity", "[%sa, %sb]" % (IDENTITY, IDENTITY), "with split there is one"), (SPLIT, "vault_secrets", "reference", "with split there is one"),
    (ONE, "image", "registry.test/agent:1", "expected REGISTRY/REPOSITORY@sha256:HEX"), (ONE, "gate_image", "agent", "expected REGISTRY/REPOSITORY@sha256:HEX"),
    (ONE, "proxy_image", IMAGES[3][:-1], "expected REGISTRY/REPOSITORY@sha256:HEX"), (ONE, "dns_image", "registry.test/dns@sha256:x", "expected REGISTRY/REPOSITORY@sha256:HEX"),
    (ONE, "gateway", "10.0.0.4:1", "it is for the topology split alone"), (ONE, "intake", "https://10.0.0.4:1", "it is for the topology split alone"),
    (ONE, "topology", "spilt", "expected group or split"), (ONE, "sku", "standard", "expected Standard or Confidential"), (ONE, "credentials", "me", "expected auto, secret"),
    (ONE, "vault_secrets", "azure", "expected proxy or reference"), (ONE, "vault_secrets", "reference", "there is no identity"), (ONE, "identity_client", "c", "there is no identity"),
    (ONE, "identity", "i", "expected /subscriptions/"), (ONE, "resolver", "dns.example.com", "expected ADDRESS or ADDRESS:PORT, and no name"), (ONE, "registry", "https://r.test", "expected the name of a server"),
    (ONE, "endpoint", "http://azure.test", "expected https://HOST"), (ONE, "ca_file", "/nowhere", "expected a file with certificates"), (ONE, "map_dir", "maps", "expected an absolute path"),
    (ONE, "ca_file", "nowhere", "expected an absolute path"), (ONE, "group", "a/b", "expected the name of a resource group"), (ONE, "group", "-x", "expected a value that is no option"),
    (ONE, "regions", "[west europe]", "expected a name such as westeurope"), (ONE, "registry_password_file", "/nowhere", "expected a file")])
def test_a_value_that_is_wrong(tmp_path, azure, of, key, value, what):
    checked = Checked(tmp_path, azure, {**of, key: value})
    assert checked.code == 2 and not checked.asked, checked.said
    told = [text for at, text in checked.told() if at == key]
    assert told and what in told[0], checked.said
    assert not what.startswith("expected") or "no option" in what or value.strip("[]")[:40] in told[0], "it is not said what there is"


@pytest.mark.parametrize("token, got", [(None, "none"), ("", "none"), ("short", "fewer"), ("t" * 31, "fewer"), ("t" * 512, "more"), ("t" * 20 + " " + "t" * 20, "a blank"), ("t" * 32, None), ("t" * 511, None)])
def test_the_token_of_the_intake(tmp_path, azure, token, got):
    checked = Checked(tmp_path, azure, SPLIT, token=token)
    assert (checked.code == 2) == bool(got) and (not token or token not in checked.said), checked.said
    if got:
        ((key, what),) = checked.told()
        assert key == "intake" and "CAGE_INTAKE_TOKEN: expected 32 to 511 characters, got " + got in what


def test_all_that_is_missing_is_named(tmp_path, azure):
    checked = Checked(tmp_path, azure, {"topology": "split"}, token=None)
    missing = {re.match('missing key "([a-z_]+)"', what)[1] for _, what in checked.told()}
    assert checked.code == 2 and missing == {"subscription", "group", "regions", "image", "gate_image", "gateway", "intake", "subnet"}, checked.said
    assert "CAGE_INTAKE_TOKEN" in checked.said
    checked = Checked(tmp_path, azure, {"subscription": "s"}, token=None)
    missing = {re.match('missing key "([a-z_]+)"', what)[1] for _, what in checked.told()}
    assert checked.code == 2 and missing == {"group", "regions", "image", "gate_image", "proxy_image", "dns_image"}, checked.said


def test_all_that_is_wrong_is_told_at_once(tmp_path, azure):
    wrong = {"image": "a:1", "gateway": "gateway:8080", "intake": "http://x", "intake_ca": "/nowhere", "subnet": "s", "proxy_image": IMAGES[3], "sku": "x"}
    checked = Checked(tmp_path, azure, {**SPLIT, **wrong}, token="short")
    assert checked.code == 2 and {key for key, _ in checked.told()} == set(wrong) and len(checked.told()) == len(wrong) + 1, checked.said


@pytest.mark.parametrize("env, code", [({}, 2), ({"CAGE_REGISTRY_PASSWORD": ""}, 2), ({"CAGE_REGISTRY_PASSWORD": "p"}, 0)])
def test_the_password_of_a_registry(tmp_path, azure, env, code):
    checked = Checked(tmp_path, azure, {**ONE, "registry": "r.test", "registry_username": "u"}, env=env)
    assert checked.code == code and (not code or "there is no password" in checked.told()[0][1]), checked.said


def test_cage_aci_tells_all_of_it_too(azure):
    line = [small(), *azure.words(), "--topology", "split", "--gateway", "name:1", "--image", "a", "--subnet", "s", "run", "--", "x"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=20, env={**os.environ, **azure.env()}, check=False)
    told = [line.split(": ")[1] for line in done.stderr.splitlines()]
    assert done.returncode == 2 and sorted(told) == ["--gate-image", "--gateway", "--image", "--intake", "--intake", "--region", "--subnet"], done.stderr


def aci(arm, *words):
    done = subprocess.run([small(), *arm.words(), *words], capture_output=True, text=True, timeout=20, env={**os.environ, **arm.env()}, check=False)
    return done.returncode, sorted(line.split(": ", 1)[1] for line in done.stderr.splitlines())


def test_words_of_options_are_judged_with_all_others(azure):
    """None of them keeps the others from being told."""
    code, told = aci(azure, "--region", "west europe", "--topology", "spilt", "--vault-secrets", "azure", "--region", "a/b", *IMAGES, "--sku", "x", "run", "--", "x")
    assert code == 2 and told == ['--region: expected a name such as westeurope, got "a/b"', '--region: expected a name such as westeurope, got "west europe"',
                                  '--sku: expected Standard or Confidential, got "x"', '--topology: expected group or split, got "spilt"',
                                  '--vault-secrets: expected proxy or reference, got "azure"']


def test_what_is_only_looked_for_needs_little(azure):
    assert aci(azure, "--region", "west europe", "--vault-secrets", "azure", "--sku", "x", "list") == (0, [])
    code, told = aci(azure, "--topology", "spilt", "--group", "a/b", "--endpoint", "http://azure.test", "list")
    assert code == 2 and [text.split(":")[0] for text in told] == ["--endpoint", "--group", "--topology"], told
    code, told = aci(azure, "--topology", "split", "remove", "x")
    assert code == 2 and [text.split(":")[0] for text in told] == ["--intake", "--intake"] and "CAGE_INTAKE_TOKEN" in told[0] + told[1], told


@pytest.mark.parametrize("how", ["killed", "interrupted"])
def test_a_check_ends_with_who_asked_for_it(tmp_path, how):
    """Azure does not answer, and who has asked is gone: nobody goes on asking."""
    with Arm(trouble=lambda method, path, _: "stall" if path.endswith("containerGroups") else None) as arm:
        (tmp_path / "serve.yaml").write_text("version: 1\nbackends:\n  aci:\n" + "".join("    %s: %s\n" % item for item in {**ONE, "endpoint": arm.url}.items()))
        line = [binary("cage"), "serve", "--check", "--state", str(tmp_path / "s"), "--config", str(tmp_path / "serve.yaml")]
        with subprocess.Popen(line, env={**os.environ, **arm.env()}) as asker:
            try:
                wait_until(lambda: any(path.split("?")[0].endswith("containerGroups") for _, path in arm.asked), 30, "nothing is asked for")
                (child,) = children_of(asker.pid)
                assert os.path.basename(command_line(child)[0]) == "cage-aci"
            finally:
                asker.send_signal(signal.SIGKILL if how == "killed" else signal.SIGINT)
                asker.wait(30)
            wait_until(lambda: not is_alive(child), 10, "it goes on without who has asked")
