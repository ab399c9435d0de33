"""Fail if the present code and settings did not produce all results."""

from private_consensus.common.job_logging import job_logging
from private_consensus.reproduction.experiments.freshness import require_current

with job_logging(snakemake.log[0], {}):
    require_current(snakemake.params.expected, scale=snakemake.params.scale)
