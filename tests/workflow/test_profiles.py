"""Test that the profile for clusters names existing rules."""

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[2]
RULES = {
    name
    for file in (ROOT / "workflow/rules").glob("*.smk")
    for name in re.findall(r"^rule (\w+):", file.read_text(), re.M)
}


def test_resources_and_groups_name_existing_rules():
    settings = yaml.safe_load((ROOT / "profiles/slurm/config.yaml").read_text())
    groups = dict(entry.split("=") for entry in settings["groups"])
    assert set(settings["set-resources"]) | set(groups) <= RULES
    assert {entry.split("=")[0] for entry in settings["group-components"]} == set(groups.values())
