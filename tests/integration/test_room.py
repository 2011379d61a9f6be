"""What an agent finds around it in the room of cage-gate, besides the network: as root and as an ordinary user."""
import contextlib
import fcntl
import os
import pty
import re
import shutil
import socket
import stat
import struct
import subprocess
import threading

import pytest
from cagelib import netns
from cagelib.room import UNLOCKED, Gate, users

F_OFD_SETLK = 37
LOCKED = 0x4361676543616765


@pytest.fixture(autouse=True)
def network():
    """Each test has one of its own, where it can have: ports and sockets of tests beside it are not there."""
    with netns.namespace() if os.geteuid() == 0 else contextlib.nullcontext():
        yield


@pytest.fixture(params=users())
def gate(request, network):
    made = Gate(request.param)
    yield made
    made.close()


def said(done):
    assert done.returncode == 0, done.stderr
    return done.stdout


def refused(done, *words):
    """It was not run, and why is said in one line."""
    assert (done.returncode, done.stdout) == (UNLOCKED, "")
    assert re.fullmatch(r"cage-gate: .*\n", done.stderr), done.stderr
    for word in words:
        assert word in done.stderr


def lines(done):
    return said(done).split("\n")[:-1]


def test_a_descriptor_that_can_not_be_opened(gate):
    """One that is missing would be whatever is opened next, so without a /dev/null nothing is done; where none is missing, none is needed."""
    def run(closed):
        line = [*gate.prefix, "unshare", "-r", "sh", "-c", 'exec chroot "$@" ' + closed, "sh", gate.directory, "/cage-gate", "--help"]
        return subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20)
    refused(run("0<&-"), "/dev/null: No such file")
    assert said(run("")).startswith("usage: cage-gate")


# ---- who the agent is


def test_no_privileges(gate):
    text = said(gate.sh("cat /proc/self/status; id -u; id -un; id -G"))
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert "%s:\t%016x\n" % (name, 0) in text
    assert "NoNewPrivs:\t1\n" in text
    assert text.endswith("\n1000\nagent\n1000\n")


def test_uid_is_chosen(gate):
    assert lines(gate.sh("id -u; id -g; id -un; grep -c . /etc/passwd", "--uid", "1234")) == ["1234", "1234", "agent", "3"]


@pytest.mark.parametrize("uid", ("0", "-1", "65534", "x", ""))
def test_uid_that_is_none(gate, uid):
    assert gate.sh("id", "--uid", uid).returncode == 2


def test_files_of_the_agent_belong_to_its_user_outside(gate):
    said(gate.sh("touch made", "--bind", gate.directory, "--workdir", gate.directory))
    assert os.stat(gate.path("made")).st_uid == gate.owner


def test_setuid_programs_give_nothing(gate):
    assert lines(gate.sh("findmnt -rno TARGET,OPTIONS | grep -v nosuid; su -c id 2>/dev/null || echo no")) == ["no"]


def test_own_user_namespace_owns_no_mounts_and_no_network(gate):
    done = gate.sh("unshare -r sh -c 'mount -t tmpfs none /home/agent || echo no; umount /proc/keys || echo no;"
                   " ip link set lo down || echo no; hostname other || echo no'")
    assert lines(done) == ["no"] * 4


def test_nested_namespaces_uncover_nothing(gate):
    secret = gate.write("work/key", "secret-bytes")
    done = gate.sh("unshare -rmp -f sh -c 'umount %s; cat %s; mount -t proc none /proc || echo no; umount /proc/sys || echo no;"
                   " mount -o remount,rw,bind /usr || echo no'" % (secret, secret),
                   "--bind", gate.path("work"), "--hide", secret)
    assert lines(done) == ["no"] * 3


# ---- environment


def test_environment_is_only_what_was_given(gate):
    outer = dict(os.environ, SSH_AUTH_SOCK="/tmp/agent.sock", AWS_SECRET_ACCESS_KEY="k", LD_PRELOAD="")
    done = gate.run("--env", "A=1", "--env", "B=x y=z", command=("/usr/bin/env",), env=outer)
    assert sorted(lines(done)) == ["A=1", "B=x y=z", "PATH=/usr/local/bin:/usr/bin:/bin"]


def test_environment_by_name(gate):
    """The value is on no command line, which every user of the machine can read."""
    outer = dict(os.environ, GIVEN="a=b c", GIVEN_NOT="x")
    done = gate.run("--env", "GIVEN", command=("/usr/bin/env",), env=outer)
    assert sorted(lines(done)) == ["GIVEN=a=b c", "PATH=/usr/local/bin:/usr/bin:/bin"]


@pytest.mark.parametrize("wrong", ("A", "", "=1", "HOME=here", "HOME=/", "HOME=/a/../b"))
def test_environment_that_is_none(gate, wrong):
    done = gate.sh("id", "--env", wrong)
    assert done.returncode == 2 and "--env" in done.stderr


# ---- files


def test_root_is_read_only(gate):
    script = "for d in / /usr /etc /usr/bin /opt /dev /sys /home; do touch $d/x 2>/dev/null && echo $d; done; touch /etc/passwd && echo x"
    done = gate.sh(script)
    assert done.stdout == ""


def test_only_programs_of_the_machine_are_shown(gate):
    shown = set(lines(gate.sh("ls /")))
    assert shown <= {"bin", "sbin", "lib", "lib32", "lib64", "libx32", "usr", "etc", "opt", "nix", "gnu", "dev", "proc", "sys", "run", "tmp",
                     "home", "var"}


def test_private_places_are_empty_and_end_with_the_room(gate):
    gate.write("visible")
    script = "cd %s && ls -A | grep -v '^run$\\|^tmp$'; touch mine && echo made"
    for place in ("/tmp", "/run", "/home/agent", "/var", "/var/tmp", "/dev/shm"):
        assert lines(gate.sh(script % place)) == ["made"], place
        assert not os.path.exists(os.path.join(place, "mine"))


def test_home_is_where_the_environment_says(gate):
    assert lines(gate.sh("pwd; touch ~/x && ls -A; grep -o /srv/me /etc/passwd", "--env", "HOME=/srv/me")) == ["/srv/me", "x", "/srv/me"]


def test_private_places_have_sizes(gate):
    sizes = lines(gate.sh("df -k --output=size /tmp /home/agent /run /dev/shm /small | tail -n +2", "--tmpfs", "/small:1M"))
    assert [int(s) for s in sizes] == [1 << 20, 1 << 20, 64 << 10, 256 << 10, 1 << 10]
    done = gate.sh("head -c 2000000 /dev/zero > /small/x || echo full; wc -c < /small/x", "--tmpfs", "/small:1M")
    assert lines(done) == ["full", str(1 << 20)]


def test_private_places_have_numbers_of_files(gate):
    """Of each file, however small, the kernel keeps something that no size counts."""
    places = ("/tmp", "/home/agent", "/small", "/run", "/var", "/dev/shm", "/", "/dev")
    most = lines(gate.sh("df --output=itotal %s | tail -n +2" % " ".join(places), "--tmpfs", "/small:1M"))
    assert [int(n) for n in most] == [262144] * 3 + [16384] * 4 + [64]
    script = """
import errno, os
n = 0
try:
    while n < 20000:
        os.close(os.open("/dev/shm/%d" % n, os.O_CREAT | os.O_WRONLY))
        n += 1
except OSError as e:
    print(n, errno.errorcode[e.errno])
"""
    n, why = said(gate.python(script)).split()
    assert 16000 < int(n) < 16384 and why == "ENOSPC"


@pytest.mark.parametrize("mode", ("netns", "seccomp"))
def test_what_is_inherited_does_not_matter(gate, mode):
    """Children that nobody is told of, and descriptors that are not there: what is opened next is none of the agent's."""
    before = ("env", "--ignore-signal=CHLD", "sh", "-c", "exec \"$@\" 0<&- 2>&-", "sh")
    assert said(gate.sh("readlink /proc/self/fd/0 /proc/self/fd/2; (exit 3); echo $?", before=before, mode=mode)) == "/dev/null\n/dev/null\n3\n"


