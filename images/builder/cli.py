"""The command line of images/build, and the order of its work."""
import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import time

from . import debian, machine, oci, plan, sbom
from .buildah import Buildah, temporary
from .say import Failed, say, size

TEXT = """Builds the OCI images of cage with buildah: %(published)s.
Each is written to the output directory as an OCI layout with an SBOM beside it, and is in the image store afterwards
under localhost/cage/NAME:TAG. The same commit on the same base gives the same digest. docs/images.md has the rest.""" % {
    "published": ", ".join(plan.PUBLISHED)}
EXAMPLES = """examples:
  images/build proxy dns gate               what cage itself needs; ship, where Azure has the log
  images/build --base debootstrap proxy     without a registry
  images/build --policy-entry               what a policy's images: needs of those that were built last

The time in the images is that of the last commit, or $SOURCE_DATE_EPOCH. $STORAGE_DRIVER and the like are buildah's.
Exit codes: 0 good, 1 failed, 2 wrong usage, or something has to be installed first."""
PROGRAMS = ("cage-proxy", "cage-gateway", "cage-dns", "cage-gate", "cage-inside", "cage-relay", "cage-install", "cage-ship")


def parse(words):
    p = argparse.ArgumentParser(prog="images/build", description=TEXT, epilog=EXAMPLES, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("images", metavar="IMAGE", nargs="*", help="which ones (default: proxy dns gate agent-base); all: every one")
    p.add_argument("--base", choices=("auto", "registry", "debootstrap"), default="auto",
                   help="Debian from a registry, pinned by digest, or made here; auto tries them in this order (default)")
    p.add_argument("--archive", metavar="SHA256", help="with debootstrap: refuse another state of the Debian archive than this")
    p.add_argument("--programs", metavar="DIR", help="take cage's programs from DIR, such as build/release/bin, instead of compiling them in a container")
    p.add_argument("--tag", default="latest", help="of all images (default latest)")
    p.add_argument("--output", metavar="DIR", default=os.path.join(plan.ROOT, "build", "images"), help="default build/images")
    p.add_argument("--store", metavar="DIR", help="keep images in DIR instead of the machine's own store")
    p.add_argument("--repository", metavar="NAME", default="localhost/cage", help="what the images will be called where they are pushed (for the policy entry)")
    p.add_argument("--no-cache", action="store_true", help="build everything anew, with the packages that the archive has now")
    p.add_argument("--policy-entry", action="store_true", help="build nothing; print the entry for the policy from the last build")
    args = p.parse_args(words)
    args.output, args.store = os.path.abspath(args.output), args.store and os.path.abspath(args.store)
    return p, args


def git(*words):
    done = subprocess.run(["git", "-C", plan.ROOT, *words], capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def epoch():
    """Of the last commit."""
    text = os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct")
    if not re.fullmatch(r"[0-9]{1,11}", text):
        raise Failed("the time of the images is that of the last commit, and there is none: set SOURCE_DATE_EPOCH", 2)
    return int(text)


def version():
    with open(os.path.join(plan.ROOT, "CMakeLists.txt")) as f:
        return re.search(r"project\(cage VERSION ([0-9.]+)", f.read())[1]


def labels(name):
    out = ["org.opencontainers.image.title=cage/" + name, "org.opencontainers.image.version=" + version()]
    commit = git("rev-parse", "HEAD")
    if commit:
        changed = bool(git("status", "--porcelain", "--untracked-files=no"))
        out.append("org.opencontainers.image.revision=%s%s" % (commit, "-changed" if changed else ""))
    return out


def wanted(parser, args):
    names = args.images or ["proxy", "dns", "gate", "agent-base"]
    if names == ["all"]:
        for name in filter(plan.lacks, plan.PUBLISHED):
            say("NOT BUILT: " + plan.lacks(name))
        return [name for name in plan.PUBLISHED if not plan.lacks(name)]
    for name in names:
        if name not in plan.PUBLISHED:
            parser.error("no image '%s'; there are: %s, or all" % (name, ", ".join(plan.PUBLISHED)))
        if plan.lacks(name):
            raise Failed(plan.lacks(name), 2)
    return list(dict.fromkeys(names))


def strip_programs(source, target):
    if not shutil.which("strip"):
        raise Failed("strip is not installed; as root: apt-get install --no-install-recommends binutils", 2)
    for name in PROGRAMS:
        path = os.path.join(source, name)
        if not os.path.isfile(path):
            raise Failed("--programs: there is no %s; ./dev build makes them in build/release/bin" % path, 2)
        done = subprocess.run(["strip", "-o", os.path.join(target, name), path], capture_output=True, text=True)
        if done.returncode != 0:
            raise Failed("strip: " + done.stderr.strip())


class Build:
    """One run: the base, the images that were asked for and those that they need."""

    def __init__(self, args):
        self.args = args
        self.time = epoch()
        os.makedirs(os.path.join(args.output, "logs"), exist_ok=True)
        self.buildah = Buildah(args.store, self.time, os.path.join(args.output, "logs"))
        self.base = debian.choose(self.buildah, args.base, not args.no_cache, args.archive)
        say("base: " + self.base.about)

    def tag(self, name):
        return self.base.image if name == "base" else "localhost/cage/%s:%s" % (name, self.args.tag)

    def one(self, name):
        started = time.monotonic()
        say("building " + name)
        cached = not self.args.no_cache
        with temporary() as directory:
            if name == "programs" and self.args.programs:
                strip_programs(self.args.programs, directory)
                self.buildah.build(self.tag(name), plan.containerfile(name) + ".given", directory, cached=cached)
            else:
                needs = ["%s=%s" % (arg, self.tag(need)) for arg, need in plan.NEEDS[name].items()]
                self.buildah.build(self.tag(name), plan.containerfile(name), plan.ROOT, needs, labels(name), machine.secrets(directory), cached)
        say("built %s in %d s" % (name, time.monotonic() - started))

    def publish(self, name):
        layout = os.path.join(self.args.output, name)
        self.buildah.publish(self.tag(name), layout)
        image = oci.Image(layout)
        if self.buildah.digest(self.tag(name)) != image.digest:
            raise Failed("the store has %s in another form than %s; remove what was built on it: buildah rmi --all --force" % (self.tag(name), layout))
        made = sbom.write(layout + ".spdx.json", "cage/" + name, image, version(), self.time)
        return {"name": name, "digest": image.digest, "tag": self.tag(name), "layout": layout, "sbom": layout + ".spdx.json",
                "compressed": image.compressed, "unpacked": image.unpacked, "packages": len(made["packages"]) - 1, "files": len(image.files)}

    def run(self, names):
        made = {}
        for name in plan.order(names):
            self.one(name)
            if name in names:
                made[name] = self.publish(name)  # before another is built on it, which pins its form in the store
        return [made[name] for name in names]


def record(args, base, made):
    """images.json keeps what was built before, too."""
    path = os.path.join(args.output, "images.json")
    known = read_record(args)["images"] if os.path.exists(path) else {}
    known.update({entry["name"]: entry for entry in made})
    with open(path + ".new", "w") as f:
        json.dump({"base": base.about, "images": dict(sorted(known.items()))}, f, indent=1)
        f.write("\n")
    os.replace(path + ".new", path)


def read_record(args):
    path = os.path.join(args.output, "images.json")
    try:
        with open(path) as f:
            return json.load(f)
    except (OSError, ValueError) as error:
        raise Failed("nothing was built into %s yet (%s)" % (args.output, error), 2) from None


def print_table(made):
    for entry in made:
        print("%-12s %s  %s compressed, %s unpacked, %d packages, %d files" % (
            entry["name"], entry["digest"], size(entry["compressed"]), size(entry["unpacked"]), entry["packages"], entry["files"]))


def print_policy_entry(args, names):
    images = read_record(args)["images"]
    registry, _, path = args.repository.partition("/")
    if not path:
        raise Failed("--repository: expected REGISTRY/PATH", 2)
    print("images:")
    for name in names or sorted(images):
        if name not in images:
            raise Failed("%s was not built into %s" % (name, args.output), 2)
        print("  - {registry: %s, repository: %s/%s, digest: \"%s\"}" % (registry, path, name, images[name]["digest"]))


def work(parser, args):
    if args.policy_entry:
        return print_policy_entry(args, args.images)
    names = wanted(parser, args)
    build = Build(args)
    made = build.run(names)
    record(args, build.base, made)
    print_table(made)


def main(words):
    parser, args = parse(words)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that what is temporary is removed
    try:
        work(parser, args)
    except Failed as error:
        say(str(error))
        return error.status
    except (subprocess.SubprocessError, OSError) as error:
        say("could not go on: %s" % error)
        return 1
    except KeyboardInterrupt:
        say("stopped")
        return 130
    return 0
