"""Sphinx configuration of the site (``make docs``). Neither the build nor the pages use the network."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

import apexrank

sys.path[:0] = [str(Path(__file__).parent / "_ext"), str(Path(__file__).parent.parent)]

project = "apexrank"
author = "The apexrank developers"
copyright = author
release = version = apexrank.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "sphinx_design",
    "sphinx_copybutton",
    # our own, in _ext
    "api_names",
    "benchmark_tables",
    "github_markdown",
    "mathml",
    "plain_docstrings",
    "reproduced",
    "sidebar_labels",
    "social_card",
]
exclude_patterns = [
    "_build",
    "_data",
    "_ext",
    "_templates",
    "auto_examples/**/*.ipynb",
    "auto_examples/**/*.py",
]
templates_path = ["_templates"]
nitpicky = True
smartquotes = False  # tables show code

# Markdown pages
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 4
myst_dmath_allow_space = False
myst_dmath_double_inline = True

# API pages: signatures without types, which the docstrings describe in words
autosummary_generate = True
autosummary_imported_members = True
autodoc_mock_imports = [name for name in ("torch", "dask", "distributed") if find_spec(name) is None]
autodoc_typehints = "none"
autodoc_default_options = {"members": True, "inherited-members": True, "member-order": "groupwise"}
add_module_names = False
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
numpydoc_use_plots = False

# gallery
sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"\.py$",
    "subsection_order": [f"../examples/{name}" for name in ("push", "relevance", "graphs", "votes")],
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "doc_module": ("apexrank",),
    "reference_url": {"apexrank": None},
    "backreferences_dir": "auto_examples/backreferences",
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "show_signature": False,
    "remove_config_comments": True,
    "plot_gallery": "True",
}

# pages
html_theme = "pydata_sphinx_theme"
html_title = "apexrank"
html_baseurl = os.environ.get("APEXRANK_SITE", "")  # address of the published site, which link previews need
html_context = {"default_mode": "auto"}
html_math_renderer = "mathml"
html_static_path = ["_static", "images/card.png"]
html_css_files = ["apexrank.css"]
html_favicon = "_static/favicon.svg"
html_show_sourcelink = False
html_show_sphinx = False
html_copy_source = False
ALONE = (
    *("index", "choose", "guide/getting-started", "benchmarks", "reproduced", "architecture", "changelog"),
    "notes-on-the-papers",
)
html_sidebars = {name: [] for name in ALONE}
html_theme_options = {
    "logo": {"image_light": "_static/logo.svg", "image_dark": "_static/logo-dark.svg", "text": "apexrank"},
    "header_links_before_dropdown": 5,
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "show_prev_next": True,
    "secondary_sidebar_items": {"**": ["page-toc"], "choose": [], "index": []},
    "show_toc_level": 2,
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_only_copy_prompt_lines = True
