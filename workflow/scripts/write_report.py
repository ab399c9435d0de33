"""Write the report, if all results are up to date."""

from pathlib import Path

from private_consensus.common.job_logging import job_logging
from private_consensus.common.readable import read_json
from private_consensus.report import read_results, write_site
from private_consensus.reproduction.results.freshness import require_current

scale = snakemake.wildcards.scale
plan = read_json(snakemake.input.plan)
with job_logging(snakemake.log[0], plan["config"]):
    require_current(plan["expected"], scale=scale)
    results = read_results(plan, snakemake.input, scale=scale, commit=snakemake.params.commit)
    folder = Path(snakemake.output.page).parent
    write_site(results, source=folder.parent, folder=folder)
