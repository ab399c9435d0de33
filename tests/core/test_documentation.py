"""Test that the pages of the documentation link to each other and that lists are complete."""

import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import altair as alt
import numpy as np
import pytest

import private_consensus as pc
from private_consensus.core.algorithms import families
from private_consensus.core.algorithms.base import Algorithm
from private_consensus.core.problems.base import Problem
from private_consensus.core.problems.logistic_regression import LogisticRegression
from private_consensus.report.page import TOPICS
from private_consensus.reproduction.claims.schema import Test
from private_consensus.reproduction.claims.statements import logarithmic

DOCS = Path(__file__).parents[2] / "docs"
GENERATED = ("tutorials/", "results/", "api/algorithms/", "reference/generated/")
"""Folders of pages that ``make docs`` writes; git ignores them."""
PROBLEMS = tuple(pc.problems.class_of(name) for name in pc.problems.names())
MAX_LINES = 160


def sources(*endings: str) -> list[str]:
    """Return the written pages with these endings, by their path below ``docs``."""
    files = [path for path in DOCS.rglob("*") if path.suffix in endings]
    names = [path.relative_to(DOCS).as_posix() for path in files]
    return sorted(
        name for name in names if not name.startswith((*GENERATED, "api/generated/", "_"))
    )


def entries(page: str) -> list[str]:
    """Return the paths below ``docs``, without ending, that a page's tables of contents list."""
    text = (DOCS / page).read_text()
    blocks = re.findall(r"^\.\. toctree::\n((?:(?:   .*)?\n)+)", text, re.MULTILINE)
    lines = [line.strip() for block in blocks for line in block.splitlines()]
    names = [line for line in lines if line and not line.startswith(":")]
    return [
        name[1:] if name.startswith("/") else (Path(page).parent / name).as_posix()
        for name in names
    ]


def test_every_page_is_listed_once_and_every_entry_is_a_page():
    listed = [entry for page in sources(".rst") for entry in entries(page)]
    assert len(set(listed)) == len(listed)
    written = {name.rpartition(".")[0] for name in sources(".md", ".rst")} - {"index"}
    assert written == {name for name in listed if not name.startswith(GENERATED)}


def test_the_tables_of_contents_list_all_generated_pages(generated):
    listed = {entry for page in sources(".rst") for entry in entries(page)}
    generated_entries = {path.removesuffix(".rst") for path in generated}
    assert {
        n for n in listed if n.startswith(("reference/generated/", "results/"))
    } == generated_entries


@pytest.mark.parametrize("page", sources(".md"))
def test_a_page_has_one_title_and_at_most_the_allowed_lines(page):
    text = (DOCS / page).read_text()
    without_code = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    assert len(re.findall(r"^# ", without_code, re.MULTILINE)) == 1
    assert len(text.splitlines()) <= MAX_LINES


def test_the_api_page_lists_every_exported_name_once():
    text = (DOCS / "api/index.rst").read_text()
    assert sorted(re.findall(r"^   (\w+)$", text, re.MULTILINE)) == sorted(pc.__all__)


def test_links_between_pages_have_an_existing_target(generated):
    for page in sources(".md"):
        for target in re.findall(r"\]\(([\w./-]+)(?:#[\w-]*)?\)", (DOCS / page).read_text()):
            path = (DOCS / page).parent / target
            name = os.path.relpath(path, DOCS)
            assert path.exists() or name in generated or name == "tutorials/index", (page, target)


@pytest.fixture(scope="module")
def reference_pages():
    """Import the module that generates the reference pages."""
    sys.path.insert(0, str(DOCS))
    try:
        import reference_pages
    finally:
        sys.path.remove(str(DOCS))
    return reference_pages


@pytest.fixture(scope="module")
def generated(reference_pages) -> dict[str, str]:
    """Return the generated pages by path."""
    return reference_pages.pages()


def test_generated_pages_list_algorithms_metrics_claim_tests_and_files(reference_pages, generated):
    algorithms = generated["reference/generated/algorithms.rst"]
    assert set(re.findall(r":doc:`(\w+) ", algorithms)) == set(reference_pages.built_in())
    measurements = generated["reference/generated/measurements.rst"]
    for name in pc.problems.names():
        assert f"``{name}``" in measurements
        assert all(f"``{metric}``" in measurements for metric in pc.problems.load(name).METRICS)
    tests = generated["reference/generated/claim_tests.rst"]
    assert all(f"``{kind}``" in tests for kind in Test.model_fields["kind"].annotation.__args__)
    files = generated["reference/generated/output_files.rst"]
    assert "``results/{scale}/claims.parquet``" in files and "``epsilon_accountant``" in files


def test_the_documented_unit_of_a_claim_is_logarithmic_if_its_test_is():
    text = (DOCS / "how-to/add_a_claim.md").read_text().partition("| unit of `value` |")[2]
    units = dict(re.findall(r"^\| (`.+`) \| (.+) \|$", text, re.MULTILINE))
    unit = {kind: u for kinds, u in units.items() for kind in re.findall(r"`(\w+)`", kinds)}
    for kind in Test.model_fields["kind"].annotation.__args__:
        test = Test.model_construct(kind=kind)
        assert logarithmic(test) == ("logarithm" in unit[kind] or "ln(" in unit[kind]), kind


