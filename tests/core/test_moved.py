"""Test that module paths of earlier releases still import."""

import importlib
import sys

import pytest

from private_consensus.moved import MOVED, PACKAGE, install, moved_path


@pytest.fixture
def forgotten():
    """Clear the aliases, so that the next import of an old path is the first one."""
    old = [name for name in sys.modules if moved_path(name.removeprefix(f"{PACKAGE}."))]
    for name in old:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("path", "today"),
    [
        ("algorithms.base", "core.algorithms.base"),
        ("networks", "core.networks"),
        ("fast.forks", "kernels.forks"),
        ("observations", "audits.views"),
        ("observations.linear", "audits.views.linear"),
        ("datasets.partition", "core.partition"),
    ],
)
def test_importing_an_old_path_returns_the_moved_module_and_warns(forgotten, path, today):
    new = importlib.import_module(f"{PACKAGE}.{today}")
    original_spec = new.__spec__
    with pytest.warns(DeprecationWarning, match=f"{PACKAGE}.{path} has moved to {new.__name__}"):
        assert importlib.import_module(f"{PACKAGE}.{path}") is new
    assert new.__spec__ is original_spec and new.__name__ == original_spec.name


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
