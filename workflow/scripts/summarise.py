"""What a study found: figures, claims, privacy, audits on one page of Markdown."""

from private_consensus.job_logging import job_logging
from private_consensus.provenance import write_text
from private_consensus.report import require_current
from private_consensus.studies.summary import summary

with job_logging(snakemake.log[0], {}):
    require_current(snakemake.params.expected, scale=snakemake.params.scale)
    found = {
        kind: snakemake.input.get(kind, [])
        for kind in ("figures", "tables", "claims", "privacy", "audits")
    }
    write_text(snakemake.output.summary, summary(**found))
