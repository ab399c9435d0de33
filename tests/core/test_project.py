"""Test that versions, Makefile targets and supported Python versions agree in all files."""

import argparse
import json
import re
import shlex
import tomllib
from pathlib import Path

import pytest
import yaml

import private_consensus
from private_consensus.cli.parser import build_parser
from private_consensus.common import yamls

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
TESTS = sorted((ROOT / "tests").rglob("test_*.py"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))
LATEST_TESTED = 13
"""Latest tested minor version of Python 3; ``requires-python`` states the earliest."""


def targets() -> set[str]:
    """Return the targets of the Makefile."""
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def steps(workflow: Path) -> list[dict]:
    jobs = yaml.safe_load(workflow.read_text())["jobs"].values()
    return [step for job in jobs for step in job["steps"]]


def test_test_files_with_equal_names_are_in_packages():
    """Test files outside packages need distinct names, since pytest imports them by name."""
    alone = [path.name for path in TESTS if not (path.parent / "__init__.py").exists()]
    assert {name for name in alone if alone.count(name) > 1} == set()


def test_all_files_state_the_same_version():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert PROJECT["version"] == private_consensus.__version__ == citation["version"]
    assert f"## {PROJECT['version']}" in (ROOT / "CHANGELOG.md").read_text()


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_call_existing_makefile_targets(workflow):
    """Each step either uses an action of a stated version or runs a command."""
    commands = [step["run"] for step in steps(workflow) if "run" in step]
    called_targets = {name for text in commands for name in re.findall(r"\bmake ([a-z]+)", text)}
    assert called_targets and called_targets <= targets()
    for step in steps(workflow):
        assert ("run" in step) != ("uses" in step)
        assert re.search(r"@v\d+$", step.get("uses", "@v0"))


def test_all_supported_python_versions_are_tested():
    earliest = int(re.fullmatch(r">=3\.(\d+)", PROJECT["requires-python"])[1])
    promised = {f"3.{minor}" for minor in range(earliest, LATEST_TESTED + 1)}
    tested = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())
    classified = {
        text.rpartition(" ")[2] for text in PROJECT["classifiers"] if "Python :: 3." in text
    }
    assert set(tested["jobs"]["test"]["strategy"]["matrix"]["python"]) == promised == classified


@pytest.mark.parametrize("form", FORMS, ids=lambda path: path.stem)
def test_issue_forms_have_the_required_fields(form):
    read = yaml.safe_load(form.read_text())
    assert read["name"] and read["description"]
    fields = [field["id"] for field in read["body"]]
    assert len(set(fields)) == len(fields)
    assert any(field.get("validations", {}).get("required") for field in read["body"])


def test_the_dockerfile_copies_existing_files_and_builds_the_development_container():
    text = (ROOT / "Dockerfile").read_text()
    copied = re.findall(r"^COPY --chown=\w+ (.+) \S+$", text, re.MULTILINE)
    names = [name for line in copied for name in line.split()]
    assert names and all((ROOT / name).exists() for name in names)
    developing = json.loads((ROOT / ".devcontainer/devcontainer.json").read_text())
    built = (ROOT / ".devcontainer" / developing["build"]["dockerfile"]).resolve()
    assert built == ROOT / "Dockerfile"


def test_every_yaml_file_can_be_read_and_has_no_duplicate_keys():
    files = [*ROOT.glob("*.y*ml"), *ROOT.glob(".*.y*ml"), *ROOT.glob("*.cff")]
    files += [
        path for folder in (".github", "profiles") for path in (ROOT / folder).rglob("*.y*ml")
    ]
    assert len(files) >= 9
    for file in files:
        assert isinstance(yamls.read(file), dict), file


def floors(requirements) -> dict[str, str]:
    matches = (re.match(r"([\w.-]+)>=([\w.,<]+)$", text) for text in requirements)
    return {match[1].lower(): match[2] for match in matches if match}


