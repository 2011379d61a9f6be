"""The files of cage itself in a room: whatever is bound, the CA's keys, the directory of the run and files with secrets are never
seen, logs and policies never changed. What can't be had otherwise is refused, with 2."""
import json
import os
import shutil
import subprocess

import pytest
from cagelib.cage_run import Room, Running
from cagelib.proxy import binary, policy

SECRET = "value-of-a-secret-in-a-file-0123456789"


@pytest.fixture
def tmp_path(open_dir):
    return open_dir


@pytest.fixture
def room(tmp_path):
    """Its policy, log and CA are in tmp_path/own; the secret is in tmp_path/keys; what is shown is tmp_path/shown."""
    if subprocess.run([binary("cage-gate"), "--probe", "--mode", "netns"], capture_output=True, timeout=20).returncode != 0:
        pytest.skip("NOT TESTED, no room with mounts can be made here")
    for name in ("own", "keys", "shown"):
        (tmp_path / name).mkdir()
    (tmp_path / "keys" / "key").write_text(SECRET)
    (tmp_path / "shown" / "file").write_text("text\n")
    secret = {"id": "key", "from": {"file": str(tmp_path / "keys" / "key")}, "in": ["header:x-api-key"]}
    rules = policy({"id": "site", "hosts": ["site.test"], "secrets": ["key"]}, secrets=[secret])
    rules["include"] = ["more.yaml"]
    (tmp_path / "own" / "more.yaml").write_text(json.dumps({"version": 1, "rules": [{"id": "more", "hosts": ["more.test"]}]}))
    return Room(tmp_path / "own", rules)


def seen(room, where):
    """All that the command can read there."""
    return "find %s -type f -exec cat {} + 2>/dev/null; true" % where


def refused(done, *words):
    assert (done.returncode, done.stdout) == (2, ""), done.stderr
    for word in words:
        assert word in done.stderr


@pytest.mark.parametrize("what", ["own", "own/ca", "own/log.jsonl", "own/log.jsonl.dns", "own/policy.yaml", "own/more.yaml", "keys", "keys/key", "."])
@pytest.mark.parametrize("place", ["", ":/mnt/there"])
def test_t36_bound_to_be_changed(room, tmp_path, what, place):
    """Also what is above one of them: who can rename its directory can put another in its place."""
    assert room.sh("true").returncode == 0  # all of it is there
    refused(room.sh("echo ran", options=["--bind", os.path.normpath(tmp_path / what) + place]), "--bind", "cage")


def test_t36_log_that_is_not_there_yet(room, tmp_path):
    (tmp_path / "logs").mkdir()
    argv = room.argv("sh", "-c", "echo ran", options=["--bind", str(tmp_path / "logs"), "--log", str(tmp_path / "logs" / "l")])
    refused(subprocess.run(argv, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL), "/logs/l ")


def test_t36_a_link_leads_nowhere_else(room, tmp_path):
    """The directory that has the policy's name is as much as the one that has the policy."""
    os.symlink(room.policy_path, tmp_path / "shown" / "policy.yaml")
    room.policy_path = str(tmp_path / "shown" / "policy.yaml")
    os.symlink(tmp_path / "own" / "more.yaml", tmp_path / "shown" / "more.yaml")
    refused(room.sh("echo ran", options=["--bind", str(tmp_path / "shown")]), "shown/policy.yaml")
    os.symlink(tmp_path / "own", tmp_path / "name")
    refused(room.sh("echo ran", options=["--bind", str(tmp_path / "name")]), "--bind")


IN_DIRECTORIES = [(".", "own/ca"), ("own", "own/ca"), ("keys", "keys/key"), ("own/ca", "own/ca"), ("own/ca/patches", "own/ca")]
IN_FILES = [("own/ca/ca.key", "own/ca"), ("keys/key", "keys/key")]


@pytest.mark.parametrize("option, what, own", [("--bind-ro", *row) for row in IN_DIRECTORIES + IN_FILES] + [("--workspace", *row) for row in IN_DIRECTORIES])
def test_t36_secrets_are_not_shown(room, tmp_path, option, what, own):
    """Neither they, nor what they are in: a cover would lie over a name, and a file that is put there later under it."""
    room.sh("true")
    os.makedirs(tmp_path / "own" / "ca" / "patches", exist_ok=True)
    shown = os.path.normpath(tmp_path / what)
    refused(room.sh("echo ran", options=[option, shown]), "%s %s: " % (option, shown), str(tmp_path / own), "keep it elsewhere, or show less")
    if option == "--bind-ro":
        refused(room.sh("echo ran", options=[option, shown + ":/mnt/x"]), str(tmp_path / own))


