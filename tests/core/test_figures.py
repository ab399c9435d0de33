"""Test names, symbols, styles and legend sizes of every configured figure."""

import re
from importlib import import_module

import polars as pl
import pytest

from private_consensus.common.symbols import typeset
from private_consensus.reproduction import figures
from private_consensus.reproduction.figures.figure_styles import curve_styles, with_names


@pytest.fixture(scope="module")
def points(plan):
    """Return synthetic points for each figure of curves, at two x values per curve."""
    return {name: made_up(plan, name) for name, figure in plan.figures.items()
            if figure.panels[0].curves and not drawn_by_its_paper(plan, name)}  # fmt: skip


def drawn_by_its_paper(plan, name) -> bool:
    module = figures.module_of(plan.paper_of(name))
    return module is not None and hasattr(import_module(module), name)


def made_up(plan, name) -> pl.DataFrame:
    rows = []
    for panel in plan.figures[name].panels:
        for curve_index, curve in enumerate(panel.curves):
            axes = plan.experiments[curve.experiment or panel.experiment].axes
            values = axes[curve.by].values if curve.by in axes else [0] if curve.by else [None]
            for rank, value in enumerate(values):
                series = f"{curve.by_title or curve.by} = {value}" if curve.by else curve.label
                rows += [
                    {"panel": panel.title, "algorithm": curve.method, "variant": curve.variant,
                     "style": curve.style, "interpretation": curve.interpretation, "series": series,
                     "guarantee": "", "x": x, "y": x * (1 + curve_index + rank), "low": 0.9 * x,
                     "high": 20.0 * x, "runs": 2, "interval": "mean +- standard error",
                     "source": "made"}
                    for x in (1.0, 10.0)
                ]  # fmt: skip
    return pl.DataFrame(rows)


def look_of(plan, name, frame) -> dict[str, tuple]:
    """Return colour and dash of each curve."""
    styles = plan.figure_styles(name)
    looks = curve_styles(with_names(frame, styles), styles)
    return {curve: (colour.upper(), tuple(dash)) for curve, (colour, dash) in looks.items()}


def panels_of(frame: pl.DataFrame) -> list[pl.DataFrame]:
    return [panel_frame for _, panel_frame in frame.group_by("panel", maintain_order=True)]


def test_a_method_has_one_colour_and_dash_in_all_figures_and_panels(plan, points):
    """Styles are compared as drawn, for all series of the method in a figure."""
    declared_looks = {typeset(s.label): (s.colour.upper(), tuple(s.dash) or (1, 0))
                      for s in plan.styles.values()}  # fmt: skip
    looks_by_curve: dict[str, set] = {}
    for name, frame in points.items():
        for panel_frame in [frame] if names_fit(frame) else panels_of(frame):
            for curve, look in look_of(plan, name, panel_frame).items():
                if curve in declared_looks:
                    looks_by_curve.setdefault(curve, set()).add((look, name))
    assert len(looks_by_curve) > 90
    other_looks = {curve: [(look, name) for look, name in looks if look != declared_looks[curve]]
                   for curve, looks in looks_by_curve.items()}  # fmt: skip
    assert {curve: looks for curve, looks in other_looks.items() if looks} == {}


def test_curves_of_a_panel_have_distinct_styles(plan, points):
    alike = {}
    for name, frame in points.items():
        figure_looks = look_of(plan, name, frame) if names_fit(frame) else None
        for panel_frame in panels_of(frame):
            curves = with_names(panel_frame, plan.figure_styles(name))["curve"].unique().to_list()
            looks = figure_looks or look_of(plan, name, panel_frame)
            if len({looks[curve] for curve in curves}) < len(curves):
                alike[name, panel_frame["panel"][0]] = {curve: looks[curve] for curve in curves}
    assert alike == {}


def names_fit(frame: pl.DataFrame) -> bool:
    """Return True if the panels together have at most 16 curve names.

    A panel with its own names has its own styles.
    """
    return frame.select("algorithm", "style", "series").n_unique() <= 16


@pytest.mark.parametrize("name", ["showkatbakhsh_fig1", "gratton_fig2a", "ding_fig11"])
def test_a_figure_has_one_legend_and_states_budget_agents_runs_and_band(plan, points, name):
    spec = figures.draw(
        name, plan.paper_of(name), points[name], plan.drawing(name), plan.figure_styles(name)
    )
    domains = {tuple(e["scale"]["domain"]) for panel in spec.get("concat", [spec])
               for layer in panel["layer"] if (e := layer["encoding"].get("color"))}  # fmt: skip
    assert len(domains) == 1
    subtitle = spec["title"]["subtitle"][0]
    assert "N = " in subtitle and re.search(r"of \d+ runs, band: standard error", subtitle)


@pytest.mark.parametrize(
    ("typed", "set_"),
    [
        ("x_s and T_p", "xₛ and Tₚ"),
        ("rho = eps^2/(4 ln(1/delta))", "ρ = ε²/(4 ln(1/δ))"),
        ("0.4^(t+1), 10^-3.5, 1e-6, 2.5e+03", "0.4ᵗ⁺¹, 10⁻³·⁵, 10⁻⁶, 2.5×10³"),
        ("C = 1750.0, eta_0 = 6.0", "C = 1750, η₀ = 6"),
        ("the delta rule, deltas and beta2", "the δ rule, deltas and β2"),
        ("e^x_W", "e^x_W"),
    ],
)
def test_ascii_symbols_are_typeset_in_unicode(typed, set_):
    assert typeset(typed) == set_
    assert typeset(set_) == set_
