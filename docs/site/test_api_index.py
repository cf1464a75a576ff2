"""Tests of the index of the API reference."""

from __future__ import annotations

from pathlib import Path

from api_index import main


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_api_index_joins_names_of_languages(tmp_path: Path) -> None:
    api, build = tmp_path / "api", tmp_path / "build"
    write(api / "go" / "index.md", "# Go\n")
    names = ("DeviceArray", "DeviceArray.TakeChild", "Leaks")
    write(api / "go" / "fletching.md", "\n\n".join(f"## `{name}`" for name in names))
    write(api / "rust" / "crates.js", "")
    rows = '<a href="struct.Owner.html">Owner</a><a href="type.DeviceArray.html">DeviceArray</a>'
    methods = '<section id="method.take_child" class="method">'
    for crate in ("fletching", "fletching_abi"):
        write(api / "rust" / crate / "index.html", "")
        write(api / "rust" / crate / "all.html", rows)
        write(api / "rust" / crate / "struct.Owner.html", methods)
        write(api / "rust" / crate / "type.DeviceArray.html", "")
    build.mkdir()
    write(api / "java" / "index.html", "")
    indices = {
        "package": '[{"m":"io.fletching.ffm","l":"io.fletching.ffm.abi"},{"l":"All Packages"}]',
        "type": '[{"p":"io.fletching.ffm.abi","l":"DeviceArray"},{"l":"All Classes"}]',
        "member": "[]",
    }
    for kind, index in indices.items():
        write(api / "java" / f"{kind}-search-index.js", f"{kind}SearchIndex = {index};")

    assert main([str(api), str(build)]) == 0
    page = (api / "README.md").read_text(encoding="utf-8")
    assert "- [Go](go/index.md)\n- [Java](java/index.html)\n" in page
    assert "- [Rust](rust/fletching/index.html)\n" in page
    assert (
        "| [`DeviceArray`](go/fletching.md#devicearray) "
        "| [`DeviceArray`](java/io.fletching.ffm/io/fletching/ffm/abi/DeviceArray.html) "
        "| [`DeviceArray`](rust/fletching/type.DeviceArray.html) |" in page
    )
    assert "#devicearraytakechild) |  | [`Owner::take_child`]" in page
    assert "Leaks" not in page  # one language alone has it
