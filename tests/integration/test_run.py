"""cage run: the command gets its terminal, signals and exit code as if there were no cage, reaches what the policy allows by
every way that it knows, and nothing else."""
import json
import os
import shutil
import signal
import subprocess

import pytest
from cagelib.log import Log
from cagelib.proxy import binary, policy
from cagelib.cage_run import ALONE, Room, Running

NOBODY = 65534
POLICIES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "policies")
KEY = "real-value-of-the-key-0123456789"
WAITS = "echo up; read line; "  # the rest of a script goes on when the test says so


@pytest.fixture(scope="module")
def rules(nginx, pki):
    """Rules of an allowed site over https and http, with a secret."""
    listed = [{"id": "site", "hosts": ["site.test"], "ports": [80, 443], "secrets": ["key"]}, {"id": "plain", "hosts": ["plain.test"], "ports": [80]}]
    key = {"id": "key", "from": {"env": "RUN_TEST_KEY"}, "placeholder": "{{RUN_TEST_KEY}}", "in": ["header:x-api-key"]}
    return policy(*listed, pins={"site.test": nginx.tls_pin, "plain.test": nginx.plain_pin}, trust=[pki.ca_pem], secrets=[key])


@pytest.fixture
def room(tmp_path, rules, monkeypatch):
    monkeypatch.setenv("RUN_TEST_KEY", KEY)
    room = Room(tmp_path, rules)
    if subprocess.run([binary("cage-gate"), "--probe"], capture_output=True, timeout=20).returncode != 0:
        pytest.skip("NOT TESTED, nothing can be locked in here")
    yield room
    room.check_logs()


# ---- as if there were no cage


@pytest.mark.parametrize("script, code", [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137)])
def test_exit_code_is_that_of_the_command(room, script, code):
    assert room.sh(script).returncode == code


def test_command_that_is_not_there(room):
    assert room.run("/no/such/program").returncode == 127


def test_why_a_command_is_not_there(room, tmp_path):
    show = tmp_path / "programs"
    show.mkdir()
    (show / "linked").symlink_to("/opt/versions/1/linked")
    (show / "scripted").write_text("#!/opt/no-such-interpreter\n")
    (show / "scripted").chmod(0o755)
    options = ["--bind-ro", str(show), "--env", "PATH=/usr/bin:%s" % show]
    for command, told in (("linked", "%s/linked is a link to /opt/versions/1/linked, which the room does not have" % show),
                          ("scripted", "%s/scripted is there, but the program that runs it" % show), ("absent", "a room has the programs of /usr")):
        done = room.run(command, options=options)
        assert done.returncode == 127 and told in done.stderr, done.stderr


def test_stdin_stdout_and_stderr(room):
    done = room.sh("cat; echo to stderr >&2", input="what is typed\n")
    assert done.stdout == "what is typed\n"
    assert done.stderr.splitlines()[0] == "to stderr"


def test_arguments_stay_apart(room):
    done = room.run("printf", "%s|", "a b", "", "--help", "$HOME", options=["--quiet"])
    assert (done.stdout, done.stderr) == ("a b||--help|$HOME|", "")


def test_environment_is_built_up(room):
    done = room.run("env", options=["--env", "NAMED", "--env", "GIVEN=a=b", "--env", "UNSET_ONE"],
                    env={"NAMED": "from outside", "NOT_NAMED": "stays outside"})
    lines = done.stdout.splitlines()
    assert "NAMED=from outside" in lines and "GIVEN=a=b" in lines
    assert not [x for x in lines if x.startswith(("NOT_NAMED", "UNSET_ONE", "SSH_", "CAGE_BIN"))]
    for name in "HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy".split():
        assert name + "=http://127.0.0.1:8080" in lines
    assert "NO_PROXY=localhost,127.0.0.1,::1" in lines and "no_proxy=localhost,127.0.0.1,::1" in lines


def test_a_directory_may_be_named_from_here(room, tmp_path):
    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "file").write_text("seen")
    for bind, place in (("here", tmp_path / "here"), ("./here:/mnt/there", "/mnt/there")):
        done = room.sh("pwd; cat file", options=["--bind", bind], cwd=tmp_path)
        assert done.returncode == 0 and done.stdout == "%s\nseen" % place, done.stderr


def test_what_is_only_observed_is_told(tmp_path):
    room = Room(tmp_path, {**policy(), "mode": "observe"})
    done = room.sh("curl -s -o /dev/null http://192.0.2.7:80/ ; curl -s -o /dev/null --max-time 20 http://other.test/")
    assert "only observe" in done.stderr and "host.not_allowed GET other.test/, only observed" in done.stderr, done.stderr


def test_sigterm_reaches_the_command(room):
    running = Running(room, "sh", "-c", "trap 'echo asked; exit 3' TERM; echo up; while :; do sleep 0.1; done")
    running.out.wait("up", 30)
    running.process.send_signal(signal.SIGTERM)
    assert running.end() == 3 and "asked" in running.out.text()


