"""Tests the reference pages: they cover devices, errata and structs, and have no dead links."""

from __future__ import annotations

import posixpath
import re
from pathlib import PurePosixPath

import pytest
from conftest import REPOSITORY

from fletching_generator.docs.pages import declaration
from fletching_generator.docs.prose import prose, published
from fletching_generator.rules.rulebook import load_rulebook
from fletching_generator.spec.model import Spec

PAGES = "docs/reference"
LINK = re.compile(r"\]\(([^)\s]+)\)")


@pytest.fixture(scope="module")
def pages() -> dict[str, str]:
    """Returns all pages and pictures in the tree, which `generate --check` keeps in sync."""
    files = (path for path in (REPOSITORY / PAGES).rglob("*") if path.is_file())
    return {
        path.relative_to(REPOSITORY).as_posix(): path.read_text(encoding="utf-8") for path in files
    }


def anchors(page: str) -> list[str]:
    """Returns the anchors of a page: those generated for headings, and explicit ones."""
    own = re.findall(r'<a id="([^"]+)"></a>', page)
    headings = re.findall(r"^#+ (?:<a .*?</a>)?(.+)$", page, flags=re.MULTILINE)
    slugs = [re.sub(r"[^\w -]", "", h).strip().lower().replace(" ", "-") for h in headings]
    return own + slugs


def test_every_device_has_page(spec: Spec, pages: dict[str, str]) -> None:
    for device in spec.devices:
        page = pages[f"{PAGES}/devices/{device.name}.md"]
        wanted = [prose(device.doc), f"| {device.value} |", f"`{device.dlpack}`"]
        wanted += [prose(device.device_id), f"# {device.title} (`{device.name}`)\n"]
        wanted += [device.arrow or device.dlpack_only or "", device.event.type or "sync_event"]
        assert [text for text in wanted if text not in page] == [], device.name
    there = {PurePosixPath(p).stem for p in pages if PurePosixPath(p).parent.name == "devices"}
    assert there == {device.name for device in spec.devices}


def test_callback_parameters_have_names(spec: Spec) -> None:
    fields = [field for struct in spec.structs for field in struct.fields]
    assert any("set_error" in declaration(field) for field in fields)
    for field in fields:
        assert declaration(field).count("(*)") == field.is_callback, declaration(field)


def test_device_table_shows_every_number(spec: Spec, pages: dict[str, str]) -> None:
    rows = re.findall(r"^\| (\d+) \| (.+?) \|", pages[f"{PAGES}/devices.md"], flags=re.MULTILINE)
    devices = {
        device.value: f"[{device.name}](devices/{device.name}.md)" for device in spec.devices
    }
    other = {number.value: "*never assigned*" for number in spec.unassigned}
    other |= {device.value: f"*reserved: {device.name}*" for device in spec.unreleased_devices}
    assert [int(value) for value, _ in rows] == sorted({**devices, **other})
    assert {int(value): name for value, name in rows} == {**devices, **other}


def test_every_erratum_has_anchor(spec: Spec, pages: dict[str, str]) -> None:
    page = pages[f"{PAGES}/errata.md"]
    found = anchors(page)
    for erratum in spec.errata:
        assert found.count(erratum.id) == 1, erratum.id
        section = page.split(f"\n## {erratum.id}\n")[1].split("\n## ")[0]
        assert [said for _, said in erratum.says if prose(said) not in section] == [], erratum.id
        assert prose(erratum.why) in section, erratum.id


def test_every_struct_and_field_is_described(spec: Spec, pages: dict[str, str]) -> None:
    for interface in spec.interfaces:
        page = pages[f"{PAGES}/{interface.id}.md"]
        for struct in interface.structs:
            section = page.split(f"\n## {struct.name}\n")[1].split("\n## ")[0]
            for field in struct.fields:
                doc, valid = prose(field.doc), prose(field.valid)
                assert f"- **`{field.name}`**: {doc}\n  - Valid: {valid}.\n" in section
                said = (field.contract.times, field.contract.inside) if field.contract else ()
                assert [text for text in said if prose(text) not in section] == []


def test_prose_marks_names_as_code() -> None:
    assert prose("set n_children of __dlpack__.") == "set `n_children` of `__dlpack__`."
    assert prose("a cudaEvent_t*, and MTLEvent*") == "a `cudaEvent_t*`, and `MTLEvent*`"
    assert prose("sycl::get_pointer_type and BufferError") == (
        "`sycl::get_pointer_type` and `BufferError`"
    )
    for unchanged in ("`*(cl_event*)array.sync_event`", "[x](a_b.md#c_d)", "bit i * bits, n * 2"):
        assert prose(unchanged) == unchanged


def test_published_sections_are_linked(spec: Spec) -> None:
    texts = load_rulebook(REPOSITORY, spec).texts
    for interface in spec.interfaces:
        for struct in interface.structs:
            link = published(interface.document, texts, struct.section)
            assert link.startswith(f"[{struct.section}](https://"), struct.name
    assert published("dlpack.h", (), "DLTensor") == "DLTensor"


def test_links_between_pages_have_targets(pages: dict[str, str]) -> None:
    dead = []
    for path, text in pages.items():
        for target in LINK.findall(text):
            if "://" in target:
                continue
            file, _, anchor = target.partition("#")
            wanted = posixpath.normpath(posixpath.join(posixpath.dirname(path), file or "."))
            wanted = wanted if file else path
            if not wanted.startswith(f"{PAGES}/"):
                continue  # hand-written pages are covered by the link check of the whole tree
            if wanted not in pages or (anchor and anchor not in anchors(pages[wanted])):
                dead.append(f"{path}: {target}")
    assert dead == []


# Template mistakes: a full stop after text that already ends in one, and an inflected verb after
# "does".
WRONG = re.compile(
    r"(?<=[a-z)])\.\.(?=[\s|]|$)|\b(?:does|did|do) not [a-z]*[^\Ws]s (?:it|the|a|an)\b"
)
TEXTS = ("docs/**/*.md", "spec/**/*.yaml", "*.md", "cpp/**/*.md", "bindings/**/README.md")
HEADERS = ("cpp/include/**/*.h", "cpp/include/**/*.hpp", "generator/fletching_generator/**/*.md")


def test_pattern_finds_wrong_sentences() -> None:
    assert WRONG.search("The text says nothing.. Then")
    assert WRONG.search("The caller does not reads it.")
    assert not WRONG.search("See ../README.md, 1..9, and so on... It does not pass the test.")


def test_texts_have_no_wrong_sentences() -> None:
    found = [
        f"{path.relative_to(REPOSITORY)}: {line}"
        for pattern in (*TEXTS, *HEADERS)
        for path in REPOSITORY.glob(pattern)
        for line in path.read_text(encoding="utf-8").splitlines()
        if WRONG.search(line)
    ]
    assert found == []
