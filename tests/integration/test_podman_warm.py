"""The warm pool of cage serve with Podman's containers: rooms that stand ready, each given away once, and none left."""
import concurrent.futures
import os
import re
import signal
import time

import pytest
from cagelib.cage_run import children, command_line
from cagelib.proxy import is_alive, wait_until
from cagelib.service import API, ENDED, Service
from test_podman import pod  # noqa: F401  # pylint: disable=unused-import
from test_warm import config, drained, is_warm, ready, standing

WARM = 2
SECONDS = 90


def wait_full(service, n=WARM):
    wait_until(lambda: standing(service) == n, SECONDS, "rooms are missing")


def rooms(pod):  # noqa: F811
    """The ids of sandboxes that have a container or network."""
    return {re.fullmatch("cage-(.*?)(-agent|-proxy|-dns)?", name).group(1) for name in pod.containers() + pod.networks()}


@pytest.fixture
def make(tmp_path, pod):  # noqa: F811
    made = []

    def start(warm=WARM, **more):
        service = Service(tmp_path, config(warm=warm, backends={"podman": pod.config()}, **more)).start()
        made.append(service)
        return service
    yield start
    for service in made:
        if service.process.poll() is None:
            for box in service.get(API).json["items"]:
                service.request("DELETE", API + "/" + box["id"])
            service.stop()
        drained(service)
    wait_until(lambda: not rooms(pod), SECONDS, "containers are left")


def test_rooms_are_given_and_made_anew(make, pod):  # noqa: F811
    """Each is whole, new, and the one that stood; its place is taken by another."""
    service = make()
    given, took = set(), []
    for turn in range(3):
        wait_full(service)
        before = ready(service)
        assert len(before) == WARM and before <= rooms(pod) and not before & given
        began = time.monotonic()
        ident = service.create(profile="p", files={"in": "text\n"}, env={"X": "value"},
                               command=["sh", "-c", "cat in; echo $X; id -un; ls -A /workspace /tmp | grep mark; touch mark /tmp/mark; echo end"])
        box = service.wait(ident, *ENDED)
        took.append(time.monotonic() - began)
        assert ident in before and is_warm(box) and (box["state"], box["backend"]) == ("succeeded", "podman"), box
        assert (service.output(ident), turn) == (b"text\nvalue\nagent\nend\n", turn)
        given.add(ident)
    print("from the create to the end of a command: %s s" % ", ".join("%.3f" % t for t in took))


def test_more_are_asked_for_than_stand(make):
    service = make()
    wait_full(service)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        idents = list(pool.map(lambda _: service.create(profile="p", command=["sh", "-c", "ls -A; echo mark > mark"]), range(4)))
    boxes = [service.wait(i, *ENDED) for i in idents]
    assert len(set(idents)) == 4 and all(b["state"] == "succeeded" for b in boxes), boxes
    assert sum(map(is_warm, boxes)) >= WARM and {service.output(i) for i in idents} == {b""}
    wait_full(service)
    assert not ready(service) & set(idents)


def test_a_service_that_is_killed_leaves_none(make, pod):  # noqa: F811
    """Those that stood are not the next one's: they are ended, and others made."""
    service = make()
    wait_full(service)
    ident = service.idle(profile="p")
    wait_full(service)
    old = ready(service)
    service.kill()
    assert old | {ident} <= rooms(pod)
    service.start()
    wait_full(service)
    wait_until(lambda: not old & (rooms(pod) | ready(service)), SECONDS, "old ones stand")
    service.wait_found(ident)
    assert is_warm(service.show(ident)) and service.result(ident, "shell_exec", command="echo still")["stdout"] == "still\n"
    service.request("DELETE", API + "/" + ident)
    wait_until(lambda: ident not in rooms(pod), SECONDS, "its containers are left")


@pytest.mark.parametrize("who", ["keeper", "cage-pod", "agent"])
def test_one_that_dies_is_replaced(make, pod, who):  # noqa: F811
    service = make(warm=1)
    wait_full(service, 1)
    old, = ready(service)
    keeper, = service.keepers()
    victim = {"keeper": lambda: keeper, "agent": lambda: pod.pid("cage-%s-agent" % old),
              "cage-pod": lambda: [p for p in children(keeper) if "cage-pod" in command_line(p)[0]][0]}[who]()
    os.kill(victim, signal.SIGKILL)
    wait_until(lambda: not is_alive(keeper) and old not in ready(service), SECONDS, "it stands")
    wait_full(service, 1)
    wait_until(lambda: old not in rooms(pod), SECONDS, "its containers are left")
    box = service.wait(service.create(profile="p", command=["true"]), *ENDED)
    assert is_warm(box) and box["state"] == "succeeded", box
