"""Results that are handed in: a table with a manifest beside it, and what is checked of both.

``NAME.parquet`` has the columns of :mod:`.schema`, ``NAME.json`` says under which rules they were
made: design, budget, relation, seeds and checksums. What differs from the design here is refused,
with a line for everything that does.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from .. import __version__
from ..errors import Refused, require
from ..provenance import atomic_write, file_hash, settings_hash, write_json
from ..readable import read_json
from .design import Comparison, cells
from .schema import CELL, COLUMNS, checked, read_results

VERSION = 1
"""Of the manifest."""
RULES = ("delta", "relation", "seed", "tuning_seed", "trials", "runs", "epsilons", "design")
"""What has to be as it is here. ``design`` is the digest of problems, graphs and partitions."""


def rules(design: Comparison) -> dict[str, Any]:
    """The rules of a design, as a manifest states them."""
    worlds = {
        key: design.model_dump(mode="json")[key] for key in ("problems", "graphs", "partitions")
    }
    return {
        "delta": design.delta,
        "relation": f"{design.relation.change} one {design.relation.unit}",
        "seed": design.seed,
        "tuning_seed": design.tuning.seed,
        "trials": design.tuning.trials,
        "runs": design.runs,
        "epsilons": list(design.epsilons),
        "design": settings_hash(worlds),
    }


def manifest_of(path: str | Path) -> Path:
    """Where the manifest of a table is: beside it, with its name."""
    return Path(path).with_suffix(".json")


def hand_in(table: pl.DataFrame, design: Comparison, path: str | Path) -> None:
    """Write results and their manifest.

    Parameters
    ----------
    table : DataFrame
        As :mod:`.schema` has it, from the cells of the design.
    path : path
        Of the Parquet file; the manifest stands beside it.
    """
    path = Path(path)
    require(path.suffix == ".parquet", "FILE", str(path), "a name that ends in .parquet")
    table = checked(table)
    for line in _foreign(table, design, str(path)):
        raise Refused([line])
    with atomic_write(path) as part:
        table.write_parquet(part)
    methods = table.select("method", "observer").unique().sort("method").rows()
    write_json(manifest_of(path), {
        "version": VERSION,
        "rules": rules(design),
        "methods": dict(methods),
        "sha256": {path.name: file_hash(path)},
        "made_by": f"private-consensus {__version__}",
    })  # fmt: skip


def handed_in(path: str | Path, design: Comparison) -> pl.DataFrame:
    """The rows of results that keep to the rules of a design.

    Raises
    ------
    InvalidInput
        For a file or manifest that is missing or damaged, and with a line for each rule that is
        another: schema, checksum, budget, relation, observer, seeds, cells.
    """
    path = Path(path)
    manifest = read_json(manifest_of(path))
    lines = list(_wrong_manifest(manifest, design, path))
    if lines:
        raise Refused(lines)
    table = read_results(path)
    lines = [*_foreign(table, design, str(path)), *_undeclared(table, manifest, path)]
    if lines:
        raise Refused(lines)
    return table


def _wrong_manifest(manifest: Any, design: Comparison, path: Path) -> Iterator[str]:
    where = str(manifest_of(path))
    if not isinstance(manifest, Mapping) or manifest.get("version") != VERSION:
        found = manifest.get("version") if isinstance(manifest, Mapping) else manifest
        yield f"{where}: version: found {found!r}, expected {VERSION}"
        return
    if not isinstance(manifest.get("methods"), Mapping):
        yield f"{where}: methods: found {manifest.get('methods')!r}, expected names and observers"
    stated = manifest.get("rules")
    stated = stated if isinstance(stated, Mapping) else {}
    for key, expected in rules(design).items():
        if stated.get(key) != expected:
            yield f"{where}: rules.{key}: found {stated.get(key)!r}, expected {expected!r}"
    sums = manifest.get("sha256")
    claimed = sums.get(path.name) if isinstance(sums, Mapping) else None
    if path.is_file() and claimed != file_hash(path):
        yield f"{where}: sha256.{path.name}: found {claimed!r}, expected that of the file"


def _foreign(table: pl.DataFrame, design: Comparison, name: str) -> Iterator[str]:
    """Rows that the design does not have: other deltas, other cells, other runs."""
    known = {tuple(cell.row()[key] for key in CELL) for cell in cells(design)}
    strange = [cell for cell in table.select(*CELL).unique().rows() if cell not in known]
    if strange:
        first = dict(zip(CELL, min(strange, key=str), strict=True))
        yield f"{name}: {len(strange)} cells: found {first!r}, expected cells of the design"
    for delta in table["delta"].unique():
        if delta != design.delta:
            yield f"{name}.delta: found {delta!r}, expected {design.delta!r}"
    runs = set(table["run"].unique())
    if runs != set(range(design.runs)):
        yield f"{name}.run: found {_some(runs)}, expected 0 to {design.runs - 1}"


def _undeclared(table: pl.DataFrame, manifest: Mapping[str, Any], path: Path) -> Iterator[str]:
    """Methods of the table that the manifest does not name, or for another observer."""
    for method, observer in table.select("method", "observer").unique().sort("method").rows():
        stated = manifest["methods"].get(method)
        if stated != observer:
            where = f"{manifest_of(path)}: methods.{method}"
            yield f"{where}: found {stated!r}, expected {observer!r}, which the rows name"


def _some(values: Iterable[Any]) -> str:
    shown = sorted(values)
    return ", ".join(map(str, shown[:3])) + (", ..." if len(shown) > 3 else "")


def together(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """One table of several, in which every row stands once.

    Raises
    ------
    InvalidInput
        For a method that is in two of them.
    """
    seen: set[str] = set()
    for table in tables:
        own = set(table["method"].unique())
        require(not own & seen, "FILE", ", ".join(sorted(own & seen)), "each method in one file")
        seen |= own
    return pl.concat([table.select(list(COLUMNS)) for table in tables])
