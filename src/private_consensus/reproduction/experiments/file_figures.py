"""Expand the figures and tables of a file: panels per point of a grid, and sets of curves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from .merging import (
    configuration_error,
    extended,
    format_value,
    look_up,
    method_and_variant,
    omit,
    select,
)
from .schema import Curve, CurveKeys, FigureFields, FigurePanel, split_measure

CURVE_KEYS = {*CurveKeys.model_fields, "quantity", "metric"} - {"experiment"}
"""Keys of a panel that all of its curves inherit."""
DESCRIPTION = {"extends", "title", "caption", "note"}
"""Keys that a figure does not inherit from the figure that it extends."""
FIGURE_KEYS = {"title", "caption", "note", "columns", "panel_title", "panels", "extends"}
PANEL_KEYS = {*FigurePanel.model_fields} - {"graph", "partition", "privacy_loss", "curves"}
ADDED = "_extra_"
"""Part of the name of figures that are not figures of the paper."""
Experiments = Mapping[str, Mapping[str, Any]]


def figures(
    file: Mapping[str, Any], experiments: Experiments, key: str
) -> dict[str, dict[str, Any]]:
    """Expand all figures of a file.

    Parameters
    ----------
    file : mapping
        Contents of the file.
    experiments : mapping
        Complete experiments of the file, by name.
    key : str
        Key of the paper, with which error lines start.

    Returns
    -------
    dict
        Complete figures, by name.
    """
    entries = file.get("figures", {})
    default = file.get("defaults", {}).get("panel") or {}
    expanded = {}
    for name, figure in entries.items():
        key_path = f"{key}.figures.{name}"
        if "extends" in figure:
            base = figure["extends"]
            inherited = omit(extended(entries, base, key_path, "a figure"), DESCRIPTION)
            # By default, the extending figure shows the experiment of the extended figure.
            if base in experiments:
                inherited = {"experiment": base, **inherited}
            figure = {**inherited, **figure}
        elif name in experiments:
            figure = {"experiment": name, **figure}
        panels = _Panels(file, experiments, default, key_path).of(figure)
        expanded[name] = {
            **select(figure, FigureFields.model_fields),
            "added": ADDED in name,
            "panels": list(panels),
        }
    return expanded


def points(grid: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield every combination of axis values of a grid; the last axis varies fastest."""
    for point in product(*grid.values()):
        yield dict(zip(grid, point, strict=True))


