"""Patches against their makers and against those who come after: what an agent leaves there reaches the host only as files, and
what programs of the host would run is made only when that is agreed to."""
import os
import re
import signal
import stat
import subprocess
import time

import pytest
from cagelib.proxy import binary, policy
from cagelib.cage_run import Room, Running
from test_workspace import NOBODY, STRANGER, apply, contents, left_behind, patch_of, room, run, work  # noqa: F401

MADE = re.compile(r"cage: \d+ changes? made in \S+\n")  # and nothing else is said
ESCAPE = "\033]0;owned\007"


def make_patch(tmp_path, work, files, base=()):
    """One that no run has made: {name: contents}, a link as ("->", target)."""
    patch = tmp_path / "patch"
    for kind, entries in (("files", dict(files)), ("base", dict(base))):
        (patch / kind).mkdir(parents=True)
        for name, text in entries.items():
            path = patch / kind / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(text, tuple):
                path.symlink_to(text[1])
            else:
                path.write_bytes(text)
    (patch / "workspace").write_text(str(work))
    os.chmod(patch, 0o700)
    return str(patch)


def diff_of(done):
    with open(os.path.join(patch_of(done), "diff.patch"), encoding="latin-1") as f:
        return f.read()


# ---- diff.patch

def test_diff_never_follows_links(room, work, tmp_path):  # noqa: F811
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("of the host\n")
    script = "ln -s %s/file s; ln -s %s d; ln -sfn %s/file link; rm changed.txt; ln -s %s/file changed.txt; echo new > new" % ((outside,) * 4)
    text = diff_of(run(room, work, script))
    assert "of the host" not in text and "+new" in text
    for line in ("Link s leads to %s/file" % outside, "Link d leads to %s" % outside, "Link link leads to %s/file, it led to changed.txt" % outside,
                 "Link changed.txt leads to %s/file" % outside):
        assert line + "\n" in text


def test_diff_says_nothing_itself(room, work):  # noqa: F811
    """It would name a link that leads nowhere, with all that is in the name."""
    done = run(room, work, "ln -s nowhere \"$(printf 'a\\033]0;owned\\007')\"; echo x > x")
    assert "diff:" not in done.stderr and "\033" not in done.stderr and "\\u001b" in done.stderr
    assert "\033" not in diff_of(done) and "+x" in diff_of(done)


@pytest.mark.parametrize("script, note", [("truncate -s 2T huge", "Some changes may be missing here"), ("seq 1 10000000 > numbers", "The rest is left out here")])
def test_diff_is_bounded(room, work, script, note):  # noqa: F811
    """A file that is sparse costs the agent nothing."""
    started = time.monotonic()
    done = run(room, work, script + "; echo x > aaa")
    assert done.returncode == 0 and time.monotonic() - started < 40, done.stderr
    with open(os.path.join(patch_of(done), "diff.patch"), "rb") as f:
        assert b"+x\n" in f.read(1000)
        size = f.seek(0, os.SEEK_END)
        f.seek(max(size - 200, 0))
        assert size < 65 << 20 and note.encode() in f.read()


# ---- what others run or obey

HOOK = "#!/bin/sh\ntouch /tmp/owned\n"

OBEYED = [".git/hooks/post-checkout", ".git/config", ".git/config.worktree", ".git/modules/lib/hooks/post-checkout", ".git/modules/a/b/config", ".git/info/attributes",
          ".git/worktrees/w/commondir", ".git/rebase-merge/git-rebase-todo", ".git/objects/info/alternates", ".git", ".gitmodules", ".gitattributes", "deep/er/.gitattributes",
          "sub/.git/hooks/pre-commit", ".githooks/pre-commit", ".husky/pre-commit", ".pre-commit-config.yaml", "lefthook.yml", ".claude/settings.json", ".claude/settings.local.json",
          ".mcp.json", ".cursor/mcp.json", ".gemini/settings.json", ".npmrc", ".yarnrc.yml", ".devcontainer/devcontainer.json", ".devcontainer.json", ".envrc", ".vscode/tasks.json",
          ".idea/workspace.xml", "x.code-workspace", ".cargo/config.toml", ".bashrc", ".ssh/authorized_keys", ".config/autostart/x.desktop",
          ".GIT/hooks/post-checkout", ".Git/HOOKS/post-checkout", ".VSCode/tasks.json", ".EnvRC"]
HISTORY = [".git/objects/ab/cdef", ".git/refs/heads/main", ".git/logs/HEAD", ".git/index", ".git/HEAD", ".git/COMMIT_EDITMSG"]
HARMLESS = [".gitignore", "Makefile", "package.json", "git/hooks/pre-commit", "vscode/x", "a.envrc", "env", "HEAD", "hooks/x", "config", "objects/x", "x.git"]


@pytest.mark.parametrize("name", OBEYED)
def test_obeyed_is_not_applied_unasked(tmp_path, work, name):  # noqa: F811
    before = contents(work)
    patch = make_patch(tmp_path, work, {name: HOOK.encode(), "plain": b"x"})
    done = apply(patch)
    assert done.returncode == 1 and "%s is something that programs outside of the room run or obey" % name in done.stderr
    assert "cage apply --even-if-run " + patch in done.stderr and "nothing was changed" in done.stderr and "plain" not in done.stderr
    assert contents(work) == before
    done = apply(patch, "--even-if-run")
    assert done.returncode == 0 and name + " is something" in done.stderr
    assert (work / name).read_text() == HOOK and (work / "plain").exists()


