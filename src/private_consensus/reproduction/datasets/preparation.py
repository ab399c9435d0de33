"""Preparation of data sets: declared encodings and scalings from tables to arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from private_consensus.common.errors import InvalidInput

from . import encoding, images, scaling
from .card import Card, marginals_of
from .catalogue import entry, module_of
from .checksums import Raw
from .origin import Provenance
from .prepared import Prepared
from .tables import Schema

COLUMN_ORACLES = {
    "column_max": "columns are divided by their largest value, over all rows",
    "minmax": "columns are scaled by their least and largest value, over all rows",
    "minmax_sqrt_dim": "columns are scaled by their least and largest value, over all rows",
}
ROW_ORACLES = {
    "clip": "the bound one on the norm of rows is public, each being shortened by itself",
    "unit": "that rows have norm one is public, each being scaled by itself",
}
ENCODINGS = {"ordinal": encoding.ordinal, "onehot": encoding.onehot}


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """Rules that turn a table into features.

    Parameters
    ----------
    name, dataset : str
        What it is called, and of which data set.
    encoding : {"ordinal", "onehot", "pixels"}
        Integer codes, indicator columns, or the pixels of images.
    scaling, row_norm : str
        See :func:`.scaling.scale`.
    attributes : tuple of str
        Columns used; empty means all but the label.
    exclude : tuple of str
        Columns left out of these.
    drop_missing : bool
        Whether rows with any missing value are dropped.
    bias : bool
        Whether a column of ones is appended, before scaling.
    because : str
        Which experiment asks for it, and what was decided where the paper is silent.
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
        """Name of the acquired file that it needs."""
        return f"{self.dataset}.{'npz' if self.encoding == 'pixels' else 'parquet'}"

    @property
    def oracles(self) -> tuple[str, ...]:
        """List features that depend on other rows, and bounds that are treated as public."""
        values = self.encoding == "onehot" and not self.drop_missing
        lines = (
            COLUMN_ORACLES.get(self.scaling),
            ROW_ORACLES.get(self.row_norm),
            "whether a column has missing values is read from all rows" if values else None,
        )
        return tuple(line for line in lines if line)

    def columns_of(self, schema: Schema) -> tuple[str, ...]:
        """Columns of the canonical table that are encoded."""
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

_FAIR = (
    "13 features of all 48,842 records: every column but fnlwgt, '?' a category of its own, "
    "min-max over sqrt(d)"
)


def _fair(name: str, **changes: object) -> Preparation:
    return Preparation(
        name=name,
        dataset="adult",
        scaling="minmax_sqrt_dim",
        drop_missing=False,
        because=f"paper 004, fairness: {_FAIR}",
        **changes,
    )


def _us_fair(name: str, **changes: object) -> Preparation:
    return Preparation(
        name=name,
        dataset="us",
        scaling="minmax_sqrt_dim",
        because="paper 004, fairness: min-max over sqrt(d); the attribute work is the columns "
        "industry and employed; the American Community Survey 2019 stands in for the extract",
        **changes,
    )


_ALL = (
    Preparation(
        name="adult-ordinal14",
        dataset="adult",
        encoding="ordinal",
        scaling="minmax",
        row_norm="unit",
        because="paper 001: 14 columns, min-max, rows of l2 norm one",
    ),
    Preparation(
        name="adult-onehot104",
        dataset="adult",
        encoding="onehot",
        scaling="column_max",
        row_norm="clip",
        because="paper 004, section 3.3: full one-hot, columns over their maximum, rows <= 1",
    ),
    Preparation(
        name="adult-onehot41",
        dataset="adult",
        encoding="onehot",
        scaling="column_max",
        row_norm="clip",
        attributes=_ADULT_41,
        because="paper 004, section 3.5: 41 features; education, relationship, country dropped",
    ),
    _fair("adult-fair13", encoding="ordinal", exclude=("fnlwgt",)),
    _fair("adult-fair12", encoding="ordinal", exclude=("fnlwgt", "sex")),
    _fair("adult-fair13-bias", encoding="ordinal", exclude=("fnlwgt",), bias=True),
    _fair("adult-fair12-bias", encoding="ordinal", exclude=("fnlwgt", "sex"), bias=True),
    _fair("adult-fair-onehot", encoding="onehot", exclude=("fnlwgt", "sex")),
    _fair("adult-fair-onehot-sex", encoding="onehot", exclude=("fnlwgt",)),
    Preparation(
        name="us-onehot58",
        dataset="us",
        encoding="onehot",
        scaling="column_max",
        row_norm="clip",
        exclude=("employed",),
        because="paper 004, section 3.5: 58 columns, as many as the text names; a stand-in: the "
        "American Community Survey 2019 instead of the authors' extract",
    ),
    _us_fair("us-fair11", encoding="ordinal", exclude=("sex",)),
    _us_fair("us-fair12", encoding="ordinal"),
    _us_fair("us-fair11-bias", encoding="ordinal", exclude=("sex",), bias=True),
    _us_fair("us-fair12-bias", encoding="ordinal", bias=True),
    _us_fair("us-fair-onehot", encoding="onehot", exclude=("sex",)),
    _us_fair("us-fair-onehot-sex", encoding="onehot"),
    Preparation(
        name="brazil-onehot53",
        dataset="brazil",
        encoding="onehot",
        scaling="column_max",
        row_norm="clip",
        bias=True,
        because="paper 004, section 3.5: 52 columns and a constant make its 53 features",
    ),
    Preparation(
        name="mnist-pixels",
        dataset="mnist",
        encoding="pixels",
        because="paper 004, chapter 4: 784 pixels, ten classes",
    ),
    Preparation(
        name="cifar10-pixels",
        dataset="cifar10",
        encoding="pixels",
        because="paper 004, chapter 4: 3072 pixel values, ten classes",
    ),
)

