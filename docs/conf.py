"""Configure Sphinx for ``make docs``; neither the build nor the pages load anything remote."""

import argparse
import os
import sys
from pathlib import Path

import vl_convert as vlc
from docutils.nodes import SkipNode
from latex2mathml.converter import convert
from sphinx_gallery.scrapers import figure_rst

import private_consensus as pc
from private_consensus.cli.parser import build_parser

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))
import reference_pages

os.environ["COLUMNS"] = "80"  # width of the help of commands

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
exclude_patterns = ["_build", "_templates", "examples/**/*.ipynb", "examples/**/*.py"]
default_role = "literal"
myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3
nitpicky = False
# Pages link to files of the repository that are not pages.
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
    """Return the ``chart`` of a script as a picture, at the block that assigns it."""
    chart = variables["example_globals"].get("chart")
    if chart is None or chart is variables.get("drawn"):
        return ""
    variables["drawn"] = chart
    path = next(variables["image_path_iterator"])
    specification = chart if isinstance(chart, dict) else chart.to_dict()
    Path(path).write_bytes(vlc.vegalite_to_png(specification, scale=2))
    return figure_rst([path], gallery["src_dir"])


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "examples",
    # The third script writes files; tests/core/test_own_data.py runs it.
    "filename_pattern": r"[\\/][12456]_",
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
    """Write a formula within a line."""
    writer.body.append(convert(node.astext()))
    raise SkipNode


def block(writer, node):
    """Write a displayed formula."""
    text = node.astext()
    if r"\\" in text or "&" in text:
        text = rf"\begin{{aligned}}{text}\end{{aligned}}"
    writer.body.append(f'<div class="math">{convert(text, display="block")}</div>')
    raise SkipNode


def generated_pages(app):
    """Write the help of all commands, one page per algorithm, reference pages and measurements."""
    source = Path(app.srcdir)
    _write(source / "_generated" / "commands.txt", "\n".join(help_texts(build_parser())))
    names = reference_pages.built_in()
    for name in names:
        kind = pc.algorithms.load(name)
        lines = [name, "=" * len(name), "", f".. automodule:: {kind.__module__}", "",
                 f".. autoclass:: {kind.__module__}.{kind.__name__}", ""]  # fmt: skip
        _write(source / "api" / "algorithms" / f"{name}.rst", "\n".join(lines))
    lines = ["Algorithm pages", "===============", "", ".. toctree::", "   :maxdepth: 1", "",
             *(f"   {name}" for name in names), ""]  # fmt: skip
    _write(source / "api" / "algorithms" / "index.rst", "\n".join(lines))
    for path, text in (reference_pages.pages() | reference_pages.performance()).items():
        _write(source / path, text)


def help_texts(parser):
    """Yield the help of a parser and of each of its commands."""
    yield parser.format_help()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield "-" * 80
                yield command.format_help()


def _write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def setup(app):
    """Register the renderer of formulas and the generated pages."""
    sys.setrecursionlimit(10_000)
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.connect("builder-inited", generated_pages)