def test_bind(gate):
    gate.write("work/in", "from outside")
    done = gate.sh("cat in; echo from inside > out", "--bind", gate.path("work"), "--workdir", gate.path("work"))
    assert said(done) == "from outside"
    with open(gate.path("work/out")) as f:
        assert f.read() == "from inside\n"


def test_bind_elsewhere_and_read_only(gate):
    gate.write("work/in", "text")
    done = gate.sh("cat /w/in /home/agent/deep/er/in /one; touch /w/x /home/agent/deep/er/x; echo >> /one", "--bind-ro", gate.path("work") + ":/w",
                   "--bind-ro", gate.path("work") + ":/home/agent/deep/er", "--bind-ro", gate.path("work/in") + ":/one")
    assert done.stdout == "texttexttext" and done.returncode != 0
    assert done.stderr.count("Read-only file system") == 3
    assert os.listdir(gate.path("work")) == ["in"]


def test_bound_files_have_no_devices(gate):
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED, only root makes devices")
    os.makedirs(gate.path("work"))
    os.mknod(gate.path("work/null"), 0o666 | stat.S_IFCHR, os.makedev(1, 3))
    os.chmod(gate.path("work/null"), 0o666)
    assert "Permission denied" in gate.sh("cat null", "--bind", gate.path("work"), "--workdir", gate.path("work")).stderr


def test_root_binds_what_the_agent_could_not_reach(gate):
    """The directory above stays closed; for an ordinary user it is closed outside too."""
    os.makedirs(gate.path("closed/work"))
    for name in ("closed/work", "closed"):
        os.chown(gate.path(name), gate.owner, -1)
    with open(gate.path("closed/work/in"), "w") as f:
        f.write("text")
    if os.geteuid() == 0:
        os.chown(gate.path("closed"), 0, 0)
        os.chmod(gate.path("closed"), 0o700)
    done = gate.sh("cat in; ls ..", "--bind", gate.path("closed/work"), "--workdir", gate.path("closed/work"))
    if gate.user == "root":
        assert lines(done) == ["textwork"]
    elif os.geteuid() == 0:
        refused(done, "closed/work", "Permission denied")


def test_hidden_paths(gate):
    gate.write("work/.env", "KEY=1")
    gate.write("work/keys/a", "KEY=2")
    done = gate.sh("cat .env; ls -A keys; touch keys/x; rm -f .env; echo over > .env; ls -A", "--hide", gate.path("work/.env"), "--hide",
                   gate.path("work/keys"), "--hide", gate.path("work/absent"), "--bind", gate.path("work"), "--workdir", gate.path("work"))
    assert lines(done) == [".env", "keys"]
    with open(gate.path("work/.env")) as f:
        assert f.read() == "KEY=1"
    assert os.listdir(gate.path("work/keys")) == ["a"]


def test_links_in_a_bind_stay_in_the_room(gate):
    """A link that the agent has left in its workspace does not lead the next bind, or its own eyes, to this machine."""
    gate.write("secret", "secret-bytes")
    gate.write("work/x")
    os.symlink(gate.directory, gate.path("work/out"))
    os.symlink("/proc/1/root" + gate.directory, gate.path("work/root"))
    done = gate.sh("cat out/secret root/secret", "--bind", gate.path("work") + ":/w", "--workdir", "/w")
    assert done.stdout == ""
    done = gate.sh("cat out/secret /w/out/secret; echo", "--bind", gate.path("work") + ":/w", "--bind-ro", gate.path("work/x") + ":/w/out/y",
                   "--workdir", "/w")
    assert "secret-bytes" not in done.stdout and not os.path.exists(gate.path("y"))


def test_another_root(gate):
    """A tree of another image is shown whole, but for what a room has of its own."""
    for name in ("bin", "data", "home/somebody", "tmp/left", "run/service", "var/tmp", "etc"):
        os.makedirs(gate.path("image/" + name))
    shutil.copy("/bin/busybox" if os.path.exists("/bin/busybox") else gate.program, gate.path("image/bin/tool"))
    gate.write("image/data/file", "of the image")
    gate.write("image/etc/passwd", "root:x:0:0::/root:/bin/sh")
    done = gate.run("--root", gate.path("image"), command=("/bin/tool", "--help"))
    assert done.returncode == 0, done.stderr
    done = gate.python("import os; print(os.listdir('/'), open('/etc/passwd').read().count('\\nagent:x'), os.listdir('/home'), os.listdir('/tmp'),"
                       " open('/data/file').read())", "--root", gate.path("image"), "--bind-ro", "/usr", "--bind-ro", "/usr/lib:/lib", "--bind-ro",
                       "/usr/lib64:/lib64")
    text = said(done)
    assert "'data'" in text and text.endswith("1 ['agent'] [] of the image\n")


def test_a_source_that_is_a_link(gate):
    """Also one in the middle of its name: who could change it would say what is shown."""
    gate.write("secret/file", "secret-bytes")
    os.symlink("secret", gate.path("work"))
    os.symlink(gate.path("secret/file"), gate.path("one"))
    for option, source in (("--bind", "work"), ("--bind-ro", "work/file"), ("--bind-ro", "one"), ("--replace", "one"), ("--copy", "work")):
        done = gate.sh("cat /there/file /there; echo run", option, gate.path(source) + ":/there")
        refused(done, gate.path(source), "is a link: name what")


def test_a_link_is_not_bound_where_nothing_is_mounted(gate):
    gate.write("secret/file", "secret-bytes")
    os.symlink("secret", gate.path("work"))
    for option in ("--bind", "--bind-ro"):
        refused(gate.sh("cat %s/file" % gate.path("work"), option, gate.path("work"), mode="seccomp"), gate.path("work"), "is a link: name what")


def overlay_places(gate):
    """A directory, and a state that changes of it go to; each with a link to it."""
    for name in ("src/file", "state/upper/.keep", "state/work/.keep", "state/lower/.keep"):
        gate.write(name, "here\n")
        if name.endswith(".keep"):
            os.unlink(gate.path(name))
    for name in ("src", "src/file", "state"):
        os.chown(gate.path(name), gate.owner, gate.owner)
    for name in ("upper", "work", "lower"):
        os.chown(gate.path("state/" + name), gate.owner, gate.owner)
    os.symlink("src", gate.path("srclink"))
    os.symlink("state", gate.path("stlink"))


@pytest.mark.parametrize("source, state, blamed", (("srclink", "state", "srclink"), ("src", "stlink", "stlink")))
def test_an_overlay_of_links_is_refused(gate, source, state, blamed):
    """By who chooses too, which would have to say what comes of it."""
    overlay_places(gate)
    place = gate.path(source) + ":" + gate.path(state)
    refused(gate.sh("echo x > %s/new; echo run" % gate.path(source), "--overlay", place), gate.path(blamed) + ": ", "is a link: name what")
    chosen = subprocess.run([*gate.prefix, gate.program, "--choose", "--mode", "netns", "--overlay", place], capture_output=True, text=True, timeout=30)
    refused(chosen, gate.path(blamed) + ": ", "is a link: name what")
    assert os.listdir(gate.path("state/upper")) == []


@pytest.mark.parametrize("missing", ("state", "state/lower", "src"))
def test_an_overlay_says_what_is_missing(gate, missing):
    overlay_places(gate)
    shutil.rmtree(gate.path(missing))
    refused(gate.sh("echo run", "--overlay", gate.path("src") + ":" + gate.path("state")), " " + gate.path(missing) + ": No such file")


def exchange(one, other):
    """Both names at once, so that there is no moment without them."""
    netns.check(netns.libc.renameat2(-100, one.encode(), -100, other.encode(), 2), "renameat2")


