"""Projects that use the packages in local registries, one kind for each package manager.

Each use has empty caches, as on another machine, and returns the version that it got. The first use
locks the version: Cargo.lock, go.mod, requirements.txt. In Maven the requirement is the version.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from homes import ROOT, PackageError

GO = "github.com/fletching/fletching/bindings/go"
MODULES = (GO, f"{GO}/arrowgo")
MAVEN = "org.apache.maven.plugins:maven-dependency-plugin:3.9.0:copy-dependencies"
PYTHON = ROOT / ".venv" / "bin"
# pip without the user's configuration, which can name other places of packages.
NO_CONFIG = {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": "", "PIP_EXTRA_INDEX_URL": ""}
LISTED = "--requirement=requirements.txt"
RUST_PROGRAM = 'fn main() { println!("{:?}", fletching::ArrowDeviceType::CPU) }\n'
GO_PROGRAM = f"""package main

import (
	"fmt"
	"runtime/debug"

	"{GO}/abi"
)

func main() {{
	info, _ := debug.ReadBuildInfo()
	for _, module := range info.Deps {{
		fmt.Println(module.Path, module.Version, abi.DLPackMajorVersion)
	}}
}}
"""


def create_rust(project: Path, requirement: str, registry: Path) -> None:
    write(project / "src" / "main.rs", RUST_PROGRAM)
    dependency = f'{{ version = "{requirement}", registry = "local" }}'
    package = '[package]\nname = "user"\nedition = "2021"\n'
    write(project / "Cargo.toml", f"{package}\n[dependencies]\nfletching = {dependency}\n")
    index = f'[registries.local]\nindex = "file://{registry}/cargo/index"\n'
    write(project / ".cargo" / "config.toml", index)


def use_rust(project: Path, _registry: Path) -> str:
    home = cargo_home(project)
    locked = ["--locked"] if (project / "Cargo.lock").exists() else []
    run("cargo", "run", "--quiet", *locked, cwd=project, variables=home)
    tree = ["cargo", "tree", "--prefix=none", "--format={p}", *locked]
    listed = run(*tree, cwd=project, variables=home)
    return only(re.findall(r"^fletching(?:-abi)? v(\S+)", listed, re.MULTILINE))


def cargo_home(project: Path) -> dict[str, str]:
    """The variables for an empty cache, but with the user's registries."""
    home = Path(tempfile.mkdtemp(dir=project, prefix="home-"))
    for config in Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo")).glob("config*"):
        shutil.copy(config, home)
    return {"CARGO_HOME": str(home), "CARGO_TARGET_DIR": str(project / "target")}


def create_go(project: Path, requirement: str, registry: Path) -> None:
    write(project / "main.go", GO_PROGRAM)
    write(project / "go.mod", "module user\n\ngo 1.24\n")
    wanted = [f"{module}@{requirement}" for module in MODULES]
    run("go", "get", *wanted, cwd=project, variables=go_home(project, registry))


def use_go(project: Path, registry: Path) -> str:
    home = go_home(project, registry)
    listed = run("go", "list", "-m", "-f={{.Version}}", *MODULES, cwd=project, variables=home)
    printed = run("go", "run", ".", cwd=project, variables=home)
    built = re.findall(rf"^{GO} (\S+)", printed, re.MULTILINE)
    return only(each.removeprefix("v") for each in [*listed.split(), *built])


def go_home(project: Path, registry: Path) -> dict[str, str]:
    """The variables for a cache without modules of Fletching."""
    folder = tempfile.mkdtemp(dir=project, prefix="home-")
    cache, others = run("go", "env", "GOMODCACHE", "GOPROXY", cwd=project).split()
    return {
        "GOPROXY": f"file://{registry}/go,file://{cache}/cache/download,{others}",
        "GONOSUMDB": "*",
        "GOMODCACHE": folder,
        "GOFLAGS": "-modcacherw -trimpath",
    }


def create_java(project: Path, requirement: str, _registry: Path) -> None:
    shutil.copytree(ROOT / "bindings" / "java" / "outside", project)
    pom = read(project / "pom.xml").replace("${version}", requirement)
    write(project / "pom.xml", pom)