@pytest.mark.parametrize("file", ["environment.yml", "workflow/envs/jobs.yml"])
def test_the_conda_environments_list_exactly_the_workflow_requirements(file):
    """The user environment also has the package and pytest; jobs import the package by path."""
    extras = PROJECT["optional-dependencies"]
    needed = floors(
        [
            *PROJECT["dependencies"],
            *(text for name in ("data", "report", "workflow") for text in extras[name]),
        ]
    )
    listed = yamls.read(ROOT / file)["dependencies"]
    is_for_users = file == "environment.yml"
    (pip,) = (entry["pip"] for entry in listed if isinstance(entry, dict))
    assert ("-e ." in pip) is is_for_users
    needed |= floors(["pytest>=8"] if is_for_users else [])
    by_conda = floors(text for text in listed if isinstance(text, str))
    lowest = PROJECT["requires-python"].removeprefix(">=")
    assert by_conda.pop("python") == f"{lowest},<3.{LATEST_TESTED + 1}"
    (by_pip,) = (floors(entry["pip"]) for entry in listed if isinstance(entry, dict))
    by_conda["snakemake"] = by_conda.pop("snakemake-minimal")
    assert {**by_conda, **by_pip} == needed and not set(by_conda) & set(by_pip)
    assert len(by_conda) > 2 * len(by_pip)


def test_the_repository_has_the_layout_of_the_snakemake_workflow_catalog():
    for name in ("workflow/Snakefile", "config/config.yaml", "config/README.md", "LICENSE"):
        assert (ROOT / name).is_file()
    assert 'include: "../Snakefile"' in (ROOT / "workflow/Snakefile").read_text()
    assert set(yamls.read(ROOT / ".snakemake-workflow-catalog.yml")) == {"usage"}


def test_modules_called_by_the_makefile_exist_and_all_targets_are_phony():
    text = (ROOT / "Makefile").read_text()
    for module in set(
        re.findall(r"-m (private_consensus[\w.]+|tests[\w.]*|benchmarks[\w.]+)", text)
    ):
        path = ROOT.joinpath(*module.split("."))
        sources = [path, ROOT / "src" / path.relative_to(ROOT)]
        assert any(p.with_suffix(".py").is_file() or (p / "__main__.py").is_file() for p in sources)
    phony = re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)[1].split()
    assert set(phony) == targets()


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_makefile_targets_named_in_pages_exist(name):
    named_targets = set(re.findall(r"`make ([a-z-]+)", (ROOT / name).read_text()))
    assert named_targets and named_targets <= targets()


SHOWN = ["README.md", "Snakefile", "config/README.md",
         "docs/explanation/performance.md",
         "docs/how-to/data.md", "docs/how-to/study.md", "docs/how-to/reproduce.md",
         "docs/how-to/faq.md", "docs/getting-started/install.md",
         "docs/getting-started/first_run.md"]  # fmt: skip
"""Pages whose commands must run in this repository without changes."""


def commands(program: str) -> list[tuple[str, list[str]]]:
    """Return the page and the words of each command in code blocks."""
    command_pattern = re.compile(rf"^(?:[A-Z_]+=\S+ )?({program} .*)$", re.MULTILINE)
    return [
        (page, shlex.split(line.split("   ")[0], comments=True)[1:])
        for page in SHOWN
        for line in command_pattern.findall((ROOT / page).read_text())
    ]


def test_the_parser_accepts_all_commands_of_the_pages():
    page_commands = commands("private-consensus")
    assert len(page_commands) > 8
    for page, words in page_commands:
        assert build_parser().parse_args(words).command, (page, words)


def test_snakemake_commands_of_pages_separate_targets_and_configuration_files():
    """Snakemake reads every word after ``--configfile`` as a configuration file."""
    rules = "\n".join(path.read_text() for path in (ROOT / "workflow" / "rules").glob("*.smk"))
    papers = "\n".join(path.read_text() for path in (ROOT / "config" / "papers").rglob("*.yaml"))
    sources = yamls.read(ROOT / "src/private_consensus/reproduction/datasets/sources.yaml")
    known_targets = {
        *re.findall(r"^rule (\w+):", rules, re.M),
        *re.findall(r"^  (\w+):", papers, re.M),
    }
    page_commands = commands("snakemake")
    assert len(page_commands) > 9 and any("--configfile" in words for _, words in page_commands)
    for page, words in page_commands:
        parsed = SNAKEMAKE.parse_args(words)
        assert all((ROOT / file).is_file() for file in parsed.configfile), (page, words)
        assert all("=" in pair for pair in parsed.config), (page, words)
        rule_targets = {target for target in parsed.targets if "/" not in target}
        assert rule_targets <= known_targets | set(sources), (page, words)


SNAKEMAKE = argparse.ArgumentParser()
"""Parser of those Snakemake options that the pages use."""
SNAKEMAKE.add_argument("targets", nargs="*")
SNAKEMAKE.add_argument("--cores")
for option in ("--configfile", "--config"):
    SNAKEMAKE.add_argument(option, nargs="+", default=[])
