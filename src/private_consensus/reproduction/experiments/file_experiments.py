"""Expand the experiments of a file: apply defaults, and replace names by what they refer to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .merging import configuration_error, extended, look_up, omit, override, override_object, select

DESCRIPTION = {"extends", "title", "location", "unspecified_details"}
"""Keys that an experiment does not inherit from the experiment that it extends."""
GRID = ("values", "because")
"""Keys of an axis that are overridden together, because the reason refers to the values."""
VARIANT = ("extends", "interpretation", "because", "set", "tuned")
"""Keys of a variant that are not parameters of the algorithm."""


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
    entries = file.get("experiments", {})
    default = file.get("defaults", {}).get("experiment") or {}
    expanded = {}
    for name, experiment in entries.items():
        key_path = f"{key}.experiments.{name}"
        base = default
        if "extends" in experiment:
            model = extended(entries, experiment["extends"], key_path, "an experiment")
            base = omit(_merged(default, model), DESCRIPTION)
        expanded[name] = _resolved(_merged(base, omit(experiment, {"extends"})), file, key_path)
    return expanded


def _merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**base, **changes}
    for section in ("problem", "network", "budget", "shared_streams"):
        if section in base and section in changes:
            merged[section] = override_object(base[section], changes[section])
    if "scales" in base and "scales" in changes:
        merged["scales"] = {
            name: {**base["scales"].get(name, {}), **changes["scales"].get(name, {})}
            for name in {**base["scales"], **changes["scales"]}
        }
    return merged


def _resolved(experiment: dict[str, Any], file: Mapping[str, Any], key_path: str) -> dict[str, Any]:
    if isinstance(experiment.get("iterations"), list):
        experiment["iterations"] = [
            t for entry in experiment["iterations"] for t in _iterations(entry)
        ]
    if "axes" in experiment:
        experiment["axes"] = _axes(experiment["axes"], file.get("axes", {}), f"{key_path}.axes")
    if "unspecified_details" in experiment:
        file_details = file.get("unspecified_details", {})
        experiment["unspecified_details"] = {
            topic: detail or look_up(file_details, topic, f"{key_path}.unspecified_details")
            for topic, detail in _by_name(experiment["unspecified_details"]).items()
        }
    if "algorithms" in experiment:
        experiment["algorithms"] = {
            algorithm: _variants(algorithm, variants, file, f"{key_path}.algorithms.{algorithm}")
            for algorithm, variants in experiment["algorithms"].items()
        }
    return experiment


def _iterations(entry: int | Mapping[str, int]) -> list[int]:
    if not isinstance(entry, Mapping):
        return [entry]
    return list(range(entry["from"], entry["to"] + 1, entry.get("by", 1)))


def _by_name(names_or_entries: list[str] | Mapping[str, Any]) -> Mapping[str, Any]:
    """Convert a list of names to a mapping to None, which stands for the entry of the file."""
    return (
        names_or_entries
        if isinstance(names_or_entries, Mapping)
        else dict.fromkeys(names_or_entries)
    )


def _axes(entries: list[str] | Mapping[str, Any], file_axes: Mapping[str, Any], key_path: str):
    expanded = {}
    for name, axis in _by_name(entries).items():
        if axis:
            base = file_axes.get(name, {})
            axis = {**(omit(base, GRID) if "values" in axis else base), **axis}
        else:
            axis = look_up(file_axes, name, key_path)
        expanded[name] = dict(axis)
    return expanded


def _variants(
    algorithm: str, entries: list[str] | Mapping[str, Any], file: Mapping[str, Any], key_path: str
) -> dict[str, dict[str, Any]]:
    file_variants = file.get("variants", {})
    local_variants = {name: variant for name, variant in _by_name(entries).items() if variant}
    expanded = {}
    for name, variant in _by_name(entries).items():
        # `extends` refers to a variant of the file, or else to a variant of the same experiment.
        extensible = {
            **file_variants,
            algorithm: omit(local_variants, {name}) | file_variants.get(algorithm, {}),
        }
        expanded[name] = _complete(
            _variant(algorithm, variant, extensible, f"{key_path}.{name}", ())
            if variant
            else _referred_variant(name, algorithm, file_variants, key_path, ())
        )
    return expanded


def _referred_variant(
    name: str, algorithm: str, variants: Mapping[str, Any], key_path: str, visited: tuple[str, ...]
) -> dict[str, Any]:
    """Return the variant that ``algorithm.variant``, or the name of a variant, refers to."""
    first, dot, last = name.rpartition(".")
    algorithm = first if dot else algorithm
    full = f"{algorithm}.{last}"
    if full in visited:
        raise configuration_error(key_path, name, "a variant that does not extend itself")
    variant = look_up(variants.get(algorithm, {}), last, key_path)
    return _variant(algorithm, variant, variants, f"variants.{full}", (*visited, full))


def _variant(
    algorithm: str,
    changes: Mapping[str, Any],
    variants: Mapping[str, Any],
    key_path: str,
    visited: tuple[str, ...],
) -> dict[str, Any]:
    base = {}
    if "extends" in changes:
        base = _referred_variant(
            changes["extends"], algorithm, variants, f"{key_path}.extends", visited
        )
    for key, value in changes.items():
        if value is None and key not in base:
            raise configuration_error(
                f"{key_path}.{key}", value, "a value; ~ only removes an inherited parameter"
            )
    if "extends" not in changes:
        return dict(changes)
    merged = override({**base, "interpretation": "ablation"}, omit(changes, {"extends"}))
    for section in ("set", "tuned"):
        if section in base and section in changes:
            merged[section] = override(base[section], changes[section])
    return merged


def _complete(variant: Mapping[str, Any]) -> dict[str, Any]:
    """Move the parameters of the algorithm to ``set``, and add the default interpretation."""
    parameters = {f"algorithm.{key}": v for key, v in variant.items() if key not in VARIANT}
    return {
        "interpretation": "resolved",
        **select(variant, ("interpretation", "because", "tuned")),
        "set": {**parameters, **variant.get("set", {})},
    }
