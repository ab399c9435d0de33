"""Test that cluster profiles agree with the default profile and name existing rules."""

import pkgutil
import re
from pathlib import Path

import pytest
import yaml
from setuptools import find_packages

from private_consensus.reproduction.experiments.schema import read_yaml

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
def test_a_cluster_profile_contains_all_default_settings(name):
    assert profile("default").items() <= profile(name).items()


@pytest.mark.parametrize("name", CLUSTERS)
def test_resources_and_groups_name_existing_rules(name):
    settings = profile(name)
    groups = dict(entry.split("=") for entry in settings["groups"])
    assert set(settings["set-resources"]) | set(groups) <= RULES
    assert {entry.split("=")[0] for entry in settings["group-components"]} == set(groups.values())


def test_docs_and_cluster_profiles_list_all_jobs_and_repeat_declared_memory():
    text = "".join(file.read_text() for file in (ROOT / "workflow/rules").glob("*.smk"))
    bodies = {rule: re.search(rf"^rule {rule}:\n(.*?)(?=^\S|\Z)", text, re.S | re.M)[1]
              for rule in RULES}  # fmt: skip
    jobs = {rule for rule, body in bodies.items() if "localrule: True" not in body}
    documented = (ROOT / "docs/how-to/cluster.md").read_text()
    assert jobs <= set(re.findall(r"`(\w+)`", documented))
    for name in CLUSTERS:
        resources_by_rule = profile(name)["set-resources"]
        assert set(resources_by_rule) == jobs
        for rule in jobs & {"audit_settings", "audit", "compare_repairs", "judge_claims"}:
            memory = int(re.search(r"mem_mb=(\d+)", bodies[rule])[1])
            assert memory == resources_by_rule[rule]["mem_mb"]


def test_rules_that_need_the_network_or_all_results_are_local():
    text = "".join(file.read_text() for file in (ROOT / "workflow/rules").glob("*.smk"))
    for rule in ("acquire", "gather", "write_report"):
        body = re.search(rf"^rule {rule}:\n(.*?)(?=^\S|\Z)", text, re.S | re.M)[1]
        assert "localrule: True" in body


def test_executor_plugins_are_optional_and_not_in_the_locked_environment():
    assert "snakemake-executor-plugin" in (ROOT / "pyproject.toml").read_text()
    assert "snakemake-executor-plugin" not in (ROOT / "requirements.txt").read_text()
    assert read_yaml(ROOT / "profiles/default/config.yaml").get("executor") is None


def test_the_executor_of_the_makefile_is_installed_with_the_project():
    assert "forks" in (ROOT / "Makefile").read_text()
    packages = find_packages(str(ROOT / "src"))
    assert "snakemake_executor_plugin_forks" in packages
    assert "snakemake_executor_plugin_forks" in {module.name for module in pkgutil.iter_modules()}
