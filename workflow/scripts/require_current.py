"""Refuse results that the code and the settings of now would not have made."""

from private_consensus.experiments.results import logged
from private_consensus.report import require_current

with logged(snakemake.log[0], {}):
    require_current(snakemake.params.expected, scale=snakemake.params.scale)
