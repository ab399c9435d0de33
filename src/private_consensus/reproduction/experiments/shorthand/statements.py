"""Expand claims: merge common keys of variants and tests; form products of series and axes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from .drawings import points
from .merging import chosen, measured, named, refined, without, wrong

CLAIM = ("claim", "figure", "because", "untestable")
KEPT = (
    "x", "each", "quantifier", "part", "expected", "goal", "tolerance", "at_least", "at_most",
)  # fmt: skip
MANY = ("experiment", "method", "variant", "measure", "against", "goal", "grid")
"""Keys under which a test may list several values; the first written key varies slowest."""


SERIES = ("experiment", "method", "variant", "measure", "where", "last_iteration_only")
"""Keys of a series."""
TESTED = ("test", "tests", "series", "variants")
"""Keys of a test; a claim without any of them cannot be tested."""

ALONE = "resolved"
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
    found = {
        **chosen(claim, CLAIM),
        "place": claim["location"],
        "headline": claim.get("primary_variant", next(iter(variants), ALONE)),
    }
    found["variants"] = {
        name: list(_tests(_over(common, variant), f"{where}.variants.{name}"))
        for name, variant in variants.items()
    }
    found["reading"] = {
        name: variant["interpretation"]
        for name, variant in variants.items()
        if "interpretation" in variant
    }
    found["sentences"] = {n: v["claim"] for n, v in variants.items() if "claim" in v}
    return found


def _variants(claim: Mapping[str, Any], sets: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the variants of a claim by name.

    A claim without variants has one variant, named by ``primary_variant``, that changes nothing.
    """
    if claim.get("untestable") and not {*TESTED} & claim.keys():
        return {}
    own = claim.get("variants", {})
    for key, known in sets.items():
        if any(each and "for_each_variant_of" in each for each in known.values()):
            location = f"{where.split('.')[0]}.claim_variants.{key}"
            raise wrong(location, "for_each_variant_of", "variants themselves")
    if isinstance(own, str):
        return {name: v or {} for name, v in named(sets, own, f"{where}.variants").items()}
    found = {}
    for name, variant in (own or {claim.get("primary_variant", ALONE): {}}).items():
        if variant is None and name in sets:
            found |= {one: each or {} for one, each in sets[name].items()}
        elif variant and "for_each_variant_of" in variant:
            location = f"{where}.variants.{name}.for_each_variant_of"
            known = named(sets, variant["for_each_variant_of"], location)
            rest = without(variant, {"for_each_variant_of"})
            found |= {f"{one}_{name}": _over(each or {}, rest) for one, each in known.items()}
        else:
            found[name] = variant or {}
    return found


def _flat(block: Mapping[str, Any]) -> dict[str, Any]:
    """Replace the key ``series`` by its contents."""
    found = {}
    for key, value in block.items():
        found |= value if key == "series" else {key: value}
    return found


def _over(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Merge ``own`` over ``base``; the axis values in ``where`` are merged individually."""
    own = _flat(own)
    found = {**base, **own}
    if "where" in base and "where" in own:
        found["where"] = refined(base["where"], own["where"])
    return found


def _tests(block: Mapping[str, Any], where: str) -> Iterator[dict[str, Any]]:
    common = without(block, {"tests", "interpretation", "claim"})
    for own in block.get("tests", [{}]):
        for one in _products(_over(common, own)):
            yield _test(one, where)


def _products(test: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    several = {
        key: list(points(value)) if key == "grid" else value
        for key, value in test.items()
        if key in MANY and (key == "grid" or isinstance(value, list))
    }
    for point in product(*several.values()):
        one = {**test, **dict(zip(several, point, strict=True))}
        place = one.pop("grid", {})
        if place:
            one["where"] = {**one.get("where", {}), **place}
        yield one


def _test(test: Mapping[str, Any], where: str) -> dict[str, Any]:
    if "kind" not in test:
        raise wrong(f"{where}.kind", None, "a kind of test")
    found = {"kind": test["kind"], "series": _series(test, where), **chosen(test, KEPT)}
    if "best_at" in test:
        found["at"] = test["best_at"]
    if "against" in test:
        found["against"] = _series(_other(test), where)
    return found


def _other(test: Mapping[str, Any]) -> dict[str, Any]:
    """Return the second series: the first series, changed by the keys of ``against``."""
    against = test["against"]
    own = {"method": against} if isinstance(against, str) else against
    base = chosen(test, (*SERIES, "kind"))
    if "method" in own and "." not in own["method"] and "variant" not in own:
        # Another algorithm, the variant of the first.
        own = {**own, "variant": _variant_of(test)}
    return _over(base, own)


def _variant_of(test: Mapping[str, Any]) -> str | None:
    return test.get("method", "").partition(".")[2] or test.get("variant")


def _series(test: Mapping[str, Any], where: str) -> dict[str, Any]:
    algorithm, _, run = test.get("method", "").partition(".")
    run = run or test.get("variant")
    if not (algorithm and run):
        raise wrong(f"{where}.method", test.get("method"), "algorithm.variant")
    if "experiment" not in test:
        raise wrong(f"{where}.experiment", None, "an experiment")
    found = {"experiment": test["experiment"], "algorithm": algorithm, "run": run}
    if "measure" in test:
        found["quantity"], found["metric"] = measured(test["measure"])
    elif test["kind"] not in ("private", "tight"):
        raise wrong(f"{where}.measure", None, "quantity.metric")
    if "last_iteration_only" in test:
        found["last"] = test["last_iteration_only"]
    return found | chosen(test, ("where",))
