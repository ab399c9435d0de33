"""Read YAML files, and refuse a key that occurs twice in a mapping.

PyYAML uses the last of several equal keys without a warning, so that a second ``experiments:``
would replace the first. All YAML files of the project are read by this module.
"""

import os
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError

from .errors import InvalidInput, Refused

_Base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _UniqueKeyLoader(_Base):
    """Safe loader of PyYAML that refuses a repeated key."""

    def construct_mapping(self, node, deep=False):
        """Return the mapping of a node; raise an error for keys that occur twice."""
        first_lines: dict[Hashable, int] = {}
        for key_node, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            # A key of a merged mapping may be overridden.
            merge = key_node.tag == "tag:yaml.org,2002:merge"
            key = "<<" if merge else self.construct_object(key_node, deep=True)
            line = key_node.start_mark.line + 1
            if isinstance(key, Hashable) and first_lines.setdefault(key, line) != line:
                problem = f"the key {key!r} of line {first_lines[key]} again"
                raise ConstructorError(None, None, problem, key_node.start_mark)
        return super().construct_mapping(node, deep)


def parse(text: str, name: str) -> Any:
    """Parse a YAML text into mappings, lists and scalars.

    A text that is not valid YAML, or a mapping that has a key twice, raises ``InvalidInput`` with
    the name of the file.
    """
    try:
        return yaml.load(text, Loader=_UniqueKeyLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        # A text may look like a date or a number without being valid.
        problem = " ".join(str(error).replace('"<unicode string>", ', "").split())
        raise Refused([f"{name}: not valid YAML: {problem}"]) from None


def read(path: str | Path) -> Any:
    """Read a YAML file; raises the errors of :func:`parse`, also for a missing file."""
    name = os.path.relpath(path)
    try:
        return parse(Path(path).read_text(encoding="utf-8"), name)
    except (FileNotFoundError, IsADirectoryError):
        raise InvalidInput(name, None, "a YAML file") from None
    except UnicodeDecodeError:
        raise Refused([f"{name}: not valid UTF-8"]) from None
