"""Read the files of ``config/papers`` and expand them to complete papers.

A file is first validated as it is written (:class:`.schema.File`). Then each reference, default,
product and inherited key is replaced by what it stands for: experiments, figures and tables,
claims. The functions below have this order. The result is the input of :class:`.schema.Paper`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from private_consensus.common.errors import InvalidInput
from private_consensus.common.fields import error_line

from ..claims import Claim, Series, Test
from .schema import (
    Config,
    ConfigurationError,
    Curve,
    CurveKeys,
    FigureFields,
    FigurePanel,
    File,
    Style,
    read_yaml,
    split_measure,
)

DRAFT = "https://json-schema.org/draft/2020-12/schema"

Entry = Mapping[str, Any]
"""Section or entry of a file."""

NOT_INHERITED = {"extends", "title", "location", "unspecified_details"}
"""Keys that an experiment does not inherit from the experiment that it extends."""
GRID = ("values", "because")
"""Keys of an axis that are overridden together, because the reason refers to the values."""
VARIANT = ("extends", "interpretation", "because", "set", "tuned")
"""Keys of a variant that are not parameters of the algorithm."""

CURVE_KEYS = {*CurveKeys.model_fields, "quantity", "metric"} - {"experiment"}
"""Keys of a panel that all of its curves inherit."""
DESCRIPTION = {"extends", "title", "caption", "note"}
"""Keys that a figure does not inherit from the figure that it extends."""
FIGURE_KEYS = {*DESCRIPTION, "columns", "panel_title", "panels"}
"""Keys of a figure that its panels do not inherit."""
PANEL_KEYS = {*FigurePanel.model_fields} - {"graph", "curves"}
ADDED = "_extra_"
"""Part of the name of figures that are not figures of the paper."""

LISTABLE = ("experiment", "method", "variant", "measure", "against", "goal", "grid")
"""Keys of a test that may have lists; there is one test per combination. The first key in the file
varies slowest."""
TESTED = {"test", "tests", "series", "variants"}
"""Keys of a claim that define tests; a claim without any of them is not tested."""
ONLY_VARIANT = "resolved"
"""Name of the variant of a claim without ``variants``."""


# --- Files ----------------------------------------------------------------------------------------


def read_paper(path: Path) -> dict[str, Any]:
    """Read and expand the file of a paper and its parts.

    ``parts: [a, b]`` adds the content of ``<key>/a.yaml`` and ``<key>/b.yaml``. Names of variants,
    axes and sets of curves are local to one file. Claims are sorted by name. The result is the
    input of :class:`.schema.Paper`.

    Raises
    ------
    ConfigurationError
        With one line per invalid key.
    InvalidInput
        If a part is missing, or defines a name that an earlier part defines.
    """
    main_file = read_yaml(path)
    paper = {"experiments": {}, "figures": {}, "claims": {}, **complete(main_file, path.stem)}
    for part_name in main_file.get("parts", []):
        added = complete(read_yaml(path.with_suffix("") / f"{part_name}.yaml"), path.stem)
        for section, entries in added.items():
            section_entries = paper.setdefault(section, {})
            for name in sorted(set(section_entries) & set(entries)):
                key = f"{path.stem}.{section}.{name}"
                expected = "a name that no other part of the paper uses"
                raise InvalidInput(key, part_name, expected)
            section_entries.update(entries)
    # Sorted by number, because an earlier part may contain claims with later numbers.
    paper["claims"] = dict(sorted(paper["claims"].items()))
    return paper


def complete(content: Entry, key: str) -> dict[str, Any]:
    """Expand the content of a file: experiments, figures, tables and claims without references.

    ``key`` is that of the paper. An error has one line per invalid key.
    """
    _check(content, key)
    file = {**{section: {} for section in File.model_fields}, **content}
    runs = {
        name: _experiment(entry, file, f"{key}.experiments.{name}")
        for name, entry in file["experiments"].items()
    }
    expanded = {"experiments": runs}
    for section, expand in {"figures": _figure, "tables": _table, "claims": _claim}.items():
        expanded[section] = {
            name: expand(name, entry, file, runs, f"{key}.{section}.{name}")
            for name, entry in file[section].items()
        }
    return _select(content, ("paper", "scales")) | _select(expanded, content)


def schemas() -> dict[str, dict[str, Any]]:
    """Return the JSON schemas of ``config.yaml``, ``papers/*.yaml`` and ``styles.yaml``."""
    models = {"config": Config, "paper": File, "styles": dict[str, Style]}
    return {name: {"$schema": DRAFT} | TypeAdapter(m).json_schema() for name, m in models.items()}


def _check(content: Entry, key: str) -> None:
    try:
        File.model_validate(content)
    except ValidationError as error:
        errors = [(tuple(_keys_of_file(e, content)), e) for e in error.errors()]
        # Of a value with several allowed types, the errors within the value are the precise ones.
        outer = {location[:end] for location, _ in errors for end in range(len(location))}
        lines = [
            error_line(key, {**details, "loc": location})
            for location, details in errors
            if location not in outer
        ]
        raise ConfigurationError(list(dict.fromkeys(lines))) from None


def _keys_of_file(error: Entry, content: Any) -> Iterator[str | int]:
    """Yield the location of a validation error as keys and indices of the file."""
    for step in error["loc"]:
        inside = isinstance(content, Mapping) and step in content
        inside |= isinstance(content, list) and isinstance(step, int) and step < len(content)
        if inside:
            content = content[step]
            yield step
    if error["type"] == "missing":
        yield error["loc"][-1]


# --- Entries --------------------------------------------------------------------------------------


def _override(base: Entry, changes: Entry) -> dict[str, Any]:
    """Return a mapping with some values overridden; a null value (``~``) removes its key."""
    return {key: value for key, value in {**base, **changes}.items() if value is not None}


def _merge(base: Entry, changes: Entry, sections: Set[str]) -> dict[str, Any]:
    """Return an entry with keys overridden, in sections of equal ``name`` one by one."""
    merged = {**base, **changes}
    for section in base.keys() & changes.keys() & sections:
        old, new = base[section], changes[section]
        inherits = new.get("name", old.get("name")) == old.get("name")
        merged[section] = _override(old if inherits else {}, new)
    return merged


def _omit(entry: Entry, keys: Collection[str]) -> dict[str, Any]:
    """Return an entry without some of its keys, which may be absent."""
    return {key: value for key, value in entry.items() if key not in keys}


def _select(entry: Entry, keys: Collection[str]) -> dict[str, Any]:
    """Return those of some keys that an entry has, in the order of the entry."""
    return {key: value for key, value in entry.items() if key in keys}


def _look_up(entries: Entry, name: str, key_path: str) -> Any:
    """Return the entry with a name, or raise an error about ``key_path`` that lists all names."""
    if name not in entries:
        raise _error(key_path, name, f"one of {', '.join(entries) or '(none)'}")
    return entries[name]


def _extended(entries: Entry, name: str, key_path: str, kind: str) -> Any:
    """Return the entry that another entry extends; it must not extend an entry itself."""
    entry = _look_up(entries, name, f"{key_path}.extends")
    if "extends" in entry:
        raise _error(f"{key_path}.extends", name, f"{kind} that extends no other")
    return entry


def _method_and_variant(entry: Entry) -> tuple[str, str | None]:
    """Return the algorithm and the variant of an entry."""
    algorithm, _, variant = entry.get("method", "").partition(".")
    return algorithm, variant or entry.get("variant")


def points(grid: Entry) -> Iterator[dict[str, Any]]:
    """Yield every combination of axis values of a grid; the last axis varies fastest."""
    for point in product(*grid.values()):
        yield dict(zip(grid, point, strict=True))


def _error(key_path: str, value: object, expectation: str) -> ConfigurationError:
    """Build an error about one key, with its value and a description of valid values."""
    problem = "missing" if value is None else f"found {value!r}"
    return ConfigurationError([f"{key_path}: {problem}, expected {expectation}"])


def _value_text(value: Any) -> str:
    """Format an axis value for titles and labels."""
    return f"{value:g}" if isinstance(value, float) else str(value)


# --- Experiments ----------------------------------------------------------------------------------


def _experiment(entry: Entry, file: Entry, key_path: str) -> dict[str, Any]:
    """Return a complete experiment: defaults, the extended experiment and its own keys."""
    base = file["defaults"].get("experiment", {})
    if "extends" in entry:
        model = _extended(file["experiments"], entry["extends"], key_path, "an experiment")
        base = _omit(_merged(base, model), NOT_INHERITED)
    return _resolved(_merged(base, _omit(entry, {"extends"})), file, key_path)


def _merged(base: Entry, changes: Entry) -> dict[str, Any]:
    merged = _merge(
        base, changes, {"problem", "network", "budget", "shared_streams", "paper_values"}
    )
    if "scales" in base and "scales" in changes:
        merged["scales"] = _merge(base["scales"], changes["scales"], base["scales"].keys())
    return merged


def _resolved(experiment: dict[str, Any], file: Entry, key_path: str) -> dict[str, Any]:
    if isinstance(experiment.get("iterations"), list):
        experiment["iterations"] = [
            t for entry in experiment["iterations"] for t in _iterations(entry)
        ]
    if "axes" in experiment:
        experiment["axes"] = {
            name: _axis(name, axis, file["axes"], f"{key_path}.axes")
            for name, axis in _by_name(experiment["axes"]).items()
        }
    if "unspecified_details" in experiment:
        experiment["unspecified_details"] = {
            topic: detail
            or _look_up(file["unspecified_details"], topic, f"{key_path}.unspecified_details")
            for topic, detail in _by_name(experiment["unspecified_details"]).items()
        }
    if "algorithms" in experiment:
        experiment["algorithms"] = {
            name: _variants_of_experiment(
                name, _by_name(variants), file["variants"], f"{key_path}.algorithms.{name}"
            )
            for name, variants in experiment["algorithms"].items()
        }
    return experiment


def _iterations(entry: int | Mapping[str, int]) -> list[int]:
    if not isinstance(entry, Mapping):
        return [entry]
    return list(range(entry["from"], entry["to"] + 1, entry.get("by", 1)))


def _by_name(names_or_entries: list[str] | Entry) -> Entry:
    """Convert a list of names to a mapping to None, which stands for the entry of the file."""
    if isinstance(names_or_entries, Mapping):
        return names_or_entries
    return dict.fromkeys(names_or_entries)


def _axis(name: str, axis: Entry | None, file_axes: Entry, key_path: str) -> dict[str, Any]:
    if not axis:
        return dict(_look_up(file_axes, name, key_path))
    base = file_axes.get(name, {})
    return {**(_omit(base, GRID) if "values" in axis else base), **axis}


def _variants_of_experiment(
    algorithm: str, entries: Entry, file_variants: Entry, key_path: str
) -> dict[str, dict[str, Any]]:
    # `extends` refers to a variant of the file, or else to a variant of the same experiment.
    local_variants = {name: variant for name, variant in entries.items() if variant}
    named = {**file_variants, algorithm: local_variants | file_variants.get(algorithm, {})}
    return {
        name: _complete(
            _variant(algorithm, variant, named, f"{key_path}.{name}", ())
            if variant
            else _referred_variant(name, algorithm, file_variants, key_path, ())
        )
        for name, variant in entries.items()
    }


def _referred_variant(
    name: str, algorithm: str, variants: Entry, key_path: str, visited: tuple[str, ...]
) -> dict[str, Any]:
    """Return the variant that ``algorithm.variant``, or the name of a variant, refers to."""
    first, dot, last = name.rpartition(".")
    algorithm = first if dot else algorithm
    full = f"{algorithm}.{last}"
    if full in visited:
        raise _error(key_path, name, "a variant that does not extend itself")
    variant = _look_up(variants.get(algorithm, {}), last, key_path)
    return _variant(algorithm, variant, variants, f"variants.{full}", (*visited, full))


def _variant(
    algorithm: str,
    changes: Entry,
    variants: Entry,
    key_path: str,
    visited: tuple[str, ...],
) -> dict[str, Any]:
    base = {}
    if "extends" in changes:
        key = f"{key_path}.extends"
        base = _referred_variant(changes["extends"], algorithm, variants, key, visited)
        base["interpretation"] = "ablation"
    for key, value in changes.items():
        if value is None and key not in base:
            expected = "a value; ~ only removes an inherited parameter"
            raise _error(f"{key_path}.{key}", value, expected)
    merged = _merge(base, changes, {"set", "tuned"})
    return {key: v for key, v in merged.items() if v is not None and key != "extends"}


def _complete(variant: Entry) -> dict[str, Any]:
    """Move the parameters of the algorithm to ``set``, and add the default interpretation."""
    parameters = {f"algorithm.{key}": v for key, v in variant.items() if key not in VARIANT}
    return {
        "interpretation": "resolved",
        **_select(variant, ("interpretation", "because", "tuned")),
        "set": {**parameters, **variant.get("set", {})},
    }


# --- Figures and tables ---------------------------------------------------------------------------


def _figure(name: str, figure: Entry, file: Entry, runs: Entry, key_path: str) -> dict[str, Any]:
    if "extends" in figure:
        base = figure["extends"]
        inherited = _omit(_extended(file["figures"], base, key_path, "a figure"), DESCRIPTION)
        # By default, the extending figure shows the experiment of the extended figure.
        default = {"experiment": base} if base in runs else {}
        figure = {**default, **inherited, **figure}
    elif name in runs:
        figure = {"experiment": name, **figure}
    return {
        **_select(figure, FigureFields.model_fields),
        "caption": _caption(figure, file, key_path),
        "added": ADDED in name,
        "panels": list(_Panels(file, runs, key_path).of(figure)),
    }


def _caption(entry: Entry, file: Entry, key_path: str) -> str:
    """Return a caption in which each {name} is replaced by the named sentence of the file."""

    def sentence(match: re.Match) -> str:
        return _look_up(file["sentences"], match[1], f"{key_path}.caption")

    return re.sub(r"\{(\w+)\}", sentence, entry["caption"])


@dataclass(frozen=True)
class _Panels:
    """Expansion of the panels of one figure.

    Parameters
    ----------
    file : mapping
        Content of the file, with its sets of curves and titles.
    runs : mapping
        Complete experiments of the file, by name.
    key_path : str
        Key of the figure, with which error lines start.
    """

    file: Entry
    runs: Entry
    key_path: str

    def of(self, figure: Entry) -> Iterator[dict[str, Any]]:
        """Yield the complete panels of a figure, one per point of its grids."""
        common = _omit(figure, FIGURE_KEYS)
        outer = common.pop("grid", {})
        for point in points(outer):
            for panel_entry in figure.get("panels", [{}]):
                for inner in points(panel_entry.get("grid", {})):
                    coordinates = {**point, **inner}
                    base = _merge(common, {"where": coordinates}, {"where"})
                    changes = _omit(panel_entry, {"grid"})
                    panel = _merge(base, changes, {"where"})
                    panel["title"] = _title(figure, panel_entry, coordinates)
                    yield self._panel(panel)

    def _panel(self, panel: dict[str, Any]) -> dict[str, Any]:
        if panel.get("graph"):
            return _select(panel, ("title", "experiment", "graph"))
        panel = {**self.file["defaults"].get("panel", {}), **panel}
        expanded = _select(panel, PANEL_KEYS)
        titles = self.file["titles"]
        expanded.setdefault("x_title", titles.get(panel.get("x"), panel.get("x", "")))
        if panel.get("measure") in titles:
            expanded.setdefault("y_title", titles[panel["measure"]])
        expanded["curves"] = [
            self._curve(curve, panel)
            for entry in self._chosen(panel)
            for curve in _curve_products(entry)
        ]
        return expanded

    def _chosen(self, panel: Entry) -> Iterator[dict[str, Any]]:
        """Yield the curves of a panel, with names of sets replaced by their curves."""
        for entry in _listed(panel.get("curves", [])):
            for curve in self._named(entry):
                # Sets are not nested: a set may contain names of curves, but not of sets.
                for member in self._named(curve):
                    yield {"method": member} if isinstance(member, str) else member

    def _named(self, entry: Any) -> list[Any]:
        return _listed(self.file["curves"].get(entry, entry) if isinstance(entry, str) else entry)

    def _curve(self, curve: Entry, panel: Entry) -> dict[str, Any]:
        merged = {**_select(panel, CURVE_KEYS), **curve}
        key_path = f"{self.key_path}.curves"
        algorithm, variant = _method_and_variant(merged)
        if not variant:
            expected = f"algorithm.variant, or one of {', '.join(self.file['curves'])}"
            raise _error(key_path, merged["method"], expected)
        if "measure" not in merged:
            raise _error(f"{key_path}.{merged['method']}.measure", None, "quantity.metric")
        if "measure" not in curve:
            quantity, metric = split_measure(merged["measure"])
            measure = merged.get("quantity", quantity), merged.get("metric", metric)
            merged["measure"] = ".".join(measure)
        experiment = curve.get("experiment", panel.get("experiments", {}).get(algorithm, ""))
        merged |= {"method": algorithm, "variant": variant, "experiment": experiment}
        merged.setdefault("style", variant)
        if "interpretation" not in merged:
            plotted = self.runs.get(experiment or panel.get("experiment", ""), {})
            merged["interpretation"] = _interpretation(plotted, algorithm, variant, key_path)
        return _select(merged, Curve.model_fields)


def _interpretation(experiment: Entry, algorithm: str, variant: str | None, key_path: str) -> str:
    """Return the interpretation of a variant of an experiment."""
    variants = experiment.get("algorithms", {}).get(algorithm, {})
    names = {f"{algorithm}.{name}": entry for name, entry in variants.items()}
    return _look_up(names, f"{algorithm}.{variant}", key_path)["interpretation"]


def _listed(entry: Any) -> list[Any]:
    return list(entry) if isinstance(entry, list) else [entry]


def _title(figure: Entry, panel: Entry, coordinates: Entry) -> str:
    """Return the title of a panel, in which {axis} is replaced for each axis of its grid."""
    title = figure.get("panel_title", "{title}").replace("{title}", panel.get("title", ""))
    for axis, value in coordinates.items():
        title = title.replace(f"{{{axis}}}", _value_text(value))
    return title


def _curve_products(curve: Entry) -> Iterator[dict[str, Any]]:
    """Yield one curve per variant, measure and point of the grid, in this order."""
    common = _omit(curve, {"method", "measures", "grid"})
    measures = curve.get("measures") or {None: ""}
    for method, words in _labelled(curve["method"]):
        for measure, measure_label in measures.items():
            for point in points(curve.get("grid", {})):
                product_curve = {**common, "method": method}
                if measure:
                    product_curve["measure"] = measure
                if point:
                    product_curve["where"] = {**curve.get("where", {}), **point}
                values = [f"{axis} = {_value_text(value)}" for axis, value in point.items()]
                label_parts = [word for word in (words, measure_label, *values) if word]
                if any((words, measure_label)) and "label" not in common:
                    product_curve["label"] = ", ".join(label_parts)
                yield product_curve


def _labelled(methods: str | list[str] | Entry) -> Iterator[tuple[str, str]]:
    """Yield each method (algorithm.variant) with the text that it adds to the label."""
    if not isinstance(methods, Mapping):
        yield from ((method, "") for method in _listed(methods))
        return
    for name, label_or_variants in methods.items():
        if isinstance(label_or_variants, list):
            yield from ((f"{name}.{variant}", "") for variant in label_or_variants)
        else:
            yield name, label_or_variants


def _table(_: str, table: Entry, file: Entry, runs: Entry, key_path: str) -> dict[str, Any]:
    return {
        **table,
        "caption": _caption(table, file, key_path),
        "blocks": [_block(block, runs, key_path) for block in table["blocks"]],
    }


def _block(block: Entry, runs: Entry, key_path: str) -> dict[str, Any]:
    experiment = _look_up(runs, block["experiment"], f"{key_path}.experiment")
    methods = []
    for entry in block["methods"]:
        algorithm, variant = _method_and_variant(entry)
        interpretation = _interpretation(experiment, algorithm, variant, f"{key_path}.method")
        complete_entry = {"interpretation": interpretation, **entry}
        methods.append({**complete_entry, "method": algorithm, "variant": variant})
    return {**block, "methods": methods}


# --- Claims ---------------------------------------------------------------------------------------


def _claim(_: str, claim: Entry, file: Entry, runs: Entry, key_path: str) -> dict[str, Any]:
    variants = _variants_of_claim(claim, file["claim_variants"], key_path)
    common = _flat({**claim.get("test", {}), **_select(claim, ("series", "against", "tests"))})
    if claim["figure"] in runs:
        common.setdefault("experiment", claim["figure"])
    return {
        "primary_variant": next(iter(variants), ONLY_VARIANT),
        **_select(claim, Claim.model_fields),
        "variants": {
            name: {
                **_select(changes, ("interpretation", "claim")),
                "tests": _tests(_override_test(common, changes), f"{key_path}.variants.{name}"),
            }
            for name, changes in variants.items()
        },
    }


def _variants_of_claim(claim: Entry, sets: Entry, key_path: str) -> dict[str, Any]:
    """Return the changes of each variant of a claim, by name."""
    if claim.get("untestable") and not TESTED & claim.keys():
        return {}
    for key, members in sets.items():
        if any(member and "for_each_variant_of" in member for member in members.values()):
            location = f"{key_path.split('.')[0]}.claim_variants.{key}"
            expected = "no such key: only variants of a claim may refer to a set of variants"
            raise _error(location, "for_each_variant_of", expected)
    entries = claim.get("variants") or {claim.get("primary_variant", ONLY_VARIANT): {}}
    if isinstance(entries, str):
        entries = _look_up(sets, entries, f"{key_path}.variants")
    expanded = {}
    for name, variant in entries.items():
        if variant is None and name in sets:
            expanded |= {member_name: member or {} for member_name, member in sets[name].items()}
        elif variant and "for_each_variant_of" in variant:
            location = f"{key_path}.variants.{name}.for_each_variant_of"
            members = _look_up(sets, variant["for_each_variant_of"], location)
            changes = _omit(variant, {"for_each_variant_of"})
            expanded |= {
                f"{member_name}_{name}": _override_test(member or {}, changes)
                for member_name, member in members.items()
            }
        else:
            expanded[name] = variant or {}
    return expanded


def _flat(entry: Entry) -> dict[str, Any]:
    """Return the keys of a test, with those of its ``series`` on the same level."""
    flat = {}
    for key, value in entry.items():
        flat |= value if key == "series" else {key: value}
    return flat


def _override_test(base: Entry, changes: Entry) -> dict[str, Any]:
    """Override the keys of a test; in ``where``, axes are overridden individually."""
    return _merge(base, _flat(changes), {"where"})


def _tests(variant: Entry, key_path: str) -> list[dict[str, Any]]:
    common = _omit(variant, {"tests", "interpretation", "claim"})
    return [
        _test(single_test, key_path)
        for entry in variant.get("tests", [{}])
        for single_test in _test_products(_override_test(common, entry))
    ]


def _test_products(test: Entry) -> Iterator[dict[str, Any]]:
    several = {
        key: list(points(value)) if key == "grid" else value
        for key, value in test.items()
        if key in LISTABLE and (key == "grid" or isinstance(value, list))
    }
    for point in product(*several.values()):
        single_test = {**test, **dict(zip(several, point, strict=True))}
        coordinates = single_test.pop("grid", {})
        if coordinates:
            single_test["where"] = {**single_test.get("where", {}), **coordinates}
        yield single_test


def _test(test: Entry, key_path: str) -> dict[str, Any]:
    if "kind" not in test:
        raise _error(f"{key_path}.kind", None, "a kind of test")
    expanded = {**_select(test, Test.model_fields), "series": _series(test, key_path)}
    if "against" in test:
        expanded["against"] = _series(_second_series(test), key_path)
    return expanded


def _second_series(test: Entry) -> dict[str, Any]:
    """Return the second series: the first series, overridden by the keys of ``against``."""
    against = test["against"]
    second = {"method": against} if isinstance(against, str) else against
    base = _select(test, (*Series.model_fields, "kind"))
    if "method" in second and "." not in second["method"] and "variant" not in second:
        # The variant of the first series, if only another algorithm is given.
        second = {**second, "variant": _method_and_variant(test)[1]}
    return _override_test(base, second)


def _series(test: Entry, key_path: str) -> dict[str, Any]:
    algorithm, variant = _method_and_variant(test)
    if not (algorithm and variant):
        raise _error(f"{key_path}.method", test.get("method"), "algorithm.variant")
    if "experiment" not in test:
        raise _error(f"{key_path}.experiment", None, "an experiment")
    if "measure" not in test and test["kind"] not in ("private", "tight"):
        raise _error(f"{key_path}.measure", None, "quantity.metric")
    return {**_select(test, Series.model_fields), "method": algorithm, "variant": variant}