def test_links_that_come_and_go_in_another_root_are_not_followed(gate):
    """Who may change the tree must not say what else of the machine is shown."""
    gate.write("outside/secret", "secret-bytes")
    options = image_with_etc(gate)
    pairs = [(gate.path("image/d%d" % i), gate.path("swap/l%d" % i)) for i in range(64)]
    os.mkdir(gate.path("swap"))
    for directory, link in pairs:
        os.mkdir(directory)
        os.symlink(gate.path("outside"), link)
    over = threading.Event()

    def change():
        while not over.is_set():
            for pair in pairs:
                exchange(*pair)
    changing = threading.Thread(target=change)
    changing.start()
    try:
        for _ in range(10):
            done = gate.sh("cat /d*/secret 2>/dev/null; echo run", *options)
            assert (done.returncode, done.stdout) == (0, "run\n"), done.stderr
    finally:
        over.set()
        changing.join()


def test_directories_that_come_and_go_in_another_root(gate):
    """One that is gone before it is put into the room was never there."""
    options = image_with_etc(gate)
    names = [gate.path("image/d%d" % i) for i in range(64)]
    over = threading.Event()

    def change():
        while not over.is_set():
            for name in names:
                os.mkdir(name)
            for name in names:
                os.rmdir(name)
    changing = threading.Thread(target=change)
    changing.start()
    try:
        for _ in range(20):
            done = gate.sh("echo run", *options)
            assert (done.returncode, done.stdout) == (0, "run\n"), done.stderr
    finally:
        over.set()
        changing.join()


ETC = ("--bind-ro", "/usr", "--bind-ro", "/usr/lib64:/lib64", "--bind-ro", "/usr/lib:/lib", "--bind-ro",
       "/usr/bin:/bin")


def image_with_etc(gate):
    """A root with all kinds of things in its /etc."""
    for name in ("etc/dir", "etc/keys/deep", "var/tmp"):
        os.makedirs(gate.path("image/" + name))
    for name in ("etc/plain", "etc/closed", "etc/dir/inner", "etc/keys/deep/key", "etc/passwd", "etc/passwd-", "etc/hosts", "etc/program"):
        gate.write("image/" + name, "of the image\n")
    os.chmod(gate.path("image/etc/closed"), 0o640)
    os.chmod(gate.path("image/etc/program"), 0o755)
    os.symlink("dir/inner", gate.path("image/etc/link"))
    os.mkfifo(gate.path("image/etc/pipe"))
    with open(gate.path("image/etc/large"), "wb") as f:
        f.truncate((1 << 20) + 1)
    return ("--root", gate.path("image"), *ETC)


def test_etc_is_the_rooms_own(gate):
    """What everybody may read is there; what has something hidden in it is not, and nothing can be changed."""
    options = [*image_with_etc(gate), "--hide", "/etc/keys/deep/key"]
    assert lines(gate.sh("cd /etc; ls -A", *options)) == ["dir", "group", "hostname", "hosts", "large", "link", "passwd", "plain", "program", "resolv.conf"]
    done = gate.sh("cd /etc; cat plain link; readlink link; test -x program && echo x; stat -c %s large; grep -c image passwd hosts", *options)
    assert done.stdout.split("\n")[:-1] == ["of the image", "of the image", "dir/inner", "x", str((1 << 20) + 1), "passwd:0", "hosts:0"]
    script = "cd /etc; for n in plain large dir/inner hosts new dir/new; do echo x 2>/dev/null > $n && echo $n; rm -f $n 2>/dev/null && test -e $n.gone; done; chmod 777 plain 2>/dev/null"
    assert gate.sh(script, *options).stdout == ""


def etc_tree(gate, *names):
    """A root whose /etc has these: directories end with /, modes stand behind a colon, what the agent would own outside is its."""
    options = image_with_etc(gate)
    for name in names:
        path, mode = name.split(":")
        where = gate.path("image/etc/" + path)
        if path.endswith("/"):
            os.makedirs(where, exist_ok=True)
        else:
            gate.write("image/etc/" + path, "of the image\n")
        os.chmod(where, int(mode, 8))
    return options


def test_what_not_everybody_may_read_is_in_no_directory_of_etc(gate):
    """Though the agent could: its uid has these files. Beside them all is there, at every level."""
    options = etc_tree(gate, "ssl/:755", "ssl/certs/:755", "ssl/private/:755", "ssl/deep/er/:755", "ssl/open:644", "ssl/certs/c:644", "ssl/private/k:640",
                       "ssl/private/own:600", "ssl/deep/x:644", "ssl/deep/er/k:600", "ssl/private/:750", "closed-dir/:700", "closed-dir/f:644", "named/:711", "named/f:644")
    os.symlink("certs/c", gate.path("image/etc/ssl/link"))
    for name in ("closed-dir", "ssl/private", "named"):
        os.chown(gate.path("image/etc/" + name), gate.owner, -1)
    assert lines(gate.sh("cd /etc; find ssl closed-dir named 2>/dev/null | sort; cat ssl/link", *options)) == [
        "ssl", "ssl/certs", "ssl/certs/c", "ssl/deep", "ssl/deep/er", "ssl/deep/x", "ssl/link", "ssl/open", "of the image"]
    assert gate.sh("cd /etc; for n in ssl ssl/certs ssl/deep; do echo x 2>/dev/null > $n/new && echo $n; done; rm -f ssl/open 2>/dev/null && echo gone", *options).stdout == ""


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED, needs root")
def test_groups_of_who_runs_the_gate_open_nothing_in_etc():
    gate = Gate("ordinary")
    try:
        options = etc_tree(gate, "ssl/:755", "ssl/private/:755", "ssl/private/k:640", "ssl/private/:710", "ssl/key:640")
        for name in ("private", "private/k", "key"):
            os.chown(gate.path("image/etc/ssl/" + name), 0, 4242)
        gate.prefix[-1] = "--groups=4242"
        done = gate.sh("ls -A /etc/ssl; cat /etc/ssl/key /etc/ssl/private/k 2>/dev/null; id -G", *options)
        assert "65534" in done.stdout.splitlines()[-1], done.stderr  # the group is there
        assert done.stdout.splitlines()[:-1] == []
    finally:
        gate.close()


def test_more_in_a_directory_of_etc_than_is_looked_at(gate):
    """It is left out, which is said; the others are there."""
    options = etc_tree(gate, "many/:755", "ssl/:755", "ssl/f:644", "/".join(["deep"] * 17) + "/:755", "/".join(["fits"] * 16) + "/:755")
    for i in range(8193):
        os.symlink("x", gate.path("image/etc/many/%d" % i))
    done = gate.sh("cd /etc; ls -d many ssl/f deep fits 2>/dev/null", *options)
    assert done.stdout.split() == ["fits", "ssl/f"]
    assert "/etc/many: more names or levels" in done.stderr and "/etc/deep: more names or levels" in done.stderr
    os.unlink(gate.path("image/etc/many/0"))
    assert "/etc/many" in gate.sh("ls -d /etc/many", *options).stdout


def test_more_to_mount_in_directories_of_etc_than_a_room_has(gate):
    options = etc_tree(gate, "mixed/:755", "mixed/key:600", *("mixed/d%d/:755" % i for i in range(129)))
    done = gate.sh("ls /etc/mixed | wc -l", *options)
    assert (done.returncode, done.stdout) == (0, "128\n") and done.stderr.count("it is not in the room") == 1, done.stderr


def test_what_is_renamed_outside_later_is_not_seen(gate):
    """A file that is replaced while the agent runs, as those who add users do it, and one that is rotated in what is left out."""
    options = [*image_with_etc(gate), "--hide", "/etc/keys/deep/key"]
    script = "echo up; read line; cd /etc; cat passwd hosts plain large | tr -d '\\0'; ls -d keys new"
    line = [*gate.line(*options), "--", "/bin/sh", "-c", script]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout.readline() == "up\n"
        for name in ("passwd", "hosts", "plain", "large", "keys/deep/key", "new"):
            gate.write("image/etc/new-one", "secret-bytes")
            os.rename(gate.path("image/etc/new-one"), gate.path("image/etc/" + name))
        out, err = running.communicate("\n", timeout=30)
    assert "secret-bytes" not in out and out.count("of the image") == 1 and err.count("No such file") == 2, (out, err)


