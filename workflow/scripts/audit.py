"""Run the audits: errata, small examples of all algorithms, and settings of figures."""

import polars as pl

from private_consensus.common import yamls
from private_consensus.common.job_logging import job_logging
from private_consensus.reproduction.audits.errata import computed, read_errata
from private_consensus.reproduction.audits.experiments import of_experiments
from private_consensus.reproduction.audits.settings import audit_examples, decided
from private_consensus.reproduction.experiments.results import (
    DRAWN,
    read_all,
    rows_of,
    stamp,
    write,
)

asked = snakemake.params.asked
with job_logging(snakemake.log[0], asked, snakemake.log.usage):
    errata = read_errata(yamls.read(snakemake.input.errata))
    mark = stamp(asked, snakemake.params.code, DRAWN)
    write(computed(errata), snakemake.output.errata, mark)
    files = snakemake.input.runs
    own = of_experiments(read_all(files) if files else pl.DataFrame())
    of_settings = [row for path in snakemake.input.settings for row in rows_of(path).to_dicts()]
    examples = audit_examples(asked["runs"], asked["confidence"])
    rows = decided(examples + own + of_settings, asked["level"])
    write(pl.DataFrame(rows, infer_schema_length=None), snakemake.output.audits, mark)
