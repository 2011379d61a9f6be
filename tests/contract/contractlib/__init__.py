"""What the tests of infra/ share: readers and small models of Azure's templates and of Kubernetes' manifests."""
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[3]
INFRA = ROOT / "infra"


def elsewhere(variable, default):
    """A file or directory that is no part of this tree: named by a variable, or beside the tree."""
    return pathlib.Path(os.environ.get(variable) or ROOT.parent / "shared" / default)
