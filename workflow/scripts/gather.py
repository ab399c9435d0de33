"""Gather all claims and all privacy rows in two tables; adjust and add verdicts."""

from private_consensus.common import yamls
from private_consensus.common.job_logging import job_logging
from private_consensus.reproduction.audits.table import judged
from private_consensus.reproduction.claims import adjusted
from private_consensus.reproduction.results.files import read_all, rows_of, sources, stamp, write
from private_consensus.reproduction.statements.table import errata_of, read_statements

with job_logging(snakemake.log[0], {}):
    for kind in ("claims", "privacy"):
        files = snakemake.input[kind]
        provenance = stamp(snakemake.params.settings, snakemake.params.code, sources(files))
        # A configuration with figures of data only has no claims and no private settings.
        rows = read_all(files)
        if kind == "claims":
            rows = adjusted(rows, rows_of(snakemake.input.theorems))
        else:
            errata = errata_of(read_statements(yamls.read(snakemake.input.statements)))
            rows = judged(rows, errata, rows_of(snakemake.input.audits).to_dicts())
        write(rows, snakemake.output[kind], provenance)
