"""Where the values of secrets come from, and where they are not to be seen (THREATS T33, T34)."""
import os
import re
import signal
import subprocess

import pytest
from cagelib.proxy import binary, children_of, policy, wait_until

VALUE = "sk-real-value-0123456789"
OTHER = "sk-other-value-987654321"
ENV = {"id": "gh-token", "from": {"env": "CAGE_TEST_KEY"}}


def with_secrets(*secrets, **more):
    return policy({"id": "r", "hosts": ["a.test"], "secrets": [s["id"] for s in secrets]}, secrets=list(secrets), **more)


def run(*args, env=None):
    return subprocess.run([binary(), *args], capture_output=True, text=True, timeout=30, env={**os.environ, **(env or {})})


def refused_policy(tmp_path, secret, *args, env=None):
    """What cage-proxy says about a policy with that secret, line 5; it must end with 2."""
    path = tmp_path / "policy.yaml"
    path.write_text("version: 1\nname: t\nrules: [{id: r, hosts: [a.test], secrets: [k]}]\nsecrets:\n  - %s\n" % secret)
    done = run("--policy", str(path), "--ca-dir", str(tmp_path / "ca"), "--listen", "127.0.0.1:0", "--admin", "off", *args,
               env=env)
    assert done.returncode == 2, done
    return done.stderr.replace(str(path), "policy.yaml")


# ---- at the start

@pytest.mark.parametrize("args", [(), ("--check",)])
def test_a_variable_that_is_missing(tmp_path, args):
    said = refused_policy(tmp_path, "{id: k, from: {env: CAGE_TEST_KEY}}", *args)
    assert 'policy.yaml:5:19: secrets[0].from: the variable "CAGE_TEST_KEY" can\'t be used: it is not set' in said


@pytest.mark.parametrize("value, why", [("", "is empty"), ("1234567", "is shorter than 8 bytes"), ("two\nlines-of-it", "holds a line break"),
                                        ("a-cage-ph-b-c", 'contains "cage-ph-"'), ("{{KEY-1}}-", "contains a placeholder")])
def test_t33_a_value_that_is_no_good(tmp_path, value, why):
    said = refused_policy(tmp_path, "{id: k, from: {env: CAGE_TEST_KEY}, placeholder: '{{KEY-1}}'}", env={"CAGE_TEST_KEY": value})
    assert "policy.yaml:5:19: secrets[0].from: " in said and why in said
    assert not value or value not in said


def test_a_file_that_is_missing(tmp_path):
    said = refused_policy(tmp_path, "{id: k, from: {file: no/such}}")
    assert "policy.yaml:5:19: secrets[0].from: " in said and "it is not there" in said


def test_check_reads_the_values(tmp_path):
    (tmp_path / "k").write_text(VALUE + "\n")
    path = tmp_path / "policy.yaml"
    path.write_text("version: 1\nname: t\nrules: [{id: r, hosts: [a.test], secrets: [k, l]}]\n"
                    "secrets: [{id: k, from: {file: k}}, {id: l, from: {env: CAGE_TEST_KEY}}]\n")
    done = run("--policy", str(path), "--check", env={"CAGE_TEST_KEY": OTHER})
    assert done.returncode == 0, done
    assert VALUE not in done.stdout + done.stderr


# ---- where they are not

def everybody(cage):
    return [cage.pid, *children_of(cage.pid)]


def read_proc(pid, name):
    with open("/proc/%d/%s" % (pid, name), "rb") as f:
        return f.read()


def test_t34_no_environment_shows_it(start_cage):
    cage = start_cage(with_secrets(ENV), "--workers", "2", env={"CAGE_TEST_KEY": VALUE, "CAGE_TEST_REST": "stays"})
    assert len(everybody(cage)) == 5
    for pid in everybody(cage):
        environ = read_proc(pid, "environ")
        assert b"CAGE_TEST_REST=stays" in environ
        assert VALUE.encode() not in environ
        assert VALUE.encode() not in read_proc(pid, "cmdline")
    assert VALUE not in cage.stderr.text()
    cage.reload(with_secrets(ENV, name="again"))  # which finds it all the same
    assert VALUE not in cage.stderr.text()


def has_vault(pid):
    """The protection of the vault's memory in that process, or None."""
    line = next((x for x in read_proc(pid, "maps").decode().splitlines() if "cage-vault" in x), None)
    return line and line.split()[1]


def test_t34_who_has_the_vault(start_cage):
    cage = start_cage(with_secrets(ENV), env={"CAGE_TEST_KEY": VALUE})
    have = {read_proc(pid, "comm").decode().strip(): has_vault(pid) for pid in everybody(cage)}
    assert have.pop("cage-proxy") == "rw-s"
    assert have == {"cage-worker": "r--s", "cage-signer": None, "cage-log": None}
    # Nobody but the master holds its file open, through which it could be had again, and no core file would have it.
    for pid in everybody(cage):
        links = [os.readlink("/proc/%d/fd/%s" % (pid, fd)) for fd in os.listdir("/proc/%d/fd" % pid)]
        assert pid == cage.pid or not any("cage-vault" in x for x in links)
        flags = re.search(r"cage-vault.*?VmFlags: ([^\n]*)", read_proc(pid, "smaps").decode(), re.S)
        assert not has_vault(pid) or "dd" in flags.group(1).split()


