"""Drawings of Xiao et al. (2019): Figure 1 as heat maps, Figure A as messages of Algorithm 3."""

import math
from itertools import pairwise
from typing import Any

import altair as alt
import polars as pl
from altair.typing import ChartType

from private_consensus.common.symbols import typeset

from ..figure_styles import OKABE_ITO
from ..panels import Chart, Spec, layered, side_by_side
from ..theme import GREY, INK

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


Row = dict[str, Any]
Diagram = tuple[dict[int, complex], list[Row], list[Row]]
"""Position x + iy of each agent, arrows between agents, and texts."""


def xiao_fig1(numbers: pl.DataFrame, figure: Spec) -> dict[str, Any]:
    """Draw heat maps of the bound, the expectation and their difference.

    Bound and expectation have a common colour scale. In the scale of the difference, zero is white.
    """
    compared = numbers.filter(pl.col("style") != "excess")["y"]
    common_scale = alt.Scale(scheme="viridis", domain=[min(compared), max(compared)])

    def _panel(points: pl.DataFrame, panel: Spec) -> ChartType:
        if points["style"][0] != "excess":
            return _heat_map(points, panel, common_scale, SHARES)
        largest = max(points["y"].abs())
        scale = alt.Scale(scheme="purpleorange", domain=[-largest, largest], domainMid=0)
        return _heat_map(points, panel, scale, THOUSANDTHS)

    return side_by_side(_panel, numbers, figure, columns=3, colours="independent")


def xiao_figA(numbers: pl.DataFrame, figure: Spec) -> dict[str, Any]:
    """Draw the secret shares that agents exchange, and the messages that they send."""
    titles = [panel["title"] for panel in figure["panels"]]
    elements = dict(zip(titles, (_exchanged, _relayed), strict=True))

    def _panel(points: pl.DataFrame, panel: Spec) -> ChartType:
        nodes = points.filter(pl.col("kind") == "node")
        return _protocol(panel, *elements[panel["title"]](nodes))

    return side_by_side(_panel, numbers, figure)


def _exchanged(nodes: pl.DataFrame) -> Diagram:
    """Return agents, arrows and texts of the direct exchange of shares."""
    at = {node: complex(x, y) for node, x, y in nodes.select("node", "x", "y").iter_rows()}
    arrows = [_arrow(at[i], at[j], f"s_{i}{j}") for i in at for j in at if i != j]
    texts = [
        _text(1.12 * p.real, p.imag + math.copysign(0.42, p.imag),
              f"x_{i} = {' + '.join(f's_{i}{j}' for j in at)}")
        for i, p in at.items()
    ]  # fmt: skip
    sums, values = (" + ".join(f"{name}_{i}" for i in at) for name in ("ŝ", "x"))
    broadcast = f"v_1 broadcasts ŝ_1 = {' + '.join(f's_{j}1' for j in at)}"
    texts += [_text(0.0, -1.3, broadcast), _text(0.0, -1.55, f"{sums} = {values} (mod p)")]
    return at, arrows, texts


def _relayed(nodes: pl.DataFrame) -> Diagram:
    """Return agents, arrows and texts of the exchange along a path of relaying agents."""
    names = nodes["node"].to_list()
    step = 2.7 / (len(names) - 1)
    at = {i: complex(step * index - 1.35, 0.35) for index, i in enumerate(names)}
    arrows = []
    for first, second in pairwise(names):
        before, after = names[: names.index(second)], names[names.index(second) :]
        for sender, receiver, origins, targets in (
            (first, second, before, after), (second, first, after, before),
        ):  # fmt: skip
            passed = ", ".join(f"ε(s_{i}{j})" for i in origins for j in targets)
            arrows.append(_arrow(at[sender], at[receiver], passed))
    texts = [
        _text(0.0, -0.75, "ε(s_ij): the share of v_i for v_j, by their common key"),
        _text(0.0, -1.0, "who passes one on cannot read it"),
    ]
    return at, arrows, texts


def _text(x: float, y: float, text: str) -> Row:
    return {"x": x, "y": y, "text": typeset(text)}


def _arrow(begin: complex, end: complex, text: str) -> Row:
    """Return the ends and the label of an arrow, on the left of the line between two agents."""
    length = abs(end - begin)
    along = (end - begin) / length
    aside = 1j * along
    tail = begin + 0.24 * along + ARROW_OFFSET * aside
    head = begin + (length - 0.27) * along + ARROW_OFFSET * aside
    label = begin + length / 2 * along + (ARROW_OFFSET + (0.2 if along.imag else 0.16)) * aside
    return {
        "x": head.real, "y": head.imag, "x_tail": tail.real, "y_tail": tail.imag,
        "angle": math.degrees(math.atan2(along.real, along.imag)),
        "label": _text(label.real, label.imag, text),
    }  # fmt: skip


def _protocol(
    panel: Spec, at: dict[int, complex], arrows: list[Row], texts: list[Row]
) -> ChartType:
    """Draw agents as circles, messages as arrows, and lines of text."""
    scale = alt.Scale(domain=[-HALF_SIDE, HALF_SIDE], nice=False)
    x, y = alt.X("x:Q", axis=None, scale=scale), alt.Y("y:Q", axis=None, scale=scale)

    def chart(rows: list[Row]) -> Chart:
        return Chart(pl.DataFrame(rows)).encode(x, y)

    heads = chart([{key: arrow[key] for key in arrow if key != "label"} for arrow in arrows])
    agents = chart([_text(p.real, p.imag, f"v_{i}") for i, p in at.items()]).encode(text="text:N")
    labels = chart([*(arrow["label"] for arrow in arrows), *texts]).encode(text="text:N")
    layers = [
        heads.marked("rule", color=GREY, strokeWidth=1.5).encode(x2="x_tail", y2="y_tail"),
        heads.marked("point", shape="triangle", filled=True, size=70, color=GREY, opacity=1.0)
        .encode(alt.Angle("angle:Q", scale=None)),
        labels.marked("text", fontSize=12, color=INK),
        agents.marked("circle", size=900, color=OKABE_ITO[0], opacity=1.0),
        agents.marked("text", color="white", fontSize=14, fontWeight="bold"),
    ]  # fmt: skip
    return layered(layers, panel, *PROTOCOL)


def _heat_map(points: pl.DataFrame, panel: Spec, scale: alt.Scale, label: str) -> ChartType:
    x, beta = pl.col("x"), pl.col("beta")
    half_x, half_beta = _step(points["x"]) / 2, _step(points["beta"]) / 2
    cells = points.select(
        "y", left=x - half_x, right=x + half_x, bottom=beta - half_beta,
        top=beta + half_beta,
    )  # fmt: skip
    tight = alt.Scale(nice=False, zero=False)
    legend = alt.Legend(
        title="relative to the worst case", direction="horizontal", labelExpr=label,
        gradientLength=SIDE[0], labelColor=GREY, tickCount=3,
    )  # fmt: skip
    chart = Chart(cells).marked("rect").encode(
        alt.X("left:Q", title=typeset(panel["x_title"]), scale=tight), alt.X2("right:Q"),
        alt.Y("bottom:Q", title=typeset(panel["y_title"]), scale=tight), alt.Y2("top:Q"),
        alt.Color("y:Q", scale=scale, legend=legend),
    )  # fmt: skip
    return chart.properties(width=SIDE[0], height=SIDE[1], title=panel["title"])


def _step(values: pl.Series) -> float:
    """Return the distance of neighbouring values of a regular grid."""
    return min(values.unique().sort().diff().drop_nulls(), default=1.0)
