"""Publish the results of a full run as reference results, if they are up to date."""

from pathlib import Path

from private_consensus.common.job_logging import job_logging
from private_consensus.common.readable import read_json
from private_consensus.publishing import publish
from private_consensus.report import read_results

params, files = snakemake.params, snakemake.input
plan = read_json(files.plan)
with job_logging(snakemake.log[0], plan["config"]):
    scale = plan["config"]["scale"]
    results = read_results(plan, files, scale=scale, commit=params.commit)
    publish(
        results,
        run=Path(files.claims).parent,
        folder=Path("results/reference"),
        config=plan["config"],
        papers=params.papers,
    )
