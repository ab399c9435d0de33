"""Expand claims: merge common keys of variants and tests; form products of series and axes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from ..claims import Claim, Series, Test
from .file_figures import points
from .merging import chosen, named, refined, without, wrong

MANY = ("experiment", "method", "variant", "measure", "against", "goal", "grid")
"""Keys under which a test may list several values; the first written key varies slowest."""
TESTED = ("test", "tests", "series", "variants")
"""Keys of a test; a claim without any of them cannot be tested."""

ONLY_VARIANT = "resolved"
"""Name of the only variant of a claim that names none."""


def claims(file: Mapping[str, Any], runs: Mapping[str, Any], key: str) -> dict[str, dict[str, Any]]:
    """Expand all claims of a file.

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
        Complete claims, by name.
    """
    return {
        name: _claim(claim, file, runs, f"{key}.claims.{name}")
        for name, claim in file.get("claims", {}).items()
    }


def _claim(claim, file, runs, where: str) -> dict[str, Any]:
    variants = _variants(claim, file.get("claim_variants", {}), where)
    common = _flat({**claim.get("test", {}), **chosen(claim, ("series", "against", "tests"))})
    if claim["figure"] in runs:
        common.setdefault("experiment", claim["figure"])
    expanded = {
        "primary_variant": next(iter(variants), ONLY_VARIANT),
        **chosen(claim, Claim.model_fields),
    }
    expanded["variants"] = {
        name: {
            **chosen(variant, ("interpretation", "claim")),
            "tests": list(_tests(_over(common, variant), f"{where}.variants.{name}")),
        }
        for name, variant in variants.items()
    }
    return expanded


def _variants(claim: Mapping[str, Any], sets: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the variants of a claim by name.

    A claim without variants has one variant, named by ``primary_variant``, that changes nothing.
    """
    if claim.get("untestable") and not {*TESTED} & claim.keys():
        return {}
    entries = claim.get("variants", {})
    for key, members in sets.items():
        if any(member and "for_each_variant_of" in member for member in members.values()):
            location = f"{where.split('.')[0]}.claim_variants.{key}"
            raise wrong(location, "for_each_variant_of", "variants themselves")
    if isinstance(entries, str):
        return {name: v or {} for name, v in named(sets, entries, f"{where}.variants").items()}
    expanded = {}
    for name, variant in (entries or {claim.get("primary_variant", ONLY_VARIANT): {}}).items():
        if variant is None and name in sets:
            expanded |= {member_name: member or {} for member_name, member in sets[name].items()}
        elif variant and "for_each_variant_of" in variant:
            location = f"{where}.variants.{name}.for_each_variant_of"
            members = named(sets, variant["for_each_variant_of"], location)
            changes = without(variant, {"for_each_variant_of"})
            expanded |= {
                f"{member_name}_{name}": _over(member or {}, changes)
                for member_name, member in members.items()
            }
        else:
            expanded[name] = variant or {}
    return expanded


def _flat(block: Mapping[str, Any]) -> dict[str, Any]:
    """Replace the key ``series`` by its contents."""
    flat = {}
    for key, value in block.items():
        flat |= value if key == "series" else {key: value}
    return flat


def _over(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Merge ``changes`` over ``base``; the axis values in ``where`` are merged individually."""
    changes = _flat(changes)
    merged = {**base, **changes}
    if "where" in base and "where" in changes:
        merged["where"] = refined(base["where"], changes["where"])
    return merged


def _tests(block: Mapping[str, Any], where: str) -> Iterator[dict[str, Any]]:
    common = without(block, {"tests", "interpretation", "claim"})
    for entry in block.get("tests", [{}]):
        for single_test in _products(_over(common, entry)):
            yield _test(single_test, where)


def _products(test: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    several = {
        key: list(points(value)) if key == "grid" else value
        for key, value in test.items()
        if key in MANY and (key == "grid" or isinstance(value, list))
    }
    for point in product(*several.values()):
        single_test = {**test, **dict(zip(several, point, strict=True))}
        coordinates = single_test.pop("grid", {})
        if coordinates:
            single_test["where"] = {**single_test.get("where", {}), **coordinates}
        yield single_test


def _test(test: Mapping[str, Any], where: str) -> dict[str, Any]:
    if "kind" not in test:
        raise wrong(f"{where}.kind", None, "a kind of test")
    expanded = {**chosen(test, Test.model_fields), "series": _series(test, where)}
    if "against" in test:
        expanded["against"] = _series(_other(test), where)
    return expanded


def _other(test: Mapping[str, Any]) -> dict[str, Any]:
    """Return the second series: the first series, changed by the keys of ``against``."""
    against = test["against"]
    second = {"method": against} if isinstance(against, str) else against
    base = chosen(test, (*Series.model_fields, "kind"))
    if "method" in second and "." not in second["method"] and "variant" not in second:
        # Another algorithm, the variant of the first.
        second = {**second, "variant": _variant_of(test)}
    return _over(base, second)


def _variant_of(test: Mapping[str, Any]) -> str | None:
    return test.get("method", "").partition(".")[2] or test.get("variant")


def _series(test: Mapping[str, Any], where: str) -> dict[str, Any]:
    algorithm, _, variant = test.get("method", "").partition(".")
    variant = variant or test.get("variant")
    if not (algorithm and variant):
        raise wrong(f"{where}.method", test.get("method"), "algorithm.variant")
    if "experiment" not in test:
        raise wrong(f"{where}.experiment", None, "an experiment")
    if "measure" not in test and test["kind"] not in ("private", "tight"):
        raise wrong(f"{where}.measure", None, "quantity.metric")
    return {**chosen(test, Series.model_fields), "method": algorithm, "variant": variant}
