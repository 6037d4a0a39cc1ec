# SPDX-License-Identifier: Apache-2.0
"""Executes the notebooks of docs/notebooks and names the cell that failed.

Set PYTHONPATH to the folder of the built module. Exits with status 77 (skipped) if nbclient or ipykernel is missing.
"""

import os
import pathlib
import sys
import tempfile

try:
    import ipykernel  # noqa: F401
    import nbformat
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError
except ImportError as error:
    print(f"skipped: {error} (Debian: python3-nbclient, python3-ipykernel)")
    sys.exit(77)

NOTEBOOKS = pathlib.Path(__file__).resolve().parents[2] / "docs" / "notebooks"


def spec_folder(folder):
    """Writes into `folder` the specification of a Jupyter kernel that runs this interpreter; returns `folder`."""
    kernel = pathlib.Path(folder) / "kernels" / "commfuse-test"
    kernel.mkdir(parents=True)
    (kernel / "kernel.json").write_text(
        '{"argv": ["%s", "-m", "ipykernel_launcher", "-f", "{connection_file}"], "display_name": "test",'
        ' "language": "python"}' % sys.executable)
    return folder


def has_svg(notebook):
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return any("image/svg+xml" in output.get("data", {}) for output in outputs)


def main():
    failed = 0
    paths = sorted(NOTEBOOKS.glob("*.ipynb"))
    assert len(paths) == 3, paths
    with tempfile.TemporaryDirectory() as specs:
        os.environ["JUPYTER_PATH"] = spec_folder(specs)
        for path in paths:
            notebook = nbformat.read(path, as_version=4)
            for cell in notebook.cells:
                assert not cell.get("outputs"), f"{path.name}: outputs do not belong in the repository"
            with tempfile.TemporaryDirectory() as folder:
                client = NotebookClient(notebook, timeout=600, kernel_name="commfuse-test",
                                        resources={"metadata": {"path": folder}})
                try:
                    client.execute()
                    shown = "figures" if has_svg(notebook) else "no figure"
                    print(f"{path.name}: {len(notebook.cells)} cells, {shown}")
                except CellExecutionError as error:
                    failed += 1
                    print(f"{path.name}: {error}")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main())