def test_one_interrupt_asks_and_two_kill(room):
    running = Running(room, "sh", "-c", "trap 'echo asked' INT; echo up; while :; do sleep 0.1; done")
    running.out.wait("up", 30)
    running.process.send_signal(signal.SIGINT)
    running.out.wait("asked", 30)
    running.process.send_signal(signal.SIGINT)
    assert running.end() == 128 + signal.SIGKILL


# ---- wrong usage


@pytest.mark.parametrize("arguments, words", [
    (["run"], "CMD: is required"), (["run", "--policy", "p" * 5000, "--", "true"], "--policy: the name is too long"), (["run", "--apply", "--", "true"], "needs --workspace"),
    (["run", "--secret", "key", "--", "true"], "ID=env:NAME"), (["run", "--agent", "no-such-agent", "--", "true"], "there are: "),
    (["run", "--bind", "no/such", "--", "true"], "--bind no/such: No such file"), (["run", "--bind-ro", "/no/such:/x", "--", "true"], "--bind-ro /no/such: No such file"), (["run", "--bind", "", "--", "true"], "--bind : No such file"),
    (["walk"], "no command"), (["help", "walk"], "no command"), ([], "lists the commands")])
def test_wrong_usage(arguments, words):
    done = subprocess.run([binary("cage"), *arguments], capture_output=True, text=True, timeout=20)
    assert done.returncode == 2 and words in done.stderr


PROGRAMS = ["cage run", "cage env", "cage apply", "cage verify", "cage-gate", "cage-proxy", "cage-dns"]


def call(words, *arguments, **more):
    """Of "cage run" or "cage-gate": what it says."""
    program, *command = words.split()
    more = more or {"stdout": subprocess.PIPE}
    return subprocess.run([binary(program), *command, *arguments], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=20, **more)


OTHERS = ["cage-aci", "cage-azure", "cage-gateway", "cage-pod", "cage-relay", "cage-ship"]


@pytest.mark.parametrize("words", [*PROGRAMS, *OTHERS])
@pytest.mark.parametrize("argument, what", [("--no-such=1", "--no-such: there is no such option"), ("-x", "-x: there is no such option"), ("--help=1", "--help: takes no value")])
def test_all_say_what_is_wrong_in_the_same_way(words, argument, what):
    done = call(words, argument)
    assert done.returncode == 2 and done.stderr.splitlines()[0] == "%s: %s" % ("cage azure" if words == "cage-azure" else words.split()[0], what)
    assert "--help lists all options" in done.stderr.splitlines()[1]


@pytest.mark.parametrize("words, argument", [("cage run", "--limit"), ("cage verify", "--bind"), ("cage env", "--kit"), ("cage-gate", "--bind"), ("cage-proxy", "--policy"),
                                             ("cage-dns", "--policy")])
def test_option_without_its_value(words, argument):
    done = call(words, argument)
    assert done.returncode == 2 and done.stderr.startswith("%s: %s: expected a value" % (words.split()[0], argument))


@pytest.mark.parametrize("words, said", [
    ("--image= list", "--image: has no value, or one that podman would take for an option"), ("--network --x list", "--network: has no value, or one that podman would take for an option"),
    ("--podman podman list", "--podman: expected an absolute path"), ("--subnets x list", "--subnets: expected"), ("--uids x list", "--uids: expected"),
    ("--state x", "cage-pod: expected run, remove, list or check"), ("--state x run --no-such", "--no-such: there is no such option")])
def test_wrong_usage_of_cage_pod(words, said):
    """Each with the option that it is about."""
    done = call("cage-pod", *words.split())
    assert done.returncode == 2 and done.stderr.splitlines()[0].startswith("cage-pod: " + said), done


def test_option_that_could_be_several():
    assert call("cage run", "--bi", "x").stderr.startswith("cage: --bi: could be one of several options\n")
    assert call("cage run", "--wo", "x").returncode == 2


@pytest.mark.parametrize("words", [*PROGRAMS, "cage", "cage-inside"])
def test_help_of_all(words):
    """The same by both names, on stdout; who can't be told is told that."""
    told = [call(words, argument) for argument in ("-h", "--help")]
    assert [(x.returncode, x.stderr) for x in told] == [(0, "")] * 2
    assert told[0].stdout == told[1].stdout and told[0].stdout.startswith("usage: " + words)
    with open("/dev/full", "w", encoding="ascii") as full:
        done = call(words, "--help", stdout=full)
    assert (done.returncode, done.stderr) == (1, "%s: stdout: No space left on device\n" % words.split()[0])


BUILT = sorted(name for name in os.listdir(os.path.dirname(binary("cage"))) if name == "cage" or name.startswith("cage-"))


