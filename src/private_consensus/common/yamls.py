"""YAML in which every key stands once.

The standard has a mapping's keys unique, PyYAML keeps the last of several in silence: a second
``experiments:`` would lose all of the first. Every YAML file of the project is read by this module.
"""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from .errors import InvalidInput

_Base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Unique(_Base):
    """PyYAML's safe loader, the fast one where it is built, that refuses a key said twice."""

    def construct_mapping(self, node, deep=False):
        first_lines: dict[Hashable, int] = {}
        for key_node, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            # What a merge brings in may be said again: that is what merging is for.
            merge = key_node.tag == "tag:yaml.org,2002:merge"
            key = "<<" if merge else self.construct_object(key_node, deep=True)
            line = key_node.start_mark.line + 1
            if isinstance(key, Hashable) and first_lines.setdefault(key, line) != line:
                raise yaml.constructor.ConstructorError(
                    None,
                    None,
                    f"{key!r} again, first in line {first_lines[key]}",
                    key_node.start_mark,
                )
        return super().construct_mapping(node, deep)


def parse(text: str, name: str) -> Any:
    """Parse a YAML text.

    Parameters
    ----------
    text : str
        Contents of a YAML file.
    name : str
        Name of the file, which is the key of the error.

    Returns
    -------
    object
        Mappings, lists and scalars.

    Raises
    ------
    InvalidInput
        If the text is not valid YAML, or a mapping has a key twice.
    """
    try:
        return yaml.load(text, Loader=_Unique)
    except yaml.constructor.ConstructorError as error:
        where = f"line {error.problem_mark.line + 1}: {error.problem}"
        raise InvalidInput(name, where, "plain values, and each key once") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # A date or a number may have the form and not the value of one.
        raise InvalidInput(name, " ".join(str(error).split()), "valid YAML") from None


def read(path: str | Path) -> Any:
    """Read a YAML file; raises the errors of :func:`parse`, also for a missing file."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, IsADirectoryError):
        raise InvalidInput(path.name, "nothing", "a YAML file") from None
    except UnicodeDecodeError:
        raise InvalidInput(path.name, "bytes that are no UTF-8", "a YAML file") from None
    return parse(text, path.name)
