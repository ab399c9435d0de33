"""Refuse results that the present code and settings would not produce."""

from private_consensus.common.job_logging import job_logging
from private_consensus.reproduction.report import require_current, require_whole

with job_logging(snakemake.log[0], {}):
    scale = snakemake.params.scale
    require_current(snakemake.params.expected, scale=scale)
    for listed in snakemake.params.get("lists", []):
        require_whole(listed, scale=scale)
