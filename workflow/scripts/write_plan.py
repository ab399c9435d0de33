"""Write the plan of a run: content of the report, and expected provenance of the results."""

import json

from private_consensus.common.job_logging import job_logging
from private_consensus.common.provenance import write_text

plan = snakemake.params.plan
with job_logging(snakemake.log[0], plan["config"]):
    write_text(snakemake.output.plan, json.dumps(plan, indent=1))