def make_repository(path, config=""):
    """As git init makes one, as far as it matters."""
    for name in ("objects/ab", "refs/heads"):
        (path / name).mkdir(parents=True)
    (path / "HEAD").write_text("ref: refs/heads/main\n")
    (path / "config").write_text("[core]\n\tbare = false\n" + config)


def test_what_projects_have_is_applied(tmp_path, work):  # noqa: F811
    make_repository(work / ".git")
    names = [name for name in HARMLESS if name not in ("HEAD", "objects/x")]
    done = apply(make_patch(tmp_path, work, {name: b"x" for name in names}))
    assert done.returncode == 0 and MADE.fullmatch(done.stderr), done.stderr


@pytest.mark.parametrize("repository", [".git", "sub/.git", "bare"])
def test_what_commits_write_is_left_out_unless_asked_for(tmp_path, work, repository):  # noqa: F811
    """Names in an index, and files in commits, are nothing that is looked at here."""
    make_repository(work / repository)
    (work / repository / "HEAD").write_text("before")
    before = contents(work)
    names = [repository + name[len(".git"):] for name in HISTORY]
    patch = make_patch(tmp_path, work, {"plain": b"x", **{name: b"x" for name in names}}, {repository + "/HEAD": b"before"})
    done = apply(patch)
    assert done.returncode == 0 and "1 change made in" in done.stderr, done.stderr
    assert "%d in a repository of git" % len(names) in done.stderr and "--even-if-run " + patch in done.stderr
    assert {name: what for name, what in contents(work).items() if name != "plain"} == before
    done = apply(patch, "--even-if-run")
    assert done.returncode == 0 and "%d changes made in" % len(names) in done.stderr, done.stderr
    assert all((work / name).read_text() == "x" for name in names)
    done = apply(patch, "--even-if-run")  # all of it is there
    assert done.returncode == 0 and "0 changes made in" in done.stderr


@pytest.mark.parametrize("link, target", [(".git/COMMIT_EDITMSG", "hooks/pre-commit"), (".git/logs/HEAD", "../hooks/pre-commit"), (".git/objects/info", "../../evil"), ("notes.txt", ".git/hooks/pre-commit"),
                                          ("deep/notes.txt", "../.git/index"), ("settings", ".vscode")])
def test_a_link_to_what_is_obeyed_is_too(tmp_path, work, link, target):  # noqa: F811
    """git writes over a link, as everybody does who means the file."""
    make_repository(work / ".git")
    (work / "deep").mkdir(exist_ok=True)
    before = contents(work)
    patch = make_patch(tmp_path, work, {link: ("->", target), "plain": b"x"})
    done = apply(patch)
    assert done.returncode == 1 and link + " is " in done.stderr and "nothing was changed" in done.stderr, done.stderr
    assert contents(work) == before


def test_a_configuration_that_is_a_link_into_the_workspace(tmp_path, work, monkeypatch):  # noqa: F811
    """As those have it who keep their dotfiles in a repository."""
    (tmp_path / "home").mkdir()
    (work / "gitconfig").write_text("[user]\n\tname = x\n")
    (tmp_path / "home" / ".gitconfig").symlink_to(work / "gitconfig")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert refused(tmp_path, work, {"gitconfig": b"[core]\n\tpager = evil\n"}) == ["gitconfig"]


def test_hooks_of_a_repository_above_that_are_a_link_into_the_workspace(tmp_path, work):  # noqa: F811
    make_repository(tmp_path / ".git")
    (work / "my").mkdir()
    (tmp_path / ".git" / "hooks").symlink_to(work / "my")
    assert refused(tmp_path, work, {"my/pre-commit": b"x", "mine": b"x"}) == ["my/pre-commit"]


def test_commits_of_an_agent_are_applied_when_that_is_agreed_to(room, work):  # noqa: F811
    git = "git -c user.name=a -c user.email=a@b -c safe.directory=* "
    subprocess.run(["sh", "-c", "git init -q . && git add -A && %s commit -qm first" % git], cwd=work, check=True)
    done = run(room, work, "echo after >changed.txt; %s commit -qam second" % git, "--apply")
    assert done.returncode == 0 and "in a repository of git" in done.stderr, done.stderr
    assert (work / "changed.txt").read_text() == "after\n"
    log = ["git", "-c", "safe.directory=*", "log", "--format=%s"]
    assert subprocess.run(log, cwd=work, capture_output=True, text=True, check=True).stdout == "first\n"
    assert apply(patch_of(done), "--even-if-run").returncode == 0
    assert subprocess.run(log, cwd=work, capture_output=True, text=True, check=True).stdout == "second\nfirst\n"


def refused(tmp_path, work, files):  # noqa: F811
    """Applies one more patch; the names in it that are not made unasked."""
    n = len(list(tmp_path.glob("patch.*")))
    patch = make_patch(tmp_path, work, files)
    done = apply(patch)
    os.rename(patch, patch + ".%d" % n)
    said = re.findall(r"^cage: (\S+) (?:is something that programs|may be obeyed)", done.stderr, re.M)
    assert done.returncode == (1 if said else 0), done.stderr
    return said


@pytest.mark.parametrize("first, then", [(["x/config", "x/hooks/post-update"], ["x/HEAD", "x/objects/a", "x/refs/a"]), (["x/objects/a", "x/refs/a"], ["x/HEAD"]), (["x/HEAD"], ["x/objects/a"]),
                                         (["objects/a", "hooks/post-update"], ["HEAD"])])
def test_a_repository_in_two_patches(tmp_path, work, first, then):  # noqa: F811
    """None of them has all of it; what counts is what the workspace would be."""
    assert refused(tmp_path, work, {name: b"x" for name in first}) == []
    assert sorted(refused(tmp_path, work, {name: b"x" for name in then})) == sorted(then)


