"""The documentation: every page is found, every link leads somewhere, what the new reader's guides show is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


def examples(page: str) -> str:
    """The Python of a page, which reads from top to bottom."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return "".join(re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE))


@pytest.mark.skipif(not (ROOT / "mkdocs.yml").is_file(), reason="the tests of a wheel have no site")
def test_every_page_is_in_the_contents():
    contents = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    named = re.findall(r": (\S+\.md)$", contents, re.MULTILINE)
    assert sorted(named) == sorted(page.relative_to(DOCS).as_posix() for page in PAGES)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(DOCS).as_posix())
def test_links_lead_to_a_page(page):
    """Of the site, and so not out of its folder."""
    prose = re.sub(r"^```.*?^```|`[^`\n]+`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for target in re.findall(r"\]\(([^)#\s]+)[^)\s]*\)", prose):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).resolve().is_relative_to(DOCS), target
            assert (page.parent / target).exists(), target


def test_every_public_name_is_in_the_reference(llmstream):
    reference = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "reference").glob("*.md"))
    members = [name for listed in re.findall(r"members: \[(.*?)\]", reference) for name in listed.split(", ")]
    assert len(members) == len(set(members))
    assert set(members) == set(llmstream.__all__) - {"__version__", "implementation"}


def test_read_a_stream(llmstream):
    names: dict[str, object] = {}
    exec(examples("guides/read-a-stream.md"), names)
    types = ["stream.start", "content.delta", "content.stop", "usage", "stream.end"]
    assert names["types"] == types
    assert names["text"] == "Hello"
    assert names["answer"] == ("Hello", 1, True)
    assert [event.type for event in names["events"]] == types
    assert names["complete"] is True
    assert names["hello"] == "Hi"
    assert names["found"][0] == ("R5.2.1-3", "error")


def test_conformance(llmstream):
    names: dict[str, object] = {}
    exec(examples("guides/conformance.md"), names)
    ok, requirements = names["verdict"]
    assert not ok
    assert requirements
