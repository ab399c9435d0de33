"""An environment with peers, beside the libraries that the project runs with.

    python -m benchmarks.peers.environment .peers

Peers are installed one by one, each with what it needs, so that one that cannot be had leaves the
others; of torch only builds without CUDA, which are a tenth of the size. They see the packages of
the environment that calls this, and change none of them.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import venv
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PEERS = {
    "scikit-learn": "scikit-learn",
    "dp-accounting": "dp-accounting",
    "autodp": "autodp==0.2.3.1",
    "jax": "jax>=0.7,<0.11",
    "torch": "torch==2.13.0+cpu",
    "opacus": "opacus==1.6.0",
    "decent-bench": "decent-bench==0.3.0",
}
NEEDS = {"opacus": "torch"}
"""Installed only after what would otherwise be installed in a build with CUDA."""


def install(folder: Path) -> None:
    """Make the environment, or what is missing of it, and say what could not be had."""
    if not (folder / "bin" / "python").exists():
        venv.create(folder, with_pip=False, symlinks=True)
        beside = f"import site; site.addsitedir({sysconfig.get_path('purelib')!r})\n"
        (_packages(folder) / "beside.pth").write_text(beside, encoding="utf-8")
    had: dict[str, bool] = {}
    for name, requirement in PEERS.items():
        had[name] = had.get(NEEDS.get(name, ""), True) and _installed(folder, requirement)
        print(f"{name}: {'installed' if had[name] else 'cannot be installed'}", flush=True)
    # Opacus brings a package of this name, which would hide the project's.
    shutil.rmtree(_packages(folder) / "benchmarks", ignore_errors=True)


def _packages(folder: Path) -> Path:
    (found,) = folder.glob("lib/python*/site-packages")
    return found


def _installed(folder: Path, requirement: str) -> bool:
    python = folder / "bin" / "python"
    command = ["-m", "pip", "--python", str(python), "install", "--quiet", requirement]
    return subprocess.run([sys.executable, *command], check=False).returncode == 0


def found() -> dict[str, str | None]:
    """Versions of the peers that are there; nothing of those that are not."""
    return {name: _version(name) for name in PEERS}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


if __name__ == "__main__":
    install(Path(sys.argv[1]))
