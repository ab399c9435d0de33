"""Compute the rankings of the comparison, and the verdicts on its advice."""

import json

from private_consensus.common.job_logging import job_logging
from private_consensus.common.provenance import write_text
from private_consensus.common.readable import read_json
from private_consensus.comparison.advice import judged, read_advice
from private_consensus.comparison.answers import answers
from private_consensus.comparison.schema import read_results

with job_logging(snakemake.log[0], snakemake.params.advice, snakemake.log.usage):
    table = read_results(snakemake.input.results)
    design = read_json(snakemake.input.cells)
    methods = [method["name"] for method in design["methods"]]
    advice = read_advice(snakemake.input.advice, methods)
    results = answers(table, design, judged(advice, table, design["cells"]))
    compact = json.dumps(results, separators=(",", ":"), allow_nan=False)
    write_text(snakemake.output.answers, compact + "\n")