def test_more_names_in_etc_than_a_room_has(gate):
    """Those that the room has itself, and backups, are not counted."""
    options = image_with_etc(gate)
    etc = gate.path("image/etc/")
    left = 1024 - len([name for name in os.listdir(etc) if name not in ("passwd", "passwd-", "hosts")])
    for i in range(left):
        os.symlink("plain", etc + "n%d" % i)
    assert lines(gate.sh("ls -d /etc/n* | wc -l; cat /etc/n0", *options)) == [str(left), "of the image"]
    os.symlink("plain", etc + "one-more")
    refused(gate.sh("echo run", *options), "more than 1024 names")


def test_more_in_etc_than_is_copied(gate):
    """The rest is bound, and all of it is there."""
    options = image_with_etc(gate)
    for i in range(70):
        with open(gate.path("image/etc/f%d" % i), "wb") as f:
            f.write(b"%d\n" % i)
            f.truncate(1 << 20)
    done = gate.sh("cd /etc; cat f* | wc -c; for n in f*; do head -n 1 $n; echo x 2>/dev/null > $n && echo changed; done; true", *options)
    assert sorted(lines(done)) == sorted([str(70 << 20), *map(str, range(70))])


def test_more_things_than_a_room_has(gate):
    """Directories of a root, each of which is put there by itself."""
    options = image_with_etc(gate)
    for i in range(2304):
        os.mkdir(gate.path("image/d%d" % i))
    refused(gate.sh("echo run", *options, before=("prlimit", "--nofile=4096:4096")), "more than 2304 things")


def test_a_root_without_etc(gate):
    options = image_with_etc(gate)
    shutil.rmtree(gate.path("image/etc"))
    assert lines(gate.sh("ls /etc; id -un", *options)) == ["group", "hostname", "hosts", "passwd", "resolv.conf", "agent"]
    os.symlink("usr-etc", gate.path("image/etc"))
    gate.write("image/usr-etc/file", "text\n")
    assert lines(gate.sh("cat /etc/file; id -un", *options)) == ["text", "agent"]
    os.unlink(gate.path("image/etc"))
    os.symlink("../outside", gate.path("image/etc"))
    gate.write("outside/file", "secret-bytes")
    assert lines(gate.sh("test -e /etc/file || echo no", *options)) == ["no"]


@pytest.mark.parametrize("options", (("--bind", "relative"), ("--bind", "/a/../b"), ("--bind", "/a:b"), ("--bind-ro", "/a:/"), ("--bind", ""),
                                     ("--bind-ro", "/tmp/..:/x"), ("--bind", "/tmp/.:/x"), ("--tmpfs", "/a/..:1M"), ("--overlay", "/a/..:/s"),
                                     ("--tmpfs", "/x:0"), ("--tmpfs", "/x:1Q"), ("--tmpfs", "/"), ("--hide", "/"), ("--hide", "x"),
                                     ("--root", "x"), ("--workdir", "../x"), ("--hostname", "a b"), ("--hostname", ""), ("--limit", "mem=x"),
                                     ("--limit", "mem"), ("--limit", "speed=1"), ("--limit", "cpu=1.2345"), ("--limit", "time=0"),
                                     ("--limit", "pids=99999999999999999999"), ("--limit", "mem=1048577G"), ("--limit", "mem=1,,cpu=1")))
