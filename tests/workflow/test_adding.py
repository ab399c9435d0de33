"""Test the pages docs/how-to/add_*.md and check_an_algorithm.md by following their steps."""

import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from scratch import COMMAND, ROOT, SNAKEMAKE, Warm, announced, call, copy_to, output_of

import conformance
import private_consensus as pc
from observed import run
from private_consensus import algorithms
from private_consensus.audits.examples import examples, mean_estimation
from private_consensus.core.algorithms.base import stack

pytestmark = pytest.mark.workflow

PAGES = (
    "add_an_algorithm", "add_a_paper", "add_a_claim",
    "add_a_graph", "add_a_data_set", "check_an_algorithm",
)  # fmt: skip
"""Pages in the order in which a reader follows them."""
PAGE = "\n".join((ROOT / f"docs/how-to/{name}.md").read_text() for name in PAGES)
FIGURE, ROUNDS, CARD, SETTINGS = re.findall(r"^snakemake (.*)", PAGE, re.M)
AUDITS = re.findall(r"^private-consensus (audit .*)", PAGE, re.M)


def follow(folder) -> None:
    """Write every block that names a file; append the blocks with "one more line"."""
    for path, is_addition, text in re.findall(
        r"^`(\S+)`(, one more (?:line|block))?:\n\n```\w+\n(.*?)^```", PAGE, re.M | re.S
    ):
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text((file.read_text() if is_addition else "") + text)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Return a copy of the project with all files that the how-to pages add."""
    folder = copy_to(tmp_path_factory.mktemp("followed"))
    follow(folder)
    return folder


@pytest.fixture(scope="module")
def warm(folder) -> Iterator[Warm]:
    with Warm(folder) as process:
        yield process


def test_the_documented_steps_add_an_algorithm_with_claims_and_audit(folder, warm):
    lines = [shlex.split(line) for line in (FIGURE, ROUNDS, SETTINGS)]
    assert [line[-2:] for line in lines] == [["--config", "papers=[mine]"]] * 3
    targets = [
        word for line in lines for word in line[:-2] if word.startswith(("mine_", "results/"))
    ]
    # A single call, to save time.
    done = warm.call(folder, [*SNAKEMAKE, *lines[0][:2], *targets, *lines[0][-2:]])
    assert done.returncode == 0, output_of(done)
    assert (folder / "results/paper/figures/mine_fig1.svg").exists()
    claims = pl.read_parquet(folder / "results/paper/claims/mine.parquet")
    assert claims["id"].to_list() == ["mine_c01", "mine_c02", "mine_c03"]
    assert claims["parts"].to_list() == [3, 2, 3]
    assert claims["verdict"][2] == "held"
    privacy = pl.read_parquet(folder / "results/paper/privacy/mine_fig1/noisy_gossip.parquet")
    assert privacy["epsilon_accountant"].to_list() == pytest.approx([0.5, 1.0, 2.0])
    assert set(privacy["verdict"]) == {"holds"}
    privacy = pl.read_parquet(
        folder / "results/paper/privacy/mine_fig2/gossip_gradient_descent.parquet"
    )
    assert privacy["epsilon_accountant"].to_list() == pytest.approx([1.0, 1.0])
    # The queries of gradient descent on means change by constants, which a replay finds.
    assert privacy["epsilon_lower"].to_list() == pytest.approx([1.0, 1.0], rel=1e-6)
    audit = pl.read_parquet(folder / "results/paper/audit/settings/mine_fig1.parquet")
    assert audit["claimed"].to_list() == [0.5, 1.0, 2.0]
    assert audit["verdict"].unique().to_list() == ["not contradicted"]


def test_the_documented_audit_detects_the_broken_algorithm(folder):
    ends = {"noisy_gossip": (0, "not contradicted"), "hasty_gossip": (1, "leaks")}
    assert [line.split()[1] for line in AUDITS] == list(ends)
    for line in AUDITS:
        done = call(folder, [*COMMAND, *shlex.split(line)])
        code, verdict = ends[line.split()[1]]
        assert done.returncode == code, output_of(done)
        assert verdict in done.stdout


@pytest.fixture
def own_modules(tmp_path, monkeypatch):
    """Write the pages' algorithms as modules outside the package, found by the registry."""
    blocks = re.findall(r"^`src/\S+/algorithms/(\w+)\.py`:\n\n```\w+\n(.*?)^```", PAGE, re.M | re.S)
    names = [name for name, _ in blocks]
    assert len(names) == 5
    for name, text in blocks:
        text = re.sub(
            rf"^from \S+\.({'|'.join(names)}) import", r"from \1 import", text, flags=re.M
        )
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    modules_by_name = algorithms._modules() | {name: [name] for name in names}
    monkeypatch.setattr(algorithms, "_modules", lambda: modules_by_name)
    yield
    for name in names:
        sys.modules.pop(name, None)


