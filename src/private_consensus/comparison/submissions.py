"""Submitted results: a table, its manifest, and the checks of both.

``NAME.parquet`` has the columns of :mod:`.schema`. ``NAME.json`` states the rules of the runs
(design, budget, relation, seeds), the observer of each method, the cells without results with the
reasons, and the checksum of the table. A further checksum covers all these entries. A submission
that differs from the present design is refused, with one line per difference.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from private_consensus import __version__
from private_consensus.common.errors import (
    InvalidInput,
    Refused,
    arguments,
    one_line,
    representation,
    require,
    shortened,
)
from private_consensus.common.provenance import (
    atomic_write,
    file_hash,
    settings_hash,
    temporary_file,
    write_text,
)
from private_consensus.common.readable import DAMAGED, readable

from .design import ComparisonDesign, cells
from .schema import CELL, COLUMNS, MEASURES, TUNINGS, checked

VERSION = 3
"""Version of the manifest format."""
RULES = ("delta", "relation", "seed", "tuning_seed", "trials", "runs", "epsilons", "design")
"""Rules that must be equal. ``design`` is the digest of problems, graphs and partitions."""
KEYS = ("version", "rules", "methods", "absent", "sha256", "made_by", "checksum")
"""Keys of a manifest."""
REQUIRED_MEASURES = ("excess_loss_mean", "excess_loss_worst", "consensus_error", "messages")
"""Measures that every run has. The others exist on some problems only."""
NOT_FINITE = "a run left the finite numbers"
NOT_TUNED = "no parameters to tune, or no trial meets the budget"
MAX_REASON = 300
"""Maximum number of characters of the reason for an absence."""

Place = tuple[Any, ...]
"""Cell and kind of tuning."""
PLACE = (*CELL, "tuning")


class Submission(NamedTuple):
    """Submitted results, after all checks.

    Parameters
    ----------
    table : DataFrame
        Results with the columns of :mod:`.schema`.
    absent : list of dict
        Declared absences: ``method``, ``because`` and the keys of the cells to which they apply.
    """

    table: pl.DataFrame
    absent: list[dict[str, Any]]


def rules(design: ComparisonDesign) -> dict[str, Any]:
    """Return the rules of a design, as a manifest states them."""
    environments = {
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
        "design": settings_hash(environments),
    }


def manifest_of(path: str | Path) -> Path:
    """Return the path of the manifest of a table: the same folder and name."""
    return Path(path).with_suffix(".json")


def write_submission(
    table: pl.DataFrame,
    design: ComparisonDesign,
    path: str | Path,
    absent: Iterable[Mapping[str, Any]] = (),
) -> None:
    """Write results and their manifest.

    Parameters
    ----------
    table : DataFrame
        Results with the columns of :mod:`.schema`, from the cells of the design. Cells with
        infinite values are omitted and declared absent.
    design : ComparisonDesign
        Design of the runs.
    path : path
        Path of the Parquet file; the manifest has the same name with the suffix ``.json``.
    absent : iterable of mapping
        Declared absences: ``method``, ``because`` and the keys of the cells without results.

    Raises
    ------
    InvalidInput
        For results that :func:`submission` would refuse. No file is written in this case.
    """
    path = writable(path)
    require(isinstance(table, pl.DataFrame), "table", type(table).__name__, "a polars DataFrame")
    table, diverged = _without_diverged(checked(table))
    declared = [_shortened(row) for row in [*absent, *diverged]]
    lines = [*_foreign(table, design, str(path)), *_not_finite(table, str(path))]
    lines = lines or list(_incomplete(table, declared, design, str(path)))
    if lines:
        raise Refused(lines)
    with atomic_write(path) as temporary:
        table.write_parquet(temporary)
    methods = table.select("method", "observer").unique().sort("method").rows()
    write_text(manifest_of(path), encoded(sealed({
        "version": VERSION,
        "rules": rules(design),
        "methods": dict(methods),
        "absent": declared,
        "sha256": {path.name: file_hash(path)},
        "made_by": f"private-consensus {__version__}",
    })))  # fmt: skip


def writable(path: str | Path) -> Path:
    """Return the path of a submission; refuse another suffix and a path that cannot be written."""
    path = Path(path)
    require(path.suffix == ".parquet", "FILE", str(path), "a name that ends in .parquet")
    for file in (path, manifest_of(path)):
        temporary_file(file).unlink()
    return path


def sealed(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest with the checksum of its other keys, including that of the table.

    Parameters
    ----------
    manifest : mapping
        Manifest, with or without a checksum.

    Returns
    -------
    dict
    """
    content = {key: value for key, value in manifest.items() if key != "checksum"}
    return {**content, "checksum": hashlib.sha256(encoded(content).encode()).hexdigest()}


