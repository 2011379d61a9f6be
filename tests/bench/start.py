#!/usr/bin/python3
"""What `cage run` costs: the time from its start to the first byte that CMD writes, the processor time of all its programs
for that, and the memory they take while CMD runs. Processor time is what a busy machine leaves as it is.

usage: start.py [--runs N] [--mode netns|seccomp] [--agent NAME] [--check]
--check: ends with 1 when the best run took 100 ms or more, or the programs 40 MiB or more. $CAGE_BIN has the programs."""
import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
MAX_MS, MAX_MIB = 100, 40


def programs():
    return os.environ.get("CAGE_BIN") or os.path.join(ROOT, "build", "release", "bin")


def tree(pid):
    """It and all that it has started."""
    out = [pid]
    try:
        with open("/proc/%d/task/%d/children" % (pid, pid), encoding="ascii") as f:
            for child in f.read().split():
                out += tree(int(child))
    except OSError:
        pass  # it has just ended
    return out


def of_cage(pid):
    return os.path.basename(os.readlink("/proc/%d/exe" % pid)).startswith("cage")


def proportional_kib(pid):
    with open("/proc/%d/smaps_rollup" % pid, encoding="ascii") as f:
        return int(next(x for x in f if x.startswith("Pss:")).split()[1])


def memory(pid):
    """MiB of each program, by name; its children count as the program that they come from."""
    out = {}
    for one in tree(pid):
        if of_cage(one):
            name = os.path.basename(os.readlink("/proc/%d/exe" % one))
            out[name] = out.get(name, 0) + proportional_kib(one) / 1024
    return out


def run_once(argv):
    """Milliseconds to the first byte, and the memory then."""
    began = time.monotonic()
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        first = process.stdout.read(1)
        took = (time.monotonic() - began) * 1000
        if first != b"x":
            process.wait()
            sys.exit("start.py: cage run ended with %d" % process.returncode)
        used = memory(process.pid)
    return took, used


def cpu_ms():
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (used.ru_utime + used.ru_stime) * 1000


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--mode", default="auto")
    parser.add_argument("--agent")
    parser.add_argument("--check", action="store_true")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cage-start.") as scratch:
        argv = [os.path.join(programs(), "cage"), "run", "--quiet", "--ca-dir", os.path.join(scratch, "ca"), "--mode", wanted.mode,
                *(["--agent", wanted.agent] if wanted.agent else []), "--", "/bin/sh", "-c", "printf x; read line"]
        first, _ = run_once(argv)  # makes the CA
        before = cpu_ms()
        all_runs = [run_once(argv) for _ in range(wanted.runs)]
        cpu = (cpu_ms() - before) / wanted.runs
    times = sorted(x[0] for x in all_runs)
    used = all_runs[-1][1]
    print("start to first byte of CMD: %.0f ms at best, %.0f in the middle, %.0f at worst of %d (the first ever: %.0f)" %
          (times[0], statistics.median(times), times[-1], len(times), first))
    print("processor time of a whole run: %.0f ms" % cpu)
    print("memory: %.1f MiB, of it %s" % (sum(used.values()), ", ".join("%s %.1f" % x for x in sorted(used.items()))))
    return 1 if wanted.check and (times[0] >= MAX_MS or sum(used.values()) >= MAX_MIB) else 0


if __name__ == "__main__":
    sys.exit(main())
