"""cage-inside, which works in a sandbox for its keeper: programs, files, and everything that must not lead out of its directory."""
import errno
import os
import socket

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
    for ident in range(96):
        inside.send(b"R", ident, b"\0sleep\0001000\0")
    inside.send(b"R", 99, b"\0true\0")
    assert inside.until_done(99) == failed(errno.EBUSY)
    inside.send(b"R", 5, b"\0true\0")
    assert inside.until_done(5) == failed(errno.EEXIST)
    for ident in range(96):
        inside.send(b"C", ident)
        assert inside.until_done(ident) == (b"", b"", "signal 9")


@pytest.mark.parametrize("payload", [b"", b"/", b"/\0", b"\0sh" + b"\0x" * 1022], ids=["empty", "one", "directory", "words"])
def test_what_is_no_command(inside, payload):
    inside.send(b"R", 1, payload)
    assert inside.until_done(1) == failed(errno.EINVAL)


def test_a_program_is_asked_to_end(inside):
    inside.send(b"R", 1, b"\0sh\0-c\0trap 'echo asked; exit 4' TERM; echo begun; while :; do sleep 0.05; done\0")
    assert inside.read() == (b"o", 1, b"begun\n")
    inside.send(b"K", 1)
    out, _, how = inside.until_done(1)
    assert (out, how) == (b"asked\n", "exit 4")


WINDOW = 65536


def test_who_takes_nothing_is_sent_no_more_than_the_window(inside):
    """It holds up nobody else, and all of it comes in the end, though the program has ended long before."""
    inside.takes = False
    inside.send(b"R", 1, b"\0sh\0-c\0head -c 100000 /dev/zero; : > ended\0")
    seen = 0
    while seen < WINDOW:
        kind, _, payload = inside.read()
        assert kind == b"o"
        seen += len(payload)
    assert seen == WINDOW
    inside.send(b"R", 2, b"\0sh\0-c\0until [ -e ended ]; do sleep 0.01; done; echo other\0")
    assert inside.read() == (b"o", 2, b"other\n")
    assert inside.until_done(2)[2] == "exit 0"
    inside.takes = True
    inside.send(b"M", 1, WINDOW.to_bytes(4, "little"))
    out, _, how = inside.until_done(1)
    assert (len(out), how) == (100000 - WINDOW, "exit 0")


def test_a_program_that_nobody_hears_is_cancelled(inside, work):
    inside.takes = False
    inside.send(b"R", 1, b"\0sh\0-c\0head -c 100000 /dev/zero; : > ended\0")
    wait_until((work / "ended").exists, 20, "it did not end")
    inside.send(b"C", 1)
    out, _, how = inside.until_done(1)
    assert (len(out), how) == (WINDOW, "exit 0")


# ---- connections

@pytest.fixture
def server():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(20)
        yield listening


def connect(inside, server, ident=1):
    inside.send(b"N", ident, b"%d\0" % server.getsockname()[1])
    conn = server.accept()[0]
    conn.settimeout(20)
    return conn


def test_a_connection(inside, server):
    with connect(inside, server) as conn:
        inside.send(b"D", 1, b"ping")
        assert conn.recv(100) == b"ping"
        assert inside.read() == (b"M", 1, (4).to_bytes(4, "little"))
        conn.sendall(b"pong")
        assert inside.read() == (b"o", 1, b"pong")
        inside.send(b"E", 1)
        assert conn.recv(100) == b""
        conn.sendall(b"last")
        assert inside.read() == (b"o", 1, b"last")
    assert inside.read() == (b"E", 1, b"")
    assert inside.read() == (b"d", 1, b"exit 0")


def test_a_connection_whose_program_takes_nothing(inside, server):
    """More than the window is a breach of the keeper's; others go on meanwhile."""
    with connect(inside, server):
        given = 0
        inside.takes = False
        for _ in range(10000):
            inside.send(b"D", 1, bytes(32768))
            inside.send(b"R", 2, b"\0true\0")
            how = None
            while how is None:
                kind, ident, payload = inside.read()
                given += int.from_bytes(payload, "little") if kind == b"M" else 0
                how = (ident, payload.decode()) if kind == b"d" else None
            if how[0] == 1:
                break
            assert how == (2, "exit 0")
        assert how == (1, "error %d" % errno.EPROTO)


def test_a_connection_to_nobody(inside, server):
    port = server.getsockname()[1]
    server.close()
    inside.send(b"N", 1, b"%d\0" % port)
    inside.send(b"D", 1, b"hello")
    assert inside.until_done(1) == failed(errno.ECONNREFUSED)


@pytest.mark.parametrize("port", [b"0", b"65536", b"x", b"", b"1\x002"])
def test_what_is_no_port(inside, port):
    inside.send(b"N", 1, port + b"\0")
    assert inside.until_done(1) == failed(errno.EINVAL)


def test_a_connection_is_cancelled(inside, server):
    with connect(inside, server) as conn:
        inside.send(b"C", 1)
        assert inside.until_done(1) == failed(errno.ECANCELED)
        assert conn.recv(1) == b""


# ---- files

def test_how_full_the_workspace_is(inside, work):
    inside.send(b"U", 1)
    kind, _, used = inside.read()
    stat = os.statvfs(work)
    assert kind == b"U" and 0 < int(used) <= stat.f_blocks * stat.f_frsize
    assert inside.until_done(1)[2] == "exit 0"
    inside.send(b"R", 1, b"\0true\0")
    assert [inside.read()[0] for _ in range(2)] == [b"U", b"d"]


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
