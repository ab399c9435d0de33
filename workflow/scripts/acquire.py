"""Acquire one data set and record its origin."""

import logging
import sys

from private_consensus.common.job_logging import job_logging
from private_consensus.reproduction.data import write_provenance, write_raw
from private_consensus.reproduction.data.acquisition import Acquisition, acquire

with job_logging(snakemake.log[0]):
    raw, provenance = acquire(
        snakemake.wildcards.dataset,
        Acquisition(**snakemake.params.acquisition),
        seed=snakemake.params.seed,
    )
    write_raw(snakemake.output.raw, raw)
    write_provenance(snakemake.output.provenance, provenance)
    if provenance.is_surrogate:
        text = f"{provenance.dataset} is SURROGATE DATA: {provenance.because}"
        print(text, file=sys.stderr, flush=True)
    logging.info("checksum %s code %s", provenance.checksum, snakemake.params.code)
