"""cage-inside, which works in a sandbox for its keeper: programs, files, and everything that must not lead out of its directory."""
import errno
import os

import pytest
from cagelib.inside import HEADER, Inside
from cagelib.proxy import wait_until


@pytest.fixture
def work(tmp_path):
    (tmp_path / "outside").write_text("not yours")
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


@pytest.fixture
def inside(work):
    with Inside(work) as running:
        yield running


def failed(code):
    return b"", b"", "error %d" % code


# ---- programs

def test_a_program(inside, work):
    assert inside.sh("echo out; echo err >&2; exit 3") == (b"out\n", b"err\n", "exit 3")
    assert inside.run("pwd") == (os.fsencode(str(work)) + b"\n", b"", "exit 0")
    assert inside.run("pwd", directory="/") == (b"/\n", b"", "exit 0")
    assert inside.sh("kill -9 $$") == (b"", b"", "signal 9")
    out, err, how = inside.run("no-such-program")
    assert (out, how) == (b"", "exit 127") and b"no-such-program: No such file" in err
    out, err, how = inside.run("pwd", directory="/no/such")
    assert (out, how) == (b"", "exit 126") and b"/no/such: No such file" in err


def test_a_program_has_nothing_of_ours(inside):
    out, err, how = inside.sh("cat; ls /proc/self/fd; readlink /proc/self/fd/0")
    assert how == "exit 0" and out.split() == [b"0", b"1", b"2", b"3", b"/dev/null"], (out, err)


def test_much_output(inside):
    out, _, how = inside.sh("head -c 10000000 /dev/zero")
    assert (len(out), how) == (10000000, "exit 0")


def test_what_is_left_in_the_background_goes_on(inside, work):
    assert inside.sh("mkfifo later; (read line < later; echo $line > went) >/dev/null 2>&1 & echo $!")[2] == "exit 0"
    (work / "later").open("w").write("still here\n")
    wait_until((work / "went").exists, 20, "it did not go on")


def test_programs_side_by_side(inside):
    inside.send(b"R", 1, b"\0sh\0-c\0mkfifo a; read x < a; echo one $x\0")
    assert inside.sh("until [ -p a ]; do :; done; echo two > a", ident=2) == (b"", b"", "exit 0")
    assert inside.until_done(1) == (b"one two\n", b"", "exit 0")


def test_cancel(inside):
    inside.send(b"R", 1, b"\0sh\0-c\0echo begun; sleep 1000 & wait\0")
    assert inside.read() == (b"o", 1, b"begun\n")
    inside.send(b"C", 1)
    assert inside.until_done(1) == (b"", b"", "signal 9")
    inside.send(b"C", 1)  # of a job that is gone
    assert inside.sh("echo next") == (b"next\n", b"", "exit 0")


def test_one_job_too_many(inside):
    for ident in range(32):
        inside.send(b"R", ident, b"\0sleep\0001000\0")
    inside.send(b"R", 99, b"\0true\0")
    assert inside.until_done(99) == failed(errno.EBUSY)
    inside.send(b"R", 5, b"\0true\0")
    assert inside.until_done(5) == failed(errno.EEXIST)
    for ident in range(32):
        inside.send(b"C", ident)
        assert inside.until_done(ident) == (b"", b"", "signal 9")


@pytest.mark.parametrize("payload", [b"", b"/", b"/\0", b"\0sh" + b"\0x" * 1022], ids=["empty", "one", "directory", "words"])
def test_what_is_no_command(inside, payload):
    inside.send(b"R", 1, payload)
    assert inside.until_done(1) == failed(errno.EINVAL)


# ---- files

@pytest.mark.parametrize("size", [0, 1, 32768, 32769, 3000000])
def test_a_file(inside, work, size):
    data = os.urandom(size)
    assert inside.put("a/b/file", data) == (b"", b"", "exit 0")
    assert (work / "a/b/file").read_bytes() == data
    assert inside.get("a/b/file") == (data, b"", "exit 0")
    assert os.listdir(work / "a/b") == ["file"]
    assert inside.list("a") == ([b"d 0 b"], "exit 0")
    assert inside.list("a/b") == ([b"f %d file" % size], "exit 0")


