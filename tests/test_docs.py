"""The documentation: every page is found, every link leads somewhere, what the new reader's guides show is so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))


def blocks(page: Path) -> list[str]:
    """The examples in Python of a page."""
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def examples(page: str) -> str:
    """The Python of a page, which reads from top to bottom."""
    return "".join(blocks(DOCS / page))


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


@pytest.mark.parametrize("page", [ROOT / "README.md", DOCS / "index.md"], ids=lambda page: page.name)
def test_the_first_example_tells_a_failed_answer_from_a_whole_one(llmstream, capsys, page):
    """``complete`` alone does not: a stream that reported an error has its end, too."""
    code = blocks(page)[0]
    encoder = llmstream.Encoder()
    start, words = encoder.start("m", created=0), encoder.delta("Hello")
    failed = [start, words, encoder.fail("overloaded")]
    encoder = llmstream.Encoder()
    whole = [encoder.start("m", created=0), encoder.delta("Hello"), encoder.stop("end_turn"), encoder.usage(3, 1)]
    whole.append(encoder.end())
    for response, last in ((whole, "whole"), (whole[:-1], "not whole"), (failed, "not whole")):
        exec(code, {"response": response})
        out = capsys.readouterr().out
        assert out.startswith("Hello")
        assert out.splitlines()[-1].removeprefix("None ").rpartition(") ")[2] == last
        assert ("failed: overloaded" in out) is (response is failed)


def test_the_second_example_of_the_readme(llmstream):
    body = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n'
    names = {"llmstream": llmstream, "body": body, "chunks": [body]}
    exec(blocks(ROOT / "README.md")[1], names)
    assert (names["result"].text, names["result"].complete, names["parser"].complete) == ("Hi", True, True)


@pytest.mark.skipif(not (ROOT / "CONTRIBUTING.md").is_file(), reason="the tests of a wheel have not all of the pages")
def test_the_readme_leads_to_every_page():
    """The pages of the reference are built from docstrings, and lead nowhere outside of the site."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    named = {target for target in re.findall(r"\]\(([^)#\s]+)\)", text) if not target.startswith("https://")}
    assert [target for target in named if not (ROOT / target).exists()] == []
    pages = {page.relative_to(ROOT).as_posix() for page in PAGES if page.parent.name != "reference"}
    assert pages - named == {"docs/index.md"}


def test_conformance(llmstream):
    names: dict[str, object] = {}
    exec(examples("guides/conformance.md"), names)
    ok, requirements = names["verdict"]
    assert not ok
    assert requirements
