"""cage-inside --await: a container that stands ready does nothing until it is told what, takes nothing that is not whole, and is used once."""
import os
import subprocess
import sys
import time

import pytest
from cagelib.given import write, write_bare
from cagelib.proxy import binary, wait_until

ECHO = [sys.executable, "-c", "import os, sys; print(sys.argv[1:], os.environ.get('API'))"]


class Waiting:
    """One, for the text of tmp_path/map/run."""

    def __init__(self, tmp_path, *program):
        self.dir = tmp_path / "map"
        self.path = self.dir / "run"
        self.path.unlink(missing_ok=True)  # that of one before
        self.process = self.start(*program)

    def start(self, *program):
        return subprocess.Popen([binary("cage-inside"), "--await", str(self.path), "--", *(program or ECHO)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def give(self, text):
        self.dir.mkdir(parents=True, exist_ok=True)
        self.path.write_bytes(text)

    def end(self, seconds=30):
        out, err = self.process.communicate(timeout=seconds)
        return self.process.returncode, out, err

    def looks(self):
        """It sleeps after each."""
        with open("/proc/%d/status" % self.process.pid, encoding="ascii") as f:
            return int(f.read().split("\nvoluntary_ctxt_switches:")[1].split()[0])

    def looks_again(self, times=4):
        before = self.looks()
        wait_until(lambda: self.looks() > before + times, 30, "it does not look")


def test_words_variables_and_files(tmp_path):
    (tmp_path / "files").mkdir()
    path = str(tmp_path / "files" / "policy.yaml")
    with Waiting(tmp_path) as waiting:
        waiting.looks_again()
        assert waiting.process.poll() is None
        waiting.give(write((b"w", b"one"), (b"w", b""), (b"w", b"a\nb"), (b"v", b"API=x=y"), (b"f", path.encode() + b"\0" + b"text\0more"), (b"k", path.encode() + b".key")) + b"\n")
        assert waiting.end() == (0, "['one', '', 'a\\nb'] x=y\n", "")
    assert (tmp_path / "files" / "policy.yaml").read_bytes() == b"text\0more" and len((tmp_path / "files" / "policy.yaml.key").read_bytes()) == 32
    assert sorted(os.listdir(tmp_path / "files")) == ["policy.yaml", "policy.yaml.key"] and os.stat(path).st_mode & 0o777 == 0o600


def test_a_part_is_never_taken(tmp_path):
    """Every beginning of it, and then all."""
    text = write((b"w", b"whole"))
    with Waiting(tmp_path) as waiting:
        for n in range(len(text)):
            waiting.give(text[:n])
        waiting.looks_again()
        assert waiting.process.poll() is None
        waiting.give(text)
        assert waiting.end() == (0, "['whole'] None\n", "")


TWO = write((b"w", b"whole!!"), (b"w", b"another"))  # records of 16 digits each


@pytest.mark.parametrize("text", [TWO[:-16], TWO[:-1] + b"A", TWO.replace(b"-1", b"-2"), b"x" * 600000], ids=["cut", "digit", "version", "long"])
def test_what_is_not_whole_is_waited_for(tmp_path, text):
    with Waiting(tmp_path) as waiting:
        waiting.give(text)
        waiting.looks_again()
        assert waiting.process.poll() is None
        waiting.process.terminate()
        assert waiting.end() == (143, "", "")


@pytest.mark.parametrize("record", [(b"x", b""), (b"w", b"a\0b"), (b"v", b"none"), (b"v", b"=x"), (b"f", b"/no/nul"), (b"f", b"relative\0x"), (b"k", b"relative"), (b"k", b"/a\0b"),
                                    (b"f", b"/" + b"p" * 300 + b"\0x")], ids=range(9))
def test_what_is_broken_ends_it(tmp_path, record):
    """Before any of it is done."""
    with Waiting(tmp_path) as waiting:
        waiting.give(write((b"f", str(tmp_path / "made").encode() + b"\0x"), record))
        code, out, err = waiting.end()
    assert (code, out) == (78, "") and "nothing is run" in err and not (tmp_path / "made").exists()


def test_it_is_used_once(tmp_path):
    """Where a file of another run is, nothing of this one is run; the same one is good for two containers of a group."""
    mine, path = tmp_path / "policy.yaml", str(tmp_path / "policy.yaml").encode()
    for content, code in ((b"first", 0), (b"first", 0), (b"other", 78), (b"first and more", 78)):
        with Waiting(tmp_path) as waiting:
            waiting.give(write((b"f", path + b"\0" + content), (b"k", path + b".key")))
            ended = waiting.end()
        assert ended[0] == code and mine.read_bytes() == b"first", ended
        assert code == 0 or "a file of another run is there" in ended[2]
    assert len(os.listdir(tmp_path)) == 3  # the map, the policy, its key


@pytest.mark.parametrize("records", [((b"w", b"run"),), ()], ids=["words", "nothing"])
def test_a_text_without_files_is_used_once_too(tmp_path, records):
    """The container is started again, with the same text: its command does not run a second time. Another text, which has another mark, does."""
    used = tmp_path / "used"
    used.mkdir()
    text = write(*records, (b"o", str(used / "agent").encode()))
    with Waiting(tmp_path) as waiting:
        waiting.give(text)
        assert waiting.end() == (0, "%s None\n" % [w.decode() for _, w in records], "")
        assert os.listdir(used) == ["agent"] and not (used / "agent").read_bytes()
        for _ in range(2):
            waiting.process = waiting.start()
            code, out, err = waiting.end()
            assert (code, out) == (78, "") and "it was used before: nothing is run" in err
        waiting.give(write(*records, (b"o", str(used / "other").encode())))
        waiting.process = waiting.start()
        assert waiting.end()[0] == 0


@pytest.mark.parametrize("marks", [(), ((b"o", b"/a"), (b"o", b"/b")), ((b"o", b"relative"),), ((b"o", b"/nowhere/at/all"),)], ids=["none", "two", "relative", "nowhere"])
def test_without_a_mark_nothing_is_run(tmp_path, marks):
    """Nor is anything written."""
    with Waiting(tmp_path) as waiting:
        waiting.give(write_bare((b"f", str(tmp_path / "made").encode() + b"\0x"), (b"w", b"run"), *marks))
        code, out, err = waiting.end()
    assert (code, out) == (78, "") and "nothing is run" in err and not (tmp_path / "made").exists()


def test_a_mark_is_no_link(tmp_path):
    os.symlink(tmp_path / "target", tmp_path / "mark")
    with Waiting(tmp_path) as waiting:
        waiting.give(write((b"w", b"run"), (b"o", str(tmp_path / "mark").encode())))
        assert waiting.end()[0] == 78 and not (tmp_path / "target").exists()


def test_a_link_is_not_written_through(tmp_path):
    (tmp_path / "target").write_text("kept")
    os.symlink(tmp_path / "target", tmp_path / "policy.yaml")
    with Waiting(tmp_path) as waiting:
        waiting.give(write((b"f", str(tmp_path / "policy.yaml").encode() + b"\0mine")))
        assert waiting.end()[0] == 78
    assert (tmp_path / "target").read_text() == "kept"


def test_two_containers_at_once(tmp_path):
    """Both write the same files, and come to the same key."""
    path = str(tmp_path / "fingerprint.key")
    show = (sys.executable, "-c", "import sys; print(open(sys.argv[1], 'rb').read().hex())", path)
    waiting = [Waiting(tmp_path / str(i), *show) for i in range(6)]
    for one in waiting:
        one.give(write((b"k", path.encode())))
    ended = {w.end() for w in waiting}
    assert len(ended) == 1 and ended.pop()[0] == 0


def test_how_soon_it_is_seen(tmp_path):
    times = []
    for _ in range(5):
        with Waiting(tmp_path, "true") as waiting:
            waiting.looks_again()
            waiting.give(write())
            began = time.monotonic()
            assert waiting.end()[0] == 0
            times.append(time.monotonic() - began)
        waiting.path.unlink()
    assert min(times) < 1, times


@pytest.mark.parametrize("words", [["--await"], ["--await", "x"], ["--await", "x", "true"], ["--await", "x", "--"]])
def test_usage(words):
    assert subprocess.run([binary("cage-inside"), *words], capture_output=True, timeout=20, check=False).returncode == 2