@pytest.mark.parametrize("name", BUILT)
def test_help_and_version_of_every_program(name):
    """Of all that are built, whatever they are for; those behind a command of cage have its name."""
    told, version = [call(name, argument) for argument in ("--help", "--version")]
    assert [(x.returncode, x.stderr) for x in (told, version)] == [(0, "")] * 2
    assert told.stdout.startswith("usage: %s" % {"cage-serve": "cage serve", "cage-azure": "cage azure"}.get(name, name))
    said = {"cage-serve": "cage", "cage-azure": "cage"}.get(name, name)
    assert version.stdout == "%s %s" % (said, call("cage", "--version").stdout.split(" ", 1)[1])
    with open("/dev/full", "w", encoding="ascii") as full:
        done = call(name, "--version", stdout=full)
    assert done.returncode != 0


def test_help_names_the_programs_behind_it():
    told = call("cage", "--help").stdout
    for name in ("cage-proxy", "cage-dns", "cage-gate", "cage-gateway", "cage-ship"):
        assert name in told


@pytest.mark.parametrize("arguments, words", [(["--help"], "run [options] -- CMD"), (["run", "--help"], "--workspace DIR"), (["--version"], "cage ")])
def test_help(arguments, words):
    done = subprocess.run([binary("cage"), *arguments], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stderr) == (0, "") and words in done.stdout


def test_help_of_each_command():
    told = subprocess.run([binary("cage"), "--help"], capture_output=True, text=True, timeout=20).stdout
    for name in ("run", "apply", "verify", "env"):
        assert "\n  %s " % name in told
        helps = [subprocess.run([binary("cage"), *words], capture_output=True, text=True, timeout=20) for words in ((name, "--help"), ("help", name))]
        assert [(x.returncode, x.stderr) for x in helps] == [(0, "")] * 2
        assert helps[0].stdout == helps[1].stdout and helps[0].stdout.startswith("usage: cage %s " % name)


@pytest.mark.parametrize("mode", ["netns", "seccomp"])
def test_directory_that_the_room_does_not_have(room, mode):
    """That is no room that can't be made."""
    if mode == "seccomp" and os.geteuid() != 0:
        pytest.skip("NOT TESTED, cage run is refused there to all but root")
    room.before = ALONE if mode == "seccomp" else []
    done = room.sh("echo ran", options=["--mode", mode, "--workdir", "/no/such"])
    assert (done.returncode, done.stdout) == (2, "") and "--workdir /no/such, in the room: No such file" in done.stderr


def test_a_run_that_can_not_begin_says_why(room):
    """Whatever it can't open first."""
    outcomes = {}
    for n in range(3, 20):
        done = subprocess.run(["prlimit", "--nofile=%d" % n, *room.argv("true", options=["--quiet"])], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60)
        outcomes[n] = (done.returncode == 0, done.stderr != "")
    assert not [n for n, (ok, said) in outcomes.items() if not ok and not said], outcomes
    assert outcomes[3] == (False, True), outcomes


def test_wrong_policy_says_where(tmp_path):
    done = Room(tmp_path, "version: 1\nname: x\nrulez: []\n").sh("echo ran")
    assert (done.returncode, done.stdout) == (2, "")
    assert "policy.yaml:3:1" in done.stderr


@pytest.mark.parametrize("closed, out", [("0<&-", "hello from the origin\n"), ("2>&-", "hello from the origin\n"), ("0<&- 1>&- 2>&-", "")])
def test_what_is_inherited_does_not_matter(room, closed, out):
    """Children that nobody is told of, and descriptors that are not there."""
    room.before = ["env", "--ignore-signal=CHLD", "sh", "-c", "exec \"$@\" " + closed, "sh"]
    done = room.sh("curl -fsS http://plain.test/hello.txt && exit 7")
    assert (done.returncode, done.stdout) == (7, out)


def test_secret_without_a_value(room, monkeypatch):
    """The reason comes before what became of it."""
    monkeypatch.delenv("RUN_TEST_KEY")
    done = room.sh("echo ran")
    assert (done.returncode, done.stdout) == (2, "")
    assert "RUN_TEST_KEY" in done.stderr.splitlines()[0] and done.stderr.splitlines()[-1] == "cage: cage-proxy ended with 2"


# ---- without root


def test_as_an_ordinary_user(room, pki, open_dir):
    if os.geteuid() != 0:
        pytest.skip("all of these tests run as one already")
    shutil.copy(pki.ca_pem, open_dir / "trusted.pem")
    mine = Room(open_dir, room.policy_text.replace(str(pki.ca_pem), "trusted.pem"))
    for name in os.listdir(mine.dir):
        os.chmod(os.path.join(mine.dir, name), 0o644)
    os.chown(mine.dir, NOBODY, NOBODY)
    as_nobody = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
    argv = [*as_nobody, *mine.argv("sh", "-c", "id -u; curl -sS https://site.test/hello.txt")]
    if subprocess.run([*as_nobody, binary("cage"), "--version"], capture_output=True, timeout=20).returncode != 0:
        pytest.skip("NOT TESTED, other users can't execute %s" % binary("cage"))
    done = subprocess.run(argv, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL, cwd="/")
    assert done.stdout.split("\n")[1:2] == ["hello from the origin"], done.stderr
    mine.check_logs()


