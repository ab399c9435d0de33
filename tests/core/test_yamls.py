"""Test the YAML reader: repeated keys, invalid files, aliases and equality with PyYAML."""

import pytest

from private_consensus.common import yamls
from private_consensus.common.errors import InvalidInput


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\nb: 2\na: 3\n", "'a' of line 1 again in line 3"),
        ("a:\n  b: {c: 1,\n   c: 1}\n", "'c' of line 2 again in line 3"),
        ("- {a: 1}\n- x: 1\n  'x': 2\n", "'x' of line 2 again in line 3"),
        ("a: {<<: {b: 1},\n <<: {c: 2}}", "'<<' of line 1 again in line 2"),
        ("a: [1\n", "line 1"),
        ("a: !!python/object/apply:os.system [ls]", "python/object"),
        ("a: 2020-13-45", "month"),
        ("? [a, b]\n: 1\n", "unhashable key"),
        ("a: *b", "undefined alias"),
        ("[" * 3000, ""),
    ],
)
def test_repeated_keys_and_invalid_yaml_are_refused(text, message):
    with pytest.raises(InvalidInput, match=rf"^file\.yaml: not valid YAML: .*{message}"):
        yamls.parse(text, "file.yaml")
