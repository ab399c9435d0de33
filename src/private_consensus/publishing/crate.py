"""Write an archive of the reference results for a data repository.

    python -m private_consensus.publishing.crate REFERENCE ARCHIVE

The archive contains the reference results with RO-Crate 1.1 metadata: the description and checksum
of each file, the commit, versions and data used, and the licence. Equal folders give byte-identical
archives.
"""

from __future__ import annotations

import json
import sys
import zipfile
from collections.abc import Iterator, Mapping
from mimetypes import MimeTypes
from pathlib import Path
from typing import Any

from private_consensus.common import yamls
from private_consensus.common.errors import require
from private_consensus.common.provenance import atomic_write, changed, file_hash
from private_consensus.common.readable import read_json

CONTEXT = "https://w3id.org/ro/crate/1.1/context"
SPECIFICATION = "https://w3id.org/ro/crate/1.1"
LICENCES = {"MIT": "https://spdx.org/licenses/MIT"}
METADATA = "ro-crate-metadata.json"
MEDIA_TYPES = MimeTypes()
"""Media types by suffix, independent of the machine."""
MEDIA_TYPES.add_type("text/markdown", ".md")
MEDIA_TYPES.add_type("application/vnd.apache.parquet", ".parquet")
DESCRIPTION = (
    "Figures, tables, verdicts on claims and theorems, privacy statements and audits; "
    "aggregates only, no record of any data set."
)
TIME_STAMP = (1980, 1, 1, 0, 0, 0)
"""Time stamp of all files in the archive, so that equal contents give equal archives."""

Entity = dict[str, Any]


def crate(folder: Path, citation: Mapping[str, Any]) -> Entity:
    """Build the RO-Crate metadata of a folder with reference results.

    Parameters
    ----------
    folder : Path
        Folder with a ``manifest.json`` whose checksums match the files.
    citation : mapping
        Contents of ``CITATION.cff``: title, version, licence, date, authors.

    Returns
    -------
    dict
        JSON-LD: the crate, its files, the software and the data sets used.

    Raises
    ------
    InvalidInput
        If a file differs from the manifest; the message names the file.
    """
    manifest = read_json(folder / "manifest.json")
    damaged = changed(manifest["sha256"], folder)
    require(
        not damaged, str(folder), ", ".join(damaged), "files with the checksums of manifest.json"
    )
    files = list(_files(folder))
    software = {
        "@id": "#software",
        "@type": "SoftwareApplication",
        "name": "private-consensus",
        "version": f"{citation['version']} ({manifest['commit']})",
        "softwareRequirements": [
            f"{name} {version}" for name, version in manifest["versions"].items()
        ],
    }
    data = list(_data(manifest))
    authors = [
        {"@id": f"#author-{i}", "@type": "Organization", "name": author["name"]}
        for i, author in enumerate(citation["authors"], start=1)
    ]
    name = citation["license"]
    licence = {"@id": LICENCES[name], "@type": "CreativeWork", "name": name}
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": f"Reference results of {citation['title']}",
        "description": DESCRIPTION,
        "datePublished": str(citation["date-released"]),
        "version": citation["version"],
        "license": {"@id": licence["@id"]},
        "author": _references(authors),
        "hasPart": _references(files),
        "mentions": [{"@id": "#run"}],
    }
    run = {
        "@id": "#run",
        "@type": "CreateAction",
        "name": f"Run at the scale {manifest['scale']}, seed {manifest['seed']}",
        "instrument": {"@id": software["@id"]},
        "object": _references(data),
        "result": {"@id": "./"},
    }
    about = {
        "@id": METADATA,
        "@type": "CreativeWork",
        "conformsTo": {"@id": SPECIFICATION},
        "about": {"@id": "./"},
    }
    return {
        "@context": CONTEXT,
        "@graph": [about, root, run, software, licence, *authors, *data, *files],
    }


def _files(folder: Path) -> Iterator[Entity]:
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        yield {
            "@id": path.relative_to(folder).as_posix(),
            "@type": "File",
            "name": path.name,
            "encodingFormat": MEDIA_TYPES.guess_type(path.name)[0] or "application/octet-stream",
            "contentSize": str(path.stat().st_size),
            "sha256": file_hash(path),
        }


def _data(manifest: Mapping[str, Any]) -> Iterator[Entity]:
    """List each edition of a data set once, also if several preparations use it."""
    editions = {(row["dataset"], row["checksum"]): row for row in manifest["data"]}
    for (name, checksum), row in sorted(editions.items()):
        yield {
            "@id": f"#data-{name}-{checksum[:8]}",
            "@type": "Dataset",
            "name": row["version"],
            "identifier": f"sha256:{checksum}",
            "citation": row["citation"],
            "conditionsOfAccess": row["licence"],
        }


def _references(entities: list[Entity]) -> list[Entity]:
    return [{"@id": entity["@id"]} for entity in entities]


def write(folder: Path, archive: Path, additional: Mapping[str, Path]) -> None:
    """Write the archive: metadata, the files of the folder, and additional files.

    Parameters
    ----------
    additional : mapping
        Name in the archive to the path of each additional file; ``CITATION.cff`` is required.
    """
    citation = yamls.read(additional["CITATION.cff"])
    metadata = crate(folder, citation)
    with atomic_write(archive) as temporary, zipfile.ZipFile(temporary, "w") as packed:
        text = json.dumps(metadata, indent=1, ensure_ascii=False) + "\n"
        _add(packed, METADATA, text.encode())
        files = {entity["@id"]: folder / entity["@id"] for entity in metadata["@graph"]
                 if entity["@type"] == "File"}  # fmt: skip
        for name, path in sorted({**files, **additional}.items()):
            _add(packed, name, path.read_bytes())


def _add(packed: zipfile.ZipFile, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(name, TIME_STAMP)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.external_attr = 0o644 << 16
    packed.writestr(entry, content)


def main(folder: str, archive: str) -> None:
    """Write an archive of a reference, with licence and citation of this repository."""
    write(Path(folder), Path(archive), {name: Path(name) for name in ("CITATION.cff", "LICENSE")})


if __name__ == "__main__":
    main(*sys.argv[1:])