# ---- modes


@pytest.fixture
def shared(room):
    """A room where nothing can be mounted: the files are those of the machine, the user is another one."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED, cage run is refused there to all but root")
    room.before, room.options = ALONE, ["--mode", "seccomp"]
    return room


def test_mode_seccomp_is_like_any_other(shared):
    done = shared.sh("cat; id -u; pwd; echo $HOME; echo x > ~/file && cat ~/file; exit 7", input="typed\n")
    lines = done.stdout.splitlines()
    assert (done.returncode, lines[:2], lines[4:]) == (7, ["typed", "1000"], ["x"]), done.stderr
    assert lines[2] == lines[3] and not os.path.exists(lines[3])


def test_mode_seccomp_has_the_proxy(shared):
    """The page, a refusal, and what does not go by the proxy."""
    done = shared.sh("curl -sS http://cage.internal/; curl -sS https://other.test/; curl -sS -m 3 --noproxy '*' http://192.0.2.1/; echo curl $?")
    assert "You are in a cage" in done.stdout and done.stdout.endswith("curl 28\n"), done.stderr
    line = shared.log.wait(reason="host.not_allowed")
    assert (line["host"], line["decision"]) == ("other.test", "block")
    assert "host.not_allowed other.test" in done.stderr


def test_t34_mode_seccomp_keeps_the_keys(shared):
    done = shared.sh("cat %s/*.key %s/patches/* /proc/$PPID/environ; kill -9 $PPID; echo $?" % (shared.ca_dir, shared.ca_dir))
    assert done.stdout == "1\n" and "Permission denied" in done.stderr
    done = shared.sh("cd /tmp/cage-run.*/private; echo $?; env; cat /proc/*/environ 2>/dev/null")
    assert KEY not in done.stdout and "RUN_TEST_KEY={{RUN_TEST_KEY}}" in done.stdout


def test_mode_seccomp_needs_root(open_dir, rules, monkeypatch):
    monkeypatch.setenv("RUN_TEST_KEY", KEY)
    room = Room(open_dir, rules)
    room.options = ["--mode", "seccomp"]
    if os.geteuid() == 0:
        open_dir.chmod(0o777)
        room.before = ["setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"]
        if subprocess.run([*room.before, binary("cage"), "--version"], capture_output=True, timeout=20).returncode != 0:
            pytest.skip("NOT TESTED, other users can't execute %s" % binary("cage"))
    done = room.sh("echo ran")
    assert (done.returncode, done.stdout) == (78, "") and "has to be run by root" in done.stderr


def test_wrong_mode(room):
    done = room.sh("echo ran", options=["--mode", "open"])
    assert (done.returncode, done.stdout) == (2, "") and "expected auto, netns or seccomp" in done.stderr


# ---- the way out


@pytest.mark.parametrize("proxy", ["by-proxy", "captured"])
@pytest.mark.parametrize("client", ["curl", "python", "node", "wget"])
def test_clients(room, nginx, client, proxy):
    url = "https://site.test/hello.txt?%s-%s" % (client, proxy)
    commands = {"curl": ["curl", "-sS", url],
                "wget": ["wget", "-q", "-O", "-", url],
                "python": ["/usr/bin/python3", "-c", "import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(%r, timeout=20).read().decode())" % url],
                "node": ["node", "-e", "fetch(%r).then(r => r.text()).then(t => process.stdout.write(t))" % url]}
    names = "http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY WGETRC".split() if proxy == "captured" else []
    unset = ["env", *["-u" + name for name in names]]
    done = room.run(*unset, *commands[client])
    assert (done.returncode, done.stdout) == (0, "hello from the origin\n"), done.stderr
    assert nginx.wait_hit(url.split("site.test", 1)[1]).startswith("https GET site.test")


JAVA = """import java.net.*; class Fetch { public static void main(String[] a) throws Exception {
    System.out.write(new URL(a[0]).openStream().readAllBytes()); System.out.flush(); } }"""


def test_java(room, tmp_path):
    """It knows nothing but its own options: they are in JAVA_TOOL_OPTIONS, and its trust store is in a format of its own."""
    if not shutil.which("javac"):
        pytest.skip("NOT TESTED, there is no Java here")
    (tmp_path / "Fetch.java").write_text(JAVA)
    subprocess.run(["javac", "-d", str(tmp_path / "classes"), str(tmp_path / "Fetch.java")], check=True, timeout=60)
    done = room.run("java", "-cp", "/tmp/classes", "Fetch", "https://site.test/hello.txt?java", options=["--bind-ro", "%s:/tmp/classes" % (tmp_path / "classes")])
    assert (done.returncode, done.stdout) == (0, "hello from the origin\n"), done.stderr


def test_cage_env(room, tmp_path):
    room.sh("true")
    kit = tmp_path / "kit"
    done = subprocess.run([binary("cage"), "env", "--ca-dir", room.ca_dir, "--kit", str(kit), "--proxy", "http://10.0.0.5:3128"], capture_output=True, text=True,
                          timeout=20)
    assert (done.returncode, done.stderr) == (0, "")
    told = subprocess.run(["sh", "-c", done.stdout + "\nenv"], env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, timeout=20).stdout
    values = dict(x.split("=", 1) for x in told.splitlines())
    assert values["HTTPS_PROXY"] == values["all_proxy"] == "http://10.0.0.5:3128" and values["NO_PROXY"] == ""
    files = {x for x in values.values() if x.startswith(str(kit))}
    assert len(files) >= 4 and all(os.path.exists(x) for x in files)
    with open(values["SSL_CERT_FILE"], encoding="ascii") as bundle, open(values["NODE_EXTRA_CA_CERTS"], encoding="ascii") as ca:
        assert ca.read() in bundle.read()
    looked = subprocess.run(["openssl", "verify", "-CApath", values["SSL_CERT_DIR"], values["NODE_EXTRA_CA_CERTS"]], capture_output=True, text=True, timeout=20)
    assert looked.stdout.strip().endswith("OK")


@pytest.mark.parametrize("arguments, code", [(["--kit", "relative"], 2), (["--proxy", "http://a'b"], 2), (["--no-such"], 2), (["--ca-dir", "/no/such", "--kit", "/tmp/no-such/kit"], 1)])
def test_cage_env_wrong(arguments, code):
    done = subprocess.run([binary("cage"), "env", *arguments], capture_output=True, text=True, timeout=20)
    assert (done.returncode, done.stdout) == (code, "") and done.stderr


def test_git(room, nginx):
    repository = os.path.join(nginx.dir, "git", "run.git")
    if not os.path.exists(repository):
        subprocess.run(["git", "init", "-q", "--bare", repository], check=True)
    done = room.run("git", "ls-remote", "https://site.test/git/run.git")
    assert done.returncode == 0, done.stderr


def test_refusal_and_summary(room, nginx):
    done = room.sh("curl -sS https://a.denied.test/; curl -sS https://a.denied.test/; curl -sS https://site.test/hello.txt")
    refusals = [json.loads(x) for x in done.stdout.splitlines()[:2]]
    assert [x["reason"] for x in refusals] == ["host.not_allowed"] * 2
    assert "cage: 1 allowed, 2 blocked, 0 failed" in done.stderr
    assert "2 x host.not_allowed a.denied.test" in done.stderr
    assert room.log.path in done.stderr
    assert not [hit for hit in nginx.hits() if "a.denied.test" in hit]


def test_summary_says_what_was_tried(room):
    """The path of a refused request, without what its query says; nothing for the terminal to obey."""
    done = room.sh("for i in 1 2; do curl -s -o /dev/null 'http://a.denied.test/some/%1b%5b2Jpath?key=value'; done; curl -s -o /dev/null -X PUT http://a.denied.test/")
    assert "cage:   2 x host.not_allowed GET a.denied.test/some/" in done.stderr and "cage:   1 x host.not_allowed PUT a.denied.test/\n" in done.stderr, done.stderr
    assert "value" not in done.stderr and "\x1b" not in done.stderr


# ---- limits


def cgroups_or_skip(done):
    if "no cgroup" in done.stderr:
        pytest.skip("NOT TESTED, no cgroup can be made here: " + done.stderr)
    return done


@pytest.mark.cgroups
def test_memory_that_was_not_enough_is_told(room):
    eats = "import os; pid = os.fork(); x = pid == 0 and bytearray(300 << 20); print(os.waitstatus_to_exitcode(os.wait()[1])); "
    done = cgroups_or_skip(room.run("/usr/bin/python3", "-c", eats, options=["--limit", "mem=150M"]))
    assert (done.returncode, done.stdout) == (0, "-9\n")
    assert done.stderr.startswith("cage-gate: the limit of memory was reached, and processes were killed for it: 1\ncage: 0 allowed")


FORKS = """import os, signal
children, refused = [], False
while not refused:
    try:
        children.append(os.fork())
        if children[-1] == 0:
            signal.pause()
    except BlockingIOError:
        refused = True
