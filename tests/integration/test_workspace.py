"""cage run --workspace: the command works on a view of its own; what it changed is listed, kept, and made in the workspace only
when that is asked for, and only where nobody else has changed it meanwhile."""
import glob
import os
import re
import shutil
import signal
import stat
import subprocess

import pytest
from cagelib.content import github_pat
from cagelib.proxy import SANITIZER, binary, policy
from cagelib.cage_run import ALONE, Room, Running, command_line

NOBODY = 65534
STRANGER = 4242  # a uid that no room has

TOKEN = github_pat()


@pytest.fixture
def room(tmp_path):
    if subprocess.run([binary("cage-gate"), "--probe"], capture_output=True, timeout=20).returncode != 0:
        pytest.skip("NOT TESTED, nothing can be locked in here")
    return Room(tmp_path, policy())


@pytest.fixture
def work(tmp_path):
    """A workspace with a few files."""
    work = tmp_path / "work"
    (work / "deep" / "er").mkdir(parents=True)
    (work / "changed.txt").write_text("before\n")
    (work / "deleted.txt").write_text("here\n")
    (work / "deep" / "er" / "same.txt").write_text("same\n")
    (work / "link").symlink_to("changed.txt")
    return work


@pytest.fixture(params=["overlay", "copy", "shared"])
def view(request, room, work):
    """The three ways in which a command can be shown a workspace."""
    if request.param != "overlay" and os.geteuid() != 0:
        pytest.skip("NOT TESTED, only root can have a %s here" % request.param)
    if request.param == "copy":
        (work / "other").write_text("of a stranger\n")
        os.chown(work / "other", STRANGER, STRANGER)  # whose files an overlay could not change
    if request.param == "shared":
        room.before, room.options = ALONE, ["--mode", "seccomp"]
    return request.param


def check_view(view, done):
    assert ("of which the command had a copy" in done.stderr) == (view != "overlay"), done.stderr


def contents(root):
    """Path -> bytes, or where a link leads."""
    out = {}
    for directory, _, files in os.walk(root):
        for name in files:
            path = os.path.join(directory, name)
            out[os.path.relpath(path, root)] = os.readlink(path) if os.path.islink(path) else open(path, "rb").read()
    return out


def run(room, work, script, *options):
    return room.sh(script, options=["--workspace", str(work), *options])


def patch_of(done):
    return re.search(r"kept in (\S+?)(;|$)", done.stderr, re.M).group(1)


def apply(patch, *options):
    done = subprocess.run([binary("cage"), "apply", *options, patch], capture_output=True, text=True, timeout=60)
    assert not SANITIZER.search(done.stderr), done.stderr
    return done


def test_a_patch_that_is_not_there():
    done = apply("/tmp/no-such-patch")
    assert done.returncode == 1 and done.stderr == "cage: /tmp/no-such-patch: there is no such patch; cage run says where it keeps them\n", done


SCRIPT = "echo after > changed.txt; rm deleted.txt; mkdir -p new/dir; echo new > new/dir/file; printf '#!/bin/sh\\n' > tool; chmod +x tool"


def test_changes_are_listed_and_kept(room, work, view):
    before = contents(work)
    done = run(room, work, "pwd; " + SCRIPT)
    check_view(view, done)
    assert done.returncode == 0, done.stderr
    assert (done.stdout == str(work) + "\n") == (view != "shared")
    assert contents(work) == before
    listed = re.findall(r"^cage:   ([AMD]) (.*)$", done.stderr, re.M)
    assert listed == [("M", "changed.txt"), ("D", "deleted.txt"), ("A", "new/dir/file"), ("A", "tool")]
    diff = open(os.path.join(patch_of(done), "diff.patch"), encoding="utf-8").read()
    assert "-before\n+after\n" in diff and "-here\n" in diff and "+new\n" in diff


