"""Read files of ``config/papers`` and expand them to complete papers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from private_consensus.common.errors import InvalidInput

from ..migration import old_keys
from ..schema import Config, ConfigurationError, Style, line_of, read_yaml
from .drawings import figures, tables
from .models import File
from .runs import experiments
from .statements import claims

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def read_paper(path: Path) -> dict[str, Any]:
    """Read the file of a paper with its parts, and expand it for :class:`..schema.Paper`.

    ``parts: [a, b]`` reads ``<key>/a.yaml`` and ``<key>/b.yaml``, which extend the file. The names
    of variants, grids and sets of curves are local to one file. Claims of all parts are sorted by
    name.

    Raises
    ------
    ConfigurationError
        With one line per invalid key.
    InvalidInput
        If a part is missing, or defines a name that an earlier part defines.
    """
    found = read_yaml(path)
    whole = {"experiments": {}, "figures": {}, "claims": {}, **complete(found, path.stem)}
    for part in found.get("parts", []):
        added = complete(read_yaml(path.with_suffix("") / f"{part}.yaml"), path.stem)
        for section, entries in added.items():
            known = whole.setdefault(section, {})
            for name in sorted(set(known) & set(entries)):
                raise InvalidInput(f"{path.stem}.{section}.{name}", part, "a name used once")
            known.update(entries)
    # By their numbers: a part has claims that were found after those of the next.
    whole["claims"] = dict(sorted(whole["claims"].items()))
    return whole


def complete(found: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the complete content of a file, with the sections that it contains.

    Parameters
    ----------
    found : mapping
        Contents of the YAML file.
    key : str
        Key of the paper, with which error lines start.

    Returns
    -------
    dict
        Experiments, figures, tables and claims without references to names of the file.

    Raises
    ------
    ConfigurationError
        With one line per invalid key.
    """
    _check(found, key)
    runs = experiments(found, key)
    sections = {
        "experiments": runs,
        "figures": figures(found, runs, key),
        "tables": tables(found, runs, key),
        "claims": claims(found, runs, key),
    }
    kept = {name: section for name, section in sections.items() if name in found}
    return {name: found[name] for name in ("paper", "scales") if name in found} | kept


def schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON schemas for editors, by the names of the files in ``config/``."""
    models = {"config": Config, "paper": File, "styles": dict[str, Style]}
    return {name: {"$schema": DRAFT} | TypeAdapter(m).json_schema() for name, m in models.items()}


def _check(found: Mapping[str, Any], key: str) -> None:
    if renamed := list(old_keys(found)):
        raise ConfigurationError(
            [
                f"{key}.{path.replace('/', '.')}: the key is now {name!r}; "
                "`private-consensus migrate FILE` rewrites the file"
                for path, name in renamed
            ]
        )
    try:
        File.model_validate(found)
    except ValidationError as error:
        lines = [
            line_of(key, {**one, "loc": tuple(_written(one, found))}) for one in error.errors()
        ]
        raise ConfigurationError(list(dict.fromkeys(lines))) from None


def _written(error: Mapping[str, Any], found: Any) -> Iterator[str | int]:
    """Return the location of an error as keys and indices of the file, without alternatives of a
    type.
    """
    for part in error["loc"]:
        inside = isinstance(found, Mapping) and part in found
        inside |= isinstance(found, list) and isinstance(part, int) and part < len(found)
        if inside:
            found = found[part]
            yield part
    if error["type"] == "missing":
        yield error["loc"][-1]