print(len(children) < 30)
"""


@pytest.mark.cgroups
def test_processes_that_were_refused_are_told(room):
    done = cgroups_or_skip(room.run("/usr/bin/python3", "-c", FORKS, options=["--limit", "pids=30"]))
    assert (done.returncode, done.stdout) == (0, "True\n")
    assert done.stderr.startswith("cage-gate: the limit of processes was reached, and new ones were refused: 1\ncage: 0 allowed")


def test_time_that_is_over_is_told(room):
    done = room.run("sleep", "1000", options=["--limit", "time=1s"])
    assert done.returncode == 137 and done.stderr.startswith("cage-gate: the time of the agent is over\ncage: 0 allowed")


def test_limits_that_were_not_reached(room):
    done = room.sh("true", options=["--quiet", "--limit", "mem=900M,pids=100,time=1h"])
    assert done.returncode == 0 and "reached" not in done.stderr and "over" not in done.stderr


# ---- decisions of more than one run


def test_a_bind_to_no_path_is_blamed_itself(room, tmp_path):
    """And not the directory to begin in, which nobody has asked for."""
    (tmp_path / "shown").mkdir()
    done = room.sh("true", options=["--bind", "%s:relative" % (tmp_path / "shown")])
    assert done.returncode == 2 and "--bind: expected" in done.stderr and "--workdir" not in done.stderr, done.stderr


def test_a_second_run_counts_only_its_own(room):
    room.sh("curl -sS https://a.denied.test/")
    done = room.sh("curl -sS https://b.denied.test/")
    assert "cage: 0 allowed, 1 blocked" in done.stderr and "a.denied.test" not in done.stderr


@pytest.mark.parametrize("what", ["log.jsonl", "log.jsonl.dns"])
def test_t36_a_log_that_is_gone_is_said_so(room, tmp_path, what):
    """And is not taken for a run in which nothing was decided, whether the summary is wanted or not."""
    running = Running(room, "sh", "-c", WAITS, options=["--quiet"])
    running.out.wait("up", 30)
    os.unlink(tmp_path / what)
    running.tell("go")
    assert running.end() == 1
    assert "%s is gone or was cut short" % what in running.err.text() and "allowed" not in running.err.text()


def test_t36_a_log_that_was_cut_short(room):
    assert room.sh("true").returncode == 0
    running = Running(room, "sh", "-c", WAITS)
    running.out.wait("up", 30)
    os.truncate(room.log.path, 0)
    running.tell("go")
    assert running.end() == 1 and "log.jsonl is gone or was cut short" in running.err.text()
    os.unlink(room.log.path)  # it is no chain any more


def test_warnings_of_the_start_are_told(room, tmp_path):
    """Also when all goes well then."""
    place = tmp_path / "bin"
    place.mkdir()
    for name in ("cage", "cage-gate", "cage-proxy", "cage-dns"):
        shutil.copy(binary(name), place / name)
    os.rename(place / "cage-proxy", place / "real")
    (place / "cage-proxy").write_text("#!/bin/sh\necho 'cage-proxy: a warning' >&2\nexec %s/real \"$@\"\n" % place)
    (place / "cage-proxy").chmod(0o755)
    argv = room.argv("sh", "-c", "echo ran >&2", options=["--quiet"])
    done = subprocess.run([str(place / "cage"), *argv[1:]], capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert (done.returncode, done.stderr) == (0, "cage-proxy: a warning\nran\n")


def test_database_that_was_interrupted(room):
    """Of Chromium: it has its name only when the CA is in it."""
    if not os.path.exists("/usr/bin/certutil"):
        pytest.skip("NOT TESTED, there is no certutil here")
    assert room.sh("true").returncode == 0
    made = [x for x in os.listdir(room.ca_dir) if x.startswith("nss-")]
    assert len(made) == 1
    shutil.rmtree(os.path.join(room.ca_dir, made[0]))
    os.mkdir(os.path.join(room.ca_dir, made[0] + ".x"))  # what an interruption leaves
    done = room.sh("certutil -L -d sql:$HOME/.pki/nssdb")
    assert "\ncage " in done.stdout, done.stdout + done.stderr


def test_a_home_elsewhere(room):
    done = room.sh("cd && pwd && echo x >file && ls -A", options=["--env", "HOME=/home/me"])
    assert done.returncode == 0 and done.stdout.splitlines()[0] == "/home/me" and "file" in done.stdout, done.stderr


def test_page(room):
    script = "for n in '' ca.pem env.sh no; do curl -sS http://cage.internal/$n; done; cat $NODE_EXTRA_CA_CERTS"
    by_proxy, captured = room.sh(script), room.sh("unset http_proxy all_proxy ALL_PROXY; " + script)
    assert "You are in a cage" in by_proxy.stdout and "export HTTP_PROXY='http://127.0.0.1:8080'" in by_proxy.stdout
    assert by_proxy.stdout.count("BEGIN CERTIFICATE") == 2
    assert captured.stdout.count("BEGIN CERTIFICATE") == 2, captured.stderr
    assert "4 allowed, 0 blocked, 0 failed" in by_proxy.stderr


def test_page_is_ours_whatever_the_policy_says(tmp_path, nginx):
    """Neither a rule nor a pin leads elsewhere, and a policy that answers denied names otherwise does not hide it."""
    rules = policy({"id": "theirs", "hosts": ["cage.internal"], "ports": [80]}, pins={"cage.internal": nginx.plain_pin}, dns={"denied": "nxdomain"})
    room = Room(tmp_path, rules)
    done = room.sh("curl -sS http://cage.internal/hello.txt; curl -sS --noproxy '*' http://cage.internal/; /usr/bin/python3 -c 'import socket; print(socket.gethostbyname(\"cage.internal\"))'")
    assert done.stdout.startswith("/ /ca.pem /env.sh\nYou are in a cage") and done.stdout.endswith("\n192.0.2.1\n"), done.stderr
    assert "2 allowed, 0 blocked, 0 failed; 0 of " in done.stderr
    room.check_logs()


def test_page_has_no_other_entrance(room):
    done = room.sh("curl -sS https://cage.internal/; curl -sS -X POST http://cage.internal/; curl -sS http://cage.internal:8081/")
    assert json.loads(done.stdout.splitlines()[0])["reason"] == "port.not_allowed"
    assert done.stdout.splitlines()[1] == "only GET"
    assert json.loads(done.stdout.splitlines()[2])["reason"] == "port.not_allowed"


def test_other_ports_are_refused_and_logged(room):
    done = room.run("/usr/bin/python3", "-c", """