def test_where_obeyed_links_lead(tmp_path, work):  # noqa: F811
    """Over other links too, and through directories."""
    make_repository(work / ".git")
    (work / ".git" / "hooks").mkdir()
    (work / "tools" / "vscode").mkdir(parents=True)
    (work / "tools" / "more").mkdir()
    (work / ".git" / "hooks" / "pre-commit").symlink_to("../../tools/check.sh")
    (work / ".envrc").symlink_to("tools/env")
    (work / "tools" / "env").symlink_to("more/env")
    (work / ".vscode").symlink_to("tools/vscode")
    (work / "tools" / "vscode" / "tasks.json").symlink_to("../tasks")
    (work / "plain").symlink_to("tools/free")
    names = ["tools/check.sh", "tools/more/env", "tools/vscode/settings.json", "tools/tasks"]
    assert sorted(refused(tmp_path, work, {name: b"x" for name in [*names, "tools/free", "tools/other"]})) == sorted(names)
    assert refused(tmp_path, work, {"tools/free": b"x", "tools/other": b"x"}) == []


@pytest.mark.parametrize("config", ["[core] hooksPath = tools/hooks\n", "[core]\n\tHOOKSPATH = \"tools/\\\nhooks\" # x\n", "[include]\n\tpath = ../conf/git\n", "[includeIf \"onbranch:x\"] path = ../conf/git\n",
                                    "[filter \"x\"]\n\tclean = python3 tools/hooks/a --b\n", "[core]\n\tfsmonitor = ./tools/hooks/a\n", "[core]\n\thooksPath = way\n"])
def test_what_a_configuration_of_git_names(tmp_path, work, config):  # noqa: F811
    make_repository(work / ".git", config)
    (work / "conf").mkdir()
    (work / "conf" / "git").write_text("[core]\n\thooksPath = %s/tools/hooks\n" % work)
    (work / "way").symlink_to("tools/hooks")
    assert refused(tmp_path, work, {"tools/hooks/a": b"x", "tools/b": b"x"}) == ["tools/hooks/a"]
    if "path = ../conf" in config:
        assert refused(tmp_path, work, {"conf/other": b"x"}) == []
        assert apply(make_patch(tmp_path, work, {"conf/git": b"x"}, {"conf/git": (work / "conf" / "git").read_bytes()})).returncode == 1
    else:
        assert refused(tmp_path, work, {"conf/other": b"x"}) == []


def test_repositories_around_and_in_a_workspace(tmp_path, work):  # noqa: F811
    """One above it, one below it, a worktree with a configuration of its own, and one without a worktree."""
    make_repository(tmp_path / ".git", "[core]\n\thooksPath = work/up\n")
    make_repository(work / "sub" / ".git", "[core]\n\thooksPath = down\n")
    make_repository(work / "bare", "[core]\n\thooksPath = ../of-bare\n")
    make_repository(tmp_path / "elsewhere" / ".git", "[core]\n\thooksPath = shared\n")
    state = tmp_path / "elsewhere" / ".git" / "worktrees" / "w"
    state.mkdir(parents=True)
    (state / "commondir").write_text("../..\n")
    (state / "config.worktree").write_text("[core]\n\tfsmonitor = ./own/x\n")
    (work / "tree").mkdir()
    (work / "tree" / ".git").write_text("gitdir: %s\n" % state)
    names = ["up/x", "sub/down/x", "of-bare/x", "tree/shared/x", "tree/own/x"]
    assert sorted(refused(tmp_path, work, {name: b"x" for name in [*names, "down/x", "shared/x", "x"]})) == sorted(names)


def test_the_configuration_of_the_user(tmp_path, work, monkeypatch):  # noqa: F811
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".gitconfig").write_text("[core]\n\thooksPath = my-hooks\n[alias]\n\tx = !tools/x\n[safe]\n\tdirectory = %s/tools\n" % work)
    assert refused(tmp_path, work, {"my-hooks/x": b"x"}) == []  # no repository, no hooks
    make_repository(work / "sub" / ".git")
    assert refused(tmp_path, work, {"sub/my-hooks/x": b"x", "my-hooks/y": b"x", "sub/tools/x": b"x", "tools/x": b"x"}) == ["sub/my-hooks/x"]


@pytest.mark.parametrize("config", ["[core]\n\thooksPath = .\n", "[core\n", "[core]\n\tx = %s\n" % ("y" * 10000), "[include]\n\tpath = config\n"],
                         ids=["all of it", "wrong", "too long", "no end"])
def test_what_cannot_be_told_is_obeyed(tmp_path, work, config):  # noqa: F811
    """All of the workspace has the hooks, or git's configuration can't be understood."""
    make_repository(work / ".git", config)
    assert refused(tmp_path, work, {"plain": b"x"}) == ["plain"]


@pytest.mark.parametrize("breadth", [2, 16, 5000])
def test_configurations_that_include_many(tmp_path, work, breadth):  # noqa: F811
    """Each includes itself so often: what it would cost to read them all grows by that with each level."""
    make_repository(work / "bare", "[include]\n" + "\tpath = config\n" * breadth)
    assert refused(tmp_path, work, {"plain": b"x"}) == ["plain"]


def test_too_many_configurations(tmp_path, work):  # noqa: F811
    make_repository(work / ".git", "[include]\n" + "".join("\tpath = %d\n" % i for i in range(5000)))
    for i in range(5000):
        (work / ".git" / str(i)).touch()
    assert refused(tmp_path, work, {"plain": b"x"}) == ["plain"]


