"""Test the command line: create an algorithm, run it, rank it, submit it and rank it again."""

import re
from pathlib import Path

import pytest
import yaml

from private_consensus.cli import main, output
from private_consensus.common import yamls
from private_consensus.comparison import ranking
from private_consensus.comparison.ranking import Standing, _table_row

RAW = yamls.read(Path(__file__).parents[2] / "config" / "comparison.yaml")
SMALL = {
    "problems": ["mean_estimation"], "epsilons": [0.3, 1.0], "runs": 5, "sample": 0, "trials": 1,
    "axes": {"agents": [5], "graph": ["ring"], "partition": ["iid"], "missing": [0.0],
             "links": [0.0]},
}  # fmt: skip
RIVALS = ("local_training", "one_shot_averaging", "secure_aggregation")


@pytest.fixture
def design(tmp_path):
    """Write a design with one problem, two cells and three competing methods."""
    methods = {name: RAW["methods"][name] for name in RIVALS}
    reduced = {**RAW, "methods": methods, "scales": {"smoke": SMALL}}
    path = tmp_path / "comparison.yaml"
    path.write_text(yaml.safe_dump(reduced))
    return path


@pytest.fixture
def rank(design, capsys, monkeypatch):
    monkeypatch.setattr(output.OUT, "_width", 200)

    def called(*arguments):
        code = main(["rank", *map(str, arguments), "--design", str(design)])
        out, err = capsys.readouterr()
        rows = re.findall(r"│ (> )?(\w+) +│ ([\d.-]+) +│ ([\d-]+) +│ ([\d-]+) +│ (\d+) +│", out)
        return code, {row[1]: row for row in rows}, out, err

    return called


def test_with_few_runs_the_table_omits_comparisons_within_cells():
    standing = Standing("talks", 1.5, best=2, alone=1, cells=2)
    assert _table_row(standing, [], has_few_runs=False) == ("talks", "1.50", "2", "1", "2")
    assert _table_row(standing, [], has_few_runs=True) == ("talks", "1.50", "-", "-", "2")


@pytest.mark.parametrize(
    ("arguments", "error_message"),
    [
        (["nobody"], "NAME: found 'nobody', expected one of"),
        (["local_training", "--scale", "huge"], "--scale: found 'huge', expected one of paper, "),
        (["missing.parquet"], "missing.parquet: missing"),
        (
            ["secure.parquet", "--out", "mine.parquet"],
            "--out: found 'mine.parquet', expected a method NAME",
        ),
        (["local_training", "--against", "/dev"], "Cannot read /dev: a folder instead of a file"),
        (["local_training", "--out", "a.csv"], "FILE: found 'a.csv', expected a name that ends"),
        (["local_training", "--out", "/dev/null/a.parquet"], "Cannot write /dev/null/a.parquet: "),
    ],
)
def test_invalid_arguments_of_rank_give_a_one_line_error(
    rank, arguments, error_message, monkeypatch
):
    monkeypatch.setattr(ranking, "run", None)  # an error before the computation
    code, _, _, err = rank(*arguments)
    assert code == 2 and error_message in err and len(err.splitlines()) == 1


def test_an_error_names_a_missing_design_file(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["rank", "local_training", "--design", "missing.yaml"]) == 2
    assert "missing.yaml" in capsys.readouterr().err