import socket
for family, to in ((socket.AF_INET, ("203.0.113.9", 22)), (socket.AF_INET6, ("2001:db8::9", 2222))):
    try:
        socket.create_connection(to, 10)
    except OSError as e:
        print(type(e).__name__)
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.sendto(b"x", ("203.0.113.10", 4444))
""")
    assert done.stdout.split() == ["ConnectionRefusedError"] * 2, done.stderr
    for host, port in (("203.0.113.9", 22), ("2001:db8::9", 2222), ("203.0.113.10", 4444)):
        line = room.log.wait(address=host, reason="connect.captured")
        assert (line["event"], line["reason"], line["decision"], line["port"]) == ("connect", "connect.captured", "block", port)


# ---- secrets


def test_t34_secret_stays_outside(room, nginx):
    """All that the command can read: its environment, /proc, the environment kit."""
    script = """env; tr '\\0' '\\n' < /proc/self/environ; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'
        cat ${SSL_CERT_FILE%/*}/env.sh; curl -sS -H "x-api-key: $RUN_TEST_KEY" https://site.test/echo/run-secret"""
    done = room.sh(script)
    assert "RUN_TEST_KEY={{RUN_TEST_KEY}}" in done.stdout
    assert KEY not in done.stdout + done.stderr
    assert room.log.wait(event="request", host="site.test")["injected"] == ["key"]
    with open(room.log.path, encoding="utf-8") as f:
        assert KEY not in f.read()


def test_t34_secret_of_another_variable(room, monkeypatch):
    monkeypatch.delenv("RUN_TEST_KEY")
    done = room.sh("env; curl -sS -H \"x-api-key: $RUN_TEST_KEY\" https://site.test/echo/other-variable; cat /proc/*/environ 2>/dev/null",
                   options=["--secret", "key=env:MINE"], env={"MINE": KEY})
    assert "RUN_TEST_KEY={{RUN_TEST_KEY}}" in done.stdout and KEY not in done.stdout and "MINE=" not in done.stdout
    assert room.log.wait(event="request", host="site.test")["injected"] == ["key"]


