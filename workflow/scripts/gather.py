"""One table of all claims, one of all privacy statements."""

import polars as pl

from private_consensus.experiments.results import logged, read_all, sources, stamp, write

with logged(snakemake.log[0], {}):
    for kind in ("claims", "privacy"):
        files = snakemake.input[kind]
        mark = stamp({}, snakemake.params.code, sources(files))
        # Figures about data alone have neither claims nor privacy.
        rows = read_all(files) if files else pl.DataFrame()
        write(rows, snakemake.output[kind], mark)
