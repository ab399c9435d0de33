"""Acquire and prepare data.  Inputs: a mirror or the publishers.  Outputs: results/{scale}/raw, prepared, cards.

The configuration sets the origin of the data (data.source, data.mirror, data.cache). The .provenance.json file of each raw
file, and each data card, state the origin of the data and how they were processed.
"""

from private_consensus.reproduction.data import DATA_SETS, PREPARATIONS, fingerprint

TABLES, IMAGES = (
    sorted({p.dataset for p in PREPARATIONS.values() if p.raw_file.endswith(suffix)})
    for suffix in (".parquet", ".npz")
)


rule acquire:
    output:
        raw="results/{scale}/raw/{dataset}.parquet",
        provenance="results/{scale}/raw/{dataset}.provenance.json",
    log:
        "results/{scale}/logs/acquire.{dataset}.log",
    wildcard_constraints:
        dataset="|".join(TABLES),
    priority: HIGHEST_PRIORITY
    # Nodes of a cluster often have no access to the publishers or the mirror.
    localrule: True
    conda:
        "../envs/jobs.yml"
    params:
        acquisition=CONFIG.data.to_dict(),
        # A parameter and not an input: an older version of a file may replace it, with its older time.
        mirror=lambda w: CONFIG.data.mirror_checksums(w.dataset),
        seed=CONFIG.seed,
        sources=lambda w: fingerprint(w.dataset),
        code=lambda w: code_of_data("acquire.py", w.dataset),
    script:
        "../scripts/acquire.py"


use rule acquire as acquire_images with:
    output:
        raw="results/{scale}/raw/{dataset}.npz",
        provenance="results/{scale}/raw/{dataset}.provenance.json",
    wildcard_constraints:
        dataset="|".join(IMAGES),


rule prepare:
    input:
        unpack(raw_files),
    output:
        prepared="results/{scale}/prepared/{preparation}.npz",
        card="results/{scale}/cards/{preparation}.json",
    log:
        "results/{scale}/logs/prepare.{preparation}.log",
    wildcard_constraints:
        preparation="|".join(PREPARATIONS),
    priority: HIGHEST_PRIORITY
    conda:
        "../envs/jobs.yml"
    params:
        sources=lambda w: fingerprint(PREPARATIONS[w.preparation].dataset),
        code=lambda w: code_of_data("prepare.py", PREPARATIONS[w.preparation].dataset),
    script:
        "../scripts/prepare.py"
