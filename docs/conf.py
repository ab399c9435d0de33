"""Sphinx: ``make docs``. Nothing is loaded from elsewhere, when it is built or when it is read."""

import sys
from pathlib import Path

import altair as alt
import vl_convert as vlc
from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx_gallery.scrapers import figure_rst

import private_consensus as pc
from private_consensus import cli

project = "private-consensus"
author = copyright = "The private-consensus authors"
version = release = pc.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates", "tutorials/*.ipynb", "tutorials/*.py"]
default_role = "literal"
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
nitpicky = False
# Pages of this folder link to files of the repository, which are no pages here.
suppress_warnings = ["myst.xref_missing", "config.cache"]

autosummary_generate = True
autodoc_member_order = "bysource"
autodoc_typehints = "none"
numpydoc_show_class_members = False

templates_path = ["_templates"]
html_title = "private-consensus"
html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "show_prev_next": False,
    "navigation_with_keys": True,
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_show_sourcelink = False
html_math_renderer = "mathml"
html_sidebars = {"index": []}


def charts(block, variables, gallery):
    """Altair charts of a block of a tutorial, each once, as pictures."""
    drawn = variables.setdefault("drawn", [])
    new = [
        value
        for value in variables["example_globals"].values()
        if isinstance(value, alt.TopLevelMixin) and not any(value is one for one in drawn)
    ]
    drawn += new
    paths = [next(variables["image_path_iterator"]) for _ in new]
    for path, chart in zip(paths, new, strict=True):
        Path(path).write_bytes(vlc.vegalite_to_png(chart.to_json(), scale=2))
    return figure_rst(paths, gallery["src_dir"]) if paths else ""


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "tutorials",
    "filename_pattern": "plot_",
    "ignore_pattern": r"tour\.ipynb",
    "image_scrapers": (charts,),
    "reset_modules": (),
    "remove_config_comments": True,
    # The page of times loads scripts from elsewhere.
    "write_computation_times": False,
    "show_memory": False,
    "show_signature": False,
    "within_subsection_order": "FileNameSortKey",
}


def inline(writer, node):
    """A formula within a line."""
    writer.body.append(convert(node.astext()))
    raise SkipNode


def block(writer, node):
    """A displayed formula, with its number where it has one."""
    text = node.astext()
    if r"\\" in text or "&" in text:
        text = rf"\begin{{aligned}}{text}\end{{aligned}}"
    writer.body.append(f'<div class="math">{convert(text, display="block")}</div>')
    raise SkipNode


def generated_pages(app):
    """What the command line says of itself, and a page an algorithm, from the registry."""
    _write(Path(app.srcdir, "_generated", "commands.txt"), [cli._parser().format_help()])
    folder = Path(app.srcdir, "api", "algorithms")
    names = [n for n in pc.algorithms.names() if pc.algorithms.module_of(n).startswith("private_")]
    for name in names:
        built = pc.algorithms.load(name)
        lines = [name, "=" * len(name), "", f".. automodule:: {built.__module__}", "",
                 f".. autoclass:: {built.__module__}.{built.__name__}", ""]  # fmt: skip
        _write(folder / f"{name}.rst", lines)
    _write(
        folder / "index.rst",
        ["Algorithms", "==========", "", "One file an algorithm, by its name in the registry.", "",
         ".. toctree::", "   :maxdepth: 1", "", *(f"   {name}" for name in names), ""],
    )  # fmt: skip


def _write(path, lines):
    text = "\n".join(lines)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def setup(app):
    """Formulas as MathML, and pages of algorithms."""
    sys.setrecursionlimit(10_000)
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.connect("builder-inited", generated_pages)
