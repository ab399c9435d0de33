"""Generate the reference pages from the code, the configuration and the published results."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from inspect import getdoc
from pathlib import Path
from typing import Any

import polars as pl
import yaml
from benchmarks import growth, jobs, makespan, measuring, plots

import private_consensus as pc
from private_consensus.core.algorithms.base import Attack
from private_consensus.reproduction.claims.schema import Test
from private_consensus.reproduction.configuration import plan
from private_consensus.reproduction.configuration.schema import schemas
from private_consensus.reproduction.results.files import rows_of

ROOT = Path(__file__).parents[1]
REFERENCE = ROOT / "results" / "reference"
TABLES = ("claims", "privacy", "statements")
COLUMNS = {
    "claims": {
        "id": "identifier of the claim",
        "paper": "key of the paper",
        "figure": "figure or table that shows the claim",
        "claim": "the claim in one sentence",
        "location": "place of the claim in the paper",
        "quotation": "sentence of the paper that states the claim",
        "addition": "true if no sentence of the paper states the claim; no total counts it",
        "theorems": "numbered statements of the paper that the claim repeats",
        "variant": "name of the tested variant",
        "is_primary": "true for the variant whose verdict counts for the claim",
        "interpretation": "literal, resolved or ablation",
        "verdict": "verdict after Holm's adjustment",
        "kind": "kind of test; one of the claim tests",
        "statistic": "statistic that is nearest to failing, in words",
        "unit": "unit of the statistic, of its interval and of the accepted values",
        "means": "means over runs that the statistic depends on: of the first series along x, "
        "then of the second",
        "value": "value of the statistic",
        "low": "lower end of its 95 % interval",
        "high": "upper end of its 95 % interval",
        "accept_low": "smallest value with which the claim is true",
        "accept_high": "largest value with which the claim is true",
        "tolerance": "tolerance of the test",
        "parts": "number of statistics that the claim consists of",
        "confirmed": "number of confirmed parts",
        "contradicted": "number of contradicted parts",
        "tied": "number of parts in which both sides are exactly equal",
        "p": "p-value of the verdict",
        "error": "standard error of the statistic",
        "skewness": "skewness of the statistic over runs",
        "level_divisor": "number of parts among which the error level is divided",
        "runs": "number of runs",
        "runs_needed": "estimated number of runs that would decide an undecided claim",
        "because": "reason for the test and its tolerance",
        "untestable_because": "reason why no measurement can decide the claim",
        "caveat": "restriction of the verdict on the primary variant",
        "setting": "data, budget, network and iterations of the primary variant",
        "differences": "parameters without a test at the value of the paper",
        "interpretations": "verdict of each other interpretation of the sentence",
        "related": "verdicts on the numbered statements in the location of the claim",
        "verdict_unadjusted": "verdict at 95 % for this claim alone",
        "excluded": "verdicts that an undecided claim excludes",
        "p_holm": "p-value after Holm's adjustment",
        "no_better": "constant models, and the compared methods that are no better, by line",
        "source": "origin of the data",
    },
    "privacy": {
        "experiment": "name of the experiment",
        "algorithm": "name of the algorithm",
        "variant": "name of the variant",
        "interpretation": "literal, resolved or ablation",
        "steps": "number of iterations",
        "delta": "delta of all epsilons of the row, or the value of the axis delta",
        "epsilon_claimed": "epsilon that the paper claims",
        "epsilon_formula": "epsilon by the paper's formula at the noise used",
        "epsilon_accountant": "epsilon by the accountant, an upper bound if it is proven",
        "accountant": "method of the accountant",
        "epsilon_lower": "lower bound from an attack with known privacy loss",
        "lower_bound_method": "the attack",
        "proven": "true if the upper bound is proven",
        "relation": "neighbouring relation",
        "mechanisms": "mechanisms of a run, the input of the accountant: number x sensitivity, "
        "scale of the noise. More than four pairs: ranges, sum of sensitivity over scale (epsilon "
        "of Laplace noise), and root of the sum of squares (mu of Gaussian noise)",
        "epsilon_under_assumption": "epsilon if the data satisfy the assumption in the notes",
        "delta_of_guarantee": "delta of the guarantee, where delta is an axis of the experiment",
        "notes": "assumptions and remarks on the releases",
        "verdict": "verdict on the claimed epsilon",
        "unaccounted_data_use": "uses of private data that no mechanism covers",
        "source": "origin of the data",
        "errata": "errata that concern the variant",
        "epsilon_empirical": "lower bound from an audit of the same setting",
        "audit": "attack and number of runs of the audit",
        "audit_verdict": "verdict of the audit",
        "audit_findings": "findings of the audit",
    },
    "statements": {
        "paper": "key of the paper",
        "number": "number of the statement in the paper",
        "statement": "the statement in one sentence",
        "computation": "name of the computation, for the command statement",
        "because": "reason why nothing is computed",
        "same_slip_as": "errata of other statements that the statement repeats or uses",
        "claims": "related claims",
        "verdict": "verdict on the statement",
        "erratum": "number of the erratum; a statement with several errata has several rows",
        "location": "location of the erratum in the paper",
        "slip": "wrong statement in one sentence",
        "severity": "consequence of the erratum",
        "why": "reason why the statement is wrong",
        "repair": "correction",
        "effect": "effect of the correction on the figures",
        "repaired": "variants with the correction",
        "affects": "affected algorithms and variants",
        "quantity": "quantity of the inequality nearest to failing, of the erratum if there is one",
        "stated": "value by the statement",
        "measured": "computed value",
        "margin": "stated over computed value (for a lower bound, the inverse); "
        "at least 1 if the statement holds",
        "points": "number of points at which the inequalities were computed",
        "parts": "the inequalities and their results, one per line",
        "description": "how the statement was computed",
    },
}
"""Meaning of the columns of each table; other columns of ``privacy`` are varied parameters."""


def pages() -> dict[str, str]:
    """Return the generated pages in reStructuredText, by their path below ``docs``."""
    made = {
        "algorithms": algorithms(),
        "claim_tests": claim_tests(),
        "measurements": measurements(),
        "configuration": configuration(),
        "output_files": output_files(),
    }
    return {f"reference/generated/{name}.rst": text for name, text in made.items()} | {
        "results/index.rst": results()
    }


def performance() -> dict[str, str]:
    """Return tables and plot of the page on performance, by their path below ``docs``."""
    grown, (run,) = measuring.read(growth.KEPT), measuring.read(jobs.KEPT)
    times = jobs.seconds(run["jobs"])
    parts = {
        "jobs.txt": jobs.tables(run),
        "cores.txt": makespan.table(loaded_plan(), times, (2, 16, 32, 64), 25.0),
        "growth.txt": growth.tables(grown),
        "growth.svg": plots.svg(plots.growth_plot(grown)),
    }
    return {f"_generated/{name}": text for name, text in parts.items()}


def title(text: str, line: str = "=") -> str:
    """Return a heading."""
    return f"{text}\n{line * len(text)}\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], widths: str = "auto") -> str:
    """Return a table in reStructuredText.

    Parameters
    ----------
    head : sequence of str
        Titles of the columns.
    rows : iterable of sequence of str
        Cells, which may contain markup of a single line.
    widths : str
        Relative widths of the columns.

    Returns
    -------
    str
    """
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", ""]
    for row in [head, *rows]:
        cells = [" ".join(str(cell).split()) or "\\ " for cell in row]
        lines += [f"   {'* -' if i == 0 else '  -'} {cell}" for i, cell in enumerate(cells)]
    return "\n".join(lines) + "\n"


def code(text: str) -> str:
    """Return text as a literal."""
    return f"``{text}``"


def plain(text: str) -> str:
    """Return text in which no character is markup."""
    return re.sub(r"([\\*`|_])", r"\\\1", text)


def summary(obj: Any) -> str:
    """Return the first sentence of a docstring."""
    paragraph = " ".join((getdoc(obj) or "").partition("\n\n")[0].split())
    return re.split(r"\. (?=[A-Z])", paragraph)[0].rstrip(".")


@cache
def loaded_plan() -> plan.Plan:
    """Return the validated configuration of the repository."""
    config = yaml.safe_load((ROOT / "config" / "config.yaml").read_text())
    return plan.load(config, ROOT / "config")


def problems_by_algorithm() -> dict[str, set[str]]:
    """Return the problems on which the experiments of the papers run each algorithm."""
    experiments = loaded_plan()
    problems: dict[str, set[str]] = defaultdict(set)
    for name, algorithm in experiments.cells():
        problems[algorithm].add(experiments.experiments[name].problem.name)
    return problems


def built_in() -> list[str]:
    """Return the names of the algorithms of this package."""
    names = pc.algorithms.names()
    return [n for n in names if pc.algorithms.module_of(n).startswith("private_consensus.")]


def algorithms() -> str:
    """Return the page with one row per algorithm."""
    privacy = pl.read_parquet(REFERENCE / "privacy.parquet")
    problems = problems_by_algorithm()
    rows = []
    for name in built_in():
        kind = pc.algorithms.load(name)
        settings = privacy.filter(
            pl.col("algorithm") == name, pl.col("epsilon_claimed").is_finite()
        )
        relations = sorted(set(settings["relation"].drop_nulls()))
        rows.append(
            (
                f":doc:`{name} </api/algorithms/{name}>`"
                + (" (attack)" if issubclass(kind, Attack) else ""),
                plain(kind.source),
                ", ".join(map(code, sorted(problems[name]))),
                plain("; ".join(relations)) or "none stated",
                proven_of(settings),
            )
        )
    head = ["name", "paper", "problems", "relation", "proven"]
    text = (
        "*Proven* counts the private settings of the reference results in which every sensitivity\n"
        "has a derivation.\n"
    )
    return "\n".join([title("Algorithms by paper"), text, table(head, rows)])


def proven_of(settings: pl.DataFrame) -> str:
    """Return how many private settings have proven sensitivities."""
    if settings.is_empty():
        return "none private"
    return f"{int(settings['proven'].sum())} of {settings.height}"


def claim_tests() -> str:
    """Return the page with the definition of each kind of test and the number of its uses."""
    text = " ".join(getdoc(Test).split("\n\n")[1].split())
    kinds = Test.model_fields["kind"].annotation.__args__
    rows, names, sentences = [], [], []
    uses = Counter(pl.read_parquet(REFERENCE / "claims.parquet")["kind"].to_list())
    for sentence in re.split(r"(?<=\.) (?=``)", text):
        head, _, definition = sentence.partition(": ")
        found = re.findall(r"``(\w+)``", head)
        if set(found) <= set(kinds) and found:
            names, sentences = found, [definition]
            rows.append([names, sentences])
        elif sentences:
            sentences.append(sentence)
    listed = {name for names, _ in rows for name in names}
    assert listed == set(kinds), f"kinds without a definition: {set(kinds) ^ listed}"
    head = ["kind", "statement", "claims of the reference"]
    shown = [
        (", ".join(map(code, names)), " ".join(sentences), str(sum(uses[n] for n in names)))
        for names, sentences in rows
    ]
    quantifiers = " ".join(getdoc(Test).split("\n\n")[2].split())
    return "\n".join([title("Claim tests"), table(head, shown), quantifiers, ""])


def measurements() -> str:
    """Return the page with the quantities of each algorithm and the metrics of each problem."""
    metrics = [
        (
            code(name),
            ", ".join(map(code, pc.problems.class_of(name).metrics)),
            summary(pc.problems.load(name)),
        )
        for name in pc.problems.names()
    ]
    quantities = [
        (code(n), ", ".join(map(code, pc.algorithms.load(n).quantities))) for n in built_in()
    ]
    text = (
        "A measurement is ``quantity.metric``, such as ``released.excess_loss``. A quantity that\n"
        "is a number has no metric. Algorithms return quantities; problems provide metrics.\n"
    )
    return "\n".join(
        [
            title("Measurements"),
            text,
            title("Metrics of problems", "-"),
            table(["problem", "metrics", "objective"], metrics),
            title("Quantities of algorithms", "-"),
            table(["algorithm", "quantities"], quantities),
        ]
    )


def configuration() -> str:
    """Return the page with all keys of the configuration, from the JSON schemas."""
    text = (
        "The files are validated before anything runs; an unknown key is an error.\n"
        "``config/README.md`` has examples. ``private-consensus schema`` prints the JSON schemas.\n"
    )
    parts = [title("Configuration"), text]
    for name, schema in schemas().items():
        parts.append(title(f"{name} files", "-"))
        definitions = dict(schema.get("$defs", {}))
        if schema.get("properties"):
            parts.append(keys_of(schema))
        for label, definition in definitions.items():
            if definition.get("properties"):
                parts += [title(label, "~"), plain(definition.get("description", "")), ""]
                parts.append(keys_of(definition))
    return "\n".join(parts)


def keys_of(definition: dict[str, Any]) -> str:
    """Return the table of the keys of one definition of a schema."""
    required = set(definition.get("required", ()))
    rows = [
        (
            code(key),
            plain(" or ".join(dict.fromkeys(types_of(value)))),
            "required" if key in required else default_of(value),
            plain(value.get("description", "")),
        )
        for key, value in definition["properties"].items()
    ]
    return table(["key", "type", "default", "meaning"], rows)


def default_of(value: dict[str, Any]) -> str:
    """Return the default of a key; empty for a mapping and without one."""
    default = value.get("default")
    if isinstance(default, dict) or default in (None, "", []):
        return ""
    return code(json.dumps(default))


def types_of(value: dict[str, Any]) -> Iterator[str]:
    """Yield the types that a schema allows, without null."""
    for option in value.get("anyOf", ()):
        yield from types_of(option)
    if "$ref" in value:
        yield value["$ref"].rpartition("/")[2]
    elif "enum" in value:
        yield ", ".join(map(str, value["enum"]))
    elif "const" in value:
        yield str(value["const"])
    elif value.get("type") == "array":
        items = list(dict.fromkeys(types_of(value.get("items", {}))))
        yield f"list of {' or '.join(items)}" if items else "list"
    elif value.get("type") not in (None, "null"):
        yield {"object": "mapping", "string": "text"}.get(value["type"], value["type"])


def output_files() -> str:
    """Return the page with the files that each rule writes, and the columns of the main tables."""
    rows = []
    for file in sorted((ROOT / "workflow" / "rules").glob("*.smk")):
        text = file.read_text()
        for rule, body in re.findall(r"^rule (\w+):\n(.*?)(?=^\S|\Z)", text, re.M | re.S):
            outputs = re.search(r"^    output:\n(.*?)(?=^    \w+:)", body, re.M | re.S)
            paths = re.findall(r'"(results/[^"]+)"', outputs[1]) if outputs else []
            paths = [path.replace("{{", "{").replace("}}", "}") for path in paths]
            message = re.search(r'^    message:\n\s+f?"(.*)"$', body, re.M)
            if paths:
                content = re.sub(r"\{wildcards\.(\w+)\}", r"<\1>", message[1]) if message else ""
                rows.append((code(rule), plain(content), ", ".join(map(code, paths))))
    parts = [title("Output files"), table(["rule", "content", "files"], rows)]
    for name in TABLES:
        schema = rows_of(REFERENCE / f"{name}.parquet").schema
        parts += [title(f"Columns of {name}.parquet", "-")]
        described = [
            (
                code(column),
                str(kind),
                COLUMNS[name].get(column, "parameter that the experiment varies"),
            )
            for column, kind in schema.items()
        ]
        parts.append(table(["column", "type", "meaning"], described))
    return "\n".join(parts)


def results() -> str:
    """Return the page with the verdicts of the published run."""
    claims = rows_of(REFERENCE / "claims.parquet").filter(pl.col("is_primary"))
    counts = Counter(claims["verdict"].to_list())
    manifest = json.loads((REFERENCE / "manifest.json").read_text())
    text = ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())
    parts = [
        title("Results"),
        f"Published run at commit ``{str(manifest['commit'])[:12]}``.",
        f"Of {claims.height} claims: {text}.",
        "",
    ]
    for paper in claims["paper"].unique(maintain_order=True):
        rows = [
            (plain(row["claim"]), row["verdict"], code(row["id"]))
            for row in claims.filter(paper=paper).iter_rows(named=True)
        ]
        parts += [title(paper.capitalize(), "-")]
        parts += [table(["claim", "verdict", "name"], rows, widths="65 15 20")]
        parts += figures_of(paper)
    return "\n".join(parts)


def figures_of(paper: str) -> list[str]:
    """Return the published figures of a paper, without additions of this project."""
    parts = []
    for file in sorted((REFERENCE / "figures").glob(f"{paper}_fig*.png")):
        if (drawn := loaded_plan().figures.get(file.stem)) is not None:
            path = f"/../results/reference/figures/{file.name}"
            parts += [f".. figure:: {path}", "   :width: 420px", f"   :alt: {file.stem}", ""]
            parts += [f"   {code(file.stem)}: {plain(drawn.title)}", ""]
    return parts
