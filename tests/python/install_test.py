# SPDX-License-Identifier: Apache-2.0
"""Installs the module with pip into a separate environment, without a network, and uses it there.

usage: install_test.py ROOT. Exits with 77 if the environment cannot be made.
"""

import pathlib
import subprocess
import sys
import tempfile

CODE = """
import commfuse, pathlib
assert pathlib.Path(commfuse.__file__).is_relative_to({folder!r}), commfuse.__file__
result = commfuse.run(seq="8K", strategy="serial,commfuse")
assert result["makespan_us"].min() > 0 and len(result) == 2
assert pathlib.Path(commfuse.__file__).with_name("configs").is_dir()
print(commfuse.__version__, len(result))
"""


def main(root):
    with tempfile.TemporaryDirectory(prefix="commfuse-pip-") as folder:
        venv = subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", folder], check=False)
        if venv.returncode != 0:
            print("skipped: no virtual environment can be made (Debian: python3-venv)")
            return 77
        python = pathlib.Path(folder) / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "--no-index", "--no-build-isolation", "--no-deps",
                        "--disable-pip-version-check", root / "python"], check=True, cwd=folder)
        code = CODE.format(folder=folder)
        subprocess.run([python, "-c", code], check=True, cwd=folder, env={"PATH": "/usr/bin:/bin"})
    return 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