@pytest.mark.parametrize("text, is_known", [("[core]\n" + "#" * 262000, True), ("[core]\n" + "#" * 262144, False)], ids=["fits", "too long"])
def test_a_long_configuration(tmp_path, work, text, is_known):  # noqa: F811
    make_repository(work / ".git")
    (work / ".git" / "config").write_text(text)
    assert refused(tmp_path, work, {"plain": b"x"}) == ([] if is_known else ["plain"])


def test_too_many_names_are_obeyed(tmp_path, work):  # noqa: F811
    """4096 are known: two of each, since .git is a repository by its own name too, with its hooks and its two configurations. With one more, nothing is."""
    text = "[filter \"x\"]\n" + "".join("\tx = ./tools/%d\n" % i for i in range(2046))
    make_repository(work / ".git", text)
    assert sorted(refused(tmp_path, work, {"tools/0": b"x", "Tools/2045": b"x", "tools/2047": b"x", "plain": b"x"})) == ["Tools/2045", "tools/0"]
    (work / ".git" / "config").write_text(text + "\tx = ./tools/2046\n\tx = ./tools/2047\n")
    assert refused(tmp_path, work, {"other": b"x"}) == ["other"]


@pytest.mark.parametrize("target", ["/dev/loop-control", "/dev/zero", "fifo", "directory"])
def test_a_configuration_that_is_no_file(tmp_path, work, target):  # noqa: F811
    """Opening a device does something already, whoever named it."""
    (work / "directory").mkdir()
    os.mkfifo(work / "fifo")
    make_repository(work / "bare", "[include]\n\tpath = %s\n" % os.path.join(work, target))
    patch = make_patch(tmp_path, work, {"plain": b"x"})
    trace = tmp_path / "trace"
    done = subprocess.run(["strace", "-o", str(trace), "-e", "trace=open,openat", binary("cage"), "apply", patch], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "ASAN_OPTIONS": "detect_leaks=0"})
    assert done.returncode == 1 and "plain may be obeyed" in done.stderr, done.stderr
    opened = [line for line in trace.read_text().splitlines() if '"%s"' % os.path.join(work, target) in line and "O_PATH" not in line and "O_DIRECTORY" not in line]
    assert opened == []


def test_no_configuration_of_the_user(tmp_path, work, monkeypatch):  # noqa: F811
    """A link to /dev/null says that there is none."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".gitconfig").symlink_to("/dev/null")
    make_repository(work / ".git")
    assert refused(tmp_path, work, {"plain": b"x"}) == []


@pytest.mark.parametrize("whose", ["owner", "root"])
def test_root_obeys_two_users(room, open_dir, tmp_path, whose):  # noqa: F811
    """In a directory of another user both may work: what either of them has told git counts, also what the owner may not read."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED, only root can be somebody else")
    homes = {"owner": open_dir / "home", "root": tmp_path / "home"}
    for home in homes.values():
        home.mkdir(mode=0o700)
    (homes[whose] / ".gitconfig").write_text("[include]\n\tpath = more\n[core]\n\tfsmonitor = ~/way\n")
    (homes[whose] / "more").write_text("[core]\n\thooksPath = my-hooks\n")
    work = open_dir / "work"  # noqa: F811
    make_repository(work / ".git", "[core]\n\tpager = ~/pager\n")
    (homes[whose] / "pager").symlink_to(work / "shown")
    (homes[whose] / "way").symlink_to(work / "monitor")
    subprocess.run(["chown", "-R", "-h", str(STRANGER), str(work), str(homes["owner"])], check=True, timeout=30)
    users = open_dir / "passwd"
    users.write_text("root:x:0:0::/root:/bin/sh\nstranger:x:%d:%d::%s:/bin/sh\n" % (STRANGER, STRANGER, homes["owner"]))
    room.before = ["unshare", "--mount", "sh", "-c", 'mount --bind %s /etc/passwd && HOME=%s && export HOME && exec "$@"' % (users, homes["root"]), "sh"]
    done = run(room, work, "mkdir my-hooks; echo x > my-hooks/pre-commit; echo x > plain; echo x > monitor; echo x > shown", "--apply")
    assert done.returncode == 1 and "cage: my-hooks/pre-commit is something" in done.stderr and "cage: monitor is something" in done.stderr, done.stderr
    assert "cage: shown is something" in done.stderr or whose == "root", done.stderr  # whose link the owner can't read
    assert not re.search(r"plain (is something|may be)", done.stderr) and not (work / "plain").exists()
    done = run(room, work, "echo x > plain", "--apply")
    assert done.returncode == 0 and (work / "plain").exists(), done.stderr


