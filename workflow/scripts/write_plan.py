"""What a run is asked for, in words for the report and as stamps of what is current."""

import json

from private_consensus.experiments.results import logged
from private_consensus.provenance import write_text

plan = snakemake.params.plan
with logged(snakemake.log[0], plan["config"]):
    write_text(snakemake.output.plan, json.dumps(plan, indent=1))
