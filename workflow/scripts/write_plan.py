"""What a run is asked for, in words for the report and as stamps of what is current."""

import json

from private_consensus.job_logging import job_logging
from private_consensus.provenance import write_text

plan = snakemake.params.plan
with job_logging(snakemake.log[0], plan["config"]):
    write_text(snakemake.output.plan, json.dumps(plan, indent=1))
