"""Test that cluster profiles agree with the default profile and name existing rules."""

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
RULES = {
    name
    for file in (ROOT / "workflow/rules").glob("*.smk")
    for name in re.findall(r"^rule (\w+):", file.read_text(), re.M)
}
CLUSTERS = ("slurm", "kubernetes")


def profile(name: str) -> dict:
    return yaml.safe_load((ROOT / "profiles" / name / "config.yaml").read_text())


@pytest.mark.parametrize("name", CLUSTERS)
def test_resources_and_groups_name_existing_rules(name):
    settings = profile(name)
    groups = dict(entry.split("=") for entry in settings["groups"])
    assert set(settings["set-resources"]) | set(groups) <= RULES
    assert {entry.split("=")[0] for entry in settings["group-components"]} == set(groups.values())