def test_wrong_options(gate, options):
    done = gate.sh("id", *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert options[0] in done.stderr


def test_too_many_binds(gate):
    assert gate.sh("id", *["--hide", "/x"] * 1025).returncode == 2


@pytest.mark.parametrize("options, words", (
    (("--bind", "/absent/x"), ("/absent/x", "No such file")),
    (("--bind-ro", "/etc/hostname:/usr"), ("/usr",)),
    (("--root", "/absent"), ("/absent", "No such file")),
))
def test_what_can_not_be_done_refuses(gate, options, words):
    refused(gate.sh("echo run", *options), *words)


@pytest.mark.parametrize("options, words", (
    (("--bind", "/opt:/usr/absent"), "--bind: /usr/absent is not there"),
    (("--bind-ro", "/usr:/usr/absent/x"), "--bind-ro: /usr/absent/x is not there"),
    (("--tmpfs", "/usr/absent"), "--tmpfs: /usr/absent is not there"),
    (("--copy", "/opt:/usr/absent"), "--copy: /usr/absent is not there"),
    (("--bind", "/opt:/proc"), "--bind: /proc is the room's own"),
    (("--bind", "/opt:/proc/x"), "--bind: /proc/x is the room's own"),
    (("--hide", "/proc/"), "--hide: /proc/ is the room's own"),
    (("--bind-ro", "/opt:/dev"), "--bind-ro: /dev is the room's own"),
    (("--bind-ro", "/opt:/home"), "--bind-ro: /home lies over the home of the agent, and has no /home/agent"),
    (("--tmpfs", "/home", "--workdir", "/home/agent"), "--tmpfs: /home lies over the home of the agent, and has no /home/agent"),
    (("--limit", "pids=1"), "--limit: pids=1: a room needs some itself: at least pids=4"),
    (("--limit", "files=50,pids=3"), "--limit: pids=3: a room needs some itself: at least pids=4"),
))
def test_places_and_limits_that_no_room_can_have_are_wrong_usage(gate, options, words):
    done = gate.sh("echo run", *options)
    assert (done.returncode, done.stdout) == (2, "") and words in done.stderr, done.stderr


def test_the_least_of_processes(gate):
    assert lines(gate.run("--limit", "pids=4", command=("/bin/echo", "run"))) == ["run"]


def test_a_workdir_that_is_not_there_is_wrong_usage(gate):
    done = gate.sh("echo run", "--workdir", "/absent")
    assert (done.returncode, done.stdout, done.stderr) == (2, "", "cage-gate: --workdir /absent, in the room: No such file or directory\n")


# ---- what is kept out


def test_credentials_and_sockets_are_not_there(gate):
    home = gate.path("home")
    for name in (".ssh/id_ed25519", ".aws/credentials", ".config/gcloud/credentials.db", ".docker/config.json", ".netrc"):
        gate.write("home/" + name, "secret-bytes")
    agent = socket.socket(socket.AF_UNIX)
    agent.bind(gate.path("agent.sock"))
    agent.listen()
    os.chmod(gate.path("agent.sock"), 0o777)
    outer = dict(os.environ, HOME=home, SSH_AUTH_SOCK=gate.path("agent.sock"))
    script = """
import os, socket
print(os.environ.get("SSH_AUTH_SOCK"), os.path.exists(%r), os.listdir(%r))
for path in (%r, "/run/docker.sock", "/var/run/docker.sock"):
    try:
        socket.socket(socket.AF_UNIX).connect(path)
        print("connected")
    except OSError:
        pass
for top, _, files in os.walk("/home"):
    print(top, files)
""" % (gate.directory, home, gate.path("agent.sock"))
    done = gate.python(script, "--env", "HOME=" + home, env=outer)
    assert lines(done) == ["None True []", "/home []"] or lines(done) == ["None True []"]
    agent.close()


def test_a_bound_socket_is_there(gate):
    server = socket.socket(socket.AF_UNIX)
    server.bind(gate.path("s"))
    server.listen()
    os.chmod(gate.path("s"), 0o777)
    done = gate.python("import socket; socket.socket(socket.AF_UNIX).connect('/s'); print('yes')", "--bind", gate.path("s") + ":/s")
    assert lines(done) == ["yes"]
    server.close()


CONNECT = """
import os, socket, sys
for path in sys.argv[1:]:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        try:
            socket.socket(socket.AF_UNIX, kind).connect(path)
            print("connected", path)
        except OSError as e:
            pass
"""


def listen(path, kind=socket.SOCK_STREAM):
    server = socket.socket(socket.AF_UNIX, kind)
    server.bind(path)
    if kind == socket.SOCK_STREAM:
        server.listen()
    os.chmod(path, 0o777)
    return server


def test_sockets_below_a_shown_tree_are_hidden(gate):
    """A read-only mount keeps nobody from them. What is bound by name is meant."""
    for name in ("lib", "opt/service", "opt/bound"):
        os.makedirs(gate.path("image/" + name))
    os.symlink(gate.path("image/opt"), gate.path("other-name"))
    bound = gate.path("image/opt/bound")
    servers = [listen(gate.path("image/opt/service/stream")), listen(gate.path("image/opt/service/datagram"), socket.SOCK_DGRAM),
               listen(gate.path("other-name/service/by-link")), listen(bound + "/stream")]
    options = ["--root", gate.path("image"), "--bind-ro", "/usr", "--bind-ro", "/usr/lib:/lib", "--bind-ro", "/usr/lib64:/lib64"]
    paths = ["/opt/service/" + name for name in ("stream", "datagram", "by-link")] + ["/opt/bound/stream"]
    line = ("/usr/bin/python3", "-c", CONNECT, *paths)
    assert lines(gate.run(*options, command=line)) == []
    assert lines(gate.run(*options, "--bind-ro", bound + ":/opt/bound", command=line)) == ["connected /opt/bound/stream"]
    for server in servers:
        server.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED, only root writes to /opt")
def test_sockets_among_programs_of_the_machine_are_hidden(gate):
    place = "/opt/cage-room-%d" % os.getpid()
    os.mkdir(place)
    try:
        with listen(place + "/s"), listen(place + "/t"):
            done = gate.run("--bind", place + "/t", command=("/usr/bin/python3", "-c", CONNECT, place + "/s", place + "/t"))
            assert lines(done) == ["connected %s/t" % place]
    finally:
        shutil.rmtree(place)


@pytest.mark.skipif(os.geteuid() != 0 or os.path.exists("/nix"), reason="NOT TESTED, only root makes a /nix where there is none")
def test_of_nix_only_programs_are_shown(gate):
    try:
        for name in ("store/x", "var/nix/profiles", "var/nix/daemon-socket", "var/nix/db"):
            os.makedirs("/nix/" + name)
        with listen("/nix/var/nix/daemon-socket/socket"):
            assert lines(gate.sh("cd /nix; find . | sort")) == [".", "./store", "./store/x", "./var", "./var/nix", "./var/nix/profiles"]
    finally:
        shutil.rmtree("/nix")


def test_abstract_sockets_of_the_machine_are_not_there(gate):
    name = "\0cage-test-%d" % os.getpid()
    server = socket.socket(socket.AF_UNIX)
    server.bind(name)
    server.listen()
    done = gate.python("import socket; print(socket.socket(socket.AF_UNIX).connect_ex(%r))" % name)
    assert said(done) in ("111\n", "1\n")
    assert "cage-test" not in said(gate.sh("cat /proc/net/unix"))
    server.close()


def test_ipc_of_the_machine_is_not_there(gate):
    made = subprocess.run(("ipcmk", "-M", "4096", "-p", "0666"), capture_output=True, text=True, timeout=10)
    number = made.stdout.split()[-1]
    try:
        assert number in subprocess.run(("ipcs", "-m"), capture_output=True, text=True, timeout=10).stdout
        assert not re.search(r"0x", said(gate.sh("ipcs -m")))
    finally:
        subprocess.run(("ipcrm", "-m", number), check=True, timeout=10)


def test_descriptors_of_who_runs_the_gate_are_closed(gate):
    with open("/etc/hostname") as f:
        os.set_inheritable(f.fileno(), True)
        done = gate.sh("ls /proc/self/fd", close_fds=False, stdin=subprocess.DEVNULL)
    assert lines(done) == ["0", "1", "2", "3"]  # the last is that of ls itself


def test_an_open_directory_is_refused(gate):
    """From it, each path of the machine could be reached."""
    root = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        for mode in ("netns", "seccomp"):
            refused(gate.sh("echo run", mode=mode, stdin=root), "descriptor 0 is a directory")
    finally:
        os.close(root)


# ---- processes and the kernel


def test_only_processes_of_the_room_are_shown(gate):
    """The first one is the gate's, and hidden."""
    text = said(gate.sh("cd /proc; echo [0-9]*; cat /proc/1/cmdline /proc/1/environ; kill -0 %d || echo gone; :" % os.getpid()))
    assert text.split("\n")[0].split() == ["2"]
    assert text.split("\n")[1:] == ["gone", ""]


def test_the_first_process_can_not_be_ended_or_looked_into(gate):
    script = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
print(libc.ptrace(16, 1, 0, 0), ctypes.get_errno())
for number in (9, 15, 19):
    try:
        os.kill(1, number)
    except PermissionError:
        pass
print("here")
"""
    assert lines(gate.python(script)) == ["-1 1", "here"]


def test_orphans_are_reaped_and_end_with_the_room(gate):
    mark = "sleep 98.%d" % os.getpid()
    done = gate.sh("(%s & ) ; (true &); sleep 0; exit 7" % mark)
    assert done.returncode == 7
    assert mark not in subprocess.run(("ps", "-eo", "args"), capture_output=True, text=True, timeout=10).stdout


def test_proc_is_restricted(gate):
    script = """
import os
for name in ("kcore", "keys", "kallsyms", "timer_list", "kmsg", "config.gz", "slabinfo", "sched_debug"):
    path = "/proc/" + name
    if os.path.exists(path) and open(path, "rb").read(1):
        print("shown", path)
for name in ("acpi", "scsi", "asound"):
    if os.path.exists("/proc/" + name) and os.listdir("/proc/" + name):
        print("shown", name)
def writable(path):
    try:
        os.close(os.open(path, os.O_WRONLY))
        return True
    except OSError:
        return False
for top, _, files in os.walk("/proc/sys"):
    for name in files:
        if writable(os.path.join(top, name)):
            print("writable", top, name)
print(writable("/proc/sysrq-trigger"), writable("/proc/irq/default_smp_affinity"), writable("/proc/self/oom_score_adj"))
print(open("/proc/meminfo").read(8), os.cpu_count() > 0)
"""
    assert lines(gate.python(script)) == ["False False True", "MemTotal True"]


def test_locks_of_others_are_not_shown(gate, tmp_path):
    """Those of open files are shown in every namespace, with a range that whoever holds it chooses: text between rooms."""
    with (tmp_path / "locked").open("wb") as held:
        fcntl.fcntl(held, F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, LOCKED, 1, 0))
        with open("/proc/locks") as shown:
            assert str(LOCKED) in shown.read()
        script = """
import fcntl, os, struct
own = os.open("/tmp/own", os.O_RDWR | os.O_CREAT)
fcntl.fcntl(own, %d, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 7, 1, 0))
print(len(open("/proc/locks").read()))
""" % F_OFD_SETLK
        assert lines(gate.python(script)) == ["0"]


@pytest.mark.parametrize("mode", ("netns", "seccomp"))
def test_programs_for_sockets(gate, mode):
    """They take of memory that the machine has once, for all."""
    script = """
import ctypes, errno, socket, struct
libc = ctypes.CDLL(None, use_errno=True)
code = ctypes.create_string_buffer(struct.pack("HBBI", 6, 0, 0, 0xffff))
program = ctypes.create_string_buffer(struct.pack("H6xQ", 1, ctypes.addressof(code)))
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
number = {"x86_64": 54, "aarch64": 208}[__import__("os").uname().machine]
for high in (0, 1 << 32):
    for option in (26, 50, 51, 52):
        print(libc.syscall(number, s.fileno(), ctypes.c_ulong(1 | high), ctypes.c_ulong(option | high), program, 16), errno.errorcode[ctypes.get_errno()])
