"""Write the software bill of materials of a release.

    python -m private_consensus.publishing.components FOLDER

Writes a CycloneDX JSON file and a table of licences to FOLDER. Both list the installed packages of
the lock file; the JSON file has their checksums, too.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from private_consensus.common.provenance import write_json, write_text
from private_consensus.common.spreadsheets import markdown, markdown_table

LOCKED = re.compile(r"^([\w.-]+)==([^\s;\\]+)[^\n]*((?:\n +--hash=sha256:[^\n]*)*)", re.M)
NO_LICENCE = "not stated"


def locked(text: str) -> dict[str, dict[str, Any]]:
    """Parse a lock file: map each normalized package name to version and SHA-256 checksums."""
    return {
        normalized_name(name): {
            "version": version,
            "sha256": re.findall(r"sha256:([0-9a-f]+)", hashes),
        }
        for name, version, hashes in LOCKED.findall(text)
    }


def normalized_name(name: str) -> str:
    """Normalize a package name for comparison, by the rule of PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()


def licence(package: Distribution) -> str:
    """Return the licence of a package: its expression, classifiers, or first line of its text."""
    metadata = package.metadata
    kinds = [kind.rpartition(" :: ")[2] for kind in metadata.get_all("Classifier") or ()
             if kind.startswith("License ::")]  # fmt: skip
    lines = (_field(package, "License") or "").strip().splitlines() or [""]
    return _field(package, "License-Expression") or "; ".join(kinds) or lines[0][:80] or NO_LICENCE


def _field(package: Distribution, name: str) -> str | None:
    return next(iter(package.metadata.get_all(name) or ()), None)


def components(
    lock: Mapping[str, Mapping[str, Any]], installed: Iterable[Distribution]
) -> list[dict[str, Any]]:
    """List the packages that are both locked and installed, sorted by name.

    Parameters
    ----------
    lock : mapping
        Locked packages, the result of :func:`locked`.

    Returns
    -------
    list of dict
        Keys ``name``, ``version``, ``licence`` and ``sha256`` (list of checksums).
    """
    packages = {normalized_name(package.metadata["Name"]): package for package in installed}
    return [
        {"name": name, "version": packages[name].version, "licence": licence(packages[name]),
         "sha256": entry["sha256"]}
        for name, entry in sorted(lock.items()) if name in packages
    ]  # fmt: skip


def bill_of_materials(rows: Iterable[Mapping[str, Any]]) -> dict[str, object]:
    """Build the bill of materials (CycloneDX 1.5), with the checksums of each package."""
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "components": [
            {
                "type": "library",
                "name": row["name"],
                "version": row["version"],
                "purl": f"pkg:pypi/{row['name']}@{row['version']}",
                "licenses": [{"license": {"name": row["licence"]}}],
                "properties": [{"name": "sha256", "value": checksum} for checksum in row["sha256"]],
            }
            for row in rows
        ],
    }


def table(rows: Iterable[Mapping[str, Any]]) -> str:
    """Format the packages as a Markdown table, one row per package."""
    keys = ("name", "version", "licence")
    cells = ((markdown(row[key]) for key in keys) for row in rows)
    return markdown_table(("package", *keys[1:]), cells)


def main(folder: str, lock: str = "requirements.txt") -> None:
    """Write ``sbom.json`` and ``licences.md`` to a folder."""
    rows = components(locked(Path(lock).read_text(encoding="utf-8")), distributions())
    write_json(Path(folder, "sbom.json"), bill_of_materials(rows))
    write_text(Path(folder, "licences.md"), table(rows))


if __name__ == "__main__":
    main(*sys.argv[1:])