def test_apply_afterwards(room, work):
    patch = patch_of(run(room, work, SCRIPT))
    done = apply(patch)
    assert (done.returncode, done.stderr) == (0, "cage: 4 changes made in %s\n" % work)
    expected = {"changed.txt": b"after\n", "new/dir/file": b"new\n", "tool": b"#!/bin/sh\n", "link": "changed.txt", "deep/er/same.txt": b"same\n"}
    assert contents(work) == expected
    assert os.stat(work / "tool").st_mode & 0o100
    again = apply(patch)
    assert (again.returncode, again.stderr) == (0, "cage: 0 changes made in %s: all of it is there already\n" % work)
    assert contents(work) == expected
    (work / "changed.txt").write_text("by others\n")
    again = apply(patch)
    assert again.returncode == 1 and "changed.txt has changed since" in again.stderr and "nothing was changed" in again.stderr


def test_apply_at_once(room, work):
    done = run(room, work, "echo after > changed.txt", "--apply")
    assert done.returncode == 0, done.stderr
    assert (work / "changed.txt").read_text() == "after\n"


def test_a_failed_command_is_not_applied(room, work):
    done = run(room, work, "echo after > changed.txt; exit 3", "--apply")
    assert done.returncode == 3 and "cage apply" in done.stderr
    assert (work / "changed.txt").read_text() == "before\n"


def test_conflict_leaves_all_as_it_is(room, work):
    patch = patch_of(run(room, work, SCRIPT))
    (work / "deleted.txt").write_text("somebody needs it\n")
    before = contents(work)
    done = apply(patch)
    assert done.returncode == 1 and "deleted.txt has changed since" in done.stderr
    assert contents(work) == before


def test_nothing_changed(room, work):
    done = run(room, work, "cat changed.txt deep/er/same.txt link; echo same > deep/er/same.txt")
    assert done.stdout == "before\nsame\nbefore\n" and "none" in done.stderr
    assert os.listdir(os.path.join(room.ca_dir, "patches")) == []


def test_credentials_are_pointed_out(room, work):
    done = run(room, work, "echo 'token: %s' > notes.md" % TOKEN)
    assert "has what looks like a credential: github" in done.stderr
    assert TOKEN not in done.stderr


def test_t34_what_others_run_is_pointed_out(room, work):
    done = run(room, work, "mkdir -p .git/hooks; echo 'evil' > .git/hooks/pre-commit; printf x > \"$(printf 'a\\nb')\"")
    assert re.search(r"A .git/hooks/pre-commit\ncage: .*programs outside of the room", done.stderr)
    assert "A a\\u000ab" in done.stderr


def test_t36_links_lead_nowhere(room, work, tmp_path, view):
    """A directory of the workspace becomes a link to elsewhere, and a link to elsewhere a directory."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_text("kept\n")
    (work / "out").symlink_to(outside)
    assert view
    done = run(room, work, "rm -r deep; ln -s %s deep; rm out; mkdir out; echo evil > out/kept; mkfifo pipe" % outside)
    assert apply(patch_of(done), "--even-if-run").returncode == 0, done.stderr
    assert (outside / "kept").read_text() == "kept\n"
    assert os.readlink(work / "deep") == str(outside)
    assert not os.path.islink(work / "out") and (work / "out" / "kept").read_text() == "evil\n"


def test_t36_a_link_put_there_later_is_not_followed(room, work, tmp_path):
    patch = patch_of(run(room, work, "mkdir new; echo evil > new/file"))
    outside = tmp_path / "outside"
    outside.mkdir()
    (work / "new").symlink_to(outside)
    assert apply(patch).returncode == 1
    assert os.listdir(outside) == []


def test_t36_a_link_above_a_new_directory_is_not_followed(room, work, tmp_path):
    patch = patch_of(run(room, work, "mkdir -p new/dir; echo evil > new/dir/file; echo after > changed.txt"))
    outside = tmp_path / "outside"
    outside.mkdir()
    (work / "new").symlink_to(outside)
    before = contents(work)
    done = apply(patch)
    assert done.returncode == 1 and "nothing was changed" in done.stderr
    assert os.listdir(outside) == [] and contents(work) == before and not left_behind(work)


def test_special_modes_stay_behind(room, work):
    """They can't be had in the room, and what had one before loses it with a change."""
    (work / "old").write_text("x")
    os.chmod(work / "old", 0o4755)
    done = run(room, work, "printf x > tool; chmod 755 tool; chmod 6755 tool || echo refused; echo more >> old", "--apply")
    assert (done.returncode, done.stdout) == (0, "refused\n"), done.stderr
    assert stat.S_IMODE(os.stat(work / "old").st_mode) == 0o755
    assert stat.S_IMODE(os.stat(work / "tool").st_mode) == 0o755