s.setsockopt(1, 8, 1000)
"""
    assert lines(gate.python(script, mode=mode, env=dict(os.environ, HOME=gate.directory))) == ["-1 EPERM"] * 8


def test_sys_has_only_processors(gate):
    assert lines(gate.sh("ls /sys /sys/devices; ls /sys/devices/system | grep -v node; touch /sys/devices/system/cpu/x 2>&1 | grep -c Read-only")) \
        == ["/sys:", "devices", "", "/sys/devices:", "system", "cpu", "1"]


def test_dev_is_minimal_and_works(gate):
    names = lines(gate.sh("ls /dev"))
    assert names == ["fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero"]
    done = gate.sh("head -c 3 /dev/urandom | wc -c; echo x > /dev/null && head -c 1 /dev/zero | od -An -tx1; echo x > /dev/full || echo full;"
                   " ls /dev/pts; mknod /tmp/d c 1 3 2>&1 | grep -c 'not permitted'")
    assert lines(done) == ["3", " 00", "full", "ptmx", "1"]


def test_terminals_are_of_the_room(gate):
    script = "import os; a, b = os.openpty(); print(os.ttyname(b), sorted(os.listdir('/dev/pts')))"
    assert lines(gate.python(script)) == ["/dev/pts/0 ['0', 'ptmx']"]


@pytest.mark.parametrize("mode", ("netns", "seccomp"))
def test_nothing_is_typed_into_a_terminal(gate, mode):
    """Not into that of who runs the gate either: the shell there would take it for what its user types."""
    script = """
import fcntl
for request in (0x5412, 0x541c):
    try:
        fcntl.ioctl(0, request, b"x")
        print("typed")
    except PermissionError:
        print("no")
"""
    ours, own = pty.openpty()
    try:
        assert lines(gate.python(script, mode=mode, env=dict(os.environ, HOME=gate.directory), stdin=own)) == ["no"] * 2
    finally:
        os.close(ours)
        os.close(own)


def test_names(gate):
    text = said(gate.sh("hostname; cat /etc/hostname /etc/hosts /etc/resolv.conf; getent hosts localhost box", "--hostname", "box"))
    assert text.startswith("box\nbox\n127.0.0.1\tlocalhost box\n::1\tlocalhost ip6-localhost ip6-loopback\nnameserver 127.0.0.1\n")
    assert "127.0.0.1       localhost box" in text
    assert socket.gethostname() != "box"


def test_resolv_conf_that_is_a_link(gate):
    """As systemd-resolved has it: into /run, which is empty in the room."""
    for place in ("../run/resolve/stub.conf", "/run/resolve/stub.conf"):
        shutil.rmtree(gate.path("image"), ignore_errors=True)
        os.makedirs(gate.path("image/etc"))
        os.makedirs(gate.path("image/var/tmp"))
        os.symlink(place, gate.path("image/etc/resolv.conf"))
        done = gate.run("--root", gate.path("image"), "--bind-ro", "/usr", "--bind-ro", "/usr/lib64:/lib64", "--bind-ro", "/usr/lib:/lib",
                        command=("/usr/bin/cat", "/etc/resolv.conf"))
        assert said(done) == "nameserver 127.0.0.1\n"


# ---- limits


def limit_of(text, name):
    return re.search(name + r"\s+(\S+)\s+(\S+)", text).groups()


@pytest.mark.cgroups
def test_limits_of_processes(gate):
    text = said(gate.sh("cat /proc/self/limits", "--limit", "pids=77,files=88", "--limit", "fsize=1M"))
    assert limit_of(text, "Max processes") in (("77", "77"), ("78", "78"))  # where a cgroup refuses the 78th, it counts them
    assert limit_of(text, "Max open files") == ("88", "88")
    assert limit_of(text, "Max file size") == (str(1 << 20),) * 2
    assert limit_of(text, "Max core file size") == ("0", "0")


def test_limits_that_nobody_asked_for(gate):
    text = said(gate.sh("cat /proc/self/limits"))
    assert int(limit_of(text, "Max processes")[1]) <= 4096
    assert int(limit_of(text, "Max open files")[1]) <= 65536


@pytest.mark.cgroups
def test_limits_are_reached(gate):
    script = """
import os, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
def outcome(do):
    try:
        return do()
    except OSError as error:
        return error.errno
def open_many():
    while True:
        os.dup(0)
def fork_many():
    for _ in range(100):
        if os.fork() == 0:
            signal.pause()
with open("/tmp/x", "wb", 0) as f:
    print(outcome(lambda: f.write(bytes(1 << 20)) and f.write(b"x")))
print(outcome(open_many), outcome(fork_many))
"""
    assert lines(gate.python(script, "--limit", "pids=20,files=50,fsize=1M")) == ["27", "24 11"]


@pytest.mark.cgroups
def test_memory_is_limited(gate):
    """By a cgroup where there is one, else by each process itself, which is said."""
    done = gate.python("x = bytearray(300 << 20); print('got it')", "--limit", "mem=150M")
    assert done.returncode in (1, 137) and done.stdout == ""
    assert "MemoryError" in done.stderr or done.returncode == 137
    if gate.user == "ordinary":
        assert "no cgroup for memory" in done.stderr


def own_cgroup():
    """Of version 2: what kind it is, and what it gives to groups below it. Version 1 has nothing of that."""
    with open("/proc/self/cgroup") as f:
        paths = ["/sys/fs/cgroup" + line.strip()[3:] for line in f if line.startswith("0::")]
    texts = {}
    for name in [os.path.join(p, n) for p in paths for n in ("cgroup.type", "cgroup.subtree_control")]:
        if os.path.exists(name):
            with open(name) as f:
                texts[name] = f.read()
    return texts


@pytest.mark.cgroups
@pytest.mark.skipif(os.geteuid() != 0 or not os.access("/sys/fs/cgroup", os.W_OK), reason="NOT TESTED, no cgroup can be made here")
def test_swap_is_memory_too():
    """Or the limit of memory would only make an agent slow. The number of the gate is in the name of its cgroup."""
    gate = Gate("root")
    try:
        process = subprocess.Popen([*gate.line("--limit", "mem=150M"), "--", "/bin/sh", "-c", "echo up; read x"], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert process.stdout.readline() == "up\n"
        made = [top for top, _, _ in os.walk("/sys/fs/cgroup") if top.endswith("/cage-%d" % process.pid)]
        texts = {}
        for directory in made:
            for name in ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes", "memory.max", "memory.swap.max"):
                if os.path.exists(os.path.join(directory, name)):
                    with open(os.path.join(directory, name)) as f:
                        texts[name] = f.read().strip()
        process.communicate("\n", timeout=20)
        if not made:
            pytest.skip("NOT TESTED, no cgroup can be made here")
        size = str(150 << 20)
        assert "memory.limit_in_bytes" in texts or "memory.max" in texts
        assert set(texts.items()) <= {("memory.limit_in_bytes", size), ("memory.memsw.limit_in_bytes", size), ("memory.max", size), ("memory.swap.max", "0")}
    finally:
        gate.close()


@pytest.mark.cgroups
@pytest.mark.skipif(os.geteuid() != 0 or not os.access("/sys/fs/cgroup", os.W_OK), reason="NOT TESTED, no cgroup can be made here")
def test_cgroup_is_made_and_removed():
    gate = Gate("root")
    try:
        done = gate.sh("cat /proc/self/cgroup", "--limit", "mem=150M,cpu=0.5,pids=30")
        if "no cgroup" in done.stderr:
            pytest.skip("NOT TESTED, no cgroup can be made here")
        names = set(re.findall(r"cage-\d+", said(done)))
        assert len(names) == 1
        name = names.pop()
        for top, directories, _ in os.walk("/sys/fs/cgroup"):
            assert name not in directories, top
    finally:
        gate.close()


BUSY = """import time
began, used = time.monotonic(), time.process_time()
while time.monotonic() < began + 2:
    pass