def encoded(manifest: Mapping[str, Any]) -> str:
    """Return the canonical text of a manifest; no other text is accepted."""
    return json.dumps(manifest, indent=1, sort_keys=True, allow_nan=False) + "\n"


def submission(path: str | Path, design: ComparisonDesign) -> Submission:
    """Read results that comply with the rules of a design.

    Parameters
    ----------
    path : path
        Path of the Parquet file.
    design : ComparisonDesign
        Present design.

    Returns
    -------
    Submission

    Raises
    ------
    InvalidInput
        For a missing or damaged file or manifest, and with one line for each rule that differs:
        schema, checksum, budget, relation, observer, seeds, cells, runs.
    """
    path = Path(path)
    with readable(path):
        path.stat()  # a missing table would be reported as a missing manifest
    manifest = _read_manifest(manifest_of(path))
    lines = list(_wrong_manifest(manifest, design, path))
    if lines:
        raise Refused(lines)
    with readable(path):
        frame = pl.read_parquet(path)
    unknown = [column for column in frame.columns if column not in COLUMNS]
    require(not unknown, f"{path}: columns", unknown, f"only {', '.join(COLUMNS)}")
    table, name = checked(frame, str(path)), str(path)
    lines = [
        *_foreign(table, design, name), *_not_finite(table, name),
        *_undeclared(table, manifest, path),
    ]  # fmt: skip
    lines = lines or list(_incomplete(table, manifest["absent"], design, name))
    if lines:
        raise Refused(lines)
    return Submission(table, manifest["absent"])


