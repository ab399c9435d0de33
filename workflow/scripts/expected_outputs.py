"""List the missing and empty outputs of a run, and fail if there are any.

expected_outputs.py SCALE
"""

import sys
from pathlib import Path

from private_consensus.reproduction.experiments.plan import load
from private_consensus.reproduction.experiments.schema import read_yaml

scale = sys.argv[1]
plan = load(read_yaml(Path("config/config.yaml")), Path("config"))
names = [
    f"figures/{figure}.{kind}" for figure in plan.figures for kind in ("svg", "png", "pdf", "json")
]
names += [f"data/{figure}.parquet" for figure in plan.figures]
names += [f"data/{table}.parquet" for table in plan.tables]
names += [f"tables/{table}.{kind}" for table in plan.tables for kind in ("csv", "md", "tex")]
names += [f"statements.{kind}" for kind in ("parquet", "csv")]
names += ["claims.parquet", "privacy.parquet", "report/index.html"]
files = [Path("results", scale, name) for name in names]
missing = [str(file) for file in files if not file.exists() or file.stat().st_size == 0]
print(f"{len(files) - len(missing)} of {len(files)} expected outputs exist")
sys.exit("missing: " + ", ".join(missing) if missing else 0)