def test_not_a_patch(tmp_path):
    done = apply(str(tmp_path))
    assert done.returncode == 1 and "is no patch" in done.stderr


def test_no_workspace(room):
    done = room.sh("echo ran", options=["--workspace", "/no/such/directory"])
    assert (done.returncode, done.stdout) == (2, "") and "No such file" in done.stderr


# ---- every kind of change

# What it does in its view and what apply makes of that in the workspace must be what it does to a plain directory.
EVERYTHING = r"""
set -e
echo after > changed.txt                      # modified
rm deleted.txt                                # deleted
rm -r gone                                    # a directory, deleted
rm -r opaque; mkdir opaque; echo n > opaque/new; echo s > opaque/same # replaced: the old one must not shine through
mv moved elsewhere                            # a directory, renamed
mv left t; mv right left; mv t right          # two of them, swapped: their files are as old as before
mv name.txt renamed.txt
rm -r was-dir; echo file > was-dir            # a directory becomes a file,
rm was-file; mkdir -p was-file/a/b; echo x > was-file/a/b/c # a file a directory,
rmdir was-empty; echo file > was-empty        # an empty directory a file,
rm was-link; echo file > was-link; rm to-link; ln -s changed.txt to-link # and links
ln -sfn elsewhere retargeted
chmod 755 script; chmod 600 private; chmod 711 deep
mkdir -m 700 secret-dir; echo x > secret-dir/x
cp one one.new; echo more >> one.new; mv one.new one # one of two names of a file
ln changed.txt second-name
printf x > "with space"; printf x > 'with"quote'; printf x > "$(printf 'new\nline')"; printf x > with:colon; printf x > 'with,comma\'
mkdir -p deep/er/still; echo x > deep/er/still/deeper; rm deep/er/same.txt
dd if=/dev/zero of=big bs=65536 count=40 2>/dev/null; : > emptied
touch deep/touched; mkdir nothing-in-it
mkdir tmp; echo x > tmp/x; rm -r tmp
"""


def fill(work):
    for name in ("gone/a/b", "opaque/sub", "moved/sub", "left/sub", "right/sub", "was-dir/sub", "was-empty"):
        (work / name).mkdir(parents=True)
    for name in ("gone/a/b/c", "gone/x", "opaque/old", "opaque/same", "opaque/sub/old", "moved/sub/file", "moved/x", "left/sub/file", "right/sub/file", "name.txt", "was-dir/sub/x", "was-file", "to-link",
                 "script", "private", "one", "emptied", "deep/touched", "not touched"):
        (work / name).write_text(name + "\n")
    os.link(work / "one", work / "two")
    (work / "was-link").symlink_to("name.txt")
    (work / "retargeted").symlink_to("nowhere")


def everything(root):
    """All of it, with modes of files and of directories that have something in them."""
    out = {}
    for directory, _, files in os.walk(root):
        for name in files:
            path = os.path.join(directory, name)
            key = os.path.relpath(path, root)
            out[key] = os.readlink(path) if os.path.islink(path) else (open(path, "rb").read(), stat.S_IMODE(os.stat(path).st_mode))
            if "secret-dir" in key:
                out[os.path.dirname(key)] = stat.S_IMODE(os.stat(directory).st_mode)
    return out


def left_behind(work):
    return [x for x in os.listdir(work) if x.startswith(".cage")]


