"""Current results at the scale of the papers become the reference."""

from pathlib import Path

from private_consensus.experiments.results import logged
from private_consensus.publishing import publish
from private_consensus.report import read_results, require_current

params, files = snakemake.params, snakemake.input
with logged(snakemake.log[0], params.config):
    require_current(params.expected, scale=params.scale)
    results = read_results(
        scale=params.scale,
        papers=params.papers,
        labels=params.labels,
        commit=params.commit,
        claims=files.claims,
        privacy=files.privacy,
        numbers=files.numbers,
        images=files.svg,
        tables=files.tables,
        cards=files.cards,
        timings=params.timings,
        seed=params.config["seed"],
    )
    publish(
        results,
        made=Path(files.claims).parent,
        folder=Path("results/reference"),
        config=params.config,
        known=params.known,
        stamped=params.expected,
        partial=params.partial,
    )
