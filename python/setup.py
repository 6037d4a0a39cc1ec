# SPDX-License-Identifier: Apache-2.0
"""Builds the extension with the project's CMake, in build/release of the repository, and puts configs/ next to it."""

import os
import pathlib
import re
import shutil
import subprocess
import sys

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = pathlib.Path(__file__).resolve().parent.parent


def version():
    return re.search(r"^project\(commfuse VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.MULTILINE)[1]


class CMakeBuild(build_ext):
    def build_extension(self, extension):
        folder = ROOT / "build" / "release"
        interpreter = os.path.realpath(sys.executable)  # an environment may be removed; its base stays
        subprocess.run(["cmake", "--preset", "release", "-D", "COMMFUSE_PYTHON=ON",
                        "-D", f"Python_EXECUTABLE={interpreter}"], cwd=ROOT, check=True)
        subprocess.run(["cmake", "--build", folder, "--target", "commfuse_python", "-j", str(os.cpu_count())],
                       check=True)
        target = pathlib.Path(self.get_ext_fullpath(extension.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        modules = (folder / "python" / "commfuse").glob("_engine*.so")  # including those built for other Pythons
        built = max(modules, key=lambda module: module.stat().st_mtime)
        shutil.copy(built, target)
        shutil.copytree(ROOT / "configs", target.parent / "configs", dirs_exist_ok=True)


setup(version=version(), ext_modules=[Extension("commfuse._engine", sources=[])], cmdclass={"build_ext": CMakeBuild})
