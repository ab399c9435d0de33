"""Test the claims of a paper, and write their verdicts."""

from private_consensus import algorithms
from private_consensus.common.job_logging import job_logging
from private_consensus.core.algorithms.base import Analysis
from private_consensus.reproduction.claims import Claim, judge_all
from private_consensus.reproduction.claims.words import may_decide
from private_consensus.reproduction.results.files import read_all, sources, stamp, write

with job_logging(snakemake.log[0], snakemake.params.settings):
    claims = {name: Claim(**claim) for name, claim in snakemake.params.settings.items()}
    source = sources(snakemake.input.runs)
    runs = read_all(snakemake.input.runs)
    names = runs["algorithm"].unique()
    table = judge_all(
        claims,
        runs,
        read_all(snakemake.input.privacy),
        paper=snakemake.wildcards.paper,
        deterministic={name for name in names if issubclass(algorithms.load(name), Analysis)},
        reduced=not may_decide(snakemake.wildcards.scale),
    )
    provenance = stamp(snakemake.params.settings, snakemake.params.code, source)
    write(table, snakemake.output.claims, provenance)
