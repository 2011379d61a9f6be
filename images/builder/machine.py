"""Where npm and pip get packages from on this machine. A build gets that as secrets, which no layer keeps: images say
nothing of who built them, and are the same wherever they are built."""
import os
import shutil
import subprocess

TRUST = "/etc/ssl/certs/ca-certificates.crt"


def asked(*line):
    """What a tool says of its settings; nothing where it is not installed."""
    if not shutil.which(line[0]):
        return ""
    done = subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
    return done.stdout.strip() if done.returncode == 0 else ""


def write(directory, name, text):
    path = os.path.join(directory, name)
    with open(path, "w") as f:
        f.write(text)
    return "id=%s,src=%s" % (name, path)


def secrets(directory):
    """For buildah --secret; the files are in directory."""
    npm = asked("npm", "config", "get", "registry")
    pip = os.environ.get("PIP_INDEX_URL") or asked("pip", "config", "get", "global.index-url")
    trust = ["id=trust,src=" + TRUST] if os.path.exists(TRUST) else []
    return [write(directory, "npmrc", "registry=%s\n" % npm if npm.startswith("http") else ""),
            write(directory, "pip", "[global]\nindex-url = %s\n" % pip if pip.startswith("http") else ""), *trust]
