"""Preparations: encodings and scalings that turn data sets into features and labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from private_consensus.common.errors import InvalidInput, arguments, require

from . import scaling
from .card import Card
from .catalogue import entry, module_of
from .prepared import Prepared
from .raw import Provenance, Raw
from .tables import Schema, encode

UNIT = 1 / 255
IMAGES = ("pixels", "parity")
"""Encodings of images."""
BLOCK = 4
"""Side length of the blocks of pixels in the encoding ``parity``."""
BLACK_TO_WHITE = "Pixels are bytes divided by 255; this range does not depend on the data."


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
    attributes : tuple of str
        Columns that become features; if empty, all columns except the label.
    exclude : tuple of str
        Columns that are removed from ``attributes``.
    drop_missing : bool
        True to drop rows with a missing value.
    bias : bool
        True to append a column of ones before scaling.
    because : str
        Experiments that use the preparation, and decisions on details that the paper omits.
    """

    name: str
    dataset: str
    encoding: str
    scaling: str = "none"
    row_norm: str = "none"
    attributes: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    drop_missing: bool = True
    bias: bool = False
    because: str = ""

    @property
    def raw_file(self) -> str:
        """File name of the acquired data set."""
        return f"{self.dataset}.{'npz' if self.encoding in IMAGES else 'parquet'}"

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

    def columns_of(self, schema: Schema) -> tuple[str, ...]:
        """Return the columns of the canonical table that become features."""
        unknown = {*self.attributes, *self.exclude} - set(schema.features)
        if unknown:
            expected = f"columns of {self.dataset}"
            raise InvalidInput(f"{self.name}.attributes", sorted(unknown)[0], expected)
        columns = self.attributes or schema.features
        return tuple(c for c in columns if c not in self.exclude)


_ADULT_41 = (
    "age", "workclass", "fnlwgt", "education_num", "marital_status", "occupation", "race", "sex",
    "capital_gain", "capital_loss", "hours_per_week",
)  # fmt: skip

_ADULT_ONEHOT = Preparation(
    name="adult-onehot104",
    dataset="adult",
    encoding="onehot",
    scaling="column_max",
    row_norm="clip",
    because="Ding 2022, section 3.3: full one-hot, columns over their maximum, rows <= 1",
)


def _fair(columns: str) -> str:
    """Return the reason for a preparation of Adult for fair classification."""
    rows = "all 48,842 records, '?' a category of its own, min-max over sqrt(d)"
    return f"Ding 2022, fairness: {columns}; {rows}"


_ADULT_FAIR = Preparation(
    name="adult-fair13",
    dataset="adult",
    encoding="ordinal",
    scaling="minmax_sqrt_dim",
    exclude=("fnlwgt",),
    drop_missing=False,
    because=_fair("13 columns, without fnlwgt"),
)
_WITHOUT_SEX = ("fnlwgt", "sex")

_ALL = (
    Preparation(
        name="adult-ordinal14",
        dataset="adult",
        encoding="ordinal",
        scaling="minmax",
        row_norm="unit",
        because="Xiao et al. 2019: 14 columns, min-max, rows of l2 norm one",
    ),
    _ADULT_ONEHOT,
    replace(
        _ADULT_ONEHOT,
        name="adult-onehot41",
        attributes=_ADULT_41,
        because="Ding 2022, section 3.5: 41 features; education, relationship, country dropped",
    ),
    _ADULT_FAIR,
    replace(
        _ADULT_FAIR,
        name="adult-fair12",
        exclude=_WITHOUT_SEX,
        because=_fair("12 columns, without sex and fnlwgt"),
    ),
    replace(
        _ADULT_FAIR,
        name="adult-fair12-bias",
        exclude=_WITHOUT_SEX,
        bias=True,
        because=_fair("12 columns, without sex and fnlwgt, and a constant"),
    ),
    replace(
        _ADULT_FAIR,
        name="adult-fair-onehot",
        encoding="onehot",
        exclude=_WITHOUT_SEX,
        because=_fair("one-hot, without sex and fnlwgt"),
    ),
    replace(
        _ADULT_FAIR,
        name="adult-fair-onehot-sex",
        encoding="onehot",
        because=_fair("one-hot, without fnlwgt"),
    ),
    replace(
        _ADULT_ONEHOT,
        name="us-onehot58",
        dataset="us",
        exclude=("employed",),
        because="Ding 2022, section 3.5: 58 columns, as many as the text names; a stand-in: the "
        "American Community Survey 2019 instead of the authors' extract",
    ),
    Preparation(
        name="us-fair11",
        dataset="us",
        encoding="ordinal",
        scaling="minmax_sqrt_dim",
        exclude=("sex",),
        because="Ding 2022, fairness: min-max over sqrt(d); the attribute work is the columns "
        "industry and employed; the American Community Survey 2019 stands in for the extract",
    ),
    replace(
        _ADULT_ONEHOT,
        name="brazil-onehot53",
        dataset="brazil",
        bias=True,
        because="Ding 2022, section 3.5: 52 columns and a constant make its 53 features",
    ),
    Preparation(
        name="mnist-pixels",
        dataset="mnist",
        encoding="pixels",
        because="Ding 2022, chapter 4: 784 pixels, ten classes",
    ),
    Preparation(
        name="mnist-parity50",
        dataset="mnist",
        encoding="parity",
        row_norm="clip",
        bias=True,
        because="comparison of methods: even or odd digit, by 49 means of pixels and a constant",
    ),
    Preparation(
        name="cifar10-pixels",
        dataset="cifar10",
        encoding="pixels",
        because="Ding 2022, chapter 4: 3072 pixel values, ten classes",
    ),
)

PREPARATIONS: dict[str, Preparation] = {p.name: p for p in _ALL}


