"""Test a study in the user's folder with an installed package."""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from scratch import call, output_of

from private_consensus import cli
from private_consensus.reproduction.studies import reproduction, write_study

ROOT = Path(__file__).parents[2]
NAME = "a_first_study"


PROGRAM = """
import json, runpy, sys
from pathlib import Path
import yaml
sys.path[:0] = {paths}
from private_consensus.reproduction.configuration import plan
from private_consensus.reproduction.results.cells import run_cell
from private_consensus.reproduction.studies.places import HOME

name, folder = {name!r}, Path({folder!r})
config = yaml.safe_load((folder / "config/config.yaml").read_text())
config |= {{"scale": "smoke", "papers": [name, "showkatbakhsh"]}}
asked = plan.load(config, folder / "config", HOME / "config")
rows, privacy = run_cell(asked.cell(f"{{name}}_fig1", name), {{}})
tests = [
    found
    for key, found in runpy.run_path(str(folder / f"tests/test_{{name}}.py")).items()
    if key.startswith("test_")
]
for test in tests:
    test()
print(json.dumps({{
    "figures": list(asked.figures),
    "label": asked.figure_styles(f"{{name}}_fig1")[f"{{name}}.released"]["label"],
    "runs": rows["run"].n_unique(),
    "epsilon": privacy["epsilon_accountant"].to_list(),
    "verdicts": privacy["verdict"].to_list(),
    "tests": len(tests),
}}))
"""
"""Program for a separate process: the library lists the algorithms when it is imported."""


@pytest.fixture
def study(tmp_path):
    folder = tmp_path / NAME
    write_study(folder)
    return folder


def paths(study: Path) -> list[str]:
    """Return the module search path of ``reproduce`` for a study, with the library of this test."""
    study_paths = reproduction.environment(study)["PYTHONPATH"].split(os.pathsep)[:2]
    return [*study_paths, str(ROOT / "src")]


def test_the_study_template_runs_meets_its_budget_and_passes_its_tests(study):
    program = PROGRAM.format(paths=paths(study), name=NAME, folder=str(study))
    done = call(study, ["python", program])
    assert done.returncode == 0, output_of(done)
    report = json.loads(done.stdout.splitlines()[-1])
    assert {f"{NAME}_fig1", "showkatbakhsh_fig1"} <= set(report["figures"])
    assert report["label"] == NAME
    assert (report["runs"], report["tests"]) == (5, 3)
    assert report["epsilon"] == pytest.approx([0.5, 1.0, 2.0])
    assert report["verdicts"] == ["holds"] * 3


AUDIT = """
import sys
sys.path[:0] = {paths}
from private_consensus import cli
print("ended with", cli.main(["audit", {name!r}, "--pairs", "10"]))
"""
FIGURE = """
experiments:
  {name}_fig1:
    title: Error
    location: this study
    problem: {{name: mean_estimation, records: 100, dim: 2, box: 1.0}}
    network: {{name: ring, agents: 4, weights: metropolis}}
    budget: {{epsilon: 1.0, delta: 1.0e-5}}
    horizon: 3
    runs: 2
    axes: {{epsilon: {{set: budget.epsilon, values: [1.0, 2.0], because: two budgets}}}}
    algorithms:
      {name}:
        released: {{because: as it is}}
        slower: {{eta: 0.0005, because: half of the step}}
    measures: [released.normalised_error]
figures:
  {name}_fig1:
    title: Error
    caption: Mean over runs.
    measure: released.normalised_error
    x: epsilon
    y_title: error
    curves: [{name}.released]
"""
"""Two variants at two budgets; one variant is audited."""


