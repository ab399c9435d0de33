"""Drawings of Xiao et al. (2019): Figure 1 as heat maps, Figure A as messages of Algorithm 3."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import Any

import altair as alt
import polars as pl
from altair.typing import ChartType

from private_consensus.common.symbols import LOWERED, typeset

from .captions import facts
from .figure_styles import OKABE_ITO
from .panels import Chart, Spec, drawn_panels
from .theme import GREY, INK, finish

SIDE = (250, 230)
PROTOCOL = (350, 330)
"""Width and height of a panel that shows messages."""
HALF_SIDE = 1.75
"""Half the side length of a panel that shows messages, in units of the drawing."""
ARROW_OFFSET = 0.07
"""Distance of an arrow from the line between its agents; the reply is on the other side."""
SHARES = "format(datum.value, '.1f')"
THOUSANDTHS = "datum.value == 0 ? '0' : format(1000 * datum.value, '.0f') + '×10⁻³'"
"""Vega expressions that format the labels of colour legends."""


def xiao_fig1(numbers: pl.DataFrame, figure: Spec, styles: Spec) -> dict[str, Any]:
    """Draw heat maps of the bound, the expectation and their difference.

    Bound and expectation have a common colour scale. In the scale of the difference, zero is white.

    Parameters
    ----------
    numbers : polars.DataFrame
        Points per panel and variant.
    figure : mapping
        Specification of the figure.
    styles : mapping
        Unused; every drawing function takes it.

    Returns
    -------
    dict
        Vega-Lite specification.
    """
    compared = numbers.filter(pl.col("variant") != "excess")["y"]
    common_scale = alt.Scale(scheme="viridis", domain=[min(compared), max(compared)])

    def _panel(points: pl.DataFrame, panel: Spec) -> ChartType:
        if points["variant"][0] != "excess":
            return _heat_map(points, panel, common_scale, SHARES)
        largest = max(points["y"].abs())
        scale = alt.Scale(scheme="purpleorange", domain=[-largest, largest], domainMid=0)
        return _heat_map(points, panel, scale, THOUSANDTHS)

    chart = alt.hconcat(*drawn_panels(_panel, numbers, figure), spacing=24).resolve_scale(
        color="independent"
    )
    return finish(chart, figure["title"], numbers["source"][0], facts(figure))


def xiao_figA(numbers: pl.DataFrame, figure: Spec, styles: Spec) -> dict[str, Any]:
    """Draw the secret shares that agents exchange, and the messages that they broadcast or relay.

    Parameters
    ----------
    numbers : polars.DataFrame
        Positions of the agents, per panel.
    figure : mapping
        Specification of the figure.
    styles : mapping
        Unused; every drawing function takes it.

    Returns
    -------
    dict
        Vega-Lite specification.
    """
    titles = [panel["title"] for panel in figure["panels"]]
    nodes = [numbers.filter(pl.col("panel") == title, pl.col("kind") == "node") for title in titles]
    panels = [
        _protocol(title, *elements)
        for title, elements in zip(titles, (_exchanged(nodes[0]), _relayed(nodes[1])), strict=True)
    ]
    chart = alt.hconcat(*panels, spacing=36)
    return finish(chart, figure["title"], numbers["source"][0], facts(figure))


def _exchanged(nodes: pl.DataFrame) -> tuple[list[dict], list[dict], list[dict]]:
    """Return nodes, arrows and texts of the direct exchange of shares.

    There is one arrow per share. The texts state how each agent splits its value and sums shares.
    """
    at = {row["node"]: (row["x"], row["y"]) for row in nodes.to_dicts()}
    arrows = [_arrow(at[i], at[j], f"s{i}{j}") for i in at for j in at if i != j]
    texts = [
        {"x": 1.12 * x, "y": y + (0.42 if y > 0 else -0.42),
         "text": f"x{i} = {' + '.join(f's{i}{j}' for j in at)}"}
        for i, (x, y) in at.items()
    ]  # fmt: skip
    sums = " + ".join(f"ŝ{i}" for i in at)
    values = " + ".join(f"x{i}" for i in at)
    texts += [
        {"x": 0.0, "y": -1.3, "text": f"v1 broadcasts ŝ1 = {' + '.join(f's{j}1' for j in at)}"},
        {"x": 0.0, "y": -1.55, "text": f"{sums} = {values} (mod p)"},
    ]
    return [{"x": x, "y": y, "node": f"v{i}"} for i, (x, y) in at.items()], arrows, texts


def _relayed(nodes: pl.DataFrame) -> tuple[list[dict], list[dict], list[dict]]:
    """Return nodes, arrows and texts of the exchange along a path, whose agents relay shares."""
    names = nodes["node"].to_list()
    at = {i: (1.35 * (2 * index / (len(names) - 1) - 1), 0.35) for index, i in enumerate(names)}
    arrows = []
    for first, second in pairwise(names):
        for sender, receiver in ((first, second), (second, first)):
            behind = [i for i in names if (i <= sender if sender < receiver else i >= sender)]
            ahead = [j for j in names if j not in behind]
            passed = ", ".join(f"ε(s{i}{j})" for i in behind for j in ahead)
            arrows.append(_arrow(at[sender], at[receiver], passed))
    texts = [
        {"x": 0.0, "y": -0.75, "text": "ε(sij): the share of vi for vj, by their common key"},
        {"x": 0.0, "y": -1.0, "text": "who passes one on cannot read it"},
    ]
    return [{"x": x, "y": y, "node": f"v{i}"} for i, (x, y) in at.items()], arrows, texts


def _arrow(begin: tuple[float, float], end: tuple[float, float], text: str) -> dict[str, Any]:
    """Return the position and label of an arrow, on the left of the line between two agents."""
    (x, y), (x_end, y_end) = begin, end
    length = math.hypot(x_end - x, y_end - y)
    along = (x_end - x) / length, (y_end - y) / length
    normal = -along[1], along[0]

    def position(along_arrow: float, aside: float) -> tuple[float, float]:
        return x + along_arrow * along[0] + aside * normal[0], y + along_arrow * along[
            1
        ] + aside * normal[1]

    tail, head = position(0.24, ARROW_OFFSET), position(length - 0.27, ARROW_OFFSET)
    label = position(length / 2, ARROW_OFFSET + (0.2 if along[1] else 0.16))
    return {"x": tail[0], "y": tail[1], "x_end": head[0], "y_end": head[1], "text": text,
            "angle": math.degrees(math.atan2(along[0], along[1])),
            "label_x": label[0], "label_y": label[1]}  # fmt: skip


def _protocol(title: str, nodes: list[dict], arrows: list[dict], texts: list[dict]) -> ChartType:
    """Draw agents as circles, messages as arrows, and lines of text, with indices as subscripts."""

    def rows(elements: list[dict]) -> Any:
        return pl.DataFrame(
            [
                {key: _indexed(v) if isinstance(v, str) else v for key, v in row.items()}
                for row in elements
            ]
        ).to_pandas()

    def axes(x: str = "x", y: str = "y") -> dict[str, Any]:
        scale = alt.Scale(domain=[-HALF_SIDE, HALF_SIDE], nice=False)
        return {"x": alt.X(f"{x}:Q").axis(None).scale(scale),
                "y": alt.Y(f"{y}:Q").axis(None).scale(scale)}  # fmt: skip

    circles, messages = Chart(rows(nodes)), Chart(rows(arrows))
    return alt.layer(
        messages.marked("rule", color=GREY, strokeWidth=1.5).encode(
            **axes(), x2="x_end", y2="y_end"
        ),
        messages.marked(
            "point", shape="triangle", filled=True, size=70, color=GREY, opacity=1.0
        ).encode(**axes("x_end", "y_end"), angle=alt.Angle("angle:Q").scale(None)),
        messages.marked("text", fontSize=12, color=INK).encode(
            **axes("label_x", "label_y"), text="text:N"
        ),
        circles.marked("circle", size=900, color=OKABE_ITO[0], opacity=1.0).encode(**axes()),
        circles.marked("text", color="white", fontSize=14, fontWeight="bold").encode(
            **axes(), text="node:N"
        ),
        Chart(rows(texts)).marked("text", fontSize=12, color=INK).encode(**axes(), text="text:N"),
    ).properties(width=PROTOCOL[0], height=PROTOCOL[1], title=typeset(title))


def _indexed(text: str) -> str:
    """Typeset indices as subscripts: s12 as s₁₂, sij as sᵢⱼ."""
    lowered = re.sub(r"(?<=[a-zŝ])\d+", lambda match: match[0].translate(LOWERED), text)
    return lowered.replace("sij", "sᵢⱼ").replace("vi ", "vᵢ ").replace("vj", "vⱼ")


def _heat_map(points: pl.DataFrame, panel: Spec, scale: alt.Scale, label: str) -> ChartType:
    x, beta = pl.col("x"), pl.col("beta")
    half_x, half_beta = _step(points["x"]) / 2, _step(points["beta"]) / 2
    cells = points.select(
        "x", "beta", "y", left=x - half_x, right=x + half_x, bottom=beta - half_beta,
        top=beta + half_beta,
    )  # fmt: skip
    return (
        Chart(cells.to_pandas())
        .marked("rect")
        .encode(
            alt.X("left:Q")
            .title(typeset(panel["x_title"]))
            .scale(_tight(cells["left"], cells["right"])),
            alt.X2("right:Q"),
            alt.Y("bottom:Q")
            .title(typeset(panel["y_title"]))
            .scale(_tight(cells["bottom"], cells["top"])),
            alt.Y2("top:Q"),
            alt.Color("y:Q")
            .scale(scale)
            .legend(
                orient="bottom",
                direction="horizontal",
                labelExpr=label,
                gradientLength=SIDE[0],
                labelColor=GREY,
                tickCount=3,
            ),
            tooltip=[
                alt.Tooltip("x:Q", title="omega"),
                alt.Tooltip("beta:Q"),
                alt.Tooltip("y:Q", title=panel["title"], format=".6f"),
            ],
        )
        .properties(width=SIDE[0], height=SIDE[1], title=panel["title"])
    )


def _step(values: pl.Series) -> float:
    """Return the distance of neighbouring values of a regular grid."""
    return min(values.unique().sort().diff().drop_nulls(), default=1.0)


def _tight(low: pl.Series, high: pl.Series) -> alt.Scale:
    return alt.Scale(domain=[min(low), max(high)], nice=False, zero=False)