def _read_manifest(path: Path) -> dict[str, Any]:
    """Read a manifest, and refuse one that differs from what :func:`write_submission` writes."""
    with readable(path):
        content = path.read_bytes()
        try:
            manifest = json.loads(content.decode("utf-8"), object_pairs_hook=_unique)
        except RecursionError:
            raise ValueError("nested too deeply") from None
    is_mapping = isinstance(manifest, dict)
    require(is_mapping, str(path), manifest, f"a manifest of version {VERSION}")
    stated = manifest.get("version")
    require(
        stated == VERSION and arguments.is_whole(stated), f"{path}: version", stated, str(VERSION)
    )
    expected = "an unchanged manifest: write the submission again"
    try:
        intact = encoded(sealed(manifest)).encode() == content
    except (TypeError, ValueError, RecursionError):
        intact = False
    require(intact, str(path), DAMAGED, expected)
    return manifest


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a mapping of pairs; a repeated key is an error."""
    mapping = dict(pairs)
    if len(mapping) != len(pairs):
        raise ValueError("a repeated key")
    return mapping


def _wrong_manifest(
    manifest: Mapping[str, Any], design: ComparisonDesign, path: Path
) -> Iterator[str]:
    where = str(manifest_of(path))
    yield from _wrong_keys(where, manifest, KEYS)
    methods = manifest.get("methods")
    if not isinstance(methods, dict) or not methods:
        yield _line(f"{where}: methods", methods, "names and observers")
    stated = manifest.get("rules")
    if not isinstance(stated, dict):
        yield _line(f"{where}: rules", stated, "the rules of the design")
    else:
        yield from _wrong_keys(f"{where}: rules", stated, RULES)
        for key, expected in rules(design).items():
            if key in stated and not _equal(stated[key], expected):
                yield _line(f"{where}: rules.{key}", stated[key], representation(expected))
    sums = manifest.get("sha256")
    if not isinstance(sums, dict):
        yield _line(f"{where}: sha256", sums, "the checksum of the table")
    else:
        yield from _wrong_keys(f"{where}: sha256", sums, (path.name,))
        if path.name in sums and path.is_file() and sums[path.name] != file_hash(path):
            yield _line(f"{where}: sha256.{path.name}", sums[path.name], "that of the file")
    if not isinstance(manifest.get("made_by"), str):
        yield _line(f"{where}: made_by", manifest.get("made_by"), "a text")
    yield from _wrong_absences(where, manifest.get("absent"), methods)


def _equal(value: Any, expected: Any) -> bool:
    """Return True for equal values of equal types: True is not 1."""
    return json.dumps(value) == json.dumps(expected)


def _wrong_keys(where: str, stated: Mapping[str, Any], allowed: Sequence[str]) -> Iterator[str]:
    for key in sorted(set(stated) - set(allowed)):
        yield _line(f"{where}: keys", key, f"one of {', '.join(allowed)}")
    for key in allowed:
        if key not in stated:
            yield f"{where}: {key}: missing, expected a value"


def _wrong_absences(where: str, absent: Any, methods: Any) -> Iterator[str]:
    """Yield an error for each malformed absence; the covered cells are checked elsewhere."""
    if not isinstance(absent, list):
        yield _line(f"{where}: absent", absent, "a list of cells without results")
        return
    for index, row in enumerate(absent):
        key = f"{where}: absent.{index}"
        if not isinstance(row, dict):
            yield _line(key, row, "a mapping with method and because")
            continue
        for unknown in sorted(set(row) - {"method", "because", *PLACE}):
            yield _line(key, unknown, f"one of method, because, {', '.join(PLACE)}")
        method, because = row.get("method"), row.get("because")
        if not isinstance(methods, dict) or method not in list(methods):
            yield _line(f"{key}.method", method, "a method of the manifest")
        fits = isinstance(because, str) and because.isprintable()
        if not fits or not 0 < len(because.strip()) <= MAX_REASON + 30:
            yield _line(f"{key}.because", because, f"a reason of at most {MAX_REASON} characters")


def _foreign(table: pl.DataFrame, design: ComparisonDesign, name: str) -> Iterator[str]:
    """Yield an error for rows with deltas, cells or runs that the design does not have."""
    if table.is_empty():
        yield f"{name}: found no rows, expected results of the cells of the design"
        return
    design_cells = {cell.key for cell in cells(design)}
    strange = [cell for cell in table.select(*CELL).unique().rows() if cell not in design_cells]
    if strange:
        first = dict(zip(CELL, min(strange, key=str), strict=True))
        yield f"{name}: {len(strange)} cells: found {first!r}, expected cells of the design"
    for delta in table["delta"].unique():
        if delta != design.delta:
            yield f"{name}.delta: found {delta!r}, expected {design.delta!r}"
    runs = set(table["run"].unique())
    if runs != set(range(design.runs)):
        yield f"{name}.run: found {_some(runs)}, expected 0 to {design.runs - 1}"
    for column in ("observer", "label"):
        several = table.group_by("method").agg(pl.col(column).n_unique()).filter(pl.col(column) > 1)
        for method in several["method"].sort():
            yield f"{name}.{column}: found several of {method}, expected one per method"


def _not_finite(table: pl.DataFrame, name: str) -> Iterator[str]:
    """Yield an error for infinite values, and for proven rows without privacy."""
    invalid_rows = table.filter(~pl.col("value").is_finite())
    if invalid_rows.height:
        yield f"{name}.value: found {invalid_rows['value'][0]!r}, expected finite numbers"
    unbounded = table.filter(pl.col("proven") & (pl.col("observer") == "none"))
    if unbounded.height:
        yield f"{name}.proven: found True for observer none, expected False: nothing is private"


def _without_diverged(table: pl.DataFrame) -> tuple[pl.DataFrame, list[dict[str, Any]]]:
    """Remove the cells of a method in which a value is infinite, and declare them absent."""
    keys = ["method", *PLACE]
    diverged = table.filter(~pl.col("value").is_finite()).select(keys).unique().sort(keys)
    absent = [{**row, "because": NOT_FINITE} for row in diverged.iter_rows(named=True)]
    return table.join(diverged, on=keys, how="anti") if absent else table, absent


def _shortened(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return an absence whose reason is a single line."""
    because = shortened(one_line(str(row.get("because", ""))), MAX_REASON)
    return {**row, "because": because}


