"""Expand experiments: resolve defaults and the names of grids, variants and unspecified details."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .merging import chosen, measured, named, refined, renamed, without, wrong

DESCRIPTION = {"extends", "title", "location", "unspecified_details"}
"""Keys of an experiment that an extending experiment does not inherit."""
SILENT = "not given"
GRID = ("values", "because")
"""Keys of an axis that are replaced together, since other values have other reasons."""
VARIANT = ("extends", "interpretation", "because", "set", "tuned")
"""Keys of a variant; all others are parameters of the algorithm."""


def experiments(file: Mapping[str, Any], key: str) -> dict[str, dict[str, Any]]:
    """Expand all experiments of a file.

    Parameters
    ----------
    file : mapping
        Contents of the file.
    key : str
        Key of the paper, with which error lines start.

    Returns
    -------
    dict
        Complete experiments, by name.
    """
    own = file.get("experiments", {})
    default = file.get("defaults", {}).get("experiment") or {}
    found = {}
    for name, experiment in own.items():
        where = f"{key}.experiments.{name}"
        base = default
        if "extends" in experiment:
            model = named(own, experiment["extends"], f"{where}.extends")
            if "extends" in model:
                expected = "an experiment that extends no other"
                raise wrong(f"{where}.extends", experiment["extends"], expected)
            base = without(_merged(default, model), DESCRIPTION)
        found[name] = _spelled_out(_merged(base, without(experiment, {"extends"})), file, where)
    return found


def _merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    found = {**base, **own}
    for part in ("problem", "network", "budget", "groups"):
        if part in base and part in own:
            found[part] = renamed(base[part], own[part])
    if "scales" in base and "scales" in own:
        found["scales"] = {
            name: {**base["scales"].get(name, {}), **own["scales"].get(name, {})}
            for name in {**base["scales"], **own["scales"]}
        }
    return found


def _spelled_out(found: dict[str, Any], file: Mapping[str, Any], where: str) -> dict[str, Any]:
    for key in ("measures", "averages"):
        if key in found:
            found[key] = [list(measured(measure)) for measure in found[key]]
    if "intermediate_measures" in found:
        found["courses"] = intermediate = found.pop("intermediate_measures")
        if intermediate:
            pairs = [list(measured(measure)) for measure in intermediate.get("measures", [])]
            found["courses"] = {**intermediate, "measures": pairs}
    if isinstance(found.get("iterations"), list):
        found["iterations"] = [t for one in found["iterations"] for t in _iterations(one)]
    if "axes" in found:
        found["axes"] = _axes(found["axes"], file.get("axes", {}), f"{where}.axes")
    if "unspecified_details" in found:
        known = file.get("unspecified_details", {})
        found["choices"] = [
            {
                "about": about,
                "literal": SILENT,
                **(detail or named(known, about, f"{where}.unspecified_details")),
            }
            for about, detail in _by_name(found.pop("unspecified_details")).items()
        ]
    if "scales" in found:
        found["scales"] = {scale: _stored_keys(own) for scale, own in found["scales"].items()}
    if "algorithms" in found:
        found["algorithms"] = {
            algorithm: _variants(algorithm, variants, file, f"{where}.algorithms.{algorithm}")
            for algorithm, variants in found["algorithms"].items()
        }
    return _stored_keys(found)


STORED = {
    "location": "place",
    "runs_per_batch": "block",
    "unaccounted_data_use": "oracles",
}
"""Keys of the complete form, by the keys of the file."""


def _stored_keys(found: Mapping[str, Any]) -> dict[str, Any]:
    return {STORED.get(key, key): value for key, value in found.items()}


def _iterations(one: int | Mapping[str, int]) -> list[int]:
    if not isinstance(one, Mapping):
        return [one]
    return list(range(one["from"], one["to"] + 1, one.get("by", 1)))


def _by_name(found: list[str] | Mapping[str, Any]) -> Mapping[str, Any]:
    """Convert a list of names to a mapping without contents; names refer to entries of the file."""
    return found if isinstance(found, Mapping) else dict.fromkeys(found)


def _axes(own: list[str] | Mapping[str, Any], known: Mapping[str, Any], where: str):
    found = {}
    for name, axis in _by_name(own).items():
        if axis:
            base = known.get(name, {})
            axis = {**(without(base, GRID) if "values" in axis else base), **axis}
        else:
            axis = named(known, name, where)
        found[name] = {**axis, "source": "chosen" if axis.get("because") else "printed"}
    return found


def _variants(
    algorithm: str, own: list[str] | Mapping[str, Any], file: Mapping[str, Any], where: str
) -> dict[str, dict[str, Any]]:
    known = file.get("variants", {})
    here = {name: variant for name, variant in _by_name(own).items() if variant}
    found = {}
    for name, variant in _by_name(own).items():
        # `extends` names a variant of the file or, if the file has none of that name, a neighbour.
        near = {**known, algorithm: without(here, {name}) | known.get(algorithm, {})}
        found[name] = _stored(
            _variant(algorithm, variant, near, f"{where}.{name}", ())
            if variant
            else _of(name, algorithm, known, where, ())
        )
    return found


def _of(
    name: str, algorithm: str, known: Mapping[str, Any], where: str, seen: tuple[str, ...]
) -> dict[str, Any]:
    """Return the variant with a name: ``algorithm.variant``, or a variant of the same algorithm."""
    first, dot, last = name.rpartition(".")
    algorithm = first if dot else algorithm
    full = f"{algorithm}.{last}"
    if full in seen:
        raise wrong(where, name, "a variant that does not change itself")
    variant = named(known.get(algorithm, {}), last, where)
    return _variant(algorithm, variant, known, f"variants.{full}", (*seen, full))


def _variant(
    algorithm: str,
    own: Mapping[str, Any],
    known: Mapping[str, Any],
    where: str,
    seen: tuple[str, ...],
) -> dict[str, Any]:
    if "extends" not in own:
        return dict(own)
    base = _of(own["extends"], algorithm, known, f"{where}.extends", seen)
    found = refined({**base, "interpretation": "ablation"}, without(own, {"extends"}))
    for part in ("set", "tuned"):
        if part in base and part in own:
            found[part] = refined(base[part], own[part])
    return found


def _stored(variant: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a variant to the form of cells: one mapping of paths, and measures as two strings."""
    changes = {
        f"algorithm.{key}": value for key, value in variant.items() if key not in VARIANT
    } | variant.get("set", {})
    found = {"reading": variant.get("interpretation", "resolved"), **chosen(variant, ("because",))}
    if changes:
        found["set"] = changes
    if tuned := variant.get("tuned"):
        stored = {"variant": "run", "axes": "over"}
        found["tuned"] = {stored.get(key, key): tuned[key] for key in tuned if key != "measure"}
        if "measure" in tuned:
            found["tuned"]["quantity"], found["tuned"]["metric"] = measured(tuned["measure"])
    return found
