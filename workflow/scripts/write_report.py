"""The page of a whole reproduction."""

from pathlib import Path

from private_consensus.experiments.results import logged
from private_consensus.report import read_results, require_current, write_site

scale = snakemake.wildcards.scale
with logged(snakemake.log[0], snakemake.params.config):
    require_current(snakemake.params.expected, scale=scale)
    results = read_results(
        scale=scale,
        papers=snakemake.params.papers,
        labels=snakemake.params.labels,
        commit=snakemake.params.commit,
        claims=snakemake.input.claims,
        privacy=snakemake.input.privacy,
        numbers=snakemake.input.numbers,
        images=snakemake.input.svg,
        tables=snakemake.input.tables,
        cards=snakemake.input.cards,
        timings=snakemake.params.timings,
        faults=snakemake.input.faults,
        audit=snakemake.input.audit,
        documents=snakemake.input.documents,
        seed=snakemake.params.config["seed"],
    )
    folder = Path(snakemake.output.page).parent
    write_site(results, made=folder.parent, folder=folder)
