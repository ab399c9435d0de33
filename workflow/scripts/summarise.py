"""Write the page of a study in Markdown: figures, claims, privacy with verdicts, and audits."""

from private_consensus.common import yamls
from private_consensus.common.job_logging import job_logging
from private_consensus.common.provenance import write_json, write_text
from private_consensus.reproduction.statements.table import errata_of, read_statements
from private_consensus.reproduction.studies.summary import findings, summary

with job_logging(snakemake.log[0], {}):
    files = {
        kind: snakemake.input.get(kind, [])
        for kind in ("figures", "tables", "claims", "privacy", "audits")
    }
    errata = errata_of(read_statements(yamls.read(snakemake.input.statements)))
    write_text(snakemake.output.summary, summary(**files, errata=errata))
    write_json(snakemake.output.findings, findings(files["audits"]))