print((time.process_time() - used) / (time.monotonic() - began))"""


@pytest.mark.cgroups
@pytest.mark.skipif(os.geteuid() != 0 or not os.access("/sys/fs/cgroup", os.W_OK), reason="NOT TESTED, no cgroup can be made here")
def test_processors_are_limited():
    """Half of one, for two seconds; what others use meanwhile makes it only less."""
    gate = Gate("root")
    try:
        done = gate.python(BUSY, "--limit", "cpu=0.5")
        if "no cgroup" in done.stderr:
            pytest.skip("NOT TESTED, no cgroup can be made here")
        assert float(said(done)) < 0.7
    finally:
        gate.close()


@pytest.mark.cgroups
@pytest.mark.parametrize("limits", ["cpu=0.5", "pids=30", "mem=150M,cpu=0.5,pids=30"])
def test_our_own_cgroup_stays_what_it_was(gate, limits):
    """Version 2 would let processors and numbers of processes be given out below it; then it is of another kind, below which nobody can put a process."""
    before = own_cgroup()
    assert gate.sh("true", "--limit", limits).returncode == 0
    assert own_cgroup() == before


@pytest.mark.cgroups
@pytest.mark.skipif(os.geteuid() != 0, reason="NOT TESTED, another root of cgroups is mounted by root")
def test_a_cgroup_that_a_container_sees_as_its_root():
    """Of version 2, and with processes: there is no place in it, and nothing beside it."""
    before = own_cgroup()
    gate = Gate("root")
    try:
        apart = ["unshare", "--cgroup", "--mount", "sh", "-c", "mount -t tmpfs none /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup && exec \"$@\"", "sh"]
        done = subprocess.run([*apart, *gate.line("--limit", "mem=150M,cpu=0.5,pids=30"), "--", "/bin/true"], capture_output=True, text=True, timeout=60)
    finally:
        gate.close()
    assert done.returncode == 0, done.stderr
    if any(name.endswith("/cgroup.type") for name in before):
        assert all("no cgroup for %s can be made" % name in done.stderr for name in ("memory", "cpu", "pids")), done.stderr
    assert own_cgroup() == before


def test_time_is_limited(gate):
    mark = "sleep 97.%d" % os.getpid()
    done = gate.sh("%s & %s" % (mark, mark), "--limit", "time=1s")
    assert (done.returncode, done.stderr) == (137, "cage-gate: the time of the agent is over\n")
    assert mark not in subprocess.run(("ps", "-eo", "args"), capture_output=True, text=True, timeout=10).stdout


# ---- steps that fail

LIMITS = r"RLIMIT_(CORE|NOFILE|NPROC), \{"
STEPS = ("sethostname", "mount", "open_tree", "mount_setattr", "fsopen", "fsconfig", "fsmount", "move_mount", "fchdir", "pivot_root", "umount2",
         "symlink", "symlinkat", "openat2", "sendfile", "fchmod", "unshare", "capset", "setresuid", "chdir")


def calls_of(log, step, having):
    """Which calls of their process they are that have this in their arguments: strace counts for each process."""
    counts, found = {}, []
    with open(log) as f:
        for line in f:
            call = re.match(r"(\d+) +%s\((.*)" % step, line)
            if call:
                counts[call[1]] = counts.get(call[1], 0) + 1
                if re.search(having, call[2]):
                    found.append(counts[call[1]])
    return found


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("strace"), reason="NOT TESTED, needs root and strace")
@pytest.mark.parametrize("step, having", [(step, "") for step in STEPS] + [("prlimit64", LIMITS)])
def test_a_step_that_fails_refuses(step, having):
    """The first and the last call of each kind; the error is one that no step knows a way around."""
    gate = Gate("root")
    try:
        log = gate.path("trace")
        said(gate.sh("exit 0", before=("strace", "-f", "-qq", "-e", "trace=" + step, "-o", log)))
        calls = calls_of(log, step, having)
        assert calls
        for when in {calls[0], calls[-1]}:
            done = gate.sh("echo run", before=("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + step, "-e",
                                               "inject=%s:error=EIO:when=%d" % (step, when)))
            refused(done, "Input/output error")
    finally:
        gate.close()


# ---- where less is allowed


@pytest.mark.skipif(os.geteuid() != 0, reason="only root covers parts of /proc")
def test_a_container_that_covers_its_proc():
    """As Docker does: the kernel then refuses a new one. Its own is shown, which is said, and its settings stay read-only."""
    gate = Gate("root")
    try:
        done = gate.sh("test -e /proc/self/status && echo shown; for f in $(find /proc/sys -type f 2>/dev/null); do test -w $f && echo $f; done; :",
                       before=("unshare", "-m", "sh", "-c", "mount -t tmpfs none /proc/irq && exec \"$@\"", "sh"))
        assert said(done) == "shown\n"
        assert done.stderr == "cage-gate: this container refuses a new /proc: its own is shown, with its other processes\n"
    finally:
        gate.close()


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("strace"), reason="NOT TESTED, needs root and strace")
def test_only_a_network_of_its_own():
    """Where the other namespaces are refused, the container is the room."""
    gate = Gate("root")
    before = ("strace", "-qq", "-o", "/dev/null", "-e", "trace=clone", "-e", "inject=clone:error=EPERM:when=1")
    outer = dict(os.environ, HOME=gate.directory)
    try:
        gate.write("work/x", "text")
        assert said(gate.sh("cat %s" % gate.path("work/x"), "--bind", gate.path("work"), before=before, env=outer)) == "text"
        refused(gate.sh("echo run", "--bind", gate.path("work") + ":/w", before=before, env=outer), "nothing can be mounted")
        gate.write(".ssh/id", "secret-bytes")
        refused(gate.sh("echo run", before=before, env=outer), "can be seen by the agent")
    finally:
        gate.close()


# ---- a room in a room


@pytest.mark.parametrize("mode", ("netns", "seccomp"))
def test_a_room_has_no_rooms(gate, mode):
    """The rehearsal finds it as a run would, and the reason is said."""
    inner = gate.program
    for line in ("--probe", "--choose", "--probe --mode netns", "--probe --mode seccomp", "-- /bin/true", "--mode netns -- /bin/true", "--mode seccomp -- /bin/true"):
        done = gate.sh("%s %s" % (inner, line), "--bind-ro" if mode == "netns" else "--bind", gate.directory, mode=mode, env=dict(os.environ, HOME=gate.directory))
        assert done.returncode == UNLOCKED and "already inside a room of cage" in done.stderr, (line, done.stdout, done.stderr)
        assert "locked in with mode netns" not in done.stdout and "locked in with mode seccomp" not in done.stdout


@pytest.mark.skipif(not shutil.which("strace"), reason="NOT TESTED, there is no strace here")
@pytest.mark.parametrize("step, words", (("openat2:error=ENOSYS", "openat2: Function not implemented"), ("listen:error=EPERM", None)))
def test_the_rehearsal_has_the_steps_of_a_run(gate, step, words):
    before = ("strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=" + step.split(":")[0], "-e", "inject=" + step)
    line = [*before, *gate.prefix, gate.program, "--probe", "--mode", "netns"]
    done = subprocess.run(line, capture_output=True, text=True, timeout=60)
    assert (done.returncode, "mode netns          no" in done.stdout) == (UNLOCKED, True), done.stdout
    if words:
        done = gate.sh("echo run", before=before)
        refused(done, words)


# ---- where nothing can be mounted


def container(gate, *options, env=None, script="echo run"):
    return gate.sh(script, *options, mode="seccomp", env=env or dict(os.environ, HOME=gate.directory))


def test_a_container_is_the_room_as_it_is(gate):
    gate.write("work/x", "text")
    done = container(gate, "--bind", gate.path("work"), "--workdir", gate.path("work"), script="cat x")
    assert said(done) == "text"


@pytest.mark.parametrize("options", (("--bind-ro", "/usr:/other"), ("--bind", "/usr:/other"), ("--tmpfs", "/tmp"), ("--root", "/usr")))
def test_a_container_mounts_nothing(gate, options):
    refused(container(gate, *options), "nothing can be mounted on this host")


@pytest.mark.parametrize("name", (".ssh/id", ".aws/credentials", ".netrc", ".docker/config.json"))
def test_a_container_with_credentials_is_refused(gate, name):
    gate.write(name, "secret-bytes")
    refused(container(gate), gate.path(name.split("/")[0]), "can be seen by the agent")


ONLY_A_NETWORK = ("strace", "-qq", "-o", "/dev/null", "-e", "trace=clone", "-e", "inject=clone:error=EPERM:when=1")


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("strace"), reason="NOT TESTED, needs root and strace")
@pytest.mark.parametrize("mode", ("seccomp", "netns"))
@pytest.mark.parametrize("uid", (0, 1000))
def test_credentials_of_the_users_are_found_whatever_home_says(mode, uid):
    """HOME is that of the room when a launcher has set it: the users' homes are those of the table of users."""
    gate = Gate("root")
    try:
        gate.write("home/.ssh/id", "secret-bytes")
        table = gate.write("passwd", "somebody:x:%d:%d::%s:/bin/sh\n" % (uid, uid, gate.path("home")))
        before = ("unshare", "-m", "sh", "-c", "mount --bind %s /etc/passwd && exec \"$@\"" % table, "sh", *(ONLY_A_NETWORK if mode == "netns" else ()))
        refused(gate.sh("echo run", mode=mode, before=before, env=dict(os.environ, HOME="/home/agent")), gate.path("home/.ssh"), "can be seen by the agent")
    finally:
        gate.close()