@pytest.mark.parametrize(
    ("name", "options", "horizon", "error"),
    [("gossip_gradient_descent", {}, 20, 0.02), ("relaxed_admm", {"eta": 30.0}, 40, 0.05)],
)
def test_the_documented_simulation_converges_and_meets_its_budget(
    own_modules, name, options, horizon, error
):
    text = (ROOT / "docs/how-to/add_an_algorithm.md").read_text()
    variables: dict = {}
    exec(re.search(r"^```python run\n(.*?)^```", text, re.M | re.S)[1], variables)
    method = algorithms.load(name)(**options) if options else variables["method"]
    world = (variables[key] for key in ("problem", "network", "budget"))
    done = pc.simulate(method, *world, horizon)
    means = done.measurements.group_by("t").agg(pl.col("value").mean()).sort("t")["value"]
    assert means[0] > 0.5 and means[-1] < error
    assert done.guarantee.proven and done.guarantee.epsilon == pytest.approx(1.0, rel=1e-6)


def test_the_documented_mini_batches_are_calibrated_and_audited(own_modules):
    conformance.check("gossip_sgd")
    (example,) = examples("gossip_sgd")
    result = pc.audit(*example.setting, pairs=10)
    assert result.verdict == "not contradicted"
    assert result.epsilon == pytest.approx(example.budget.epsilon, rel=1e-3)


def test_calibrated_noise_of_relaxed_admm_is_inversely_proportional_to_theta(own_modules):
    (example,) = examples("relaxed_admm")
    _, *world, budget, horizon = example.setting
    kind = algorithms.load("relaxed_admm")
    relaxed, plain = (kind(theta=theta).calibrate(budget, *world, horizon) for theta in (0.25, 1.0))
    assert plain.noise == pytest.approx(4 * relaxed.noise, rel=1e-6)
    guarantee = pc.account(relaxed.releases(*world, horizon), budget.delta)
    assert guarantee.proven and guarantee.epsilon == pytest.approx(budget.epsilon, rel=1e-6)


def test_without_noise_relaxed_admm_converges_to_the_mean_of_all_agents(own_modules, streams):
    problem = mean_estimation()
    network = pc.networks.build(streams, "ring", problem.n_agents, weights="metropolis")
    relaxed = algorithms.load("relaxed_admm")(theta=0.5)
    last = run(stack([relaxed]), problem, network, streams, 300)[300]
    expected = np.broadcast_to(problem.target[..., None, :], last["released"].shape)
    assert last["released"] == pytest.approx(expected, abs=1e-8)


def test_relaxed_admm_passes_the_checks_and_a_quarter_of_its_noise_is_flagged(own_modules):
    conformance.check("relaxed_admm")
    relaxed = algorithms.load("relaxed_admm")

    class Hasty(relaxed):
        def mechanisms(self, problem, network, horizon):
            (message,) = super().mechanisms(problem, network, horizon).values()
            return {"message": replace(message, sensitivity=[s / 4 for s in message.sensitivity])}

    (example,) = examples("relaxed_admm")
    world = example.setting[1:4]
    verdicts = [pc.audit(kind(), *world, 2, pairs=6).verdict for kind in (relaxed, Hasty)]
    assert verdicts == ["not contradicted", "understated"]


def test_the_documented_steps_add_a_family_of_graphs(folder):
    options = yaml.safe_load(re.search(r"^```yaml family\n(.*?)^```", PAGE, re.M | re.S)[1])
    program = f"""
from private_consensus import networks
from private_consensus.core.graphs import GRAPHS
from private_consensus.core.randomness import Streams
network = networks.build(Streams(0, (0,)), **{options!r})
print(network.degrees.tolist(), {options["name"]!r} in GRAPHS)
"""
    done = call(folder, ["python", program])
    assert done.returncode == 0, output_of(done)
    assert done.stdout.split("\n")[0] == "[5, 3, 3, 3, 3, 3] True"


def test_the_documented_steps_add_a_data_set(folder, warm):
    done = warm.call(folder, [*SNAKEMAKE, *shlex.split(CARD)])
    assert done.returncode == 0, output_of(done)
    card = json.loads((folder / "results/paper/cards/coins-onehot.json").read_text())
    assert (card["rows"], card["dim"], card["source"]) == (6, 4, "mirror")
    with np.load(folder / "results/paper/prepared/coins-onehot.npz", allow_pickle=False) as arrays:
        assert arrays["labels"].tolist() == [1, 1, -1, 1, -1, -1]
        assert np.linalg.norm(arrays["features"], axis=1).max() <= 1 + 1e-12


def test_a_changed_file_of_the_mirror_is_read_again(folder, warm):
    """Replace a file by another one with an older modification time."""
    target = [*SNAKEMAKE, "--quiet", "host", "reason", *shlex.split(CARD)]

    def planned():
        return announced(warm.call(folder, [*target, "--dry-run"]), ())

    assert warm.call(folder, target).returncode == 0
    assert planned() == {}
    file = folder / "mirror/coins/coins.csv"
    an_hour_ago = file.stat().st_mtime - 3600
    file.write_text(file.read_text() + "24,Spain,1\n")
    os.utime(file, (an_hour_ago, an_hour_ago))
    assert planned() == {"acquire": 1, "prepare": 1}
    assert warm.call(folder, target).returncode == 0
    card = json.loads((folder / "results/paper/cards/coins-onehot.json").read_text())
    assert (card["rows"], planned()) == (7, {})
