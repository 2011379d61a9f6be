#!/usr/bin/python3 -B
"""Runs a command in a virtual machine with cgroups of version 2 and nothing of version 1: with this machine's own root, read-only and a layer in memory above it,
a kernel of Debian's, and no network but loopback. What it prints comes out here, and its exit code is ours. Everything is in build/vm."""
import argparse
import glob
import os
import select
import shlex
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
PLACE = os.path.join(ROOT, "build/vm")
KVM_SECONDS = 40  # until the first program says that it has started; where the processor is emulated, START_SECONDS
START_SECONDS = 300
MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay")
FAILED = 125  # the machine, not the command


class Failed(Exception):
    """Says what to do."""


def call(*words, **more):
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, **more)
    if done.returncode != 0:
        raise Failed("%s: %s" % (" ".join(words[:3]), done.stderr.strip()))
    return done.stdout


# ---- kernel


def download(package, to):
    """Unpacks a package of Debian's, without installing it."""
    with tempfile.TemporaryDirectory(dir=PLACE) as directory:
        call("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", package, cwd=directory)
        partial = to + ".new"
        shutil.rmtree(partial, ignore_errors=True)
        call("dpkg-deb", "-x", glob.glob(directory + "/*.deb")[0], partial)
    return partial


def kernel_package():
    """The one that linux-image-amd64 depends on."""
    for line in call("apt-cache", "depends", "--important", "linux-image-amd64").splitlines():
        if "Depends: linux-image-" in line:
            return line.split()[-1]
    raise Failed("apt-cache knows no kernel; apt-get update helps")


def prepare():
    os.makedirs(PLACE, exist_ok=True)
    busybox, kernel = os.path.join(PLACE, "busybox"), os.path.join(PLACE, "kernel")
    if not os.path.isdir(busybox):
        os.rename(download("busybox-static", busybox), busybox)
    if not os.path.isdir(kernel):
        made = download(kernel_package(), kernel)
        version = os.listdir(made + "/lib/modules")[0]
        call(busybox + "/bin/busybox", "depmod", "-b", made, version)
        os.rename(made, kernel)
    return glob.glob(kernel + "/boot/vmlinuz-*")[0]


def closure(directory):
    """Files of the modules that the first program loads, and of those that they need."""
    needs = {}
    with open(directory + "/modules.dep", encoding="ascii") as f:
        for line in f:
            path, _, others = line.partition(":")
            needs[path] = others.split()
    names = {os.path.basename(path)[:-3].replace("-", "_"): path for path in needs}
    found = [names[m] for m in MODULES if m in names]
    for path in found:
        found += [p for p in needs[path] if p not in found]
    return found


def make_initramfs(directory):
    """With busybox, the modules, and the first program."""
    modules = glob.glob(PLACE + "/kernel/lib/modules/*")[0]
    top = os.path.join(directory, "initramfs")
    to = top + "/lib/modules/" + os.path.basename(modules)
    for name in ("bin", "dev", "proc"):
        os.makedirs(os.path.join(top, name))
    for path in closure(modules):
        os.makedirs(os.path.dirname(os.path.join(to, path)), exist_ok=True)
        shutil.copy(os.path.join(modules, path), os.path.join(to, path))
    for name in ("modules.dep", "modules.alias", "modules.symbols"):
        shutil.copy(os.path.join(modules, name), to)
    shutil.copy(PLACE + "/busybox/bin/busybox", top + "/bin/busybox")
    shutil.copy(HERE + "/first-init", top + "/init")
    os.chmod(top + "/init", 0o755)
    with open(top + ".cpio", "wb") as out:
        names = "\n".join(os.path.relpath(os.path.join(d, n), top) for d, dirs, files in os.walk(top) for n in dirs + files)
        subprocess.run([PLACE + "/busybox/bin/busybox", "cpio", "-o", "-H", "newc"], input=names.encode(), stdout=out, stderr=subprocess.DEVNULL,
                       cwd=top, check=True, timeout=60)
    return top + ".cpio"


# ---- machine