def test_t36_logs_and_policies_can_be_read(room, tmp_path):
    for name in ("policy.yaml", "more.yaml"):
        shutil.copy(tmp_path / "own" / name, tmp_path / "shown" / name)
    room.policy_path = str(tmp_path / "shown" / "policy.yaml")
    options = ["--bind-ro", str(tmp_path / "shown")]
    assert "more.test" in room.sh(seen(room, tmp_path / "shown"), options=options).stdout
    assert room.sh("cd %s && echo x > policy.yaml || rm more.yaml" % (tmp_path / "shown"), options=options).returncode != 0
    room.check_logs()


@pytest.mark.parametrize("variables", [{}, {"XDG_STATE_HOME": "state"}])
@pytest.mark.parametrize("option", ["--bind", "--bind-ro", "--workspace"])
def test_t36_a_ca_that_is_not_there_yet(room, tmp_path, option, variables):
    """The default one, which the next run would make: what is above its place is not shown, whoever looks for it."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED, only root can be another user")
    user = ["setpriv", "--reuid=4711", "--regid=4711", "--clear-groups"]
    for name in ("home", "home/.local", "state"):
        (tmp_path / name).mkdir()
        os.chown(tmp_path / name, 4711, 4711)
    shutil.copytree(tmp_path / "own", tmp_path / "home" / "own")
    (tmp_path / "home" / "own" / "policy.yaml").write_text(json.dumps(policy()))
    subprocess.run(["chown", "-R", "4711:4711", str(tmp_path / "home")], check=True, timeout=20)
    env = {**os.environ, "HOME": str(tmp_path / "home"), **{k: str(tmp_path / v) for k, v in variables.items()}}
    for shown in ["home/.local", *variables.values()]:
        argv = [*user, binary("cage"), "run", "--policy", str(tmp_path / "home" / "own" / "policy.yaml"), "--ca-dir", str(tmp_path / "home" / "own" / "ca"), option,
                str(tmp_path / shown), "--", "echo", "ran"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, env=env, cwd="/")
        refused(done, option, str(tmp_path / shown))


@pytest.mark.parametrize("option", ["--bind", "--bind-ro", "--workspace"])
def test_t36_a_source_that_became_a_link(room, tmp_path, option):
    """An agent that could change the directory above may have put it there, also in the middle of the name. Root's links count."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED, only root can make links of others")
    os.makedirs(tmp_path / "project" / "sub")
    os.makedirs(tmp_path / "private" / "sub")
    (tmp_path / "private" / "sub" / "file").write_text("private\n")
    os.symlink(tmp_path / "private", tmp_path / "project" / "link")
    os.lchown(tmp_path / "project" / "link", 1000, 1000)
    link = str(tmp_path / "project" / "link")
    words = "%s is a link to %s; name that if it is meant" % (link, tmp_path / "private")
    for source in (link, link + "/sub", link + "/sub/../sub/"):
        refused(room.sh("echo ran", options=[option, source]), "%s %s: %s" % (option, source, words))
    os.lchown(link, 0, 0)
    os.chown(tmp_path / "project", 1000, 1000)  # who can put root's link under another name
    refused(room.sh("echo ran", options=[option, link]), words)
    os.chown(tmp_path / "project", 0, 0)
    done = room.sh("cat file", options=[option, link + "/sub", "--workdir", (link if option != "--workspace" else str(tmp_path / "private")) + "/sub"])
    assert (done.returncode, done.stdout) == (0, "private\n"), done.stderr


def test_a_source_with_a_colon(room, tmp_path):
    """What stands behind it would be taken for a place in the room."""
    os.makedirs(tmp_path / "a:" / "etc")
    argv = room.argv("true", options=["--bind-ro", "."])
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, cwd=tmp_path / "a:" / "etc")
    refused(done, "colon")


@pytest.mark.parametrize("option", ["--bind", "--bind-ro"])
@pytest.mark.parametrize("source", ["/tmp", "/"])
def test_t36_directories_of_runs(room, option, source):
    """The sockets of this run, and those of others, can be connected to wherever they are seen."""
    refused(room.sh("echo ran", options=[option, source + ":/mnt/x"]), option)


