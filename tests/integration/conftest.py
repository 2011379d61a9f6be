"""Fixtures: the test CA, nginx, and a factory of proxies that holds each of them to the contract when the test is over:
exit code 0, nothing from a sanitizer, no process left, every log line valid and the chain whole."""
import os
import pathlib
import shutil
import sys
import tempfile

import pytest

sys.path.insert(0, os.path.dirname(__file__))

from cagelib.dns import CageDns  # noqa: E402
from cagelib.log import validate  # noqa: E402
from cagelib.origin import Nginx  # noqa: E402
from cagelib.pki import Pki  # noqa: E402
from cagelib.proxy import Cage  # noqa: E402

# The names that nginx has a certificate for.
SITES = ("site.test", "*.site.test", "*.denied.test")


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes long; run by ./dev test --all")
    config.addinivalue_line("markers", "cgroups: about what a cgroup holds or counts, or what only another kernel shows; run by ./dev vm too")


def pytest_collection_modifyitems(config, items):
    if os.environ.get("CAGE_SLOW"):
        return
    slow = [i for i in items if i.get_closest_marker("slow")]
    if slow:
        config.hook.pytest_deselected(items=slow)
        items[:] = [i for i in items if i not in slow]


def pytest_sessionfinish(session, exitstatus):
    """What was not tested is not told by silence: ctest knows 77."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if exitstatus == 0 and reporter and reporter.stats.get("skipped"):
        session.exitstatus = 77


@pytest.fixture(scope="session")
def pki(tmp_path_factory):
    return Pki(tmp_path_factory.mktemp("pki"))


@pytest.fixture
def open_dir():
    """A directory that other users may enter. Those of pytest are closed to them by whatever session begins next."""
    made = pathlib.Path(tempfile.mkdtemp(prefix="cage-test-"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture(scope="session")
def nginx(tmp_path_factory, pki):
    with Nginx(tmp_path_factory.mktemp("nginx"), pki.leaf(*SITES)) as running:
        yield running


class Cages:
    """Starts proxies and checks them at the end. A test that ended or broke one itself says so with forget()."""

    def __init__(self, make_directory, kind=Cage):
        self.make_directory = make_directory
        self.kind = kind
        self.running = []

    def __call__(self, rules, *args, directory=None, **options):
        cage = self.kind(directory or self.make_directory("cage"), rules, args, **options)
        self.running.append(cage)
        return cage

    def forget(self, cage):
        self.running.remove(cage)

    def finish(self):
        """Stops all of them first, so that a failing check leaves none behind."""
        codes = [(cage, cage.stop()) for cage in self.running]
        for cage, code in codes:
            assert code == 0, "exit code %s:\n%s" % (code, cage.stderr.text())
            cage.assert_left_clean()
            validate(cage.log.raw_lines())


@pytest.fixture
def start_cage(tmp_path_factory):
    cages = Cages(tmp_path_factory.mktemp)
    yield cages
    cages.finish()


@pytest.fixture(scope="module")
def start_module_cage(tmp_path_factory):
    cages = Cages(tmp_path_factory.mktemp)
    yield cages
    cages.finish()


@pytest.fixture
def start_dns(tmp_path_factory):
    cages = Cages(tmp_path_factory.mktemp, CageDns)
    yield cages
    cages.finish()


@pytest.fixture(scope="module")
def start_module_dns(tmp_path_factory):
    cages = Cages(tmp_path_factory.mktemp, CageDns)
    yield cages
    cages.finish()
