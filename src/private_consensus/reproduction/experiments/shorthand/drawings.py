"""Expand figures and tables: one panel per point of a grid, curves by the names of sets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from .merging import chosen, measured, named, shown, without, wrong

WORDS = {"like", "title", "caption", "note"}
"""What a figure says about itself alone."""
FIGURE = {"title", "caption", "note", "columns", "panel", "panels", "like"}
ADDED = "_extra_"
"""In the name of a figure that is ours, not one of the paper's."""
OF_CURVES = ("run", "measure", "quantity", "metric", "reading", "last", "interval")
"""What a panel says for all of its curves."""
OF_PANELS = (
    "title", "x", "x_title", "y_title", "log_x", "log_y", "y_domain", "statistic", "goals",
)  # fmt: skip
BOTH = ("x", "statistic")
"""Keys of a panel that a curve may have for itself."""
AS_THEY_ARE = (*BOTH, "where", "last", "band", "interval", "by", "by_title")
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
    own = file.get("figures", {})
    default = file.get("defaults", {}).get("panel") or {}
    found = {}
    for name, figure in own.items():
        where = f"{key}.figures.{name}"
        if "like" in figure:
            model = named(own, figure["like"], f"{where}.like")
            if "like" in model:
                raise wrong(f"{where}.like", figure["like"], "one that is not like another")
            # What a figure is like shows the experiment of that figure.
            inherited = {"experiment": figure["like"], **without(model, WORDS)}
            if figure["like"] not in runs:
                inherited = without(model, WORDS)
            figure = {**inherited, **figure}
        elif name in runs:
            figure = {"experiment": name, **figure}
        panels = _Panels(file, runs, default, where).of(figure)
        found[name] = {
            **chosen(figure, ("title", "caption", "columns")),
            "added": ADDED in name,
            "panels": list(panels),
        }
    return found


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
            for own in figure.get("panels", [{}]):
                for inner in points(own.get("grid", {})):
                    place = {**point, **inner}
                    panel = {**common, **without(own, {"grid"})}
                    panel["where"] = {**common.get("where", {}), **place, **own.get("where", {})}
                    panel["title"] = _title(figure, own, place)
                    if "views" in panel:
                        panel["views"] = {**common.get("views", {}), **own.get("views", {})}
                    yield self._panel(panel)

    def _panel(self, panel: dict[str, Any]) -> dict[str, Any]:
        if panel.get("graph"):
            return chosen(panel, ("title", "experiment", "graph"))
        if "partition" in panel:
            return chosen(panel, ("title", "x_title", "y_title", "partition"))
        if "views" in panel:
            return chosen(panel, ("title", "x_title", "y_title", "views"))
        panel = {**self.default, **panel}
        found = chosen(panel, ("experiment", *OF_PANELS))
        if panel["where"]:
            found["where"] = panel["where"]
        found.setdefault("x_title", self.titles.get(panel.get("x"), panel.get("x", "")))
        if "measure" in panel and panel["measure"] in self.titles:
            found.setdefault("y_title", self.titles[panel["measure"]])
        found["curves"] = [
            self._curve(curve, panel) for one in self._chosen(panel) for curve in _products(one)
        ]
        return found

    def _chosen(self, panel: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the curves of a panel; names of sets are replaced by their curves."""
        for one in _listed(panel.get("curves", [])):
            for curve in self._named(one):
                # A set may name curves, and no other set.
                for found in self._named(curve):
                    yield {"of": found} if isinstance(found, str) else found

    def _named(self, one: Any) -> list[Any]:
        return _listed(self.sets.get(one, one) if isinstance(one, str) else one)

    def _curve(self, curve: Mapping[str, Any], panel: Mapping[str, Any]) -> dict[str, Any]:
        own = {**chosen(panel, OF_CURVES), **curve}
        algorithm, _, run = own["of"].partition(".")
        run = run or own.get("run")
        if not run:
            known = ", ".join(self.sets)
            raise wrong(f"{self.where}.curves", own["of"], f"algorithm.variant, or one of {known}")
        if "measure" not in own:
            raise wrong(f"{self.where}.curves.{own['of']}.measure", None, "quantity.metric")
        quantity, metric = measured(own["measure"])
        if "measure" not in curve:
            quantity, metric = own.get("quantity", quantity), own.get("metric", metric)
        elsewhere = panel.get("experiments", {}).get(algorithm)
        experiment = curve.get("experiment", elsewhere)
        found = {
            "algorithm": algorithm,
            "run": run,
            "variant": own.get("as", run),
            "reading": own.get("reading") or self._reading(experiment, panel, algorithm, run),
            "quantity": quantity,
            "metric": metric,
            # A panel's x and statistic are its own, and no curve's.
            **chosen(curve, BOTH),
            **chosen(own, [key for key in AS_THEY_ARE if key not in BOTH]),
        }
        found |= {key: list(measured(own[key])) for key in ("low", "high") if key in own}
        if experiment:
            found["experiment"] = experiment
        if "label" in own:
            found["series"] = own["label"]
        return found

    def _reading(self, experiment: str | None, panel, algorithm: str, run: str) -> str:
        chosen_one = self.runs.get(experiment or panel.get("experiment", ""), {})
        variants = chosen_one.get("algorithms", {}).get(algorithm, {})
        where = f"{self.where}.curves"
        known = [f"{algorithm}.{name}" for name in variants]
        if run not in variants:
            raise wrong(where, f"{algorithm}.{run}", f"one of {', '.join(known) or '(none)'}")
        return variants[run]["reading"]


def _listed(found: Any) -> list[Any]:
    return list(found) if isinstance(found, list) else [found]


def _title(figure: Mapping[str, Any], panel: Mapping[str, Any], place: Mapping[str, Any]) -> str:
    """Return the title of a panel; only the braces of its grid are replaced."""
    values = {axis: shown(value) for axis, value in place.items()}
    title = _filled(panel.get("title", ""), values)
    return _filled(figure.get("panel", "{title}"), {"title": title, **values})


def _filled(template: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        template = template.replace(f"{{{name}}}", value)
    return template


def _products(curve: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield one curve per variant, measure and point of the grid, in this order."""
    rest = without(curve, {"of", "measures", "grid"})
    measures = curve.get("measures") or {None: ""}
    for of in _labelled(curve["of"]):
        for measure, part in measures.items():
            for point in points(curve.get("grid", {})):
                found = {**rest, "of": of[0]}
                if measure:
                    found["measure"] = measure
                if point:
                    found["where"] = {**curve.get("where", {}), **point}
                values = [f"{axis} = {shown(value)}" for axis, value in point.items()]
                parts = [word for word in (of[1], part, *values) if word]
                if any((of[1], part)) and "label" not in rest:
                    found["label"] = ", ".join(parts)
                yield found


def _labelled(of: str | list[str] | Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield each variant with its part of the label."""
    if not isinstance(of, Mapping):
        yield from ((one, "") for one in _listed(of))
        return
    for name, what in of.items():
        if isinstance(what, list):
            yield from ((f"{name}.{variant}", "") for variant in what)
        else:
            yield name, what


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
    found = {}
    for name, table in file.get("tables", {}).items():
        quantity, metric = measured(table["measure"])
        found[name] = {
            **without(table, {"measure"}),
            "quantity": quantity,
            "metric": metric,
            "beside": {t: list(measured(m)) for t, m in table.get("beside", {}).items()},
            "blocks": [_block(b, runs, f"{key}.tables.{name}") for b in table["blocks"]],
        }
    return found


def _block(block: Mapping[str, Any], runs: Runs, where: str) -> dict[str, Any]:
    algorithms = named(runs, block["experiment"], f"{where}.experiment").get("algorithms", {})
    methods = []
    for method in block["methods"]:
        algorithm, _, run = method["of"].partition(".")
        variants = named(algorithms, algorithm, f"{where}.of")
        reading = method.get("reading") or named(variants, run, f"{where}.of")["reading"]
        methods.append(
            {**without(method, {"of"}), "algorithm": algorithm, "run": run, "reading": reading}
        )
    return {**block, "methods": methods}