@dataclass(frozen=True)
class _Panels:
    """Expansion of the panels of one figure.

    Parameters
    ----------
    file : mapping
        Content of the file, with its sets of curves and titles.
    experiments : mapping
        Complete experiments of the file, by name.
    default : mapping
        Default keys of panels.
    key_path : str
        Key of the figure, with which error lines start.
    """

    file: Mapping[str, Any]
    experiments: Experiments
    default: Mapping[str, Any]
    key_path: str

    def of(self, figure: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the complete panels of a figure, one per point of its grids."""
        common = omit(figure, FIGURE_KEYS)
        outer = common.pop("grid", {})
        for point in points(outer):
            for panel_entry in figure.get("panels", [{}]):
                for inner in points(panel_entry.get("grid", {})):
                    coordinates = {**point, **inner}
                    panel = {**common, **omit(panel_entry, {"grid"})}
                    panel["where"] = {
                        **common.get("where", {}),
                        **coordinates,
                        **panel_entry.get("where", {}),
                    }
                    panel["title"] = _title(figure, panel_entry, coordinates)
                    if "privacy_loss" in panel:
                        panel["privacy_loss"] = {
                            **common.get("privacy_loss", {}),
                            **panel_entry.get("privacy_loss", {}),
                        }
                    yield self._panel(panel)

    def _panel(self, panel: dict[str, Any]) -> dict[str, Any]:
        if panel.get("graph"):
            return select(panel, ("title", "experiment", "graph"))
        if "partition" in panel:
            return select(panel, ("title", "x_title", "y_title", "partition"))
        if "privacy_loss" in panel:
            return select(panel, ("title", "x_title", "y_title", "privacy_loss"))
        panel = {**self.default, **panel}
        expanded = select(panel, PANEL_KEYS)
        titles = self.file.get("titles", {})
        expanded.setdefault("x_title", titles.get(panel.get("x"), panel.get("x", "")))
        if panel.get("measure") in titles:
            expanded.setdefault("y_title", titles[panel["measure"]])
        expanded["curves"] = [
            self._curve(curve, panel) for entry in self._chosen(panel) for curve in _products(entry)
        ]
        return expanded

    def _chosen(self, panel: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the curves of a panel, with names of sets replaced by their curves."""
        for entry in _listed(panel.get("curves", [])):
            for curve in self._named(entry):
                # Sets are not nested: a set may contain names of curves, but not of sets.
                for member in self._named(curve):
                    yield {"method": member} if isinstance(member, str) else member

    def _named(self, entry: Any) -> list[Any]:
        sets = self.file.get("curves", {})
        return _listed(sets.get(entry, entry) if isinstance(entry, str) else entry)

    def _curve(self, curve: Mapping[str, Any], panel: Mapping[str, Any]) -> dict[str, Any]:
        merged = {**select(panel, CURVE_KEYS), **curve}
        key_path = f"{self.key_path}.curves"
        algorithm, variant = method_and_variant(merged)
        if not variant:
            expected = f"algorithm.variant, or one of {', '.join(self.file.get('curves', {}))}"
            raise configuration_error(key_path, merged["method"], expected)
        if "measure" not in merged:
            raise configuration_error(
                f"{key_path}.{merged['method']}.measure", None, "quantity.metric"
            )
        if "measure" not in curve:
            quantity, metric = split_measure(merged["measure"])
            measure = merged.get("quantity", quantity), merged.get("metric", metric)
            merged["measure"] = ".".join(measure)
        experiment = curve.get("experiment", panel.get("experiments", {}).get(algorithm, ""))
        merged |= {"method": algorithm, "variant": variant, "experiment": experiment}
        merged.setdefault("style", variant)
        if "interpretation" not in merged:
            plotted = self.experiments.get(experiment or panel.get("experiment", ""), {})
            merged["interpretation"] = _interpretation(plotted, algorithm, variant, key_path)
        return select(merged, Curve.model_fields)


def _interpretation(
    experiment: Mapping[str, Any], algorithm: str, variant: str, key_path: str
) -> str:
    """Return the interpretation of a variant of an experiment."""
    variants = experiment.get("algorithms", {}).get(algorithm, {})
    names = {f"{algorithm}.{name}": entry for name, entry in variants.items()}
    return look_up(names, f"{algorithm}.{variant}", key_path)["interpretation"]


def _listed(entry: Any) -> list[Any]:
    return list(entry) if isinstance(entry, list) else [entry]


def _title(
    figure: Mapping[str, Any], panel: Mapping[str, Any], coordinates: Mapping[str, Any]
) -> str:
    """Return the title of a panel, in which {axis} is replaced for each axis of its grid."""
    values = {axis: format_value(value) for axis, value in coordinates.items()}
    title = _filled(panel.get("title", ""), values)
    return _filled(figure.get("panel_title", "{title}"), {"title": title, **values})


def _filled(template: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", value)
    return template


def _products(curve: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield one curve per variant, measure and point of the grid, in this order."""
    common = omit(curve, {"method", "measures", "grid"})
    measures = curve.get("measures") or {None: ""}
    for method, words in _labelled(curve["method"]):
        for measure, measure_label in measures.items():
            for point in points(curve.get("grid", {})):
                product_curve = {**common, "method": method}
                if measure:
                    product_curve["measure"] = measure
                if point:
                    product_curve["where"] = {**curve.get("where", {}), **point}
                values = [f"{axis} = {format_value(value)}" for axis, value in point.items()]
                label_parts = [word for word in (words, measure_label, *values) if word]
                if any((words, measure_label)) and "label" not in common:
                    product_curve["label"] = ", ".join(label_parts)
                yield product_curve


def _labelled(methods: str | list[str] | Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each method (algorithm.variant) with the text that it adds to the label."""
    if not isinstance(methods, Mapping):
        yield from ((method, "") for method in _listed(methods))
        return
    for name, label_or_variants in methods.items():
        if isinstance(label_or_variants, list):
            yield from ((f"{name}.{variant}", "") for variant in label_or_variants)
        else:
            yield name, label_or_variants


def tables(
    file: Mapping[str, Any], experiments: Experiments, key: str
) -> dict[str, dict[str, Any]]:
    """Expand all tables of a file.

    Parameters
    ----------
    file : mapping
        Contents of the file.
    experiments : mapping
        Complete experiments of the file, by name.
    key : str
        Key of the paper, with which error lines start.

    Returns
    -------
    dict
        Complete tables, by name.
    """
    return {
        name: {
            **table,
            "blocks": [_block(b, experiments, f"{key}.tables.{name}") for b in table["blocks"]],
        }
        for name, table in file.get("tables", {}).items()
    }


def _block(block: Mapping[str, Any], experiments: Experiments, key_path: str) -> dict[str, Any]:
    experiment = look_up(experiments, block["experiment"], f"{key_path}.experiment")
    methods = []
    for entry in block["methods"]:
        algorithm, variant = method_and_variant(entry)
        interpretation = _interpretation(experiment, algorithm, variant, f"{key_path}.method")
        complete = {"interpretation": interpretation, **entry}
        methods.append({**complete, "method": algorithm, "variant": variant})
    return {**block, "methods": methods}
