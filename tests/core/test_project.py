"""What surrounds the code says the same as the code: versions, targets, supported Pythons."""

import json
import re
import tomllib
from pathlib import Path

import pytest
import yaml

import private_consensus

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
LATEST_TESTED = 13
"""Of Python 3; ``requires-python`` names the earliest."""


def targets() -> set[str]:
    """Of the Makefile."""
    return set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def steps(workflow: Path) -> list[dict]:
    jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
    return [step for job in jobs for step in job["steps"]]


def test_one_version_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert PROJECT["version"] == private_consensus.__version__ == citation["version"]
    assert f"## {PROJECT['version']}" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_targets_that_exist(workflow):
    """Each step either uses an action of a stated version or runs something."""
    commands = [step["run"] for step in steps(workflow) if "run" in step]
    called = {name for text in commands for name in re.findall(r"\bmake ([a-z]+)", text)}
    assert called and called <= targets()
    for step in steps(workflow):
        assert ("run" in step) != ("uses" in step)
        assert re.search(r"@v\d+$", step.get("uses", "@v0"))


def test_the_pythons_that_are_promised_are_tested():
    earliest = int(re.fullmatch(r">=3\.(\d+)", PROJECT["requires-python"])[1])
    promised = {f"3.{minor}" for minor in range(earliest, LATEST_TESTED + 1)}
    tested = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())
    classified = {
        text.rpartition(" ")[2] for text in PROJECT["classifiers"] if "Python :: 3." in text
    }
    assert set(tested["jobs"]["test"]["strategy"]["matrix"]["python"]) == promised == classified


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_issue_forms_have_what_a_form_needs(form):
    read = yaml.safe_load(form.read_text())
    assert read["name"] and read["description"]
    fields = [part["id"] for part in read["body"]]
    assert len(set(fields)) == len(fields)
    assert any(part.get("validations", {}).get("required") for part in read["body"])


def test_the_container_copies_what_exists_and_makes_what_the_makefile_makes():
    text = (ROOT / "Dockerfile").read_text()
    copied = re.findall(r"^COPY --chown=\w+ (.+) \S+$", text, re.MULTILINE)
    names = [name for line in copied for name in line.split()]
    assert names and all((ROOT / name).exists() for name in names)
    developing = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    built = (ROOT / ".devcontainer" / developing["build"]["dockerfile"]).resolve()
    assert built == ROOT / "Dockerfile"


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_targets_that_pages_name_exist(name):
    named = set(re.findall(r"`make ([a-z]+)", (ROOT / name).read_text()))
    assert named and named <= targets()