def use_java(project: Path, registry: Path) -> str:
    # Plugins are shared by the users, packages are not.
    local = registry.parent / "maven"
    shutil.rmtree(local / "io" / "github" / "fletching", ignore_errors=True)
    options = ["--quiet", "--batch-mode", "--no-transfer-progress", f"-Dmaven.repo.local={local}"]
    jars = f"-DoutputDirectory={project}/jars"
    run("mvn", *options, f"-Dpackages={registry}/maven", jars, MAVEN, cwd=project)
    java = Path(run("bindings/java/find-jdk", "17", cwd=ROOT).strip(), "bin", "java")
    engine = "-Dio.github.fletching.engine=jna"
    run(str(java), engine, "-cp", "jars/*", "src/Safe.java", cwd=project)
    names = [path.name for path in (project / "jars").glob("fletching*.jar")]
    return only(name.removesuffix(".jar").rpartition("-")[2] for name in names)


def create_python(project: Path, requirement: str, _registry: Path) -> None:
    write(project / "requirements.txt", f"fletching {requirement}\n")


def use_python(project: Path, registry: Path) -> str:
    """Installs with pip, and pins the version that it got, as `pip freeze` does."""
    python = create_venv(project)
    index = f"--index-url=file://{registry}/python"
    install = [f"--python={python}", "install", "--quiet", "--no-cache-dir", index, LISTED]
    run(str(PYTHON / "pip"), *install, cwd=project, variables=NO_CONFIG)
    program = "import fletching; print(fletching.__version__)"
    got = run(str(python), "-c", program, cwd=project).strip()
    write(project / "requirements.txt", f"fletching == {got}\n")
    return got


def create_tools(project: Path, requirement: str, _registry: Path) -> None:
    write(project / "requirements.txt", f"fletching-tools {requirement}\n")


def use_tools(project: Path, registry: Path) -> str:
    """The same with uv, which gets a project from the first index that has it."""
    python = create_venv(project)
    pip = run(str(PYTHON / "pip"), "config", "get", "global.index-url", cwd=project, may_fail=True)
    default = os.environ.get("PIP_INDEX_URL") or pip.strip()
    indexes = [f"--index=file://{registry}/python"]
    if default.startswith("http"):
        indexes.append(f"--default-index={default}")
    pinned = f"--constraints={ROOT}/tools/requirements.lock"
    install = ["pip", "install", "--quiet", "--no-cache", f"--python={python}"]
    run(str(PYTHON / "uv"), *install, *indexes, pinned, LISTED, cwd=project)
    got = run(str(python.with_name("fletching")), "--version", cwd=project).split()[1]
    write(project / "requirements.txt", f"fletching-tools == {got}\n")
    return got


def create_venv(project: Path) -> Path:
    folder = tempfile.mkdtemp(dir=project, prefix="venv-")
    create = ["venv", "--quiet", "--allow-existing", f"--python={PYTHON}/python", folder]
    run(str(PYTHON / "uv"), *create, cwd=project)
    return Path(folder, "bin", "python")


@dataclass(frozen=True)
class User:
    """A package manager. The texts have the places {old}, {minor} of the old one, and {new}."""

    create: Callable[[Path, str, Path], None]  # makes a project with a requirement
    use: Callable[[Path, Path], str]
    requirement: str  # that docs/versions.md recommends
    unmet: str = ""  # only the old version meets it, and no lock file names that
    refusal: str = ""  # the error of the package manager if the old version is yanked


USERS = {
    "rust": User(create_rust, use_rust, "{minor}", "={old}", "version {old} is yanked"),
    "go": User(create_go, use_go, "latest"),
    "java": User(create_java, use_java, "{new}"),
    "python": User(create_python, use_python, "~= {old}", "< {new}", "No matching distribution"),
    "generator": User(create_tools, use_tools, "~= {old}", "< {new}", "{old} was yanked"),
}


def run(
    *command: str, cwd: Path, variables: Mapping[str, str] | None = None, may_fail: bool = False
) -> str:
    """Returns the output of a command, with the errors if the command may fail."""
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, **(variables or {})},
        check=False,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT if may_fail else subprocess.PIPE,
    )
    if done.returncode and not may_fail:
        text = done.stdout + done.stderr
        raise PackageError(f"{' '.join(command)}: exit code {done.returncode}\n{text}")
    return done.stdout


def only(values: Iterable[str]) -> str:
    """The common value, or all different ones."""
    return ", ".join(sorted({*values})) or "none"


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