def command_line(accel, kernel, directory, options):
    """It ends with us, whoever kills us."""
    cpu = ["-accel", "kvm", "-cpu", "host"] if accel == "kvm" else ["-accel", "tcg,thread=multi", "-cpu", "max"]
    append = "console=ttyS0 loglevel=1 panic=-1 cgroup_no_v1=all mitigations=off vm.run=" + directory
    return ["setpriv", "--pdeathsig", "KILL", "qemu-system-x86_64", "-machine", "q35", *cpu, "-smp", str(options.processors), "-m", str(options.memory), "-nodefaults", "-no-user-config",
            "-display", "none", "-no-reboot", "-nic", "none", "-kernel", kernel, "-initrd", directory + "/initramfs.cpio", "-append", append,
            "-fsdev", "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap", "-device", "virtio-9p-pci,fsdev=root,mount_tag=root",
            "-chardev", "stdio,id=out,signal=off", "-serial", "chardev:out", "-serial", "file:%s/status" % directory]


def status(directory):
    try:
        with open(directory + "/status", encoding="ascii") as f:
            return f.read().replace("\r", "")
    except FileNotFoundError:
        return ""


def copy_output(process, seconds, until):
    """What the machine prints goes on to our output, until it ends, that many seconds are over or until() is true. False: they are over."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([process.stdout], [], [], 0.2)[0]:
            piece = os.read(process.stdout.fileno(), 65536)
            if not piece:
                return True
            sys.stdout.buffer.write(piece.replace(b"\r\n", b"\n"))
            sys.stdout.buffer.flush()
        if until():
            return True
    return False


def run_machine(accel, kernel, directory, options):
    """The exit code; None: it has not started."""
    process = subprocess.Popen(command_line(accel, kernel, directory, options), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        copy_output(process, KVM_SECONDS if accel == "kvm" else START_SECONDS, lambda: "started" in status(directory))
        if "started" not in status(directory):
            return None
        if not copy_output(process, options.seconds, lambda: False):
            raise Failed("the command was not done after %d s" % options.seconds)
    finally:
        process.kill()
        process.wait()
    for line in status(directory).splitlines():
        if line.startswith("exit "):
            return int(line.split()[1])
    raise Failed("the machine has ended before its command")


def accelerators(wanted):
    """KVM may be there and not start a machine: within another one, say."""
    if wanted:
        return [wanted]
    if os.access("/dev/kvm", os.R_OK | os.W_OK):
        return ["kvm", "tcg"]
    return ["tcg"]


def run(options):
    kernel = prepare()
    for accel in accelerators(options.accel):
        with tempfile.TemporaryDirectory(prefix="run.", dir=PLACE) as directory:
            make_initramfs(directory)
            shutil.copy(HERE + "/init", directory)
            with open(directory + "/group", "w", encoding="ascii") as f:
                f.write(options.group)
            with open(directory + "/command", "w", encoding="utf-8") as f:
                f.write("cd %s\nexec %s\n" % (shlex.quote(os.getcwd()), shlex.join(options.command)))
            started = time.monotonic()
            code = run_machine(accel, kernel, directory, options)
            if code is not None:
                print("vm: %s, exit code %d in %d s" % (accel, code, time.monotonic() - started), flush=True)
                return code
            print("vm: a machine with %s does not start" % accel, flush=True)
    raise Failed("no machine starts here")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=1800, help="of the command, at most")
    parser.add_argument("--memory", type=int, default=6144, help="of the machine, MiB")
    parser.add_argument("--processors", type=int, default=2)
    parser.add_argument("--group", default="/test.slice/test.service", help="cgroup of the command")
    parser.add_argument("--accel", choices=("kvm", "tcg"), help="default: kvm where it starts, else tcg (the processor is emulated, which is slow)")
    parser.add_argument("command", nargs="+")
    try:
        return run(parser.parse_args())
    except Failed as error:
        print("vm: %s" % error, file=sys.stderr)
        return FAILED


if __name__ == "__main__":
    sys.exit(main())
