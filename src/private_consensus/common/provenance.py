"""Provenance of results: hashes of code, settings and files, and atomic writes.

Snakemake does not notice a change of a module that a script imports. The hash of the abstract
syntax of these modules detects it. Comments, docstrings (of functions, classes and constants) and
layout do not change the hash.
"""

import ast
import errno
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import platform
import tempfile
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from .errors import Refused

PACKAGE = "private_consensus"

NUMERICAL_LIBRARIES = ("numpy", "scipy", "numba", "polars", "altair", "snakemake")


def settings_hash(settings: Any) -> str:
    """Return a hexadecimal digest of a JSON value, independent of the order of its keys."""
    canonical = json.dumps(settings, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries on which numerical results depend."""
    return {
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in NUMERICAL_LIBRARIES},
    }


def files_hash(paths: Iterable[str | Path]) -> str:
    """Compute a digest of the names and contents of files; an empty text without files.

    The digest does not depend on the order of the files.
    """
    hashes = {Path(path).name: file_hash(path) for path in paths}
    return settings_hash(hashes) if hashes else ""


def file_hash(path: str | Path) -> str:
    """Return the SHA-256 checksum of a file; raises :class:`FileNotFoundError`."""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def checksums(paths: Iterable[str | Path], folder: str | Path) -> dict[str, str]:
    """Compute the SHA-256 checksums of files, sorted by relative path with forward slashes."""
    hashes = {Path(os.path.relpath(path, folder)).as_posix(): file_hash(path) for path in paths}
    return dict(sorted(hashes.items()))


def changed(expected_hashes: Mapping[str, str], folder: str | Path) -> list[str]:
    """Return the paths of files that are missing or have another checksum than expected."""
    return [
        os.path.normpath(Path(folder, name))
        for name, expected in expected_hashes.items()
        if not Path(folder, name).is_file() or file_hash(Path(folder, name)) != expected
    ]


def code_hash(*modules: str, files: Iterable[str | Path] = ()) -> str:
    """Return a digest of the code of modules, of the modules that they import, and of scripts.

    Imports are followed within this package and within the package of each module. The digest is
    that of the abstract syntax without docstrings.
    """
    starts = set(modules)
    for file in files:
        starts |= _imports_of(str(file), package="", home=PACKAGE)
    reached = set().union(*(imported_modules(module) for module in starts))
    digest = hashlib.sha256()
    for module in sorted(reached):
        digest.update(f"{module}\0{_syntax(str(_file_of(module)))[0]}\0".encode())
    for file in sorted(map(str, files)):
        digest.update(_syntax(file)[0].encode())
    return digest.hexdigest()[:16]


@cache
def imported_modules(module: str) -> frozenset[str]:
    """Return a module and its direct and indirect imports within its package and this one."""
    reached: set[str] = set()
    unvisited = {module}
    while unvisited:
        name = unvisited.pop()
        reached.add(name)
        unvisited |= _direct_imports(name) - reached
    return frozenset(reached)


@contextmanager
def atomic_write(path: str | Path) -> Generator[Path]:
    """Yield a temporary path next to ``path``, and rename it to ``path`` if the block succeeds.

    Raises :class:`InvalidInput` if ``path`` cannot be written.
    """
    path = Path(path)
    try:
        with suppress(FileExistsError):
            path.parent.mkdir(parents=True)
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        handle, name = tempfile.mkstemp(
            dir=path.parent, prefix=f".{path.name}.", suffix=f".part{path.suffix}"
        )
    except OSError as error:
        raise Refused([f"Cannot write {path}: {error.strerror}"]) from error
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write text atomically, encoded as UTF-8 in every locale."""
    with atomic_write(path) as temporary:
        temporary.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any) -> None:
    """Write JSON atomically, with sorted keys."""
    write_text(path, json.dumps(value, indent=1, sort_keys=True) + "\n")


@cache
def _file_of(module: str) -> str | None:
    """Return the source file of a module, without importing it; None if it has none."""
    root, *names = module.split(".")
    spec = importlib.util.find_spec(root)
    for name in names:
        folders = spec.submodule_search_locations if spec else None
        spec = PathFinder.find_spec(name, folders or [])
    return spec.origin if spec and str(spec.origin).endswith(".py") else None


@cache
def _syntax(path: str) -> tuple[str, list[ast.Import | ast.ImportFrom]]:
    """Return the syntax of a file without docstrings, as text, and its import statements."""
    tree = ast.parse(Path(path).read_text(encoding="utf-8"))
    nodes = list(ast.walk(tree))
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [child for child in node.body if not _is_text(child)] or [ast.Pass()]
    return ast.dump(tree), [n for n in nodes if isinstance(n, ast.Import | ast.ImportFrom)]


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


@cache
def _direct_imports(module: str) -> frozenset[str]:
    file = _file_of(module)
    if file is None:
        raise ModuleNotFoundError(module)
    package = module if file.endswith("__init__.py") else module.rpartition(".")[0]
    home = module.partition(".")[0]
    return frozenset(_imports_of(file, package, home) | _parents(module))


def _imports_of(path: str, package: str, home: str) -> set[str]:
    modules: set[str] = set()
    for node in _syntax(path)[1]:
        names = [alias.name for alias in node.names]
        if isinstance(node, ast.ImportFrom):
            base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
            names = [base, *(f"{base}.{name}" for name in names)]
        for name in names:
            modules |= _followed(name, home)
    return modules


def _followed(name: str, home: str) -> set[str]:
    """Return a module and its parents, if it is in this package or in ``home``; else nothing."""
    if name.partition(".")[0] not in (PACKAGE, home) or not _file_of(name):
        return set()
    return {name} | _parents(name)


def _parents(module: str) -> set[str]:
    """Return the packages that contain a module, without those that have no file."""
    names = module.split(".")
    packages = (".".join(names[:depth]) for depth in range(1, len(names)))
    return {package for package in packages if _file_of(package)}