@pytest.mark.parametrize(
    "page", ["getting-started/first_run.md", "explanation/privacy.md", "how-to/own_data.md"]
)
def test_the_python_blocks_of_a_page_run(page, capsys):
    variables: dict = {}
    exec(
        re.search(r"^```python run\n(.*?)^```", (DOCS / page).read_text(), re.M | re.S)[1],
        variables,
    )
    assert capsys.readouterr().out
    if "done" in variables:
        done = variables["done"]
        assert done.guarantee.proven and 0 < done.guarantee.epsilon <= 1
    if "first_run" in page:
        assert done.measurements.filter(t=20)["value"].max() < 0.02
    if "own_data" in page:
        error = variables["problem"].measure("test_error", done.models.released)
        assert error.mean() < 0.15 and isinstance(variables["chart"], alt.TopLevelMixin)


def rows_of(page: str, heading: str) -> list[str]:
    """Return the first cells of the tables of a section."""
    sections = re.split(r"^##+ ", (DOCS / page).read_text(), flags=re.MULTILINE)
    (text,) = (section for section in sections if section.startswith(heading))
    return re.findall(r"^\| (`[^|]+`) \|", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("heading", "kinds"),
    [
        ("What a problem offers", PROBLEMS),
        ("Sensitivities", (Problem,)),
        ("What a network offers", (pc.networks.Network,)),
    ],
)
def test_the_listed_names_of_problems_and_networks_exist(heading, kinds):
    rows = rows_of("reference/problems_and_networks.md", heading)
    names = [name for row in rows for name in re.findall(r"`(\w+)", row)]
    assert len(names) > 4
    annotated = {name for kind in kinds for name in getattr(kind, "__annotations__", {})}
    assert {
        n for n in names if n not in annotated and not any(hasattr(k, n) for k in kinds)
    } == set()


def test_mixing_weights_on_a_ring_agree_with_the_documentation():
    text = (DOCS / "reference/problems_and_networks.md").read_text()
    rows = re.findall(r"^\| `(\w+)`.* \| (\d)/(\d)[^|]* \| (\d)/(\d) \|$", text, re.MULTILINE)
    assert {name for name, *_ in rows} == set(pc.networks.MIXINGS)
    for name, *numbers in rows:
        a, b, c, d = map(int, numbers)
        network = pc.networks.build(pc.Streams(0, (0,)), "ring", 10, weights=name)
        assert network.mixing[0, :2] == pytest.approx([a / b, c / d])


def test_the_listed_attributes_of_an_algorithm_exist():
    rows = rows_of("how-to/add_a_method_with_rounds.md", "Class attributes")
    names = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert len(names) > 6 and all(hasattr(Algorithm, name) for name in names)


def test_the_listed_families_exist_in_the_package():
    rows = rows_of("how-to/add_a_version.md", "What a family provides")
    listed = {row.strip("`") for row in rows}
    folder = Path(families.__file__).parent
    text = {file.stem: file.read_text() for file in folder.glob("*.py")}
    based = {name for name, code in text.items() if re.search(r"^class \w+\((\w+)", code, re.M)}
    assert listed <= based and "admm" in listed


def test_the_page_on_the_report_describes_each_of_its_pages():
    text = (DOCS / "getting-started/read_the_report.md").read_text()
    described = set(re.findall(r"^\| ([^|]+) \| .+ \|$", text, re.MULTILINE))
    assert set(TOPICS.values()) <= described


def test_the_block_on_clipping_has_the_stated_scale_and_sensitivity():
    """A record changes the gradient by at most 2K/N_i.

    Without clipping, the gradient without the ridge term is N/N_i times that of f_i.
    """
    text = (DOCS / "reference/problems_and_networks.md").read_text()
    block = re.search(r"^```python\n(.*?)^```", text, re.M | re.S)[1]
    random, sizes, ridge = np.random.default_rng(0), np.array([6, 4, 2]), 0.1
    rows, labels = random.standard_normal((3, 6, 2)), random.choice([-1.0, 1.0], (3, 6))
    rows /= np.linalg.norm(rows, axis=-1, keepdims=True)
    padding = np.arange(6) >= sizes[:, None]
    rows[padding], labels[padding] = 0.0, -1.0
    z = random.standard_normal((1, 1, 3, 2))

    def gradient(clip, rows=rows):
        problem = LogisticRegression(rows, labels, rows[0], labels[0], 0.3, ridge, sizes=sizes)
        step = {"np": np, "self": SimpleNamespace(clip=clip), "z": z, "problem": problem}
        exec(block, step)
        return step["gradient"], problem.gradient(z)

    unclipped, exact = gradient(np.inf)
    np.testing.assert_allclose(unclipped - ridge * z, (exact - ridge * z) * 6 / sizes[:, None])
    neighbour = rows.copy()
    neighbour[2, 0] = -rows[2, 0]
    change = np.linalg.norm(gradient(0.01, neighbour)[0] - gradient(0.01)[0], axis=-1)
    np.testing.assert_allclose(change[0, 0], [0, 0, 2 * 0.01 / 2], atol=1e-12)


def test_documentation_pages_cited_by_other_files_exist():
    root = DOCS.parent
    names = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "Makefile", "config/README.md")
    files = [root / name for name in names]
    files += [
        file for folder in ("src", "workflow", "profiles") for file in (root / folder).rglob("*.*")
    ]
    endings = (".py", ".md", ".smk", ".yaml", ".j2", "")
    texts = {file: file.read_text() for file in files if file.is_file() and file.suffix in endings}
    mentioned_pages = {
        (name, file.name)
        for file, text in texts.items()
        for name in re.findall(r"(?<![\w/-])docs/[\w/-]+\.(?:md|yaml|rst)", text)
    }
    assert len(mentioned_pages) > 8
    assert {entry for entry in mentioned_pages if not (root / entry[0]).exists()} == set()


def test_the_sphinx_configuration_has_no_external_links():
    text = (DOCS / "conf.py").read_text()
    assert "intersphinx" not in text and "http" not in text
    assert '"write_computation_times": False' in text  # its page loads scripts