def test_a_file_is_seen_when_it_is_whole(inside, work):
    (work / "file").write_text("before")
    inside.send(b"P", 1, b"file\0")
    inside.send(b"D", 1, b"half")
    assert inside.get("file", ident=2) == (b"before", b"", "exit 0")
    inside.send(b"C", 1)
    assert inside.until_done(1) == failed(errno.ECANCELED)
    assert os.listdir(work) == ["file"] and (work / "file").read_text() == "before"


def test_lists(inside, work):
    (work / "d").mkdir()
    (work / "f").write_text("12345")
    (work / "l").symlink_to("/etc")
    os.mkfifo(work / "p")
    (work / "new\nline").write_text("")
    assert inside.list(".") == ([b"d 0 d", b"f 0 new\nline", b"f 5 f", b"l 0 l", b"o 0 p"], "exit 0")
    assert inside.list("none")[1] == "error %d" % errno.ENOENT
    assert inside.list("f")[1] == "error %d" % errno.ENOTDIR


def test_a_list_beyond_its_bound(inside, work):
    (work / "many").mkdir()
    for i in range(10001):
        (work / "many" / str(i)).touch()
    assert inside.list("many")[1] == "error %d" % errno.E2BIG


def test_a_way_as_deep_as_it_may_be(inside, work):
    """The directory that it begins in is one of those on the way."""
    deepest = os.path.join(*["d"] * 255)
    assert inside.put(deepest + "/d/file", b"deep") == (b"", b"", "exit 0")
    assert inside.put(deepest + "/file", b"there") == (b"", b"", "exit 0")
    assert inside.get(deepest + "/file") == (b"there", b"", "exit 0")
    assert inside.list(deepest) == ([b"d 0 d", b"f 5 file"], "exit 0")
    assert inside.get(deepest + "/d/file") == failed(errno.ENAMETOOLONG)
    assert inside.list(deepest + "/d") == ([], "error %d" % errno.ENAMETOOLONG)


def test_as_many_links_as_may_be_followed(inside, work):
    (work / "0").write_text("there")
    for i in range(41):
        (work / str(i + 1)).symlink_to(str(i))
    assert inside.get("40") == (b"there", b"", "exit 0")
    assert inside.get("41") == failed(errno.ELOOP)


LEAVING = ["../outside", "a/../../outside", "/etc/passwd", "link", "up/outside", "proc/self/root/etc/passwd"]


@pytest.fixture
def traps(work):
    (work / "a").mkdir()
    (work / "link").symlink_to("../outside")
    (work / "up").symlink_to("..")
    (work / "proc").symlink_to("/proc")
    return work


@pytest.mark.parametrize("path", LEAVING)
def test_nothing_is_read_beyond_the_directory(inside, traps, path):
    assert inside.get(path) == failed(errno.EXDEV)


@pytest.mark.parametrize("path", ["..", "/", "up", "up/work", "proc/self/root"])
def test_nothing_is_listed_beyond_the_directory(inside, traps, path):
    assert inside.list(path) == ([], "error %d" % errno.EXDEV)


@pytest.mark.parametrize("path", LEAVING + ["", ".", "..", "a//b", "a/", "x" * 256, "new/../../outside"])
def test_nothing_is_written_beyond_the_directory(inside, traps, path):
    how = inside.put(path, b"taken over")[2]
    if path == "link":  # what is replaced is the link
        assert how == "exit 0" and (traps / "link").read_text() == "taken over" and not (traps / "link").is_symlink()
    else:
        assert how.startswith("error ")
    assert (traps.parent / "outside").read_text() == "not yours"
    assert sorted(os.listdir(traps.parent)) == ["outside", "work"]


def test_what_is_no_file_is_not_waited_for(inside, work):
    os.mkfifo(work / "pipe")
    assert inside.get("pipe") == failed(errno.EINVAL)
    assert inside.get(".") == failed(errno.EISDIR)


# ---- a keeper that is none

@pytest.mark.parametrize("data", [b"X" * 8, HEADER.pack(b"R", 1, 32769), b"R\x01" + b"\0" * 6, b"\0" * 8])
def test_broken_frames_end_it(work, data):
    with Inside(work) as inside:
        inside.raw(data)
        assert inside.process.wait(20) == 0
        assert inside.process.stdout.read() == b""


def test_byte_by_byte(inside):
    payload = b"\0echo\0hi\0"
    for byte in HEADER.pack(b"R", 1, len(payload)) + payload:
        inside.raw(bytes([byte]))
    assert inside.until_done(1) == (b"hi\n", b"", "exit 0")
