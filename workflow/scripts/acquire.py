"""Acquire one data set and note where it came from."""

import logging

from private_consensus.datasets import Acquisition, acquire, write_provenance, write_raw

logging.basicConfig(
    filename=snakemake.log[0], level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s"
)
raw, provenance = acquire(
    snakemake.wildcards.dataset,
    Acquisition(**snakemake.params.acquisition),
    seed=snakemake.params.seed,
)
write_raw(snakemake.output.raw, raw)
write_provenance(snakemake.output.provenance, provenance)
logging.info("checksum %s code %s", provenance.checksum, snakemake.params.code)
