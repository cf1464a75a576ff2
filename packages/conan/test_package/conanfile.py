"""Uses the package in a separate project, as C and as C++."""

from pathlib import Path

from conan import ConanFile
from conan.tools.build import can_run
from conan.tools.cmake import CMake, cmake_layout


class FletchingTestConan(ConanFile):
    settings = "os", "arch", "compiler", "build_type"
    generators = "CMakeDeps", "CMakeToolchain"

    def requirements(self):
        self.requires(self.tested_reference_str)

    def layout(self):
        cmake_layout(self)

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def test(self):
        if can_run(self):
            for program in ("uses_core", "uses_headers", "uses_shared"):
                path = Path(self.cpp.build.bindir, program).resolve()
                if path.exists():
                    self.run(str(path), env="conanrun")
