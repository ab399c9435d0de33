"""Refuse results that the code and the settings of now would not have made."""

from private_consensus.experiments.results import logged
from private_consensus.report import require_current, require_whole

with logged(snakemake.log[0], {}):
    scale = snakemake.params.scale
    require_current(snakemake.params.expected, scale=scale)
    for listed in snakemake.params.get("lists", []):
        require_whole(listed, scale=scale)