@pytest.mark.workflow
def test_an_incorrect_privacy_account_is_detected_and_shown_in_the_summary(study, capsys):
    """Run init, audit and reproduce as a user does."""
    source = Path(__file__).with_name("wrong_momentum.py").read_text()
    (study / f"src/{NAME}/algorithm.py").write_text(source)
    paper = study / f"config/papers/{NAME}.yaml"
    head = paper.read_text().split("experiments:")[0]
    paper.write_text(head + FIGURE.format(name=NAME))
    entry = f"- {{experiment: {NAME}_fig1, algorithm: {NAME}"
    audits = study / "config/audits.yaml"
    audits.write_text(audits.read_text().replace(entry, f"{entry}, variant: released"))

    done = call(study, ["python", AUDIT.format(paths=paths(study), name=NAME)])
    assert "ended with 1" in done.stdout, output_of(done)
    # The velocity of iteration t multiplies the change by the sum of beta**k for k < t.
    fault = re.compile(r"changes by (2\.71|9\.94846) times its declared sensitivity")
    assert fault.search(re.sub(r"[\s│]+", " ", done.stdout))
    assert "understated: " in done.stdout

    summary = study / "results/paper/summary.md"
    capsys.readouterr()
    assert cli.main(["reproduce", str(study), "--scale", "paper", "--cores", "2"]) == 1
    assert len(re.findall(r"^.* understated: .*$", capsys.readouterr().out, re.M)) == 2
    page = summary.read_text()
    sections = dict(section.split("\n\n", 1) for section in page.split("## ") if section)
    # A replay proves a lower bound above the claim.
    expected = (("Privacy", 4, "violated"), ("Audits", 2, "understated"))
    for title, rows, verdict in expected:
        lines = [line for line in sections[title].splitlines() if f"{NAME}_fig1" in plain(line)]
        assert len(lines) == rows, page
        for line in lines:
            assert f"| {verdict} |" in line and fault.search(line)
            assert "holds" not in line and "not contradicted" not in line

    # A failed run leaves no summary of an earlier run.
    paper.write_text(paper.read_text().replace("horizon: 3", "horizon: none"))
    assert cli.main(["reproduce", str(study), "--cores", "2"]) == 2
    assert not summary.exists()


def plain(line: str) -> str:
    """Return Markdown without escape characters."""
    return line.replace("\\", "")


def test_init_rejects_a_nonempty_folder_and_does_not_change_it(tmp_path, capsys):
    folder = tmp_path / NAME
    folder.mkdir()
    (folder / "thesis.tex").write_text("years of work")
    assert cli.main(["init", str(folder)]) == 2
    assert "a new or an empty folder" in capsys.readouterr().err
    assert [path.name for path in folder.iterdir()] == ["thesis.tex"]


CHECK = """
import sys
sys.path.insert(0, {source!r})
from private_consensus.cli import main
sys.exit(main(["check", {folder!r}, "--scale", "smoke"]))
"""


def test_a_study_is_checked_without_an_installation_and_without_results(study):
    program = CHECK.format(source=str(ROOT / "src"), folder=str(study))
    done = call(study, ["python", program])
    assert done.returncode == 0, output_of(done)
    assert "experiments: 1" in done.stdout and "audited cells: 1" in done.stdout
    assert not (study / "results").exists()


def test_check_lists_the_errors_of_a_configuration(tmp_path, capsys):
    """Check a copy of the configuration of one paper."""
    copy = tmp_path / "config" / "papers" / "gratton.yaml"
    copy.parent.mkdir(parents=True)
    shutil.copy(ROOT / "config" / "config.yaml", tmp_path / "config")
    text = (ROOT / "config" / "papers" / "gratton.yaml").read_text()
    copy.write_text(text)
    assert cli.main(["check", str(copy)]) == 0
    assert capsys.readouterr().out.startswith("The configuration is valid (papers: 1, ")
    copy.write_text(text.replace("horizon:", "horzon:").replace("    runs:", "    rnus:"))
    assert cli.main(["check", str(copy)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) > 1 and any("horzon: unknown key" in line for line in lines)
    assert cli.main(["check", str(tmp_path), "--scale", "no_scale"]) == 2
    assert "found 'no_scale'" in capsys.readouterr().err
    assert cli.main(["check", str(tmp_path / "config")]) == 2
    assert "expected a folder with config/config.yaml" in capsys.readouterr().err
