"""Test the claims of a paper."""

from private_consensus import algorithms
from private_consensus.claims import Claim, judge_all
from private_consensus.experiments.results import read_all, sources, stamp, write
from private_consensus.job_logging import job_logging

with job_logging(snakemake.log[0], snakemake.params.claims, snakemake.log.usage):
    claims = {name: Claim(**claim) for name, claim in snakemake.params.claims.items()}
    source = sources(snakemake.input.runs)
    runs = read_all(snakemake.input.runs)
    names = runs["algorithm"].unique()
    table = judge_all(
        claims,
        runs,
        read_all(snakemake.input.privacy),
        paper=snakemake.wildcards.paper,
        deterministic={name for name in names if algorithms.load(name).deterministic},
        reduced=snakemake.wildcards.scale != "paper",
    )
    mark = stamp(snakemake.params.claims, snakemake.params.code, source)
    write(table, snakemake.output.claims, mark)