def test_every_kind_of_change(room, work, view, tmp_path):
    fill(work)
    twin = tmp_path / "twin"
    shutil.copytree(work, twin, symlinks=True)
    subprocess.run(["sh", "-c", EVERYTHING], cwd=twin, check=True, timeout=30)
    before = everything(work)
    done = run(room, work, EVERYTHING)
    assert done.returncode == 0, done.stderr
    check_view(view, done)
    assert everything(work) == before
    listed = re.findall(r"^cage:   ([AMD]) (.*)$", done.stderr, re.M)
    for row in (("D", "gone/x"), ("D", "opaque/old"), ("D", "opaque/sub/old"), ("M", "opaque/same"), ("A", "opaque/new"), ("A", "elsewhere/sub/file"), ("D", "moved/x"),
                ("M", "script"), ("M", "private"), ("A", "second-name"), ("M", "was-link"), ("M", "to-link"), ("M", "retargeted"), ("M", "emptied")):
        assert row in listed, row
    assert not [x for x in listed if x[1] in ("two", "deep/touched", "not touched", "tmp/x", "other")]
    assert apply(patch_of(done)).returncode == 0
    assert everything(work) == everything(twin) and not left_behind(work)
    if os.geteuid() == 0:
        assert os.stat(work / "second-name").st_uid == os.stat(work).st_uid


def test_others_change_the_workspace_meanwhile(room, work, view):
    """What only they have changed is no change of the command; what both have is a conflict."""
    running = Running(room, "sh", "-c", "echo mine > changed.txt; rm deleted.txt; echo mine > deep/er/new; echo up; read line", options=["--workspace", str(work)])
    running.out.wait("up", 30)
    (work / "changed.txt").write_text("theirs\n")
    (work / "deep" / "er" / "same.txt").write_text("theirs\n")
    (work / "theirs").write_text("theirs\n")
    before = contents(work)
    running.tell("go")
    assert running.end() == 0
    text = running.err.text()
    assert re.findall(r"cage:   ([AMD]) (.*)", text) == [("M", "changed.txt"), ("A", "deep/er/new"), ("D", "deleted.txt")] and view
    assert text.count("was changed in the workspace too") == 1
    done = apply(re.search(r"kept in (\S+);", text).group(1))
    assert done.returncode == 1 and "changed.txt: was changed" in done.stderr and "nothing was changed in" in done.stderr
    assert contents(work) == before


def test_others_delete_what_the_command_changes(room, work, view):
    """What it has made of it is kept all the same."""
    running = Running(room, "sh", "-c", "echo mine > changed.txt; echo up; read line", options=["--workspace", str(work)])
    running.out.wait("up", 30)
    (work / "changed.txt").unlink()
    running.tell("go")
    assert running.end() == 0 and view
    patch = re.search(r"kept in (\S+);", running.err.text()).group(1)
    with open(os.path.join(patch, "files", "changed.txt"), encoding="ascii") as f:
        assert f.read() == "mine\n"


def test_apply_that_fails_halfway_is_undone(room, work):
    """The last file is busy: something is mounted there."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED, only root can mount")
    (work / "zz").write_text("before\n")
    fill(work)
    patch = patch_of(run(room, work, EVERYTHING + "echo after > zz"))
    before = everything(work)
    script = 'mount --bind zz zz && exec "$@"'
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script, "sh", binary("cage"), "apply", patch], cwd=work, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and "zz: Device or resource busy" in done.stderr and "nothing was changed" in done.stderr
    assert everything(work) == before and not left_behind(work)
    assert apply(patch).returncode == 0 and (work / "zz").read_text() == "after\n"


def test_file_systems_in_a_workspace_are_copied(room, work):
    """An overlay would not show them."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED, only root can mount")
    room.before = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none %s/deep && echo in > %s/deep/file && exec "$@"' % (work, work), "sh"]
    done = run(room, work, "cat deep/file")
    assert done.stdout == "in\n" and "had a copy" in done.stderr


def test_many_changes(room, work):
    done = run(room, work, "i=0; while [ $i -lt 1200 ]; do echo $i > file$i; i=$((i+1)); done; echo 'token: %s' > zzz" % TOKEN)
    assert done.returncode == 0 and "and 201 more" in done.stderr
    assert len(re.findall(r"^cage:   A ", done.stderr, re.M)) == 1000
    assert re.search(r"^cage:   zzz\ncage:     has what looks like a credential: github", done.stderr, re.M)
    assert apply(patch_of(done)).returncode == 0 and (work / "file1199").read_text() == "1199\n"