def _incomplete(
    table: pl.DataFrame, absent: Sequence[Mapping[str, Any]], design: ComparisonDesign, name: str
) -> Iterator[str]:
    """Yield an error for cells, runs and measures that are neither present nor declared absent."""
    design_keys = places(design)
    present: dict[str, set[Place]] = defaultdict(set)
    for method, *cell_key in table.select("method", *PLACE).unique().rows():
        present[method].add(tuple(cell_key))
    for method, present_cells in sorted(present.items()):
        declared: set[Place] = set()
        for row in absent:
            if row.get("method") != method:
                continue
            covered = {cell_key for cell_key in design_keys if covers(row, cell_key)}
            if not covered:
                yield f"{name}: absent: found {_place_of(row)}, expected cells of the design"
            declared |= covered
        lacking = [cell_key for cell_key in design_keys if cell_key not in present_cells | declared]
        if lacking:
            first = dict(zip(PLACE, lacking[0], strict=True))
            expected = "results, or a declared absence with its reason"
            yield f"{name}: {method}: found nothing in {len(lacking)} of {len(design_keys)} cells "\
                  f"and tunings, first {first!r}, expected {expected}"  # fmt: skip
        if both := present_cells & declared:
            first = dict(zip(PLACE, min(both, key=str), strict=True))
            yield f"{name}: {method}: found results of {first!r}, expected none: declared absent"
    yield from _incomplete_runs(table, design, name)


def _incomplete_runs(table: pl.DataFrame, design: ComparisonDesign, name: str) -> Iterator[str]:
    keys = ["method", *PLACE]
    runs = table.group_by([*keys, "measure"]).agg(pl.col("run").n_unique()).sort([*keys, "measure"])
    short = runs.filter(pl.col("run") != design.runs)
    if short.height:
        row = short.row(0, named=True)
        yield f"{name}: {row['method']}: found {row['run']} runs of {row['measure']}, expected "\
              f"{design.runs} in every cell"  # fmt: skip
    expected = set(REQUIRED_MEASURES)
    measures = table.group_by("method", "problem", *PLACE[1:]).agg(pl.col("measure").unique())
    by_problem: dict[Place, set[str]] = defaultdict(set)
    for row in measures.iter_rows(named=True):
        by_problem[row["method"], row["problem"]] |= {*row["measure"]}
    for row in measures.sort(keys).iter_rows(named=True):
        required = expected | by_problem[row["method"], row["problem"]]
        if lacking := required - {*row["measure"]}:
            names = ", ".join(measure for measure in MEASURES if measure in lacking)
            yield f"{name}: {row['method']}: found no {names} in a cell of {row['problem']}, "\
                  "expected every measure in every cell"  # fmt: skip
            return


def places(design: ComparisonDesign) -> list[Place]:
    """Return every cell of a design with every kind of tuning."""
    return [(*cell.key, tuning) for cell in cells(design) for tuning in TUNINGS]


def covers(row: Mapping[str, Any], cell_tuning: Place) -> bool:
    """Return True if an absence applies to a cell and tuning: every stated key is equal.

    Parameters
    ----------
    row : mapping
        Declared absence.
    cell_tuning : tuple
        Entry of :func:`places`.

    Returns
    -------
    bool
    """
    key_values = dict(zip(PLACE, cell_tuning, strict=True))
    return all(key_values[key] == value for key, value in row.items() if key in key_values)


def _place_of(row: Mapping[str, Any]) -> str:
    return representation({key: value for key, value in row.items() if key in PLACE})


def _undeclared(table: pl.DataFrame, manifest: Mapping[str, Any], path: Path) -> Iterator[str]:
    """Yield an error for each method whose observer differs between table and manifest."""
    where = f"{manifest_of(path)}: methods"
    rows = dict(table.select("method", "observer").unique().sort("method").rows())
    for method, observer in rows.items():
        stated = manifest["methods"].get(method)
        if stated != observer:
            yield _line(f"{where}.{method}", stated, f"{observer!r}, which the rows name")
    for method in sorted(set(manifest["methods"]) - set(rows)):
        yield _line(where, method, "methods of the table only")


def _line(key: str, value: Any, expected: str) -> str:
    return str(InvalidInput(key, value, expected))


def _some(values: Iterable[Any]) -> str:
    ordered = sorted(values)
    return ", ".join(map(str, ordered[:3])) + (", ..." if len(ordered) > 3 else "")


def together(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Concatenate several tables with disjoint sets of methods.

    Raises
    ------
    InvalidInput
        If a method is in two of the tables.
    """
    earlier: set[str] = set()
    for table in tables:
        methods = set(table["method"].unique())
        both = ", ".join(sorted(methods & earlier))
        require(not both, "FILE", both, "each method in one file")
        earlier |= methods
    return pl.concat([table.select(list(COLUMNS)) for table in tables])
