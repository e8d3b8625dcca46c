"""The documentation site is built strictly, its links lead somewhere, and it fetches nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

ROOT = Path(__file__).parents[2]
TAGS = {"a": "href", "link": "href", "img": "src", "script": "src"}


class Links(HTMLParser):
    """The links, fetched resources and anchors of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.targets: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.anchors.update(filter(None, (attributes.get("id"), attributes.get("name"))))
        target = attributes.get(TAGS.get(tag, "")) or ""
        if not target or target.startswith("mailto:"):
            return
        if "://" not in target:
            self.targets.append(target)
        elif tag != "a" and attributes.get("rel") != "canonical":
            self.fetched.append(target)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, as `make docs` builds it."""
    if find_spec("mkdocs") is None:
        pytest.skip("mkdocs is not installed: pip install --group docs")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.slow
def test_links_of_the_site_lead_somewhere_and_nothing_is_fetched(site: Path) -> None:
    @cache
    def links(page: Path) -> Links:
        parser = Links()
        parser.feed(page.read_text("utf-8"))
        return parser

    pages = [page for page in site.rglob("*.html") if page.name != "404.html"]
    assert len(pages) > 200
    missing = []
    for page in pages:
        assert not links(page).fetched, page
        for target in links(page).targets:
            name, anchor = urldefrag(target)
            file = (page.parent / unquote(name)).resolve() if name else page
            file = file / "index.html" if file.is_dir() else file
            is_there = file.exists() and (
                not anchor or file.suffix != ".html" or unquote(anchor) in links(file).anchors
            )
            if not is_there:
                missing.append(f"{page.relative_to(site)}: {target}")
    assert not missing
