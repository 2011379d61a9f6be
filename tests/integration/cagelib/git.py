"""git as a client whose settings are those of the test alone, and repositories behind nginx."""
import os
import subprocess

# A long push in chunks can hang over HTTP/2 with git 2.39 and libcurl 7.88, with and without a proxy: git reads from its
# own send-pack once more than there is something. A test that does it says OVER_H1.
ENV = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "GIT_TERMINAL_PROMPT": "0", "GIT_AUTHOR_NAME": "t",
       "GIT_AUTHOR_EMAIL": "t@site.test", "GIT_COMMITTER_NAME": "t", "GIT_COMMITTER_EMAIL": "t@site.test"}
OVER_H1 = {"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "http.version", "GIT_CONFIG_VALUE_0": "HTTP/1.1"}


def make_repository(nginx, name):
    """An empty one that takes pushes; its path in a URL."""
    bare = os.path.join(nginx.backend.server.git_root, name)
    for command in (["init", "-q", "--bare", "-b", "main", bare], ["-C", bare, "config", "http.receivepack", "true"]):
        subprocess.run(["git", *command], env={**os.environ, **ENV}, check=True, timeout=60)
    return "/git/" + name
