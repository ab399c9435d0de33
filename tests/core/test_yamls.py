"""Test the YAML reader: repeated keys, invalid files, aliases and equality with PyYAML."""

from pathlib import Path

import pytest
import yaml

from private_consensus.common import yamls
from private_consensus.common.errors import InvalidInput

ROOT = Path(__file__).parents[2]
FILES = sorted(
    path
    for folder in ("config", "docs", "profiles", "src")
    for path in (ROOT / folder).rglob("*.yaml")
)


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


def test_merged_keys_may_be_overridden():
    text = "base: &base {a: 1, b: 2}\nown: {<<: *base, b: 3}\n"
    assert yamls.parse(text, "x")["own"] == {"a": 1, "b": 3}


@pytest.mark.parametrize(
    ("content", "reason"), [(None, "missing, expected a YAML file"), (b"\xff\xfe\x00", "not valid")]
)
def test_a_missing_or_undecodable_file_is_named(tmp_path, content, reason):
    if content is not None:
        (tmp_path / "x.yaml").write_bytes(content)
    with pytest.raises(InvalidInput, match=rf"^x.yaml: {reason}"):
        yamls.read(tmp_path / "x.yaml")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_yaml_files_of_the_project_parse_as_with_pyyaml(path):
    assert yamls.read(path) == yaml.load(path.read_text(), Loader=yaml.CSafeLoader)


@pytest.mark.parametrize("text", ["a: &x {b: *x}", "&x [1, *x]"])
def test_a_mapping_or_list_that_contains_itself_is_refused(text):
    with pytest.raises(InvalidInput, match="an alias makes a mapping or list contain itself"):
        yamls.parse(text, "x.yaml")


def test_an_alias_may_be_used_several_times():
    assert yamls.parse("a: &x [1]\nb: [*x, *x]", "x.yaml") == {"a": [1], "b": [[1], [1]]}