PREPARATIONS: dict[str, Preparation] = {p.name: p for p in _ALL}


def preparation(name: str) -> Preparation:
    """The registered preparation of that name."""
    if name not in PREPARATIONS:
        raise InvalidInput("preparation", name, f"one of {', '.join(PREPARATIONS)}")
    return PREPARATIONS[name]


def prepare(how: str | Preparation, raw: Raw, provenance: Provenance) -> Prepared:
    """Features, labels and protected attributes of acquired contents.

    Parameters
    ----------
    how : str or Preparation
        A registered name, or a declaration of one's own.
    raw, provenance
        From :func:`.acquisition.acquire`.
    """
    how = preparation(how) if isinstance(how, str) else how
    if provenance.dataset != how.dataset:
        raise InvalidInput(f"{how.name}.dataset", provenance.dataset, how.dataset)
    if how.encoding == "pixels":
        return images.prepare(how, raw, provenance)
    return _prepare_table(how, raw, provenance)


def _prepare_table(how: Preparation, table: pl.DataFrame, provenance: Provenance) -> Prepared:
    schema: Schema = module_of(how.dataset).SCHEMA
    if how.encoding not in ENCODINGS:
        raise InvalidInput(f"{how.name}.encoding", how.encoding, "ordinal, onehot or pixels")
    table, splits = _kept(how, table, schema)
    attributes = how.columns_of(schema)
    encode = ENCODINGS[how.encoding]
    features, columns = encode(table, schema, attributes, complete=how.drop_missing)
    if how.bias:
        features = np.column_stack([features, np.ones(len(features))])
        columns = (*columns, "bias")
    features = scaling.scale(features, scaling=how.scaling, row_norm=how.row_norm)
    positive = schema.positives(table).to_numpy()
    protected = {name: p.of(table).to_numpy() for name, p in schema.protected.items()}
    return Prepared(
        features=np.ascontiguousarray(features),
        labels=np.where(positive, 1, -1).astype(np.int8),
        columns=columns,
        protected=protected,
        splits=splits,
        card=_card(how, table, schema, provenance, columns, splits),
    )


def _kept(
    how: Preparation, table: pl.DataFrame, schema: Schema
) -> tuple[pl.DataFrame, dict[str, np.ndarray]]:
    """Rows that are kept, and where the publisher's parts are among them."""
    keep = np.ones(table.height, bool)
    if how.drop_missing:
        keep = ~table.select(pl.any_horizontal(pl.all().is_null())).to_series().to_numpy()
    train = table.height if schema.train is None else min(schema.train, table.height)
    train_rows = int(keep[:train].sum())
    rows = np.arange(int(keep.sum()))
    splits = (
        {"all": rows}
        if schema.train is None
        else {"train": rows[:train_rows], "test": rows[train_rows:]}
    )
    return table.filter(pl.Series(keep)), splits


def _card(
    how: Preparation,
    table: pl.DataFrame,
    schema: Schema,
    provenance: Provenance,
    columns: tuple[str, ...],
    splits: dict[str, np.ndarray],
) -> Card:
    about = entry(how.dataset)
    above = schema.positive if isinstance(schema.positive, str) else f"> {schema.positive:,}"
    return Card(
        dataset=how.dataset,
        title=about.title,
        preparation=how.name,
        rows=table.height,
        dim=len(columns),
        columns=columns,
        label=f"+1: {schema.label} {above}",
        label_rate=round(float(schema.positives(table).mean()), 6),
        splits={name: len(rows) for name, rows in splits.items()},
        protected={name: p.meaning for name, p in schema.protected.items()},
        provenance=provenance,
        citation=about.citation,
        notes=_notes(how),
        marginals=marginals_of(table, schema),
    )


def _notes(how: Preparation) -> tuple[str, ...]:
    scaled = {
        "column_max": "Columns are divided by their largest value, which is treated as public.",
        "minmax": "Columns are brought to [0, 1]; their ranges are treated as public.",
        "minmax_sqrt_dim": "Columns are brought to [0, 1/sqrt(d)]; their ranges are treated as "
        "public.",
    }
    rows = {
        "clip": "Rows longer than one are shortened to l2 norm one, each by itself.",
        "unit": "Rows are brought to l2 norm one, each by itself.",
    }
    missing = "dropped" if how.drop_missing else "kept, '?' being a category"
    notes = [
        how.because,
        f"Rows with missing values are {missing}.",
        scaled.get(how.scaling),
        rows.get(how.row_norm),
        "A column of ones is appended before scaling." if how.bias else None,
    ]
    return tuple(note for note in notes if note)
