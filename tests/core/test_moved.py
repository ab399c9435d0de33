"""Tests of the module paths of earlier releases."""

import importlib
import sys

import pytest

from private_consensus.common.moved import MOVED, PACKAGE, install


@pytest.fixture
def forgotten():
    """Forget the aliases, so that the next import of an old path is the first."""
    old = [name for name in sys.modules if name.split(".")[1:2] and name.split(".")[1] in MOVED]
    for name in old:
        del sys.modules[name]


@pytest.mark.parametrize("path", ["algorithms.base", "networks", "fast.forks", "observations"])
def test_an_old_path_is_the_moved_module_and_warns(forgotten, path):
    first, *rest = path.split(".")
    new = importlib.import_module(".".join([PACKAGE, MOVED[first], *rest]))
    own = new.__spec__
    with pytest.warns(DeprecationWarning, match=f"{PACKAGE}.{path} has moved to {new.__name__}"):
        assert importlib.import_module(f"{PACKAGE}.{path}") is new
    assert new.__spec__ is own and new.__name__ == own.name


def test_every_moved_module_exists():
    for path in MOVED.values():
        assert importlib.util.find_spec(f"{PACKAGE}.{path}") is not None, path


def test_an_unknown_module_is_not_found(forgotten):
    with pytest.raises(ModuleNotFoundError, match="nowhere"):
        importlib.import_module(f"{PACKAGE}.nowhere")
    with (
        pytest.warns(DeprecationWarning),
        pytest.raises(ModuleNotFoundError, match=r"core\.algorithms\.nowhere"),
    ):
        importlib.import_module(f"{PACKAGE}.algorithms.nowhere")


def test_installing_the_aliases_again_changes_nothing():
    before = list(sys.meta_path)
    install()
    assert sys.meta_path == before
