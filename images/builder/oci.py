"""An image as it lies in an OCI layout: its digest, its sizes, and its files, read from the layers themselves."""
import gzip
import hashlib
import json
import os
import tarfile

# Files whose text says what is in the image.
DPKG_STATUS, DPKG_STATUS_D, DPKG_INFO = "var/lib/dpkg/status", "var/lib/dpkg/status.d/", "var/lib/dpkg/info/"


def is_told(name):
    """Whether a file is kept as text: what dpkg, npm and pip know, and licences."""
    return (name == DPKG_STATUS or name.startswith((DPKG_STATUS_D, DPKG_INFO)) and not name.endswith("sums") or
            name.startswith("usr/share/doc/") and name.endswith("/copyright") or
            "/node_modules/" in name and name.endswith("/package.json") or name.endswith(".dist-info/METADATA"))


class Image:
    """files: path without a slash in front -> SHA-256. links: path -> where it leads. texts: path -> bytes."""

    def __init__(self, directory):
        self.directory = directory
        self.files, self.links, self.texts = {}, {}, {}
        with open(os.path.join(directory, "index.json")) as f:
            self.digest = json.load(f)["manifests"][0]["digest"]
        self.manifest = self.blob_json(self.digest)
        self.config = self.blob_json(self.manifest["config"]["digest"])
        self.compressed = sum(layer["size"] for layer in self.manifest["layers"])
        self.unpacked = 0
        for layer in self.manifest["layers"]:
            self.read_layer(layer["digest"])

    def blob(self, digest):
        return os.path.join(self.directory, "blobs", *digest.split(":"))

    def blob_json(self, digest):
        with open(self.blob(digest)) as f:
            return json.load(f)

    def read_layer(self, digest):
        with gzip.open(self.blob(digest)) as unpacked, tarfile.open(fileobj=unpacked, mode="r|") as tar:
            for member in tar:
                self.read_member(tar, member)

    def read_member(self, tar, member):
        name = os.path.normpath(member.name).lstrip("/")
        base = os.path.basename(name)
        if base.startswith(".wh."):
            self.remove(os.path.join(os.path.dirname(name), base[4:]), base == ".wh..wh..opq")
        elif member.isreg():
            self.keep(name, tar.extractfile(member), member.size)
        elif member.issym():
            self.links[name] = member.linkname
        elif member.islnk():
            self.files[name] = self.files[os.path.normpath(member.linkname).lstrip("/")]

    def keep(self, name, stream, count):
        total, text = hashlib.sha256(), [] if is_told(name) else None
        while piece := stream.read(1 << 20):
            total.update(piece)
            if text is not None:
                text.append(piece)
        self.files[name] = total.hexdigest()
        self.unpacked += count
        if text is not None:
            self.texts[name] = b"".join(text)

    def remove(self, name, opaque):
        prefix = os.path.dirname(name) + "/" if opaque else name + "/"
        for known in (self.files, self.links, self.texts):
            for path in [p for p in known if p == name or p.startswith(prefix)]:
                del known[path]
