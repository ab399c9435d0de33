"""Test that exported objects have complete docstrings."""

import inspect
import re

import private_consensus

EXPORTED = {
    name: getattr(private_consensus, name)
    for name in private_consensus.__all__
    if callable(getattr(private_consensus, name))
}


def sections(text: str) -> dict[str, str]:
    """Return the underlined sections of a numpydoc docstring by title."""
    titles_and_texts = re.split(r"^([A-Z]\w+)\n-{3,}\n", inspect.cleandoc(text), flags=re.MULTILINE)
    return dict(zip(titles_and_texts[1::2], titles_and_texts[2::2], strict=True))


def described(section: str) -> list[str]:
    """Return the names in a section that have a type, a shape or a description."""
    rows = re.findall(r"^(\w[\w, *]*)( : .+)?$((?:\n+    .+)*)", section, re.MULTILINE)
    return [name for names, kind, text in rows if kind or text for name in names.split(", ")]


def parameter_names(exported) -> list[str]:
    """Return the parameter names of a callable."""
    exception = isinstance(exported, type) and issubclass(exported, Exception)
    parameters = inspect.signature(exported.__init__ if exception else exported).parameters
    return [name for name in parameters if name != "self"]


def missing(exported) -> set[str]:
    """Return the parameters, results and exceptions that a docstring does not describe."""
    documented = sections(exported.__doc__ or "")
    undocumented = set(parameter_names(exported)) - set(described(documented.get("Parameters", "")))
    # Fields are described in the class that declares them.
    for base in getattr(exported, "__mro__", ())[1:]:
        undocumented -= set(described(sections(base.__doc__ or "").get("Parameters", "")))
    if inspect.isfunction(exported) and exported.__annotations__.get("return") not in (
        None,
        "None",
    ):
        undocumented |= {"Returns"} - set(documented)
    return undocumented


def invented(exported) -> set[str]:
    """Return the parameters that a docstring describes and the function does not have."""
    return set(described(sections(exported.__doc__ or "").get("Parameters", ""))) - set(
        parameter_names(exported)
    )


def test_docstrings_of_exported_objects_are_complete():
    assert {name for name, exported in EXPORTED.items() if missing(exported)} == set()
    assert all(exported.__doc__ for exported in EXPORTED.values())


def test_docstrings_describe_no_unknown_parameters():
    assert {
        name: extra_parameters
        for name, exported in EXPORTED.items()
        if (extra_parameters := invented(exported))
    } == {}
