"""Functions of several rules: inputs, hashes of code, processes and files by name."""

from private_consensus.reproduction import figures


def code_of_data(script, dataset):
    """Compute the hash of a script that reads a data set, and of the modules of the data set."""
    package = "private_consensus.reproduction.data"
    return code_of(script, package, f"{package}.{dataset}")


def raw_files(wildcards):
    """Return the raw file from which a data set is prepared, and its provenance."""
    preparation = PREPARATIONS[wildcards.preparation]
    return {
        "raw": f"results/{SCALE}/raw/{preparation.raw_file}",
        "provenance": f"results/{SCALE}/raw/{preparation.dataset}.provenance.json",
    }


def code_of_figure(wildcards):
    figure_module = figures.module_of(PLAN.paper_of(wildcards.figure))
    return code_of("draw_figure.py", *filter(None, [figure_module]))


def prepared_of(wildcards):
    if (wildcards.experiment, wildcards.algorithm) not in PLAN.cells():
        sys.exit(
            f"{wildcards.experiment}: no experiment of the configuration with this name runs {wildcards.algorithm}"
        )
    names = PLAN.preparations(wildcards.experiment, wildcards.algorithm)
    return prepared_files(names, wildcards.scale)


def processes_of_cell(wildcards):
    """Return the number of processes of a cell, at most a quarter of the cores: the smallest one with the fewest rounds of blocks. On a cluster, a profile sets it."""
    cell = PLAN.cell(wildcards.experiment, wildcards.algorithm)
    blocks = -(-cell["runs"] // cell["runs_per_batch"])
    rounds = -(-blocks // max(1, (workflow.resource_settings.cores or 1) // 4))
    return -(-blocks // rounds)


def files_of_target(name):
    """Return the files of a figure, a table or a data set."""
    if name in DATA_SETS:
        used = [p.name for p in PREPARATIONS.values() if p.dataset == name]
        return expand(f"results/{SCALE}/cards/{{name}}.json", name=used)
    is_figure = name in PLAN.figures
    folder, kinds = ("figures", FIGURE_KINDS) if is_figure else ("tables", TABLE_KINDS)
    files = [f"results/{SCALE}/{folder}/{name}.{kind}" for kind in kinds]
    return [f"results/{SCALE}/data/{name}.parquet", *files]
