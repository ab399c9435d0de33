"""Table of Brazil with categorical columns, to compare their marginals and to test ``expand``."""

import numpy as np
import polars as pl

from private_consensus.reproduction.data import brazil


def collapse(table):
    """Replace each block of indicator columns by a categorical column; zeros are ``Unknown``."""
    columns = {}
    for name in brazil.ORDER:
        if name not in brazil.BLOCKS:
            columns[name] = table[name]
            continue
        values = np.array(["Unknown", *brazil.BLOCKS[name]], dtype=object)
        block = table.select(f"{name}={v}" for v in brazil.BLOCKS[name]).to_numpy()
        columns[name] = values[np.where(block.any(axis=1), block.argmax(axis=1) + 1, 0)].tolist()
    return pl.DataFrame({**columns, brazil.LABEL: table[brazil.LABEL]})