@pytest.fixture
def secret_at(room, tmp_path):
    """Puts the secret there, and the path into the policy."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED, only root can put a file there")
    made = []

    def put(top):
        os.mkdir(top)
        made.append(top)
        with open(top + "/key", "w", encoding="ascii") as f:
            f.write(SECRET)
        with open(room.policy_path, "w", encoding="utf-8") as f:
            f.write(room.policy_text.replace(str(tmp_path / "keys" / "key"), top + "/key"))

    yield put
    for top in made:
        shutil.rmtree(top)


def test_t36_secret_where_programs_are(room, secret_at):
    secret_at("/opt/cage-test-%d" % os.getpid())
    refused(room.sh("echo ran"), "/opt/cage-test-%d/key" % os.getpid(), "every room shows /opt", "keep it elsewhere")


def test_t36_secret_in_etc(room, secret_at):
    """What it is in is left out of the room, also when it is replaced later."""
    top = "/etc/cage-test-%d" % os.getpid()
    secret_at(top)
    running = Running(room, "sh", "-c", "echo up; read line; cat %s/key; ls -d /etc/cage-test* /etc/ssl; exit 7" % top)
    running.out.wait("up", 60)
    with open(top + "/new", "w", encoding="ascii") as f:
        f.write(SECRET)
    os.rename(top + "/new", top + "/key")
    running.tell("go")
    assert running.end() == 7
    assert running.out.text().split() == ["up", "/etc/ssl"]


def test_t36_ca_among_programs(room):
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED, only root can put a file there")
    room.ca_dir = "/opt/cage-test-ca-%d" % os.getpid()
    try:
        refused(room.sh("echo ran"), room.ca_dir, "every room shows /opt")
    finally:
        shutil.rmtree(room.ca_dir, ignore_errors=True)


def test_t36_policy_in_a_workspace(room, tmp_path):
    """It can't be changed there, and the patch has nothing of it."""
    (tmp_path / "shown" / "policy.yaml").write_text(room.policy_text)
    (tmp_path / "shown" / "more.yaml").write_text((tmp_path / "own" / "more.yaml").read_text())
    room.policy_path = str(tmp_path / "shown" / "policy.yaml")
    script = "cat file; echo more >> file; for n in policy.yaml more.yaml; do echo x > $n; rm -f $n; mv $n other; done"
    done = room.sh(script, options=["--workspace", str(tmp_path / "shown"), "--apply"])
    assert "text\n" in done.stdout, done.stderr
    assert (tmp_path / "shown" / "policy.yaml").read_text() == room.policy_text
    assert "policy.yaml" not in done.stderr.split("changes in", 1)[-1]


@pytest.mark.parametrize("mode", ["netns", "seccomp"])
def test_t36_workspace_with_a_secret(room, tmp_path, mode):
    """Nothing of it is copied anywhere before it is refused."""
    (tmp_path / "shown" / "key").write_text(SECRET)
    with open(room.policy_path, "w", encoding="utf-8") as f:
        f.write(room.policy_text.replace(str(tmp_path / "keys" / "key"), str(tmp_path / "shown" / "key")))
    refused(room.sh("echo ran", options=["--mode", mode, "--workspace", str(tmp_path / "shown")]), "--workspace", "shown/key")


def test_t36_workspace_in_the_keys(room):
    room.sh("true")
    os.makedirs(os.path.join(room.ca_dir, "patches", "x"))
    refused(room.sh("echo ran", options=["--workspace", os.path.join(room.ca_dir, "patches", "x")]), "--workspace")