def test_a_container_with_a_bound_credential_is_not(gate):
    gate.write(".aws/credentials", "text")
    assert said(container(gate, "--bind", gate.path(".aws"), script="cat %s" % gate.path(".aws/credentials"))) == "text"


def test_a_container_hides_nothing(gate):
    gate.write("work/key")
    refused(container(gate, "--hide", gate.path("work/key")), "can be seen by the agent")
    assert said(container(gate, "--hide", "/root")) == "run\n"
    assert said(container(gate, "--hide", gate.path("work/absent"))) == "run\n"


def test_a_container_shows_the_same_places(gate):
    """Held by Landlock: programs can be read, temporary places and what is bound can be changed, and nothing else is opened."""
    gate.write("work/x", "text")
    place = "/srv/cage-room-%d" % os.getpid()
    if os.geteuid() == 0:
        os.makedirs(place + "/shown")
        for name in ("secret", "shown/x"):
            with open(os.path.join(place, name), "w") as f:
                f.write("bytes")
        for name in ("", "shown", "shown/x", "secret"):
            os.chown(os.path.join(place, name), gate.owner, -1)
    script = """
import os
def can(flags, *paths):
    for path in paths:
        try:
            os.close(os.open(path, flags))
            print(path)
        except OSError:
            pass
can(os.O_RDONLY, "/", "/var", "/run", "/root", "/home", "/usr", "/etc/hosts", %r, %r, %r)
can(os.O_WRONLY, "/dev/null", "/proc/self/oom_score_adj", %r)
can(os.O_WRONLY | os.O_CREAT, "/usr/x", "/etc/x", "/x", %r, %r)
""" % (place, place + "/secret", place + "/shown/x", place + "/shown/x", place + "/y", gate.path("made"))
    try:
        done = gate.python(script, "--bind-ro", place + "/shown" if os.geteuid() == 0 else "/usr", mode="seccomp",
                           env=dict(os.environ, HOME=gate.directory))
        shown = [place + "/shown/x"] if os.geteuid() == 0 else []
        assert lines(done) == ["/usr", "/etc/hosts", *shown, "/dev/null", "/proc/self/oom_score_adj", gate.path("made")]
    finally:
        shutil.rmtree(place, ignore_errors=True)


def test_a_container_can_not_keep_the_agent_from_changing_a_temporary_file(gate):
    refused(container(gate, "--bind-ro", gate.write("work/x")), "can't be kept from changing it")


def test_a_container_replaces_nothing(gate):
    assert said(container(gate, "--replace", gate.write("x") + ":/etc/hosts", script="test -s /etc/hosts && echo run")) == "run\n"


def test_replace(gate):
    assert said(gate.sh("cat /etc/services", "--replace", gate.write("x", "mine") + ":/etc/services")) == "mine"


def test_copy(gate):
    """The agent's own: what it changes stays inside. Only files: no link is followed, and nothing below."""
    gate.write("from/x", "theirs")
    gate.write("from/below/y", "text")
    os.symlink("/etc/hostname", gate.path("from/link"))
    done = gate.sh("cat /home/agent/a/b/x; echo mine > /home/agent/a/b/x; ls /home/agent/a/b", "--copy", gate.path("from") + ":/home/agent/a/b")
    assert lines(done) == ["theirsx"]
    with open(gate.path("from/x")) as f:
        assert f.read() == "theirs"


def test_copy_of_nothing(gate):
    refused(gate.sh("echo run", "--copy", gate.path("absent") + ":/home/agent/a"), "absent")
    refused(gate.sh("echo run", "--copy", gate.write("file") + ":/home/agent/a"), "Not a directory")


def test_a_container_has_no_copies(gate):
    gate.write("from/x")
    assert said(container(gate, "--copy", gate.path("from") + ":/home/agent/a", script="test -e /home/agent/a || echo run")) == "run\n"


def test_a_container_has_limits(gate):
    text = said(container(gate, "--limit", "files=88,fsize=1M", script="cat /proc/self/limits; env"))
    assert limit_of(text, "Max open files") == ("88", "88")
    assert [x for x in text.splitlines() if "=" in x and not x.startswith(("PWD=", "SHLVL=", "_=", "OLDPWD="))] == ["PATH=/usr/local/bin:/usr/bin:/bin"]


def test_a_container_with_a_socket_is_refused(gate):
    """Such as those of a key agent or of Docker: unless it is bound, or the agent may not connect."""
    gate.write("run/x")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(gate.path("run/agent.sock"))
        server.listen()
        os.chmod(gate.path("run/agent.sock"), 0o777)
        refused(container(gate), gate.path("run/agent.sock"), "could connect to this socket")
        assert said(container(gate, "--bind", gate.path("run"))) == "run\n"
        os.chmod(gate.path("run/agent.sock"), 0o555)
        assert said(container(gate)) == "run\n"


@pytest.mark.parametrize("kind", (socket.SOCK_STREAM, socket.SOCK_DGRAM))
def test_a_container_with_a_socket_of_no_known_place_is_refused(gate, kind):
    """Its path says from where it was bound: nobody can tell where that is."""
    gate.write("run/x")
    here = os.getcwd()
    os.chdir(gate.path("run"))
    try:
        relative = listen("relative.sock", kind)
    finally:
        os.chdir(here)
    with relative:
        os.chmod(gate.path("run/relative.sock"), 0o777)
        refused(container(gate), " relative.sock: ", "could connect to this socket")


def test_a_container_has_few_devices(gate):
    script = """
import os
a, b = os.openpty()
os.write(a, b"typed\\n")
print(os.read(b, 100) == b"typed\\n")
for name in ("/dev/tty0", "/dev/console", "/dev/null", "/dev/zero", "/dev/urandom"):
    try:
        os.close(os.open(name, os.O_RDONLY | os.O_NOCTTY))
        print("open", name)
    except OSError as e:
        print("closed", name)
"""
    done = gate.python(script, mode="seccomp", env=dict(os.environ, HOME=gate.directory))
    assert lines(done) == ["True", "closed /dev/tty0", "closed /dev/console", "open /dev/null", "open /dev/zero", "open /dev/urandom"]


def test_a_container_keeps_its_name(gate):
    refused(container(gate, "--hostname", "other"), "--hostname")