def test_changes_that_cannot_be_kept_are_left(room, work, view):
    os.makedirs(room.ca_dir)
    with open(os.path.join(room.ca_dir, "patches"), "w", encoding="ascii"):
        pass  # where a directory should be
    done = run(room, work, "echo after > changed.txt", "--apply")
    assert done.returncode == 1 and "can't be kept" in done.stderr and view
    left = re.search(r"is left in (/tmp/cage-run\.\w+)(/view/work/\w+)$", done.stderr, re.M)
    with open(left.group(1) + left.group(2) + "/changed.txt", encoding="ascii") as f:
        assert f.read() == "after\n"
    assert not os.path.exists(left.group(1) + "/private") and (work / "changed.txt").read_text() == "before\n"
    shutil.rmtree(left.group(1))


def test_workspace_with_files_of_cage(room):
    done = run(room, room.dir, "echo ran")
    assert (done.returncode, done.stdout) == (2, "") and "has secrets of cage" in done.stderr
    done = run(room, "/tmp", "echo ran")
    assert (done.returncode, done.stdout) == (2, "") and "has files of cage in it" in done.stderr


ALONE_HERE = 64123  # a user that no other test is: what it has in /tmp is of this one


def test_as_an_ordinary_user(room, open_dir):
    """What it has made unreadable for itself is kept too, and nothing of the run is left."""
    if os.geteuid() != 0:
        pytest.skip("all of these tests run as one already")
    mine = Room(open_dir, policy())
    work = open_dir / "work"
    work.mkdir()
    (work / "changed.txt").write_text("before\n")
    os.chmod(mine.policy_path, 0o644)
    for path in (mine.dir, work, work / "changed.txt"):
        os.chown(path, ALONE_HERE, ALONE_HERE)
    as_nobody = ["setpriv", "--reuid", str(ALONE_HERE), "--regid", str(ALONE_HERE), "--clear-groups"]
    if subprocess.run([*as_nobody, binary("cage"), "--version"], capture_output=True, timeout=20).returncode != 0:
        pytest.skip("NOT TESTED, other users can't execute %s" % binary("cage"))
    mine.before = as_nobody
    done = run(mine, work, "echo after > changed.txt; mkdir -p a/b/c; echo x > a/b/c/d; chmod 0 a/b/c/d a/b/c a/b a changed.txt", "--apply")
    assert done.returncode == 0, done.stderr
    check_view("overlay", done)
    assert (work / "changed.txt").read_text() == "after\n" and (work / "a" / "b" / "c" / "d").read_text() == "x\n"
    assert os.stat(work / "changed.txt").st_uid == ALONE_HERE
    assert not [x for x in glob.glob("/tmp/cage-run.*") if os.stat(x).st_uid == ALONE_HERE]