# ---- changes

@pytest.fixture
def key(tmp_path):
    path = tmp_path / "key"
    path.write_text(VALUE + "\n")
    return path


def replace(path, text):
    new = path.with_suffix(".new")
    new.write_text(text)
    new.rename(path)


def test_a_file_changes_goes_and_comes_back(start_cage, key):
    cage = start_cage(with_secrets({"id": "k", "from": {"file": str(key)}}))
    replace(key, OTHER + "\n")
    cage.stderr.wait(r"secret k: the file \S+ has a new value", 10)
    key.unlink()
    cage.stderr.wait(r"secret k: the file \S+ is not there; requests that need it are refused", 10)
    replace(key, OTHER)
    cage.stderr.wait(r"secret k: the file \S+ is back", 10)
    replace(key, "bad")
    cage.stderr.wait(r"secret k: the file \S+ is shorter than 8 bytes", 10)
    assert VALUE not in cage.stderr.text() and OTHER not in cage.stderr.text()


def test_sighup_reads_files_again(start_cage, key):
    """At once, and when one of them is no good, the policy that has it is refused like any other that is wrong."""
    rules = with_secrets({"id": "k", "from": {"file": str(key)}})
    cage = start_cage(rules)
    key.unlink()
    cage.reload(rules, reason="policy.rejected")
    cage.stderr.wait(r"policy\.yaml:\d+:\d+: secrets\[0\]\.from: .* it is not there", 10)
    replace(key, OTHER)
    cage.reload(rules)


def test_a_secret_can_come_and_go_with_reloads(start_cage, key):
    secret = {"id": "k", "from": {"file": str(key)}}
    cage = start_cage(policy({"id": "r", "hosts": ["a.test"]}), env={"CAGE_TEST_KEY": VALUE})
    cage.reload(with_secrets(secret, ENV))
    cage.reload(policy({"id": "r", "hosts": ["a.test"]}))
    cage.reload(with_secrets(ENV))
    assert cage.reload(with_secrets(ENV, secret))["gen"] == 5


def test_a_worker_that_is_restarted_finds_no_environment_either(start_cage):
    cage = start_cage(with_secrets(ENV), env={"CAGE_TEST_KEY": VALUE})
    cage.expect_deaths = True
    before = set(children_of(cage.pid))
    worker = next(p for p in before if read_proc(p, "comm") == b"cage-worker\n")
    os.kill(worker, signal.SIGKILL)
    new = wait_until(lambda: set(children_of(cage.pid)) - before, 10, "no new worker")
    wait_until(lambda: cage.admin("/readyz").status == 200, 10, "never ready again")
    assert VALUE.encode() not in read_proc(new.pop(), "environ")
    cage.children = children_of(cage.pid)


# ---- --print-env

PRINTED = """version: 1
name: t
rules: [{id: r, hosts: [a.test], secrets: [one, gh.api-token, three]}]
secrets:
  - {id: one, from: {env: ONE_KEY}, placeholder: "{{ONE_KEY}}"}
  - {id: gh.api-token, from: {file: nowhere}}
  - {id: three, from: {env: THREE_KEY}}
"""


def printed(tmp_path, *args, policy_text=PRINTED):
    (tmp_path / "policy.yaml").write_text(policy_text)
    return run("--policy", str(tmp_path / "policy.yaml"), "--ca-dir", str(tmp_path / "ca"), "--print-env", *args)


def test_print_env(tmp_path):
    done = printed(tmp_path)  # no value is there, and none is needed
    assert done.returncode == 0 and not done.stderr, done
    lines = dict(x.split("=", 1) for x in done.stdout.splitlines())
    assert list(lines) == ["ONE_KEY", "GH_API_TOKEN", "THREE_KEY"]
    assert lines["ONE_KEY"] == "{{ONE_KEY}}"
    assert all(re.fullmatch(r"cage-ph-[0-9a-f]{32}", lines[x]) for x in ("GH_API_TOKEN", "THREE_KEY"))
    assert lines["GH_API_TOKEN"] != lines["THREE_KEY"]
    assert printed(tmp_path).stdout == done.stdout
    other = dict(x.split("=", 1) for x in printed(tmp_path, "--sandbox", "other").stdout.splitlines())
    assert other["ONE_KEY"] == lines["ONE_KEY"]
    assert other["THREE_KEY"] != lines["THREE_KEY"]
    os.unlink(tmp_path / "ca" / "placeholder.key")
    assert printed(tmp_path).stdout != done.stdout


def test_print_env_of_a_wrong_policy(tmp_path):
    done = printed(tmp_path, policy_text=PRINTED.replace("three]", "thre]"))
    assert done.returncode == 2 and not done.stdout
    assert 'no secret has the id "thre"; did you mean "three"?' in done.stderr
