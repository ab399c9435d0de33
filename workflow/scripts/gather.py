"""One table of all claims, one of all privacy statements."""

from private_consensus.experiments.results import logged, read_all, sources, stamp, write

with logged(snakemake.log[0], {}):
    for kind in ("claims", "privacy"):
        files = snakemake.input[kind]
        mark = stamp({}, snakemake.params.code, sources(files))
        write(read_all(files), snakemake.output[kind], mark)