def as_user(open_dir, uid):
    """A room of an ordinary user."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED, only root can be somebody else")
    mine = Room(open_dir, policy())
    os.chmod(mine.policy_path, 0o644)
    os.chown(mine.dir, uid, uid)
    mine.before = ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups"]
    if subprocess.run([*mine.before, binary("cage"), "--version"], capture_output=True, timeout=20).returncode != 0:
        pytest.skip("NOT TESTED, other users can't execute %s" % binary("cage"))
    return mine


def test_a_workspace_of_root_as_an_ordinary_user(room, open_dir):
    """What CMD has closed to itself is kept, whoever owns the directory."""
    mine = as_user(open_dir, STRANGER)
    work = open_dir / "work"
    work.mkdir(mode=0o755)
    done = run(mine, work, "echo k > new; mkdir d; echo x > d/x; chmod 0 d/x d")
    assert done.returncode == 0 and re.findall(r"^cage:   ([AMD]) (.*)$", done.stderr, re.M) == [("A", "d/x"), ("A", "new")], done.stderr
    assert contents(os.path.join(patch_of(done), "files")) == {"d/x": b"x\n", "new": b"k\n"} and room


def test_directories_that_can_be_read_but_not_entered(room, open_dir):
    """They are as closed as those that can't be read: left out of a copy, which is said, and no reason not to apply."""
    mine = as_user(open_dir, NOBODY)
    work = open_dir / "work"
    (work / "deep").mkdir(parents=True)
    for name in ("half", "deep/half"):
        (work / name).mkdir()
        (work / name / "inside").write_text("x")
        os.chmod(work / name, 0o744)
    for path in (work, work / "deep"):
        os.chown(path, NOBODY, NOBODY)
    done = run(room, work, "find . -type f; echo x > a", "--apply")
    check_view("copy", done)
    assert (done.returncode, done.stdout) == (0, "") and (work / "a").exists(), done.stderr
    for name in ("half", "deep/half"):
        assert "cage: --workspace: %s can't be read, and is left out\n" % name in done.stderr
    os.chmod(work / "half", 0o755)
    shutil.rmtree(work / "half")
    done = run(mine, work, "echo x > b", "--apply")
    check_view("overlay", done)
    assert done.returncode == 0 and (work / "b").exists() and (work / "deep" / "half" / "inside").exists(), done.stderr


def test_left_out_files_are_counted(room, open_dir):
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED, only root reads everything")
    work = open_dir / "work"
    work.mkdir()
    for i in range(1007):
        (work / ("secret%d" % i)).touch(mode=0o600)
    os.chown(work, NOBODY, NOBODY)
    done = run(room, work, "ls")
    check_view("copy", done)
    assert done.returncode == 0 and done.stderr.count("can't be read, and is left out") == 1000
    assert "cage: --workspace: and 7 more\n" in done.stderr


SPY = """import os, sys
for directory, below, files in os.walk(sys.argv[1], onerror=lambda e: None):
    for name in below + files:
        try:
            os.close(os.open(os.path.join(directory, name), os.O_RDONLY | os.O_NONBLOCK))
            print(os.path.join(directory, name))
        except OSError:
            pass
for name in ("work", "work/upper", "work/copy", "work/upper/mine", "work/copy/mine"):
    try:
        os.stat(os.path.join(sys.argv[1], "view", name))
        print(name)
    except OSError:
        pass
try:
    open(os.path.join(sys.argv[1], "view/work/upper/evil"), "w")
    print("written")
except OSError:
    pass
"""


@pytest.mark.parametrize("kind", ["overlay", "copy", "no mounts by root"])
def test_the_view_is_closed_to_others_of_that_user(room, work, kind):
    """CMD of root is user 1000: whoever else is that on this machine neither reads nor writes what CMD does."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED, only root has a command of another user")
    if kind == "copy":
        os.chown(work / "changed.txt", STRANGER, STRANGER)
    if kind == "no mounts by root":  # then the way in is left, for CMD itself
        room.before = ["setpriv", "--bounding-set", "-sys_admin"]
    running = Running(room, "sh", "-c", "echo mine > mine && echo up; read line", options=["--workspace", str(work)])
    running.out.wait("up", 30)
    top = next(word for word in command_line(running.child("cage-gate")) if re.fullmatch(r"/tmp/cage-run\.\w+/kit", word))[:-len("/kit")]
    seen = subprocess.run(["setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups", "/usr/bin/python3", "-c", SPY, top],
                          capture_output=True, text=True, timeout=30)
    running.tell("go")
    assert running.end() == 0 and "A mine" in running.err.text()
    check_view("overlay" if kind == "overlay" else "copy", type("", (), {"stderr": running.err.text()}))
    assert seen.returncode == 0, seen.stderr
    found = [line for line in seen.stdout.splitlines() if "/kit" not in line]
    assert (found != []) == (kind == "no mounts by root"), found


def test_root_copies_what_the_owner_can_read(room, open_dir):
    """The command gets no file of others that the owner of the workspace could not read; it is not deleted by that either."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED, only root reads everything")
    work = open_dir / "work"
    (work / "closed").mkdir(parents=True)
    (work / "mine").mkdir()
    for name, text in (("secret", "root's"), ("closed/inside", "root's"), ("open", "root's too"), ("mine/file", "mine"), ("mine/secret", "root's")):
        (work / name).write_text(text)
    for name in ("secret", "mine/secret"):
        os.chmod(work / name, 0o600)
    os.chmod(work / "closed", 0o700)
    for path in (work, work / "mine", work / "mine" / "file"):
        os.chown(path, NOBODY, NOBODY)
    done = run(room, work, "find . -type f | sort; cat open mine/file; echo after > mine/file", "--apply")
    check_view("copy", done)
    assert done.returncode == 0 and done.stdout == "./mine/file\n./open\nroot's toomine", done.stderr
    for name in ("secret", "closed", "mine/secret"):
        assert "cage: --workspace: %s can't be read, and is left out\n" % name in done.stderr
    assert re.findall(r"^cage:   ([AMD]) (.*)$", done.stderr, re.M) == [("M", "mine/file")]
    assert (work / "mine" / "file").read_text() == "after\n" and (work / "secret").read_text() == "root's" and (work / "closed" / "inside").exists()
    assert os.stat(work / "mine" / "file").st_uid == NOBODY
    done = run(room, work, "echo evil > secret", "--apply")  # a name that it could not see
    assert done.returncode == 1 and "secret has changed since" in done.stderr and (work / "secret").read_text() == "root's"


