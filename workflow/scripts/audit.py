"""The audits: what is computed of errata, transcripts of algorithms, how often audits flag."""

import polars as pl

from private_consensus import yamls
from private_consensus.audits.controls import power
from private_consensus.audits.errata import computed, read_errata
from private_consensus.audits.experiments import of_experiments
from private_consensus.audits.transcripts import audit_all
from private_consensus.experiments.results import DRAWN, logged, read_all, stamp, write

settings = snakemake.params.asked
with logged(snakemake.log[0], settings):
    errata = read_errata(yamls.read(snakemake.input.errata))
    mark = stamp(settings, snakemake.params.code, DRAWN)
    write(computed(errata), snakemake.output.errata, mark)
    write(pl.DataFrame(power(settings["repetitions"])), snakemake.output.power, mark)
    files = snakemake.input.runs
    own = of_experiments(read_all(files) if files else pl.DataFrame())
    of_settings = [
        row for path in snakemake.input.settings for row in pl.read_parquet(path).to_dicts()
    ]
    rows = audit_all(settings["runs"]) + own + of_settings
    write(pl.DataFrame(rows, infer_schema_length=None), snakemake.output.audits, mark)
