"""Expand figures and tables: one panel per point of a grid, curves by the names of sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from .merging import chosen, measured, named, shown, without, wrong

DESCRIPTION = {"extends", "title", "caption", "note"}
"""Keys of a figure that an extending figure does not inherit."""
FIGURE = {"title", "caption", "note", "columns", "panel_title", "panels", "extends"}
STORED = {
    "extra_columns": "beside",
    "published": "printed",
    "published_runs": "printed_runs",
}
"""Keys of a table's complete form, by the keys of the file."""
ADDED = "_extra_"
"""In the name of a figure that is ours, not one of the paper's."""
OF_CURVES = (
    "variant", "measure", "quantity", "metric", "interpretation", "last_iteration_only", "interval",
)  # fmt: skip
"""Keys of a panel that apply to all of its curves."""
OF_PANELS = (
    "title", "x", "x_title", "y_title", "log_x", "log_y", "y_domain", "statistic", "goals",
)  # fmt: skip
BOTH = ("x", "statistic")
"""Keys of a panel that a curve may have for itself."""
AS_THEY_ARE = (*BOTH, "where", "band", "interval", "by", "by_title")
Runs = Mapping[str, Mapping[str, Any]]


def figures(file: Mapping[str, Any], runs: Runs, key: str) -> dict[str, dict[str, Any]]:
    """Expand all figures of a file.

    Parameters
    ----------
    file : mapping
        Contents of the file.
    runs : mapping
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
        where = f"{key}.figures.{name}"
        if "extends" in figure:
            base = figure["extends"]
            model = named(entries, base, f"{where}.extends")
            if "extends" in model:
                raise wrong(f"{where}.extends", base, "a figure that extends no other")
            # An extending figure shows the experiment of the figure that it extends.
            inherited = without(model, DESCRIPTION)
            if base in runs:
                inherited = {"experiment": base, **inherited}
            figure = {**inherited, **figure}
        elif name in runs:
            figure = {"experiment": name, **figure}
        panels = _Panels(file, runs, default, where).of(figure)
        expanded[name] = {
            **chosen(figure, ("title", "caption", "columns")),
            "added": ADDED in name,
            "panels": list(panels),
        }
    return expanded


def points(grid: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the points of a grid; the last axis varies fastest."""
    for point in product(*grid.values()):
        yield dict(zip(grid, point, strict=True))


