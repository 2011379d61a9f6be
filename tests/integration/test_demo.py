"""The two commands of the README, ./dev run and ./dev run -- CMD, without the build."""
import os
import subprocess
import sys

DEMO = os.path.join(os.path.dirname(__file__), "..", "demo")
DENY_ALL = "version: 1\nname: deny-all\n"


def run(tmp_path, script, *args):
    """Runs one of the two with its scratch directory below tmp_path."""
    return subprocess.run([sys.executable, "-B", os.path.join(DEMO, script), *args], env={**os.environ, "TMPDIR": str(tmp_path)},
                          capture_output=True, text=True, timeout=60)


def test_every_decision_of_the_demo_is_as_it_should_be(tmp_path):
    done = run(tmp_path, "demo.py")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "host.not_allowed" in done.stdout
    assert '"schema":"cage.log/1"' in done.stdout


def run_command(tmp_path, *command):
    policy = tmp_path / "policy.yaml"
    policy.write_text(DENY_ALL)
    return run(tmp_path, "run_command.py", str(policy), *command)


def test_a_command_runs_behind_the_proxy(tmp_path):
    done = run_command(tmp_path, "curl", "-sS", "https://nowhere.test/")
    assert done.returncode == 0, done.stderr
    assert '"reason":"host.not_allowed"' in done.stdout
    assert "0 allowed, 1 blocked" in done.stderr


def test_the_exit_code_is_the_commands(tmp_path):
    assert run_command(tmp_path, "sh", "-c", "exit 7").returncode == 7
    assert run_command(tmp_path, "sh", "-c", "kill -TERM $$").returncode == 128 + 15
    assert run_command(tmp_path, "/no/such/command").returncode == 127


def test_a_wrong_policy_runs_nothing(tmp_path):
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nname: x\nruls: []\n")
    done = run(tmp_path, "run_command.py", str(policy), "echo", "ran")
    assert done.returncode == 2
    assert "ran" not in done.stdout
    assert "policy.yaml:3:1: " in done.stderr