def test_what_only_the_owner_may_not_read(tmp_path, open_dir):
    """Others, such as root, may, and then it counts."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED, only root can be somebody else")
    work = open_dir / "work"  # noqa: F811
    make_repository(work / ".git", "[include]\n\tpath = closed\n")
    (work / ".git" / "closed").write_text("[core]\n\thooksPath = x\n")
    subprocess.run(["chown", "-R", str(STRANGER), str(work)], check=True, timeout=30)
    assert refused(tmp_path, work, {"plain": b"x"}) == []
    os.chown(work / ".git" / "closed", 0, 0)
    os.chmod(work / ".git" / "closed", 0o600)
    assert refused(tmp_path, work, {"plain2": b"x"}) == ["plain2"]


def test_git_itself_reads_it_so(tmp_path, work):  # noqa: F811
    """What git would run is what is refused."""
    if not os.path.exists("/usr/bin/git"):
        pytest.skip("NOT TESTED, there is no git")
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"}
    for argv in (["init", "-q"], ["config", "core.hooksPath", "a b/hooks"], ["config", "--add", "filter.x.clean", "\"tools/my clean\" %f; tools/c"]):
        subprocess.run(["/usr/bin/git", *argv], cwd=work, env=env, check=True, timeout=30)
    told = subprocess.run(["/usr/bin/git", "rev-parse", "--git-path", "hooks"], cwd=work, env=env, check=True, timeout=30, capture_output=True, text=True).stdout.strip()
    assert refused(tmp_path, work, {"tools/c": b"x", "tools/other": b"x"}) == ["tools/c"]
    patch = make_patch(tmp_path, work, {told + "/pre-commit": b"x"})
    done = apply(patch)
    assert done.returncode == 1 and told + "/pre-commit is something" in done.stderr


@pytest.mark.parametrize("names", [["x/HEAD", "x/objects/a", "x/refs/a", "x/config"], ["x/HEAD", "x/commondir"], ["HEAD", "objects/a", "hooks/post-update"]])
def test_a_repository_of_any_name(tmp_path, work, names):  # noqa: F811
    """git takes it for one when somebody works in that directory, and obeys its configuration."""
    done = apply(make_patch(tmp_path, work, {name: b"x" for name in names}))
    assert done.returncode == 1 and names[-1] + " is something" in done.stderr


def test_configuration_of_a_repository_that_was_there(tmp_path, work):  # noqa: F811
    (work / "bare" / "objects").mkdir(parents=True)
    (work / "bare" / "HEAD").write_text("ref: refs/heads/main\n")
    assert apply(make_patch(tmp_path, work, {"bare/config": b"x"})).returncode == 1


@pytest.mark.parametrize("value", ["tools/hooks", '"./tools/hooks/"', "%(work)s/tools/hooks"])
def test_hooks_that_lie_elsewhere(tmp_path, work, value):  # noqa: F811
    (work / ".git").mkdir()
    (work / ".git" / "config").write_text("[core]\n\tbare = false\n\thookspath = %s\n[user]\n\tname = x\n" % (value % {"work": work}))
    patch = make_patch(tmp_path, work, {"tools/hooks/pre-commit": b"x", "tools/hooks.txt": b"x"})
    done = apply(patch)
    assert done.returncode == 1 and "tools/hooks/pre-commit is something" in done.stderr and "hooks.txt" not in done.stderr


@pytest.mark.parametrize("name, target", [("l", "/etc/passwd"), ("l", ".."), ("deep/l", "../../x"), ("l", "deep/../../x"), ("l", "deep/../x"), ("l", "./.."), ("deep/er/l", "../..//../x"),
                                          ("l", "out/x"), ("l", "out"), ("deep/l", "../out/x")])
def test_links_out_are_not_applied_unasked(tmp_path, work, name, target):  # noqa: F811
    (tmp_path / "x").write_text("x")
    (work / "out").symlink_to(tmp_path)
    patch = make_patch(tmp_path, work, {name: ("->", target)})
    done = apply(patch)
    assert done.returncode == 1 and "%s is a link that leads out of the workspace" % name in done.stderr
    assert not os.path.lexists(work / name)
    assert apply(patch, "--even-if-run").returncode == 0 and os.readlink(work / name) == target


def test_links_inside_are_applied(tmp_path, work):  # noqa: F811
    links = {"a": ("->", "deep/er/same.txt"), "deep/er/b": ("->", "../../changed.txt"), "c": ("->", "nowhere"), "d": ("->", "link"), "deep/e": ("->", "..")}
    done = apply(make_patch(tmp_path, work, links))
    assert done.returncode == 0 and MADE.fullmatch(done.stderr), done.stderr


def test_run_apply_keeps_what_is_obeyed(room, work):  # noqa: F811
    before = contents(work)
    done = run(room, work, "mkdir -p .git/hooks; echo evil > .git/hooks/post-checkout; chmod +x .git/hooks/post-checkout; echo after > changed.txt", "--apply")
    assert done.returncode == 1 and contents(work) == before
    assert "cage apply --even-if-run " + patch_of(done) in done.stderr
    assert apply(patch_of(done), "--even-if-run").returncode == 0
    assert os.access(work / ".git/hooks/post-checkout", os.X_OK) and (work / "changed.txt").read_text() == "after\n"


def test_the_policy_in_a_workspace(tmp_path):
    """With what it includes, and a link by which it was named."""
    if subprocess.run([binary("cage-gate"), "--probe"], capture_output=True, timeout=20).returncode != 0:
        pytest.skip("NOT TESTED, nothing can be locked in here")
    work = tmp_path / "work"  # noqa: F811
    (work / "conf").mkdir(parents=True)
    (work / "conf" / "rules.yaml").write_text("version: 1\nrules: [{id: a, hosts: [a.test]}]\n")
    (work / "conf" / "policy.yaml").write_text("version: 1\nname: mine\ninclude: [rules.yaml]\n")
    (work / "policy.yaml").symlink_to("conf/policy.yaml")
    (work / "rules.yaml").symlink_to("conf/rules.yaml")  # includes are looked for beside the name that was given
    room = Room(tmp_path, policy())  # noqa: F811
    room.policy_path = str(work / "policy.yaml")
    for named in ("policy.yaml", "rules.yaml"):
        for script in ("echo '# more' >> conf/%s", "rm conf/%s", "mv conf/%s conf/other"):  # the files themselves can't be changed
            done = run(room, work, script.replace("%s", named), "--apply")
            assert done.returncode != 0 and "cage:   none" in done.stderr, done.stderr
        done = run(room, work, "rm %s && echo '# other' > %s" % (named, named), "--apply")
        assert done.returncode == 1 and "belongs to the policy of the run" in done.stderr, done.stderr
        done = apply(patch_of(done))
        assert done.returncode == 1 and named + " belongs to the policy of the run" in done.stderr
        assert (work / named).is_symlink() and "#" not in (work / named).read_text()
    room.policy_path = str(work / "conf" / "policy.yaml")
    done = run(room, work, "rm policy.yaml; echo x > other; echo x > rules.yaml.bak", "--apply")
    assert done.returncode == 0, done.stderr


# ---- patches that are not as they were

def test_conflicts_that_cannot_be_read(tmp_path, work):  # noqa: F811
    patch = make_patch(tmp_path, work, {"new": b"x"})
    os.mkdir(os.path.join(patch, "conflicts"))
    done = apply(patch)
    assert done.returncode == 1 and "nothing was changed" in done.stderr and not (work / "new").exists()
    os.rmdir(os.path.join(patch, "conflicts"))
    os.symlink("nowhere", os.path.join(patch, "conflicts"))
    assert apply(patch).returncode == 1 and not (work / "new").exists()


def test_conflicts_with_escapes(tmp_path, work):  # noqa: F811
    patch = make_patch(tmp_path, work, {"new": b"x"})
    with open(os.path.join(patch, "conflicts"), "w", encoding="ascii") as f:
        f.write("a\\u000ab: was changed%s\n" % ESCAPE)
    done = apply(patch)
    assert done.returncode == 1 and "a\\u000ab: was changed" in done.stderr and "\033" not in done.stderr


def edit_workspace(text):
    def edit(patch, _):
        with open(os.path.join(patch, "workspace"), "wb") as f:
            f.write(text)
    return edit


def make_fifo(patch, _):
    os.unlink(os.path.join(patch, "workspace"))
    os.mkfifo(os.path.join(patch, "workspace"))


def link_above(patch, work):  # noqa: F811
    os.symlink(os.path.dirname(work), os.path.join(patch, "above"))
    edit_workspace(os.path.join(patch, "above", os.path.basename(work)).encode())(patch, work)


def link_files(patch, work):  # noqa: F811
    os.rename(os.path.join(patch, "files"), os.path.join(patch, "real"))
    os.symlink("real", os.path.join(patch, "files"))
    assert work


def unreadable_policy(patch, _):
    os.mkdir(os.path.join(patch, "policy"))


@pytest.mark.parametrize("edit", [edit_workspace(b"work"), edit_workspace(b""), edit_workspace(b"/x\0/y"), edit_workspace(b"/" + b"x" * 5000), edit_workspace(b"/tmp/.."),
                                  make_fifo, link_above, unreadable_policy, lambda patch, _: os.chmod(patch, 0o755)])
def test_edited_patches_are_refused(tmp_path, work, edit):  # noqa: F811
    patch = make_patch(tmp_path, work, {"new": b"x"})
    edit(patch, work)
    before = contents(work)
    done = subprocess.run([binary("cage"), "apply", patch], cwd=tmp_path, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and contents(work) == before, done.stderr


def test_a_linked_part_of_a_patch_changes_nothing(tmp_path, work):  # noqa: F811
    patch = make_patch(tmp_path, work, {"new": b"x"})
    link_files(patch, work)
    before = contents(work)
    apply(patch)
    assert contents(work) == before


def test_a_patch_of_another_user(tmp_path, work):  # noqa: F811
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED, only root can give files away")
    patch = make_patch(tmp_path, work, {"new": b"x"})
    os.chown(patch, STRANGER, STRANGER)
    done = apply(patch)
    assert done.returncode == 1 and "is not for you alone" in done.stderr and not (work / "new").exists()


@pytest.mark.parametrize("bounded", [False, True])
def test_root_applies_with_the_rights_of_the_owner(tmp_path, open_dir, bounded):
    """Also the root of a container, which has fewer of them. Who owns the workspace can put links there at any moment; they lead root no further than the owner could go."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED, only root can be somebody else")
    work = open_dir / "work"  # noqa: F811
    (work / "roots").mkdir(parents=True)
    (work / "mine").mkdir()
    (work / "mine" / "old").write_text("old\n")
    for path in (work, work / "mine", work / "mine" / "old"):
        os.chown(path, NOBODY, NOBODY)
    patch = make_patch(tmp_path, work, {"mine/new": b"x", "mine/old": b"new\n"}, {"mine/old": b"old\n"})
    os.chmod(os.path.join(patch, "files", "mine", "new"), 0o600)
    before = ["setpriv", "--bounding-set", "-dac_read_search"] if bounded else []
    done = subprocess.run([*before, binary("cage"), "apply", patch], capture_output=True, text=True, timeout=30)
    assert done.returncode == 0 and MADE.fullmatch(done.stderr) and (work / "mine" / "old").read_text() == "new\n"
    assert {os.stat(work / "mine" / x).st_uid for x in ("new", "old")} == {NOBODY} and not left_behind(work)
    (work / "shut").mkdir(mode=0o500)
    os.chown(work / "shut", NOBODY, NOBODY)
    for i, name in enumerate(("roots/new", "shut/new")):
        os.rename(patch, patch + ".%d" % i)
        patch = make_patch(tmp_path, work, {"mine/more": b"x", name: b"x"})
        done = subprocess.run([*before, binary("cage"), "apply", patch], capture_output=True, text=True, timeout=30)
        assert done.returncode == 1 and name + ": Permission denied" in done.stderr and "nothing was changed" in done.stderr
        assert not (work / name).exists() and not (work / "mine" / "more").exists() and not left_behind(work)
    assert sorted(os.listdir(tmp_path)) == ["patch", "patch.0", "patch.1"]