def preparation(name: str) -> Preparation:
    """Return the registered preparation with a name."""
    return PREPARATIONS[arguments.choice("preparation", name, PREPARATIONS)]


@dataclass(frozen=True, kw_only=True)
class _Encoded:
    """Data set as numbers, before scaling, with the remaining fields of its data card."""

    features: np.ndarray
    labels: np.ndarray
    columns: tuple[str, ...]
    splits: Mapping[str, np.ndarray]
    card: dict[str, Any]
    protected: Mapping[str, np.ndarray] = field(default_factory=dict)


def prepare(spec: str | Preparation, raw: Raw, provenance: Provenance) -> Prepared:
    """Compute features, labels and protected attributes from acquired contents.

    ``spec`` is a preparation or the name of a registered one.
    """
    spec = preparation(spec) if isinstance(spec, str) else spec
    dataset = spec.dataset
    require(provenance.dataset == dataset, f"{spec.name}.dataset", provenance.dataset, dataset)
    arguments.choice(f"{spec.name}.encoding", spec.encoding, ("ordinal", "onehot", *IMAGES))
    is_table = isinstance(raw, pl.DataFrame)
    encoded = _encode_table(spec, raw) if is_table else _encode_images(spec, raw)
    features, columns = encoded.features, encoded.columns
    if spec.bias:
        features = np.column_stack([features, np.ones(len(features))])
        columns = (*columns, "bias")
    features = scaling.scale(features, scaling=spec.scaling, row_norm=spec.row_norm)
    about = entry(dataset)
    card: dict[str, Any] = {
        "dataset": dataset,
        "title": about.title,
        "preparation": spec.name,
        "rows": len(features),
        "dim": len(columns),
        "columns": columns,
        "splits": {name: len(rows) for name, rows in encoded.splits.items()},
        "provenance": provenance,
        "citation": about.citation,
    }
    return Prepared(
        features=np.ascontiguousarray(features),
        labels=encoded.labels,
        columns=columns,
        protected=encoded.protected,
        splits=encoded.splits,
        card=Card(**card | encoded.card),
        unit=UNIT if spec.encoding == "pixels" else None,
    )


def _encode_table(spec: Preparation, table: pl.DataFrame) -> _Encoded:
    schema: Schema = module_of(spec.dataset).SCHEMA
    table, splits = _retained(spec, table, schema)
    features, columns = encode(
        table,
        schema,
        spec.columns_of(schema),
        indicators=spec.encoding == "onehot",
        complete=spec.drop_missing,
    )
    positive = schema.positives(table)
    missing = "dropped" if spec.drop_missing else "kept; '?' is a category"
    notes = (
        spec.because,
        f"Rows with missing values are {missing}.",
        scaling.COLUMNS[spec.scaling].note,
        scaling.ROWS[spec.row_norm].note,
        "A column of ones is appended before scaling." if spec.bias else None,
    )
    return _Encoded(
        features=features,
        labels=np.where(positive, 1, -1).astype(np.int8),
        columns=columns,
        splits=splits,
        card={
            "label": f"+1: {schema.positive_label}",
            "label_rate": round(float(positive.mean()), 6),
            "protected": {name: p.meaning for name, p in schema.protected.items()},
            "notes": tuple(note for note in notes if note),
        },
        protected={name: p.of(table).to_numpy() for name, p in schema.protected.items()},
    )


def _retained(
    spec: Preparation, table: pl.DataFrame, schema: Schema
) -> tuple[pl.DataFrame, dict[str, np.ndarray]]:
    """Return the rows that remain, and the row indices of the publisher's splits."""
    is_training = pl.Series(np.arange(table.height) < (schema.train or table.height))
    if spec.drop_missing:
        complete = table.select(pl.all_horizontal(pl.all().is_not_null())).to_series()
        table, is_training = table.filter(complete), is_training.filter(complete)
    if schema.train is None:
        return table, {"all": np.arange(table.height)}
    train = is_training.to_numpy()
    return table, {"train": np.flatnonzero(train), "test": np.flatnonzero(~train)}


def _encode_images(spec: Preparation, raw: Mapping[str, np.ndarray]) -> _Encoded:
    """Encode images as features ``[rows, pixels or blocks]`` in [0, 1], training images first.

    Pixels are float32. ``raw`` has images ``x_train`` and ``x_test``, and their classes ``y_train``
    and ``y_test``.
    """
    names = module_of(spec.dataset).CLASSES
    images = np.concatenate([raw["x_train"], raw["x_test"]])
    classes = np.concatenate([raw["y_train"], raw["y_test"]]).astype(np.int8)
    counts = np.bincount(classes, minlength=len(names))
    train, test = np.split(np.arange(len(images)), [len(raw["y_train"])])
    if spec.encoding == "parity":
        side = images.shape[1] // BLOCK
        means = images.reshape(-1, side, BLOCK, side, BLOCK).mean((2, 4))
        features, prefix = means.reshape(len(images), -1) * UNIT, "block"
        labels, meaning = np.where(classes % 2, -1, 1).astype(np.int8), "+1: even digit"
        rate = np.mean(labels > 0)
    else:
        features, prefix = images.reshape(len(images), -1) * np.float32(UNIT), "pixel"
        labels, meaning = classes, f"classes {', '.join(names)}"
        rate = counts.max() / counts.sum()
    return _Encoded(
        features=features,
        labels=labels,
        columns=tuple(f"{prefix}={i}" for i in range(features.shape[1])),
        splits={"train": train, "test": test},
        card={
            "columns": ("pixel",),
            "label": meaning,
            "label_rate": round(float(rate), 6),
            "notes": (spec.because, BLACK_TO_WHITE),
        },
    )