def test_relative_directory_of_the_ca(room, tmp_path):
    argv = [binary("cage"), "run", "--policy", room.policy_path, "--ca-dir", "ca", "--", "sh", "-c", "cat %s; echo ran" % (tmp_path / "ca" / "ca.key")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr
    assert (tmp_path / "ca" / "ca.key").exists()


def test_t36_a_link_in_the_middle_of_the_name(room, tmp_path):
    """Who can replace it chooses another policy for the next run."""
    os.symlink(tmp_path / "own", tmp_path / "shown" / "conf")
    room.policy_path = str(tmp_path / "shown" / "conf" / "policy.yaml")
    refused(room.sh("echo ran", options=["--bind", str(tmp_path / "shown")]), "shown/conf")
    assert room.sh("echo ran", options=["--bind-ro", str(tmp_path / "shown")]).stdout == "ran\n"


def test_t36_a_link_to_a_link(room, tmp_path):
    (tmp_path / "first").mkdir()
    os.symlink("../own/policy.yaml", tmp_path / "shown" / "second")
    os.symlink("../shown/./second", tmp_path / "first" / "policy.yaml")
    os.symlink(tmp_path / "own" / "more.yaml", tmp_path / "first" / "more.yaml")
    room.policy_path = str(tmp_path / "first" / "policy.yaml")
    refused(room.sh("echo ran", options=["--bind", str(tmp_path / "shown")]), "shown/second")


@pytest.mark.parametrize("script", ["ln -sfn evil conf", "rm conf; mv evil conf"])
def test_t36_workspace_with_a_link_in_the_middle(room, tmp_path, script):
    for name in ("real", "evil"):
        (tmp_path / "shown" / name).mkdir()
        (tmp_path / "shown" / name / "policy.yaml").write_text(json.dumps(policy({"id": name, "hosts": [name + ".test"]})))
    os.symlink("real", tmp_path / "shown" / "conf")
    room.policy_path = str(tmp_path / "shown" / "conf" / "policy.yaml")
    done = room.sh(script, options=["--workspace", str(tmp_path / "shown"), "--apply"])
    assert done.returncode == 1 and "conf belongs to the policy of the run" in done.stderr, done.stderr
    assert os.readlink(tmp_path / "shown" / "conf") == "real"


def test_t36_workspace_with_a_directory_in_the_middle(room, tmp_path):
    for name in ("conf", "evil"):
        (tmp_path / "shown" / name).mkdir()
        (tmp_path / "shown" / name / "policy.yaml").write_text(json.dumps(policy({"id": name, "hosts": [name + ".test"]})))
    room.policy_path = str(tmp_path / "shown" / "conf" / "policy.yaml")
    done = room.sh("mv conf old && ln -s evil conf", options=["--workspace", str(tmp_path / "shown"), "--apply"])
    assert "conf.test" in (tmp_path / "shown" / "conf" / "policy.yaml").read_text(), done.stderr
    assert not (tmp_path / "shown" / "conf").is_symlink()


@pytest.fixture
def programs(room, tmp_path):
    """Those of cage, in tmp_path/cage/bin with ready policies beside them."""
    os.makedirs(tmp_path / "cage" / "bin")
    os.makedirs(tmp_path / "cage" / "share" / "cage" / "policies")
    for name in ("cage", "cage-gate", "cage-proxy", "cage-dns"):
        shutil.copy(binary(name), tmp_path / "cage" / "bin" / name)
    (tmp_path / "cage" / "share" / "cage" / "policies" / "default.yaml").write_text("version: 1\n")

    def run(script, *options, env=None):
        argv = room.argv("sh", "-c", script, options=options)
        argv[0] = str(tmp_path / "cage" / "bin" / "cage")
        return subprocess.run(argv, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})

    return run


@pytest.mark.parametrize("what", ["cage/bin", "cage/bin/cage-proxy", "cage", "cage/share", "cage/share/cage/policies/default.yaml"])
def test_t36_programs_bound_to_be_changed(programs, tmp_path, what):
    refused(programs("echo ran", "--bind", str(tmp_path / what)), "--bind", "cage's own")
    assert programs("echo ran", "--bind-ro", str(tmp_path / what)).stdout == "ran\n"


def test_t36_ready_policies_that_a_variable_names(programs, tmp_path):
    refused(programs("echo ran", "--bind", str(tmp_path / "shown"), env={"CAGE_POLICIES": str(tmp_path / "shown" / "new")}), "shown/new")


def test_t36_programs_in_a_workspace(programs, tmp_path):
    """They can't be changed, and ready policies are not applied unasked."""
    work = ["--workspace", str(tmp_path / "cage"), "--apply"]
    done = programs("echo x > bin/cage-proxy; rm -f bin/cage-proxy; echo x > bin/other", *work)
    assert done.returncode == 0 and "cage-proxy" not in done.stderr.split("changes in", 1)[-1], done.stderr
    assert (tmp_path / "cage" / "bin" / "other").read_text() == "x\n"
    for script in ("echo x >> share/cage/policies/default.yaml", "echo x > share/cage/policies/new.yaml"):
        done = programs(script, *work)
        assert done.returncode == 1 and "or to cage itself" in done.stderr, done.stderr
    assert os.path.getsize(tmp_path / "cage" / "bin" / "cage-proxy") > 1000


def test_many_secrets_in_files(room, tmp_path):
    """They do not count against what may be asked for."""
    rules = json.loads(room.policy_text)
    rules["secrets"] = [{"id": "key%d" % i, "from": {"file": str(tmp_path / "keys" / str(i))}, "in": ["header:x-%d" % i]} for i in range(64)]
    rules["rules"][0]["secrets"] = [s["id"] for s in rules["secrets"]]
    (tmp_path / "keys" / "key").unlink()
    for i in range(64):
        (tmp_path / "keys" / str(i)).write_text("%s-%d" % (SECRET, i))
    with open(room.policy_path, "w", encoding="utf-8") as f:
        f.write(json.dumps(rules))
    options = [word for i in range(4) for word in ("--bind-ro", "%s:/mnt/%d" % (tmp_path / "shown", i))]
    done = room.sh(seen(room, "/mnt"), options=options)
    assert (done.returncode, done.stdout) == (0, "text\n" * 4), done.stderr
