"""Networks of netavark in the place of CNI's: what can be reached is the same. Its bridge of an internal network without names has no address."""
import os

import pytest
from cagelib.podman import NoPodman, podman
# pylint: disable=unused-import
from test_podman import (listener, sandbox, test_a_command, test_nothing_but_proxy_and_dns_is_reached,  # noqa: F401
                         test_one_sandbox_is_not_reached_from_another, test_subnets_are_taken_one_after_the_other, test_the_way_out_is_the_policy)


@pytest.fixture(scope="module")
def pod():
    if os.geteuid() != 0:
        pytest.skip("NOT TESTED, containers of sandboxes are made by root")
    try:
        with podman("netavark") as made:
            assert made("info", "--format", "{{.Host.NetworkBackend}}").strip() == "netavark"
            yield made
            assert made.containers() == [] and made.networks() == []
    except NoPodman as why:
        pytest.skip("NOT TESTED, %s" % why)


def test_a_bridge_with_an_address_is_refused(sandbox, pod, tmp_path):  # noqa: F811
    """As other networks of it have one."""
    wrapper = tmp_path / "podman"
    wrapper.write_text("#!/bin/bash\nargs=()\nfor w; do [ \"$w\" = --internal ] || args+=(\"$w\"); done\nexec %s \"${args[@]}\"\n" % pod.program)
    wrapper.chmod(0o755)
    with sandbox("sh", "-c", "echo ran", options=["--podman", str(wrapper)]) as k:
        r = k.end()
        assert k.output() == (b"", b"")
    assert r["reason"] == "room.failed" and "address in the network of the agent" in r["message"] and "podman info" in r["message"], r
