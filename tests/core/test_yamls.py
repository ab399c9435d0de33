"""Test the YAML reader: repeated keys, invalid files, aliases and equality with PyYAML."""

import pytest

from private_consensus.common import yamls
from private_consensus.common.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "line 3: 'a' again, first in line 1"),
        ("a:\n  b: {c: 1,\n   c: 1}\n", "line 3: 'c' again, first in line 2"),
        ("- {a: 1}\n- x: 1\n  'x': 2\n", "line 3: 'x' again"),
        ("a: {<<: {b: 1},\n <<: {c: 2}}", "line 2: '<<' again"),
        ("a: [1\n", "expected valid YAML"),
        ("a: !!python/object/apply:os.system [ls]", "plain values"),
        ("a: 2020-13-45", "expected valid YAML"),
        ("? [a, b]\n: 1\n", "plain values"),
        ("a: *b", "valid YAML"),
        ("[" * 3000, "valid YAML"),
    ],
)
def test_repeated_keys_and_invalid_yaml_are_refused(text, message):
    with pytest.raises(InvalidInput, match=rf"^file\.yaml: found .*{message}"):
        yamls.parse(text, "file.yaml")