class _Panels:
    """Expansion of the panels of one figure, with the parts of the file that it needs."""

    def __init__(self, file: Mapping[str, Any], runs: Runs, default: Mapping[str, Any], where: str):
        self.sets = file.get("curves", {})
        self.titles = file.get("titles", {})
        self.runs = runs
        self.default = default
        self.where = where

    def of(self, figure: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the complete panels of a figure, one per point of its grids."""
        common = without(figure, FIGURE)
        outer = common.pop("grid", {})
        for point in points(outer):
            for panel_entry in figure.get("panels", [{}]):
                for inner in points(panel_entry.get("grid", {})):
                    coordinates = {**point, **inner}
                    panel = {**common, **without(panel_entry, {"grid"})}
                    panel["where"] = {
                        **common.get("where", {}),
                        **coordinates,
                        **panel_entry.get("where", {}),
                    }
                    panel["title"] = _title(figure, panel_entry, coordinates)
                    if "views" in panel:
                        panel["views"] = {**common.get("views", {}), **panel_entry.get("views", {})}
                    yield self._panel(panel)

    def _panel(self, panel: dict[str, Any]) -> dict[str, Any]:
        if panel.get("graph"):
            return chosen(panel, ("title", "experiment", "graph"))
        if "partition" in panel:
            return chosen(panel, ("title", "x_title", "y_title", "partition"))
        if "views" in panel:
            return chosen(panel, ("title", "x_title", "y_title", "views"))
        panel = {**self.default, **panel}
        expanded = chosen(panel, ("experiment", *OF_PANELS))
        if panel["where"]:
            expanded["where"] = panel["where"]
        expanded.setdefault("x_title", self.titles.get(panel.get("x"), panel.get("x", "")))
        if "measure" in panel and panel["measure"] in self.titles:
            expanded.setdefault("y_title", self.titles[panel["measure"]])
        expanded["curves"] = [
            self._curve(curve, panel) for entry in self._chosen(panel) for curve in _products(entry)
        ]
        return expanded

    def _chosen(self, panel: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the curves of a panel; names of sets are replaced by their curves."""
        for entry in _listed(panel.get("curves", [])):
            for curve in self._named(entry):
                # A set may name curves, and no other set.
                for member in self._named(curve):
                    yield {"method": member} if isinstance(member, str) else member

    def _named(self, entry: Any) -> list[Any]:
        return _listed(self.sets.get(entry, entry) if isinstance(entry, str) else entry)

    def _curve(self, curve: Mapping[str, Any], panel: Mapping[str, Any]) -> dict[str, Any]:
        merged = {**chosen(panel, OF_CURVES), **curve}
        algorithm, _, run = merged["method"].partition(".")
        run = run or merged.get("variant")
        if not run:
            set_names = ", ".join(self.sets)
            raise wrong(
                f"{self.where}.curves",
                merged["method"],
                f"algorithm.variant, or one of {set_names}",
            )
        if "measure" not in merged:
            raise wrong(f"{self.where}.curves.{merged['method']}.measure", None, "quantity.metric")
        quantity, metric = measured(merged["measure"])
        if "measure" not in curve:
            quantity, metric = merged.get("quantity", quantity), merged.get("metric", metric)
        elsewhere = panel.get("experiments", {}).get(algorithm)
        experiment = curve.get("experiment", elsewhere)
        expanded = {
            "algorithm": algorithm,
            "run": run,
            "variant": merged.get("style", run),
            "reading": merged.get("interpretation")
            or self._reading(experiment, panel, algorithm, run),
            "quantity": quantity,
            "metric": metric,
            # A panel's x and statistic are its own, and no curve's.
            **chosen(curve, BOTH),
            **chosen(merged, [key for key in AS_THEY_ARE if key not in BOTH]),
        }
        expanded |= {key: list(measured(merged[key])) for key in ("low", "high") if key in merged}
        if "last_iteration_only" in merged:
            expanded["last"] = merged["last_iteration_only"]
        if experiment:
            expanded["experiment"] = experiment
        if "label" in merged:
            expanded["series"] = merged["label"]
        return expanded

    def _reading(self, experiment: str | None, panel, algorithm: str, run: str) -> str:
        chosen_one = self.runs.get(experiment or panel.get("experiment", ""), {})
        variants = chosen_one.get("algorithms", {}).get(algorithm, {})
        where = f"{self.where}.curves"
        variant_names = [f"{algorithm}.{name}" for name in variants]
        if run not in variants:
            raise wrong(
                where, f"{algorithm}.{run}", f"one of {', '.join(variant_names) or '(none)'}"
            )
        return variants[run]["reading"]


def _listed(entry: Any) -> list[Any]:
    return list(entry) if isinstance(entry, list) else [entry]


def _title(
    figure: Mapping[str, Any], panel: Mapping[str, Any], coordinates: Mapping[str, Any]
) -> str:
    """Return the title of a panel; only the braces of its grid are replaced."""
    values = {axis: shown(value) for axis, value in coordinates.items()}
    title = _filled(panel.get("title", ""), values)
    return _filled(figure.get("panel_title", "{title}"), {"title": title, **values})


def _filled(template: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", value)
    return template


def _products(curve: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield one curve per variant, measure and point of the grid, in this order."""
    common = without(curve, {"method", "measures", "grid"})
    measures = curve.get("measures") or {None: ""}
    for method, words in _labelled(curve["method"]):
        for measure, measure_label in measures.items():
            for point in points(curve.get("grid", {})):
                product_curve = {**common, "method": method}
                if measure:
                    product_curve["measure"] = measure
                if point:
                    product_curve["where"] = {**curve.get("where", {}), **point}
                values = [f"{axis} = {shown(value)}" for axis, value in point.items()]
                label_parts = [word for word in (words, measure_label, *values) if word]
                if any((words, measure_label)) and "label" not in common:
                    product_curve["label"] = ", ".join(label_parts)
                yield product_curve


def _labelled(methods: str | list[str] | Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each variant with its part of the label."""
    if not isinstance(methods, Mapping):
        yield from ((method, "") for method in _listed(methods))
        return
    for name, label_or_variants in methods.items():
        if isinstance(label_or_variants, list):
            yield from ((f"{name}.{variant}", "") for variant in label_or_variants)
        else:
            yield name, label_or_variants


def tables(file: Mapping[str, Any], runs: Runs, key: str) -> dict[str, dict[str, Any]]:
    """Expand all tables of a file.

    Parameters
    ----------
    file : mapping
        Contents of the file.
    runs : mapping
        Complete experiments of the file, by name.
    key : str
        Key of the paper, with which error lines start.

    Returns
    -------
    dict
        Complete tables, by name.
    """
    expanded = {}
    for name, table in file.get("tables", {}).items():
        quantity, metric = measured(table["measure"])
        expanded[name] = {
            **{STORED.get(key, key): value for key, value in table.items() if key != "measure"},
            "quantity": quantity,
            "metric": metric,
            "beside": {t: list(measured(m)) for t, m in table.get("extra_columns", {}).items()},
            "blocks": [_block(b, runs, f"{key}.tables.{name}") for b in table["blocks"]],
        }
    return expanded


def _block(block: Mapping[str, Any], runs: Runs, where: str) -> dict[str, Any]:
    algorithms = named(runs, block["experiment"], f"{where}.experiment").get("algorithms", {})
    methods = []
    for method in block["methods"]:
        algorithm, _, run = method["method"].partition(".")
        variants = named(algorithms, algorithm, f"{where}.method")
        reading = method.get("interpretation") or named(variants, run, f"{where}.method")["reading"]
        other_keys = without(method, {"method", "interpretation"})
        stored = {STORED.get(key, key): value for key, value in other_keys.items()}
        methods.append({**stored, "algorithm": algorithm, "run": run, "reading": reading})
    return {**block, "methods": methods}
