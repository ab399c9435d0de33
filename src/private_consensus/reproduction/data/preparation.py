"""Prepare data sets: encode, scale, and describe them by a data card."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np

from private_consensus.common.errors import arguments, require

from . import scaling
from .catalogue import DATA_SETS, ENTRIES, entry, module_of
from .prepared import Prepared
from .raw import Provenance, Raw

ENCODINGS = {"ordinal": "parquet", "onehot": "parquet", "pixels": "npz", "parity": "npz"}
"""Type of the file of acquired contents, by encoding."""


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """Encoding and scaling that turn a data set into features.

    Parameters
    ----------
    encoding : {"ordinal", "onehot", "pixels", "parity"}
        Integer codes, indicator columns, the pixels of images, or the means over blocks of 4 x 4
        pixels with the label even (+1) or odd (-1).
    scaling, row_norm : str
        Scaling of columns and of rows: names in :data:`.scaling.COLUMNS` and
        :data:`.scaling.ROWS`.
    attributes : sequence of str
        Columns that become features; if empty, all columns except the label.
    exclude : sequence of str
        Columns that are removed from ``attributes``.
    drop_missing : bool
        True to drop rows with a missing value.
    bias : bool
        True to append a column of ones before scaling.
    records : int
        Number of rows of the data set after preparation, without test images.
    because : str
        Experiments that use the preparation, and decisions on details that the paper omits.
    """

    name: str
    dataset: str
    encoding: str
    records: int
    scaling: str = "none"
    row_norm: str = "none"
    attributes: Sequence[str] = ()
    exclude: Sequence[str] = ()
    drop_missing: bool = True
    bias: bool = False
    because: str = ""

    def __post_init__(self):
        arguments.choice(f"{self.name}.encoding", self.encoding, ENCODINGS)
        arguments.choice(f"{self.name}.scaling", self.scaling, scaling.COLUMNS)
        arguments.choice(f"{self.name}.row_norm", self.row_norm, scaling.ROWS)

    @property
    def raw_file(self) -> str:
        """File name of the acquired data set."""
        return f"{self.dataset}.{ENCODINGS[self.encoding]}"

    @property
    def unaccounted_data_use(self) -> tuple[str, ...]:
        """Uses of private data without privacy cost: features that depend on other rows, and bounds
        that are treated as public.
        """
        values = self.encoding == "onehot" and not self.drop_missing
        lines = (
            scaling.COLUMNS[self.scaling].data_use,
            scaling.ROWS[self.row_norm].data_use,
            "whether a column has missing values is read from all rows" if values else None,
        )
        return tuple(line for line in lines if line)


PREPARATIONS: dict[str, Preparation] = {
    name: Preparation(name=name, dataset=dataset, **content)
    for dataset in DATA_SETS
    for name, content in ENTRIES[dataset]["preparations"].items()
}


def prepare(spec: str | Preparation, raw: Raw, provenance: Provenance) -> Prepared:
    """Compute features, labels and protected attributes from acquired contents.

    ``spec`` is a preparation or the name of a registered one.
    """
    if isinstance(spec, str):
        spec = PREPARATIONS[arguments.choice("preparation", spec, PREPARATIONS)]
    dataset = spec.dataset
    require(provenance.dataset == dataset, f"{spec.name}.dataset", provenance.dataset, dataset)
    encoded: Prepared = module_of(dataset).SCHEMA.encode(spec, raw)
    features, columns = encoded.features, encoded.columns
    if spec.bias:
        features = np.column_stack([features, np.ones(len(features))])
        columns = (*columns, "bias")
    of_columns, of_rows = scaling.COLUMNS[spec.scaling], scaling.ROWS[spec.row_norm]
    notes = [
        spec.because,
        *encoded.card["notes"],
        of_columns.note,
        of_rows.note,
        "A column of ones is appended before scaling." if spec.bias else "",
    ]
    about = entry(dataset)
    card = {
        **asdict(provenance),
        "title": about.title,
        "citation": about.citation,
        "preparation": spec.name,
        "rows": len(features),
        "dim": len(columns),
        "columns": list(columns),
        "splits": {name: len(rows) for name, rows in encoded.splits.items()},
        **encoded.card,
        "notes": [note for note in notes if note],
    }
    features = np.ascontiguousarray(of_rows.apply(of_columns.apply(features)))
    return replace(encoded, features=features, columns=columns, card=card)
