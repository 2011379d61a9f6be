"""Package registries of the test's own, as files behind nginx: one for npm, one for pip, a repository for apt. Each has one
package, which says where it came from."""
import base64
import hashlib
import io
import json
import os
import subprocess
import tarfile
import zipfile

NAME, VERSION, SAYS = "cage-probe", "1.0.0", "from the registry of the test"


def put(nginx, path, data):
    """A file below the root of nginx; what it holds is returned."""
    full = os.path.join(nginx.www, path)
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "wb") as f:
        f.write(data)
    return data


def tarball(files):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(text), 0o644
            tar.addfile(info, io.BytesIO(text.encode()))
    return out.getvalue()


def make_npm(nginx, base):
    """base: the URL of the root. Returns that of the registry."""
    manifest = {"name": NAME, "version": VERSION, "main": "index.js"}
    data = put(nginx, "npm-files/%s.tgz" % NAME, tarball({"package/package.json": json.dumps(manifest),
                                                        "package/index.js": "module.exports = %r\n" % SAYS}))
    dist = {"tarball": "%s/npm-files/%s.tgz" % (base, NAME), "integrity": "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()}
    put(nginx, "npm/" + NAME, json.dumps({"name": NAME, "dist-tags": {"latest": VERSION}, "versions": {VERSION: {**manifest, "dist": dist}}}).encode())
    return base + "/npm/"


def make_pip(nginx, base):
    module = NAME.replace("-", "_")
    info = "%s-%s.dist-info" % (module, VERSION)
    files = {module + ".py": "says = %r\n" % SAYS, info + "/METADATA": "Metadata-Version: 2.1\nName: %s\nVersion: %s\n" % (NAME, VERSION),
             info + "/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    record = "".join("%s,,\n" % name for name in [*files, info + "/RECORD"])
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as wheel:
        for name, text in {**files, info + "/RECORD": record}.items():
            wheel.writestr(name, text)
    name = "%s-%s-py3-none-any.whl" % (module, VERSION)
    data = put(nginx, "pip-files/" + name, out.getvalue())
    link = '<a href="%s/pip-files/%s#sha256=%s">%s</a>' % (base, name, hashlib.sha256(data).hexdigest(), name)
    put(nginx, "simple/%s/index.html" % NAME, ("<!DOCTYPE html><html><body>%s</body></html>" % link).encode())
    return base + "/simple/"


def make_apt(nginx, directory):
    """The path of a flat repository, with hashes and no signature."""
    root = os.path.join(str(directory), "deb")
    os.makedirs(os.path.join(root, "DEBIAN"))
    control = "Package: %s\nVersion: %s\nArchitecture: all\nMaintainer: test <t@site.test>\nDescription: %s\n" % (NAME, VERSION, SAYS)
    with open(os.path.join(root, "DEBIAN", "control"), "w", encoding="ascii") as f:
        f.write(control)
    package = os.path.join(str(directory), "package.deb")
    subprocess.run(["dpkg-deb", "--root-owner-group", "--build", root, package], check=True, stdout=subprocess.DEVNULL, timeout=60)
    with open(package, "rb") as f:
        data = put(nginx, "apt/probe.deb", f.read())
    index = "%sFilename: ./probe.deb\nSize: %d\nSHA256: %s\n\n" % (control, len(data), hashlib.sha256(data).hexdigest())
    put(nginx, "apt/Packages", index.encode())
    put(nginx, "apt/Release", ("Date: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n %s %d Packages\n" % (
        hashlib.sha256(index.encode()).hexdigest(), len(index))).encode())
    return "/apt"
