"""Read the files of ``config/papers``, and complete their figures, tables and claims."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from private_consensus.common.fields import formatted, measure_text, validate

from .schema import (
    Config,
    ConfigurationError,
    Curve,
    Figure,
    Panel,
    Paper,
    Part,
    Style,
    Table,
    TabulatedMethod,
    read_yaml,
)

DRAFT = "https://json-schema.org/draft/2020-12/schema"
ADDED = "_extra_"
"""Part of the name of figures that are not figures of the paper."""
Entry = TypeVar("Entry", Curve, TabulatedMethod)
V = TypeVar("V")

SECTIONS = ("experiments", "figures", "tables", "claims")


def read_paper(path: Path) -> Paper:
    """Read the file of a paper and its parts.

    ``parts: [a, b]`` adds the content of ``<key>/a.yaml`` and ``<key>/b.yaml``. Anchors, titles and
    sentences are local to one file. Claims are sorted by name.

    Raises
    ------
    ConfigurationError
        With one line per invalid key, and for a name that two parts define.
    InvalidInput
        If a part is missing.
    """
    sections: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
    files: dict[str, str] = {}
    with _located_in(path):
        paper = validate(Paper, read_yaml(path))
    for file in [path, *(path.with_suffix("") / f"{name}.yaml" for name in paper.parts)]:
        with _located_in(file):
            part = paper if file == path else validate(Part, read_yaml(file))
            for section, entries in _complete(part).items():
                for repeated in sorted(sections[section].keys() & entries.keys()):
                    message = f"the name is used in {files[f'{section}.{repeated}']}, too"
                    raise ConfigurationError([f"{section}.{repeated}: {message}"])
                sections[section] |= entries
                files |= {f"{section}.{name}": os.path.relpath(file) for name in entries}
    # Sorted by number, because an earlier part may contain claims with later numbers.
    sections["claims"] = dict(sorted(sections["claims"].items()))
    complete = paper.model_copy(update=sections)
    complete.set_files(os.path.relpath(path), files)
    return complete


@contextmanager
def _located_in(file: Path) -> Generator[None]:
    """Put the path of a file before each line of an error."""
    try:
        yield
    except ConfigurationError as error:
        lines = [f"{os.path.relpath(file)}: {line}" for line in error.lines]
        raise ConfigurationError(lines) from None


def schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON schemas of ``config.yaml``, ``papers/*.yaml`` and ``styles.yaml``."""
    models = {"config": Config, "paper": Paper, "styles": dict[str, Style]}
    contents = {name: TypeAdapter(model).json_schema() for name, model in models.items()}
    definitions = contents["paper"]["$defs"]
    # Validators accept keys of a series in a test, and keys of a test in a variant of a claim.
    keys = {name: definitions[name]["properties"] for name in ("Series", "Test")}
    keys["Test"] |= keys["Series"]
    definitions["TestedVariant"]["properties"] |= keys["Test"]
    definitions["Claim"]["properties"] |= {key: keys["Test"][key] for key in ("series", "against")}
    return {name: {"$schema": DRAFT} | content for name, content in contents.items()}


def _complete(file: Part) -> dict[str, dict[str, Any]]:
    """Return the sections of a file with complete figures, tables and claims."""
    return {
        "experiments": file.experiments,
        "figures": {
            name: _figure(name, figure, file, f"figures.{name}")
            for name, figure in file.figures.items()
        },
        "tables": {
            name: _table(table, file, f"tables.{name}") for name, table in file.tables.items()
        },
        "claims": {name: claim.complete(f"claims.{name}") for name, claim in file.claims.items()},
    }


def _figure(name: str, figure: Figure, file: Part, key_path: str) -> Figure:
    if not figure.experiment and name in file.experiments:
        figure = figure.model_copy(update={"experiment": name})
    panels = [
        _titled(panel, file, key_path)
        for entry in figure.panels
        for panel in entry.complete(figure, key_path)
    ]
    titles = [panel.title for panel in panels]
    if repeated := sorted({title for title in titles if titles.count(title) > 1}):
        expected = "expected a different title for each panel"
        raise ConfigurationError([f"{key_path}.panels: {expected}; repeated: {repeated}"])
    caption = formatted(figure.caption, file.sentences, f"{key_path}.caption")
    return figure.model_copy(update={"panels": panels, "caption": caption, "added": ADDED in name})


def _titled(panel: Panel, file: Part, key_path: str) -> Panel:
    """Return a panel with the default titles of its axes and interpretations of its curves."""
    curves = [
        _interpreted(curve, curve.experiment or panel.experiment, file, f"{key_path}.curves")
        for curve in panel.curves
    ]
    measure = measure_text(panel.measure) if panel.measure else ""
    return panel.model_copy(update={
        "curves": curves,
        "x_title": panel.x_title or file.titles.get(panel.x, panel.x),
        "y_title": panel.y_title or file.titles.get(measure, ""),
    })  # fmt: skip


def _interpreted(entry: Entry, experiment: str, file: Part, key_path: str) -> Entry:
    """Return a curve or a row of a table with the interpretation of its variant."""
    if entry.interpretation:
        return entry
    runs = _look_up(file.experiments, experiment, f"{key_path}.experiment")
    variants = {
        f"{algorithm}.{name}": variant
        for algorithm, by_name in runs.algorithms.items()
        for name, variant in by_name.items()
    }
    variant = _look_up(variants, f"{entry.method}.{entry.variant}", f"{key_path}.method")
    return entry.model_copy(update={"interpretation": variant.interpretation})


def _table(table: Table, file: Part, key_path: str) -> Table:
    blocks = [
        block.model_copy(update={
            "methods": [
                _interpreted(method, block.experiment, file, key_path) for method in block.methods
            ]
        })
        for block in table.blocks
    ]  # fmt: skip
    caption = formatted(table.caption, file.sentences, f"{key_path}.caption")
    return table.model_copy(update={"blocks": blocks, "caption": caption})


def _look_up(entries: Mapping[str, V], name: str, key_path: str) -> V:
    """Return the entry with a name, or raise an error that lists all names."""
    if name not in entries:
        expected = ", ".join(entries) or "(none)"
        raise ConfigurationError([f"{key_path}: found {name!r}, expected one of {expected}"])
    return entries[name]