def test_a_workspace_that_is_too_deep_is_not_copied(room, work):
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED, only root can have a copy here")
    os.chown(work / "changed.txt", STRANGER, STRANGER)
    subprocess.run(["/usr/bin/python3", "-c", "import os\nfor _ in range(3000):\n    os.mkdir('d' * 200)\n    os.chdir('d' * 200)"], cwd=work, check=True, timeout=60)
    done = run(room, work, "echo ran")
    assert (done.returncode, done.stdout) == (1, "") and "directories lie too deep in it" in done.stderr
    subprocess.run(["rm", "-rf", str(work)], check=True, timeout=60)


@pytest.mark.parametrize("place", ["", "/sub", "/.."], ids=["itself", "a part of it", "above it"])
def test_what_is_bound_too_would_be_changed_at_once(room, work, place):
    (work / "sub").mkdir(exist_ok=True)
    bound = os.path.realpath(str(work) + place)
    done = run(room, work, "echo x >%s/direct" % bound, "--bind", bound)
    assert done.returncode == 2 and "--bind %s" % bound in done.stderr, done.stderr
    assert not os.path.exists(bound + "/direct")


def test_what_is_bound_too_may_be_read(room, work):
    done = run(room, work, "echo ran", "--bind-ro", "%s:/mnt/original" % work)
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr


def copied(room, work):
    """Something is mounted below the workspace: then it is no overlay."""
    (work / "mounted").mkdir()
    before = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0/mounted" && exec "$@"', str(work)]
    room.before = [shutil.which(before[0]), *before[1:]]


def test_a_copy_that_takes_long_is_told(room, work):
    copied(room, work)
    for i in range(10001):
        (work / str(i)).touch()
    done = run(room, work, "echo ran")
    assert re.search(r"%s can't be an overlay here: 1000\d files are copied" % work, done.stderr) and done.stdout == "ran\n", done.stderr


ASKED = "import os, signal, sys; n = int(sys.argv[1]); signal.pthread_sigmask(signal.SIG_BLOCK, [n]); os.kill(os.getpid(), n); os.execv(sys.argv[2], sys.argv[2:])"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_copy_is_ended_by_signals(room, work, number):
    """One that has come already waits, blocked, until it is looked at."""
    copied(room, work)
    room.before += ["/usr/bin/python3", "-c", ASKED, str(int(number))]
    done = run(room, work, "echo ran")
    assert (done.returncode, done.stdout) == (128 + number, "") and "asked to end while %s was copied" % work in done.stderr, done.stderr
