"""The two commands of the README, ./dev run and ./dev run -- CMD, without the build."""
import os
import signal
import subprocess
import sys

from cagelib.proxy import children_of, is_alive, wait_until

DEMO = os.path.join(os.path.dirname(__file__), "..", "demo")
DEV = os.path.join(os.path.dirname(__file__), "..", "..", "dev")
DENY_ALL = "version: 1\nname: deny-all\n"
UNREACHABLE = """version: 1
name: unreachable
rules: [{id: dead, hosts: [dead.test]}]
upstream: {resolve: {dead.test: "127.0.0.1:1"}}
"""


def start(tmp_path, script, *args):
    """Starts one of the two with its scratch directory below tmp_path."""
    return subprocess.Popen([sys.executable, "-B", os.path.join(DEMO, script), *args], env={**os.environ, "TMPDIR": str(tmp_path)},
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process):
    out, err = process.communicate(timeout=60)
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def run(tmp_path, script, *args):
    return finish(start(tmp_path, script, *args))


def test_every_decision_of_the_demo_is_as_it_should_be(tmp_path):
    done = run(tmp_path, "demo.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "host.not_allowed" in done.stdout
    assert '"schema":"cage.log/1"' in done.stdout


def test_an_interrupt_ends_the_demo_quietly(tmp_path):
    process = start(tmp_path, "demo.py")
    assert process.stdout.readline().startswith("cage-proxy on ")
    children = children_of(process.pid)
    process.send_signal(signal.SIGINT)
    done = finish(process)
    assert done.returncode == 130
    assert done.stderr == ""
    wait_until(lambda: not any(is_alive(p) for p in children), 10, "children outlive the demo")


def write_policy(tmp_path, text=DENY_ALL):
    policy = tmp_path / "policy.yaml"
    policy.write_text(text)
    return str(policy)


WITH_SECRET = """version: 1
name: with-secret
rules: [{id: r, hosts: [dead.test], secrets: [key]}]
secrets: [{id: key, from: {env: CAGE_DEMO_KEY}, placeholder: "{{CAGE_DEMO_KEY}}"}]
"""


def run_command(tmp_path, *command):
    return run(tmp_path, "run_command.py", write_policy(tmp_path), *command)


def test_a_command_runs_behind_the_proxy(tmp_path):
    done = run_command(tmp_path, "curl", "-sS", "https://nowhere.test/")
    assert done.returncode == 0, done.stderr
    assert '"reason":"host.not_allowed"' in done.stdout
    assert "dev: 0 allowed, 1 blocked, 0 failed; the log is " in done.stderr


def test_what_failed_is_counted_as_failed(tmp_path):
    done = run(tmp_path, "run_command.py", write_policy(tmp_path, UNREACHABLE), "curl", "-sS", "https://dead.test/")
    assert '"reason":"upstream.unreachable"' in done.stdout
    assert "dev: 0 allowed, 0 blocked, 1 failed; the log is " in done.stderr


def test_the_exit_code_is_the_commands(tmp_path):
    assert run_command(tmp_path, "sh", "-c", "exit 7").returncode == 7
    assert run_command(tmp_path, "sh", "-c", "kill -TERM $$").returncode == 128 + 15
    assert run_command(tmp_path, "/no/such/command").returncode == 127


def test_sigterm_ends_the_command_and_then_the_proxy(tmp_path):
    process = start(tmp_path, "run_command.py", write_policy(tmp_path), "sh", "-c", "echo $$; exec sleep 60")
    command = int(process.stdout.readline())
    children = children_of(process.pid)
    assert command in children
    process.terminate()
    done = finish(process)
    assert done.returncode == 128 + 15
    assert "dev: 0 allowed, 0 blocked, 0 failed; " in done.stderr
    assert not any(is_alive(p) for p in children)


def test_dev_says_what_is_wrong_with_its_arguments():
    for args, said in ((["bogus"], "dev: no command 'bogus'"), (["run", "ls"], "dev: say: "), (["run", "--"], "dev: say: "),
                       (["run", "--policy"], "dev: say: "), (["run", "--policy", "x.yaml"], "dev: --policy needs a command"),
                       (["run", "--policy", "x.yaml", "--"], "dev: say: ")):
        done = subprocess.run([DEV, *args], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2, args
        assert done.stderr.startswith(said), done.stderr


def test_a_wrong_policy_runs_nothing(tmp_path):
    policy = write_policy(tmp_path, "version: 1\nname: x\nruls: []\n")
    done = run(tmp_path, "run_command.py", policy, "echo", "ran")
    assert done.returncode == 2
    assert "ran" not in done.stdout
    assert "policy.yaml:3:1: " in done.stderr
    assert os.listdir(tmp_path) == ["policy.yaml"], "a run without a log leaves nothing behind"


def test_the_command_sees_placeholders(tmp_path, monkeypatch):
    monkeypatch.setenv("CAGE_DEMO_KEY", "the-real-value-0123456789")
    done = run(tmp_path, "run_command.py", write_policy(tmp_path, WITH_SECRET), "env")
    assert done.returncode == 0, done.stderr
    assert "CAGE_DEMO_KEY={{CAGE_DEMO_KEY}}" in done.stdout.splitlines()
    assert "the-real-value" not in done.stdout + done.stderr
