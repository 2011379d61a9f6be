"""An SPDX 2.3 document of what is in an image. Everything in it is read from the image: packages from what dpkg, npm and
pip have left there, files and their hashes from the layers. Nothing of this machine is in it, and the same image gives
the same document."""
import datetime
import hashlib
import json
import re

from . import licences, oci

MERGED = ("bin/", "sbin/", "lib/", "lib32/", "lib64/", "libx32/")
OURS = "cage"


class Package:
    """files: paths. kind: deb, npm, pypi or generic."""

    def __init__(self, kind, name, version, licence=None, arch=None, supplier=None):
        self.kind, self.name, self.version, self.licence, self.arch = kind, name, version, licence, arch
        self.supplier, self.files = supplier, []

    @property
    def id(self):
        return "SPDXRef-Package-" + re.sub(r"[^A-Za-z0-9.-]", "-", "%s-%s-%s" % (self.kind, self.name, self.version))

    @property
    def purl(self):
        space = {"deb": "deb/debian/", "npm": "npm/", "pypi": "pypi/", "generic": "generic/"}[self.kind]
        quoted = self.name.replace("@", "%40") if self.kind == "npm" else self.name
        return "pkg:%s%s@%s%s" % (space, quoted, self.version.replace("+", "%2B").replace(":", "%3A"), "?arch=" + self.arch if self.arch else "")


def paragraphs(text):
    for block in re.split(r"\n\s*\n", text.strip()):
        joined = re.sub(r"\n[ \t]+", " ", block)
        yield {name: value.strip() for name, _, value in (line.partition(":") for line in joined.splitlines())}


def merged(path):
    return "usr/" + path if path.startswith(MERGED) else path


def status_texts(image):
    for path, text in image.texts.items():
        if path == oci.DPKG_STATUS or path.startswith(oci.DPKG_STATUS_D):
            yield text.decode("utf-8", "replace")


def deb_packages(image):
    """With the files that dpkg lists for them and the image has."""
    for text in status_texts(image):
        for f in paragraphs(text):
            if "installed" not in f.get("Status", "installed"):
                continue
            name = f["Package"]
            notice = image.texts.get("usr/share/doc/%s/copyright" % name)
            package = Package("deb", name, f["Version"], licences.of_debian(notice), f.get("Architecture"), f.get("Maintainer"))
            listed = image.texts.get(oci.DPKG_INFO + name + ".list") or image.texts.get("%s%s:%s.list" % (oci.DPKG_INFO, name, package.arch), b"")
            names = (merged(line.lstrip("/")) for line in listed.decode().splitlines())
            package.files = [path for path in names if path in image.files]
            yield package


def npm_packages(image):
    """Those that npm has put in node_modules; a package.json deeper inside of one is a part of it."""
    for path, text in image.texts.items():
        found = re.fullmatch(r"(?:.*/)?node_modules/((?:@[^/]+/)?[^/]+)/package\.json", path)
        try:
            f = json.loads(text) if found else {}
        except ValueError:
            continue
        if isinstance(f.get("version"), str) and f.get("name"):
            yield Package("npm", f["name"], f["version"], licences.spdx(f.get("license")))


def pip_packages(image):
    for path, text in image.texts.items():
        if path.endswith(".dist-info/METADATA"):
            f = next(paragraphs(text.decode("utf-8", "replace")))
            if "Name" in f and "Version" in f:
                yield Package("pypi", f["Name"], f["Version"], licences.spdx(f.get("License-Expression") or f.get("License")))


def own_package(image, version):
    """What of the image no package claims, and is a program of ours."""
    package = Package("generic", OURS, version)
    package.files = [p for p in image.files if re.fullmatch(r"usr/(bin|libexec/cage)/cage-[a-z]+", p)]
    return package


def packages(image, version):
    found = [*deb_packages(image), *npm_packages(image), *pip_packages(image), own_package(image, version)]
    unique = {package.id: package for package in found if package.kind != "generic" or package.files}
    return [unique[key] for key in sorted(unique)]


def package_entry(package):
    return {
        "SPDXID": package.id, "name": package.name, "versionInfo": package.version, "downloadLocation": "NOASSERTION",
        "filesAnalyzed": False, "licenseConcluded": "NOASSERTION", "licenseDeclared": package.licence or "NOASSERTION",
        "copyrightText": "NOASSERTION", "supplier": "Person: " + package.supplier if package.supplier else "NOASSERTION",
        "externalRefs": [{"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": package.purl}],
    }


def image_entry(name, image):
    return {"SPDXID": "SPDXRef-Image", "name": name, "versionInfo": image.digest, "downloadLocation": "NOASSERTION", "filesAnalyzed": False,
            "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION", "copyrightText": "NOASSERTION", "supplier": "NOASSERTION",
            "primaryPackagePurpose": "CONTAINER", "checksums": [{"algorithm": "SHA256", "checksumValue": image.digest.split(":")[1]}]}


def file_id(path):
    return "SPDXRef-File-" + hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:24]


def file_entry(path, digest):
    return {"SPDXID": file_id(path), "fileName": "./" + path.encode("utf-8", "surrogateescape").decode("utf-8", "replace"),
            "checksums": [{"algorithm": "SHA256", "checksumValue": digest}],
            "licenseConcluded": "NOASSERTION", "licenseInfoInFiles": ["NOASSERTION"], "copyrightText": "NOASSERTION"}


def relation(one, kind, other):
    return {"spdxElementId": one, "relationshipType": kind, "relatedSpdxElement": other}


def relations(image, found):
    yield relation("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-Image")
    owned = set()
    for package in found:
        yield relation("SPDXRef-Image", "CONTAINS", package.id)
        for path in sorted(set(package.files) - owned):
            owned.add(path)
            yield relation(package.id, "CONTAINS", file_id(path))
    for path in sorted(set(image.files) - owned):
        yield relation("SPDXRef-Image", "CONTAINS", file_id(path))


def document(name, image, version, epoch):
    found = packages(image, version)
    created = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT", "name": name,
        "documentNamespace": "urn:cage:image:%s:%s" % (name, image.digest.split(":")[1]),
        "creationInfo": {"created": created, "creators": ["Tool: cage-images-build-%s" % version]},
        "packages": [image_entry(name, image), *map(package_entry, found)],
        "files": [file_entry(path, image.files[path]) for path in sorted(image.files)],
        "relationships": list(relations(image, found)),
    }


def write(path, *what):
    made = document(*what)
    with open(path, "w") as f:
        json.dump(made, f, indent=1)
        f.write("\n")
    return made
