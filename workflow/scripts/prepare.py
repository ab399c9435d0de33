"""Prepare one data set for learning: arrays and data card."""

import logging

from private_consensus.common.job_logging import job_logging
from private_consensus.common.provenance import files_hash, write_json
from private_consensus.reproduction.data import prepare, read_acquired

with job_logging(snakemake.log[0]):
    prepared = prepare(
        snakemake.wildcards.preparation,
        *read_acquired(snakemake.input.raw, snakemake.input.provenance),
    )
    prepared.save(snakemake.output.prepared)
    provenance = {"code": snakemake.params.code, "data": files_hash([snakemake.output.prepared])}
    write_json(snakemake.output.card, prepared.card | provenance)
    logging.info("%d rows, %d columns, code %s", *prepared.features.shape, snakemake.params.code)
