"""Read the files of ``config/papers`` and expand them to complete papers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from private_consensus.common.errors import InvalidInput
from private_consensus.common.fields import error_line

from .file_claims import claims
from .file_experiments import experiments
from .file_figures import figures, tables
from .migration import old_keys
from .schema import Config, ConfigurationError, File, Style, read_yaml

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def read_paper(path: Path) -> dict[str, Any]:
    """Read and expand the file of a paper and its parts.

    ``parts: [a, b]`` adds the content of ``<key>/a.yaml`` and ``<key>/b.yaml``. Names of variants,
    axes and sets of curves are local to one file. Claims are sorted by name. The result is the
    input of :class:`.schema.Paper`.

    Raises
    ------
    ConfigurationError
        With one line per invalid key.
    InvalidInput
        If a part is missing, or defines a name that an earlier part defines.
    """
    main_file = read_yaml(path)
    paper = {"experiments": {}, "figures": {}, "claims": {}, **complete(main_file, path.stem)}
    for part_name in main_file.get("parts", []):
        added = complete(read_yaml(path.with_suffix("") / f"{part_name}.yaml"), path.stem)
        for section, entries in added.items():
            section_entries = paper.setdefault(section, {})
            for name in sorted(set(section_entries) & set(entries)):
                key = f"{path.stem}.{section}.{name}"
                expected = "a name that no other part of the paper uses"
                raise InvalidInput(key, part_name, expected)
            section_entries.update(entries)
    # Sorted by number, because an earlier part may contain claims with later numbers.
    paper["claims"] = dict(sorted(paper["claims"].items()))
    return paper


def complete(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Expand the content of a file: experiments, figures, tables and claims.

    Parameters
    ----------
    content : mapping
        Contents of the YAML file.
    key : str
        Key of the paper, with which error lines start.

    Returns
    -------
    dict
        Those of these sections that the file contains, without references to other names.

    Raises
    ------
    ConfigurationError
        With one line per invalid key.
    """
    _check(content, key)
    runs = experiments(content, key)
    sections = {
        "experiments": runs,
        "figures": figures(content, runs, key),
        "tables": tables(content, runs, key),
        "claims": claims(content, runs, key),
    }
    present = {name: section for name, section in sections.items() if name in content}
    return {name: content[name] for name in ("paper", "scales") if name in content} | present


def schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON schemas of configuration files, by name of the file in ``config/schemas``."""
    models = {"config": Config, "paper": File, "styles": dict[str, Style]}
    return {name: {"$schema": DRAFT} | TypeAdapter(m).json_schema() for name, m in models.items()}


def _check(content: Mapping[str, Any], key: str) -> None:
    if renamed := list(old_keys(content)):
        raise ConfigurationError(
            [
                f"{key}.{path.replace('/', '.')}: the key is now {name!r}; "
                "`private-consensus migrate FILE` rewrites the file"
                for path, name in renamed
            ]
        )
    try:
        File.model_validate(content)
    except ValidationError as error:
        lines = [
            error_line(key, {**details, "loc": tuple(_keys_of_file(details, content))})
            for details in error.errors()
        ]
        raise ConfigurationError(list(dict.fromkeys(lines))) from None


def _keys_of_file(error: Mapping[str, Any], content: Any) -> Iterator[str | int]:
    """Yield the location of a validation error as keys and indices of the file.

    Pydantic also reports which of several allowed types failed; these steps are omitted.
    """
    for step in error["loc"]:
        inside = isinstance(content, Mapping) and step in content
        inside |= isinstance(content, list) and isinstance(step, int) and step < len(content)
        if inside:
            content = content[step]
            yield step
    if error["type"] == "missing":
        yield error["loc"][-1]
