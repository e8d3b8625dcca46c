"""A hook of mkdocs: pages that the site has besides docs/, and links that leave that folder.

The site shows README.md, CONTRIBUTING.md and CHANGELOG.md as pages, has a page for each public
package, generated from docstrings, and holds a copy of each source file that a page links to. So
the pages read the same in the repository and on the site, and no link leads out of it.
"""

from __future__ import annotations

import posixpath
import re
from importlib import import_module
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page
from write_public_surface import PACKAGES

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "readme.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
}
"""The documents beside docs/, and their pages."""

_LINK = re.compile(r'(\]\(|src=")(?![a-z]+:|#)([^)\s"#]+)')


def on_config(config: Any) -> Any:
    """Fill the part of the navigation that is generated."""
    for section in config["nav"]:
        if "API reference" in section:
            section["API reference"] = [{name: f"api/{name}.md"} for name in PACKAGES]
    return config


def on_files(files: Files, config: Any) -> Files:
    """Add the pages, and the sources that they link to."""
    for name, page in PAGES.items():
        text = (ROOT / name).read_text("utf-8")
        files.append(File.generated(config, page, content=_relinked(text, name, files, config)))
    for name in PACKAGES:
        files.append(File.generated(config, f"api/{name}.md", content=_reference(name)))
    for file in list(files.documentation_pages()):
        if (path := ROOT / "docs" / file.src_uri).exists():
            _relinked(path.read_text("utf-8"), f"docs/{file.src_uri}", files, config)
    return files


def on_page_markdown(markdown: str, page: Page, config: Any, files: Files) -> str:
    """Let links of a page in docs/ lead to the pages and copies on the site."""
    if page.file.abs_src_path is None:
        return markdown
    return _relinked(markdown, f"docs/{page.file.src_uri}", files, config)


def _relinked(text: str, source: str, files: Files, config: Any) -> str:
    """The text of a document of the repository, with links as its page needs them."""
    page = PAGES.get(source, source.removeprefix("docs/"))

    def relinked(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[2]))
        name = _target(target, files, config)
        # mkdocs turns links of Markdown into those of the page's folder, and leaves HTML as it is.
        start = page.removesuffix(".md") if match[1] == 'src="' else posixpath.dirname(page) or "."
        return match[1] + posixpath.relpath(name, start)

    return _LINK.sub(relinked, text)


def _target(path: str, files: Files, config: Any) -> str:
    """The place on the site of a file of the repository, which is added if it is not there."""
    if path in PAGES:
        return PAGES[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    source = ROOT / path
    name = f"source/{path}.txt" if source.is_file() else f"source/{path}/files.txt"
    if not files.get_file_from_path(name):
        content = source.read_text("utf-8") if source.is_file() else _listing(source)
        files.append(File.generated(config, name, content=content))
    return name


def _listing(folder: Path) -> str:
    """The files of a folder of the repository, a line each."""
    names = (file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())
    return "".join(f"{name}\n" for name in sorted(names) if "__pycache__" not in name)


def _reference(name: str) -> str:
    """The page of a public package: what is in its `__all__`, from the docstrings.

    What several packages have is described once, on the page of the last one in `PACKAGES`.
    """
    package = import_module(name)
    later = PACKAGES[PACKAGES.index(name) + 1 :]
    lines = [f"# {name}", "", (package.__doc__ or "").strip().partition("\n")[0], ""]
    for public in sorted(package.__all__):
        value = getattr(package, public)
        home = next((other for other in later if _is_in(other, public, value)), None)
        module = getattr(value, "__module__", None) or ""
        if home:
            lines += [f"`{public}`: see [{home}]({home}.md).", ""]
        elif module.startswith("crosschip") and getattr(value, "__qualname__", "") == public:
            lines += [f"::: {module}.{public}", ""]
    return "\n".join(lines)


def _is_in(package: str, public: str, value: object) -> bool:
    module = import_module(package)
    return public in module.__all__ and getattr(module, public) is value
