"""Compare some methods in all cells of one problem; record measures and absent methods."""

import json

from private_consensus.common.job_logging import job_logging
from private_consensus.common.provenance import write_text
from private_consensus.comparison.design import Comparison
from private_consensus.comparison.engine import Engine
from private_consensus.comparison.problems import pool_of
from private_consensus.core.kernels.compiling import limited_threads
from private_consensus.reproduction.datasets import Prepared
from private_consensus.reproduction.experiments.results import source_of, stamp, write

asked, out = snakemake.params.asked, snakemake.output
problem, log = snakemake.wildcards.problem, snakemake.log
with job_logging(log[0], asked, log.usage), limited_threads(snakemake.threads):
    design = Comparison.model_validate(asked)
    loaded = [Prepared.load(path) for path in snakemake.input.prepared]
    pool = pool_of(design, problem, {data.name: data for data in loaded})
    engine = Engine(design, problem, pool, list(design.methods))
    rows = engine.rows()
    write_text(out.absent, json.dumps(engine.absent))
    mark = stamp(asked, snakemake.params.code, source_of(loaded), snakemake.input.prepared)
    write(rows, out.rows, mark, [out.absent])