def test_no_room_for_the_copy_of_a_patch(tmp_path, open_dir):
    """The file that did not fit is named, and nothing is left of the others."""
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED, only root can be somebody else")
    work, small = open_dir / "work", tmp_path / "small"  # noqa: F811
    work.mkdir()
    small.mkdir()
    os.chown(work, STRANGER, STRANGER)
    patch = make_patch(tmp_path, work, {"dir/big": b"x" * 300000, "a": b"x"})
    script = 'mount -t tmpfs -o size=400k small small && cp -a %s small && %s apply small/patch; code=$?; ls small >&2; exit $code' % (patch, binary("cage"))
    done = subprocess.run(["unshare", "--mount", "sh", "-c", script], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "cage: dir/big: No space left on device\n" in done.stderr, done.stderr
    assert done.stderr.endswith("\npatch\n") and contents(work) == {}


@pytest.mark.parametrize("kind", ["modified", "deleted", "added"])
def test_others_change_it_while_it_is_applied(tmp_path, work, kind):  # noqa: F811
    """What they write after it was looked at is theirs, whatever becomes of the rest."""
    files = {"many/%d" % i: b"x" * 5000 for i in range(2000)}
    base = {} if kind == "added" else {"zz": b"before"}
    for name, text in base.items():
        (work / name).write_bytes(text)
    if kind != "deleted":
        files["zz"] = b"after"
    before = contents(work)
    applying = subprocess.Popen([binary("cage"), "apply", make_patch(tmp_path, work, files, base)], stderr=subprocess.PIPE, text=True)
    while not left_behind(work):
        assert applying.poll() is None
    (work / "new").write_bytes(b"theirs")
    os.rename(work / "new", work / "zz")
    _, said = applying.communicate(timeout=60)
    assert applying.returncode == 1 and "zz" in said and "nothing was changed" in said
    assert contents(work) == {**before, "zz": b"theirs"} and not left_behind(work)


def test_apply_that_is_asked_to_end(tmp_path, work):  # noqa: F811
    before = contents(work)
    patch = make_patch(tmp_path, work, {"many/%d" % i: b"x" * 5000 for i in range(3000)})
    applying = subprocess.Popen([binary("cage"), "apply", patch], stderr=subprocess.PIPE, text=True)
    while not left_behind(work):
        assert applying.poll() is None
    applying.terminate()
    _, said = applying.communicate(timeout=60)
    assert applying.returncode == -signal.SIGTERM and "asked to end" in said
    assert contents(work) == before and not left_behind(work)


# ---- what is large, many, or oddly named

def test_names_of_our_own(room, work):  # noqa: F811
    """An agent that knows what we call our files can't be in their way."""
    script = "for i in $(seq 1 300); do : > .cage-new-$i; done; mkdir .cage-apply.x; : > .cage-apply.x/new; mkfifo pipe; echo after > changed.txt"
    done = run(room, work, script)
    assert done.returncode == 0 and "can't be kept" not in done.stderr
    assert apply(patch_of(done)).returncode == 0 and (work / "changed.txt").read_text() == "after\n"


DEEP = """import os
open("changed.txt", "w").write("after")
for _ in range(%d):
    os.mkdir("d" * 200)
    os.chdir("d" * 200)
os.symlink("/etc/passwd", "link")
"""


@pytest.mark.parametrize("depth", [20, 30, 100, 3000])
def test_names_that_are_too_long(room, work, depth):  # noqa: F811
    """Deeper than a path can be, of the patch or of anything: what can't be looked at is not applied unasked, nor lost."""
    done = room.run("python3", "-c", DEEP % depth, options=["--workspace", str(work), "--apply"])
    assert done.returncode == 1 and (work / "changed.txt").read_text() == "before\n", done.stderr
    left = re.search(r"is left in (/tmp/cage-run\.\w+)(/view/work/\w+)$", done.stderr, re.M)
    kept = left.group(1) + left.group(2) if left else patch_of(done) + "/files"
    with open(kept + "/changed.txt", encoding="ascii") as f:
        assert f.read() == "after"
    if left:
        subprocess.run(["rm", "-rf", left.group(1)], check=True, timeout=30)


def test_names_with_escapes(room, work):  # noqa: F811
    done = run(room, work, "printf x > \"$(printf 'a\\033]0;owned\\007\\nb')\"; mkdir \"$(printf 'd\\033[2J')\"; printf x > \"$(printf 'd\\033[2J/.envrc')\"")
    assert "\033" not in done.stderr and "\007" not in done.stderr
    done = apply(patch_of(done))
    assert done.returncode == 1 and "\033" not in done.stderr and "d\\u001b[2J/.envrc is something" in done.stderr
    assert apply(patch_of_last(room), "--even-if-run").returncode == 0
    assert (work / "a\033]0;owned\007\nb").read_text() == "x"


def patch_of_last(room):  # noqa: F811
    patches = os.path.join(room.ca_dir, "patches")
    return os.path.join(patches, max(os.listdir(patches)))


def test_what_is_pointed_out_is_bounded(room, work):  # noqa: F811
    done = run(room, work, "for i in $(seq 1 3000); do mkdir $i; : > $i/.envrc; done")
    assert done.returncode == 0 and len(done.stderr.splitlines()) < 4100 and "more than can be pointed out" in done.stderr
    done = apply(patch_of(done))
    assert done.returncode == 1 and len(done.stderr.splitlines()) < 1010 and "and more of them" in done.stderr


def test_a_sparse_file_stays_sparse(room, work):  # noqa: F811
    """It would fill the disk, three times."""
    started = time.monotonic()
    done = run(room, work, "truncate -s 3T sparse; printf end >> sparse; printf x | dd of=sparse bs=1 seek=1000000 conv=notrunc 2>/dev/null")
    assert done.returncode == 0, done.stderr
    patch = patch_of(done)
    assert apply(patch).returncode == 0 and "0 changes made" in apply(patch).stderr and time.monotonic() - started < 30
    for path in (os.path.join(patch, "files", "sparse"), work / "sparse"):
        assert os.stat(path).st_size == (3 << 40) + 3 and os.stat(path).st_blocks * 512 < 1 << 20
    with open(work / "sparse", "rb") as f:
        f.seek(1000000)
        assert f.read(2) == b"x\0"
        f.seek(3 << 40)
        assert f.read() == b"end"


def test_hard_links_stay_apart(room, work, tmp_path):  # noqa: F811
    """One of two names in the workspace is changed: the other is not, nor one outside."""
    os.link(work / "changed.txt", work / "second")
    os.link(work / "changed.txt", tmp_path / "outside")
    done = run(room, work, "echo after > changed.txt")
    assert apply(patch_of(done)).returncode == 0
    assert (work / "changed.txt").read_text() == "after\n" and (tmp_path / "outside").read_text() == "before\n"


def test_many_files(room, work):  # noqa: F811
    script = "mkdir many; cd many; i=0; while [ $i -lt 50 ]; do mkdir $i; seq 1 100 | (cd $i; xargs touch); i=$((i+1)); done"
    done = run(room, work, script)
    assert done.returncode == 0 and "and 4000 more" in done.stderr
    assert apply(patch_of(done)).returncode == 0
    assert sum(len(files) for _, _, files in os.walk(work / "many")) == 5000


def test_a_change_just_after_the_start_is_a_conflict(room, work):  # noqa: F811
    """Its time may be the same as that of the start: clocks of file systems are coarse."""
    for _ in range(5):
        running = Running(room, "sh", "-c", "echo up; read line; echo mine > changed.txt", options=["--workspace", str(work)])
        running.out.wait("up", 30)
        (work / "changed.txt").write_text("theirs\n")
        running.tell("go")
        assert running.end() == 0
        assert "was changed in the workspace too" in running.err.text()


AHEAD = """#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t id, struct timespec *t)
{
	int result = (int)syscall(SYS_clock_gettime, id, t);
	t->tv_sec += id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE ? 3600 : 0;
	return result;
}
"""


def test_the_clock_of_the_file_system_counts(room, work, tmp_path):  # noqa: F811
    """That of this machine is an hour ahead of it, as it could be of a server's."""
    (tmp_path / "ahead.c").write_text(AHEAD)
    subprocess.run(["cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-o", "ahead.so", "ahead.c"], cwd=tmp_path, check=True, timeout=60)
    env = {"LD_PRELOAD": str(tmp_path / "ahead.so"), "ASAN_OPTIONS": "verify_asan_link_order=0"}
    running = Running(room, "sh", "-c", "echo up; read line; echo mine > changed.txt", options=["--workspace", str(work)], env=env)
    running.out.wait("up", 30)
    (work / "changed.txt").write_text("theirs\n")
    running.tell("go")
    assert running.end() == 0
    assert "was changed in the workspace too" in running.err.text()


def test_nothing_is_left_in_the_workspace_by_the_clock(room, work):  # noqa: F811
    before = os.stat(work).st_mtime_ns
    run(room, work, "true")
    assert left_behind(work) == [] and os.stat(work).st_mtime_ns == before


def test_a_workspace_that_cannot_be_written(room, open_dir, tmp_path):  # noqa: F811
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED, only root can mount")
    work = tmp_path / "ro"  # noqa: F811
    work.mkdir()
    (work / "old").write_text("before\n")
    room.before = ["unshare", "--mount", "sh", "-c", 'mount --bind %s %s && mount -o remount,bind,ro %s && exec "$@"' % (work, work, work), "sh"]
    time.sleep(2.2)  # what is younger counts as changed by others there
    done = run(room, work, "echo after > old")
    assert done.returncode == 0 and "M old" in done.stderr and "changed in the workspace too" not in done.stderr, done.stderr
    assert open_dir


def test_apply_options():
    done = subprocess.run([binary("cage"), "apply", "--help"], capture_output=True, text=True, timeout=20)
    assert done.returncode == 0 and "--even-if-run" in done.stdout
    for argv in ([], ["a", "b"], ["--no-such", "a"], ["--even-if-run"]):
        assert subprocess.run([binary("cage"), "apply", *argv], capture_output=True, timeout=20).returncode == 2


def test_modes_of_a_patch(room, work):  # noqa: F811
    done = run(room, work, "echo x > new")
    assert stat.S_IMODE(os.stat(patch_of(done)).st_mode) == 0o700


def test_link_that_becomes_a_directory(room, work):  # noqa: F811
    """What lies where it led is not what was there under the new names."""
    (work / "real").mkdir()
    (work / "real" / "f").write_text("real\n")
    (work / "way").symlink_to("real")
    done = run(room, work, "rm way && mkdir way && echo new > way/f", "--apply")
    assert done.returncode == 0, done.stderr
    assert not (work / "way").is_symlink() and (work / "way" / "f").read_text() == "new\n" and (work / "real" / "f").read_text() == "real\n"


def test_directory_that_becomes_a_link(room, work):  # noqa: F811
    for name in ("real", "way"):
        (work / name).mkdir()
        (work / name / "f").write_text("same\n")
    done = run(room, work, "rm -r way && ln -s real way", "--apply")
    assert done.returncode == 0, done.stderr
    assert (work / "way").is_symlink() and (work / "real" / "f").read_text() == "same\n"
