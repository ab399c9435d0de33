"""Expand the claims of a file: merge the common keys of tests, and form products of lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from ..claims import Claim, Series, Test
from .file_figures import points
from .merging import configuration_error, look_up, method_and_variant, omit, override, select

LISTABLE = ("experiment", "method", "variant", "measure", "against", "goal", "grid")
"""Keys of a test that may have lists; there is one test per combination. The first key in the file
varies slowest."""
TESTED = ("test", "tests", "series", "variants")
"""Keys of a claim that define tests; a claim without any of them is not tested."""

ONLY_VARIANT = "resolved"
"""Name of the variant of a claim without ``variants``."""


def claims(
    file: Mapping[str, Any], experiments: Mapping[str, Any], key: str
) -> dict[str, dict[str, Any]]:
    """Expand all claims of a file.

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
        Complete claims, by name.
    """
    return {
        name: _claim(claim, file, experiments, f"{key}.claims.{name}")
        for name, claim in file.get("claims", {}).items()
    }


def _claim(claim, file, experiments, key_path: str) -> dict[str, Any]:
    variants = _variants(claim, file.get("claim_variants", {}), key_path)
    common = _flat({**claim.get("test", {}), **select(claim, ("series", "against", "tests"))})
    if claim["figure"] in experiments:
        common.setdefault("experiment", claim["figure"])
    expanded = {
        "primary_variant": next(iter(variants), ONLY_VARIANT),
        **select(claim, Claim.model_fields),
    }
    expanded["variants"] = {
        name: {
            **select(variant, ("interpretation", "claim")),
            "tests": list(_tests(_override_test(common, variant), f"{key_path}.variants.{name}")),
        }
        for name, variant in variants.items()
    }
    return expanded


def _variants(claim: Mapping[str, Any], sets: Mapping[str, Any], key_path: str) -> dict[str, Any]:
    """Return the changes of each variant of a claim, by name.

    A claim without ``variants`` has one variant without changes, whose name is ``primary_variant``.
    """
    if claim.get("untestable") and not {*TESTED} & claim.keys():
        return {}
    entries = claim.get("variants", {})
    for key, members in sets.items():
        if any(member and "for_each_variant_of" in member for member in members.values()):
            location = f"{key_path.split('.')[0]}.claim_variants.{key}"
            expected = "no such key: only variants of a claim may refer to a set of variants"
            raise configuration_error(location, "for_each_variant_of", expected)
    if isinstance(entries, str):
        return {name: v or {} for name, v in look_up(sets, entries, f"{key_path}.variants").items()}
    expanded = {}
    for name, variant in (entries or {claim.get("primary_variant", ONLY_VARIANT): {}}).items():
        if variant is None and name in sets:
            expanded |= {member_name: member or {} for member_name, member in sets[name].items()}
        elif variant and "for_each_variant_of" in variant:
            location = f"{key_path}.variants.{name}.for_each_variant_of"
            members = look_up(sets, variant["for_each_variant_of"], location)
            changes = omit(variant, {"for_each_variant_of"})
            expanded |= {
                f"{member_name}_{name}": _override_test(member or {}, changes)
                for member_name, member in members.items()
            }
        else:
            expanded[name] = variant or {}
    return expanded


def _flat(entry: Mapping[str, Any]) -> dict[str, Any]:
    """Return the keys of a test, with those of its ``series`` on the same level."""
    flat = {}
    for key, value in entry.items():
        flat |= value if key == "series" else {key: value}
    return flat


def _override_test(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Override the keys of a test; in ``key_path``, axes are overridden individually."""
    changes = _flat(changes)
    merged = {**base, **changes}
    if "where" in base and "where" in changes:
        merged["where"] = override(base["where"], changes["where"])
    return merged


def _tests(block: Mapping[str, Any], key_path: str) -> Iterator[dict[str, Any]]:
    common = omit(block, {"tests", "interpretation", "claim"})
    for entry in block.get("tests", [{}]):
        for single_test in _products(_override_test(common, entry)):
            yield _test(single_test, key_path)


def _products(test: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
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


def _test(test: Mapping[str, Any], key_path: str) -> dict[str, Any]:
    if "kind" not in test:
        raise configuration_error(f"{key_path}.kind", None, "a kind of test")
    expanded = {**select(test, Test.model_fields), "series": _series(test, key_path)}
    if "against" in test:
        expanded["against"] = _series(_second_series(test), key_path)
    return expanded


def _second_series(test: Mapping[str, Any]) -> dict[str, Any]:
    """Return the second series: the first series, overridden by the keys of ``against``."""
    against = test["against"]
    second = {"method": against} if isinstance(against, str) else against
    base = select(test, (*Series.model_fields, "kind"))
    if "method" in second and "." not in second["method"] and "variant" not in second:
        # The variant of the first series, if only another algorithm is given.
        second = {**second, "variant": method_and_variant(test)[1]}
    return _override_test(base, second)


def _series(test: Mapping[str, Any], key_path: str) -> dict[str, Any]:
    algorithm, variant = method_and_variant(test)
    if not (algorithm and variant):
        raise configuration_error(f"{key_path}.method", test.get("method"), "algorithm.variant")
    if "experiment" not in test:
        raise configuration_error(f"{key_path}.experiment", None, "an experiment")
    if "measure" not in test and test["kind"] not in ("private", "tight"):
        raise configuration_error(f"{key_path}.measure", None, "quantity.metric")
    return {**select(test, Series.model_fields), "method": algorithm, "variant": variant}