def test_t34_secret_is_in_no_command_line(room):
    running = Running(room, "sh", "-c", WAITS, options=["--env", "ASKED=value-that-was-asked-for"])
    running.out.wait("up", 30)
    with open("/proc/%d/cmdline" % running.child("cage-gate"), "rb") as f:
        assert b"value-that-was-asked-for" not in f.read()
    for pid in [running.process.pid, running.child("cage-proxy"), running.child("cage-dns"), running.child("cage-gate")]:
        with open("/proc/%d/cmdline" % pid, "rb") as f:
            assert KEY.encode() not in f.read()
    for name in ("cage-proxy", "cage-dns", "cage-gate"):
        with open("/proc/%d/environ" % running.child(name), "rb") as f:
            assert KEY.encode() not in f.read()
    running.tell("go")
    assert running.end() == 0


def test_t34_secret_that_is_asked_for_stays_outside(room):
    done = room.run("env", options=["--env", "RUN_TEST_KEY", "--env", "PATH=/usr/bin:/bin"])
    assert "RUN_TEST_KEY={{RUN_TEST_KEY}}" in done.stdout and KEY not in done.stdout
    assert "PATH=/usr/bin:/bin\n" in done.stdout and done.stdout.count("\nPATH=") <= 1


@pytest.mark.parametrize("secret, words", [("other=env:MINE", "no secret of that id"), ("key=env:UNSET_ONE", "is not set")])
def test_wrong_secret(room, secret, words):
    done = room.sh("echo ran", options=["--secret", secret], env={"MINE": KEY})
    assert (done.returncode, done.stdout) == (2, "") and words in done.stderr


# ---- ready policies

# The variable of its key, what its policy is for, and telemetry or something else that it is not for.
AGENTS = {
    "claude-code": ("ANTHROPIC_API_KEY", "POST https://api.anthropic.com/v1/messages", "POST https://api.anthropic.com/api/event_logging/batch"),
    "codex": ("CODEX_API_KEY", "POST https://api.openai.com/v1/responses", "POST https://ab.chatgpt.com/otlp/v1/metrics"),
    "gemini-cli": ("GEMINI_API_KEY", "POST https://generativelanguage.googleapis.com/v1beta/models/x:generateContent", "POST https://play.googleapis.com/log"),
    "qwen-code": ("OPENAI_API_KEY", "POST https://dashscope.aliyuncs.com/compatible-mode/v1/chat/completions", "POST https://gb4w8c3ygj-default-sea.rum.aliyuncs.com/"),
    "opencode": ("ANTHROPIC_API_KEY", "POST https://api.anthropic.com/v1/messages", "POST https://api.opencode.ai/share_create"),
    "aider": ("ANTHROPIC_API_KEY", "POST https://api.anthropic.com/v1/messages", "POST https://us.i.posthog.com/batch/"),
    "cursor": ("CURSOR_API_KEY", "POST https://api2.cursor.sh/auth/exchange_user_api_key", "POST https://metrics.cursor.sh/"),
    "local-llm": (None, "POST http://llm.internal/api/chat", "POST http://llm.internal/api/pull"),
}
CLOSED = "127.0.0.1:9"  # where nobody listens


def preset_without_a_server(agent, directory):
    """The ready policy, with the hosts of its rules led to nobody: nothing of a test goes to anyone's servers."""
    name, allowed, _ = AGENTS[agent]
    with open(os.path.join(POLICIES, agent + ".yaml"), encoding="utf-8") as f:
        text = f.read().replace("127.0.0.1:11434", CLOSED)
    if "\nupstream:" not in text:
        text += "\nupstream:\n  resolve: {%s: \"%s\"}\n" % (allowed.split("/")[2], CLOSED)
    (directory / (agent + ".yaml")).write_text(text)
    return {**os.environ, "CAGE_POLICIES": str(directory), **({name: KEY} if name else {})}


@pytest.mark.parametrize("agent", AGENTS)
def test_agents(tmp_path, agent):
    """Each policy passes its own tests, allows its model and refuses telemetry, and the agent gets a placeholder for its key."""
    name, *requests = AGENTS[agent]
    script = "env; for r in \"$@\"; do curl -sS -m 20 -d x -X ${r% *} ${r#* }; echo; done"
    log = Log(str(tmp_path / "log.jsonl"))
    argv = [binary("cage"), "run", "--ca-dir", str(tmp_path / "ca"), "--log", log.path, "--agent", agent, "--", "sh", "-c", script, "sh", *requests]
    (tmp_path / "policies").mkdir()
    done = subprocess.run(argv, env=preset_without_a_server(agent, tmp_path / "policies"), capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
    lines = dict(x.split("=", 1) for x in done.stdout.splitlines() if "=" in x)
    assert KEY not in done.stdout
    if name:
        assert lines[name].startswith("cage-ph-")
    if agent == "claude-code":
        assert lines["DISABLE_TELEMETRY"] == "1"
    answers = [json.loads(x) for x in done.stdout.splitlines() if x.startswith("{")]
    assert [x["error"] for x in answers] == ["upstream_failed", "blocked_by_cage"], done.stdout + done.stderr
    assert log.wait(event="request", host=requests[0].split("/")[2], reason="upstream.unreachable")["rule"]


def test_an_option_that_is_given_twice(room):
    """The last one counts; limits add up."""
    done = room.sh("pwd; ulimit -n; ulimit -f", options=["--workdir", "/usr", "--workdir", "/tmp", "--sandbox", "first", "--sandbox", "last",
                                                           "--limit", "files=99", "--limit", "fsize=1M", "--limit", "files=77"])
    assert done.returncode == 0 and done.stdout.split()[:2] == ["/tmp", "77"] and done.stdout.split()[2] != "unlimited", (done.stdout, done.stderr)
    assert {line["sandbox"] for line in room.log.lines()} == {"last"}


def test_a_key_that_is_open_to_others(room):
    assert room.sh("true").returncode == 0
    key = os.path.join(room.ca_dir, "ca.key")
    assert os.stat(key).st_mode & 0o777 == 0o600
    os.chmod(key, 0o644)
    done = room.sh("true")
    assert done.stderr.count("warning: ") == 1 and "%s is a key, and open to others" % os.path.realpath(key) in done.stderr, done.stderr
    os.chmod(key, 0o600)
    assert "warning" not in room.sh("true").stderr
