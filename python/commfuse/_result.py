# SPDX-License-Identifier: Apache-2.0
"""The result of a command."""

from __future__ import annotations

import csv
import html
import io
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from . import _engine

if TYPE_CHECKING:
    import pandas


class CommfuseWarning(UserWarning):
    """A remark that the command line writes to stderr, such as an assumption or a value that does not fit."""


class Figure:
    """A drawing, which notebooks display."""

    def __init__(self, name: str, svg: str) -> None:
        self.name = name
        """Kind of figure: "gantt", "breakdown", "winners-map", "lead"."""
        self.svg = svg
        """The whole SVG file."""

    def save(self, path: str) -> None:
        """Write the SVG file."""
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.svg)

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return f"<commfuse.Figure {self.name}, {len(self.svg)} bytes of SVG>"


def _value_of(cell: str) -> Any:
    """Return the value of a CSV cell: None, a number or a string."""
    for kind in (int, float):
        try:
            return kind(cell)
        except ValueError:
            pass
    return cell or None


def _flat_rows(result: Result) -> list[dict[str, Any]]:
    """Return the rows of a JSON answer: tune's best layouts, score's tables, plan's runs; else the document itself."""
    if result.command == "plan":
        return [{name: _value_of(cell) for name, cell in row.items()}
                for row in csv.DictReader(io.StringIO(result.to_csv()))]
    data = result.data
    lists = {"tune": "best", "score": "tables"}
    return data if isinstance(data, list) else data.get(lists.get(result.command, ""), [data])


class _Records:
    """Rows of JSON by column, for small answers."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows
        self._names = list(dict.fromkeys(name for row in rows for name in row))
        self._columns: dict[str, np.ndarray] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def names(self) -> list[str]:
        return self._names

    def record(self, row: int) -> dict[str, Any]:
        return self.rows[row]

    def column(self, name: str) -> np.ndarray:
        if name not in self._names:
            raise _engine.ConfigError(f"unknown column '{name}'; known columns: {', '.join(self._names)}")
        if name not in self._columns:
            values = [row.get(name) for row in self.rows]
            kinds = {type(value) for value in values}
            if kinds <= {int, float, type(None)} and kinds != {type(None)} and kinds != {int}:
                column = np.array([np.nan if value is None else value for value in values], dtype=np.float64)
            elif kinds == {int} or kinds == {bool}:
                column = np.array(values)
            else:
                column = np.empty(len(values), dtype=object)
                column[:] = values
            column.setflags(write=False)
            self._columns[name] = column
        return self._columns[name]


class Result:
    """Rows, and the text that the command line prints.

    `result[0]` is a row as a dict, and `result["makespan_us"]` is a column as a NumPy array. Names of columns end with
    the unit, if there is one (docs/metrics.md). `str(result)` is the text that the command prints.
    """

    def __init__(self, command: str, words: list[str], called: Any) -> None:
        self.command = command
        """Name of the command: "run"."""
        self.words = words
        """Words of the equivalent command line, without "commfuse-sim" and the command."""
        self.code: int = called.code
        """Exit code of the command: 0; 3 if some points failed; 4 if a score or plan did not meet its limits."""
        self.notes: str = called.notes
        """Remarks of the command, one per line."""
        self._help: str = called.help
        self._answer = called.answer
        self._called = called  # keeps the answer
        self._table: Any = None
        self._data: Any = None

    # Text.

    def to_text(self, output: str = "") -> str:
        """Return the exact text that the command prints with `-o output`; by default with the call's own `output`."""
        if self._answer is None:
            return self._help
        return self._answer.text(output)

    def to_json(self) -> str:
        """Return JSON, as `-o json` prints it."""
        return self.to_text("json")

    def to_csv(self) -> str:
        """Return CSV, as `-o csv` prints it."""
        return self.to_text("csv")

    @property
    def text(self) -> str:
        """The text that the command prints."""
        return self.to_text()

    @property
    def data(self) -> Any:
        """The JSON document as Python objects: a dict for tune, plan and score, a list of rows for other commands.

        Raises ConfigError for calibrate, whose answer is text and the file that it wrote.
        """
        if self.command == "calibrate":
            raise _engine.ConfigError("calibrate has no rows or JSON; read result.text, or the machine in result.files")
        if self._data is None:
            self._data = json.loads(self.to_json())
        return self._data

    @property
    def files(self) -> list[str]:
        """Files and folders that the command wrote."""
        return [] if self._answer is None else self._answer.files

    # Rows.

    def _rows(self) -> Any:
        if self._table is None:
            table = None if self._answer is None else self._answer.table()
            self._table = _Records(_flat_rows(self)) if table is None else table
        return self._table

    def __len__(self) -> int:
        return len(self._rows())

    @property
    def columns(self) -> list[str]:
        """Names of the columns, which end with the unit if there is one: makespan_us, buffer_bytes."""
        return self._rows().names()

    @overload
    def __getitem__(self, key: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, key: slice) -> list[dict[str, Any]]: ...
    @overload
    def __getitem__(self, key: str) -> np.ndarray: ...
    def __getitem__(self, key: int | slice | str) -> Any:
        if isinstance(key, str):
            return self.column(key)
        size = len(self)
        if isinstance(key, slice):
            return [self[row] for row in range(*key.indices(size))]
        row = key + size if key < 0 else key
        if not 0 <= row < size:
            raise IndexError(f"row {key} of {size} rows")
        return self._rows().record(row)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return (self[row] for row in range(len(self)))

    def column(self, name: str) -> np.ndarray:
        """Return a column as a read-only array with one element per row.

        Whole numbers are int64, other numbers float64, and flags bool; rows to which a column does not apply have NaN.
        Arrays of numbers are views of the simulator's memory, not copies. Strings are objects; missing texts are None.
        """
        rows = self._rows()
        if isinstance(rows, _Records):
            return rows.column(name)
        values, words = rows.column(name)
        if words is None:
            return values
        texts = np.array([*words, None], dtype=object)[values]  # code -1 selects the last element
        texts.setflags(write=False)
        return texts

    def codes(self, name: str) -> tuple[np.ndarray, list[str]]:
        """Return a string column's codes, as a view of the simulator's memory, and the strings; code -1: no string."""
        rows = self._rows()
        if isinstance(rows, _Records) or rows.column(name)[1] is None:
            raise _engine.ConfigError(f"{name}: not a column of strings with codes; use result[{name!r}]")
        return rows.column(name)

    def frame(self) -> pandas.DataFrame:
        """Return all columns as a pandas frame, with strings as categories. Numbers are not copied."""
        import pandas

        rows = self._rows()
        if isinstance(rows, _Records):
            return pandas.DataFrame({name: rows.column(name) for name in rows.names()}, copy=False)
        rows.read_all()
        columns = {}
        for name in rows.names():
            values, words = rows.column(name)
            columns[name] = values if words is None else pandas.Categorical.from_codes(values, words)
        return pandas.DataFrame(columns, copy=False)

    # Figures.

    def figs(self) -> list[Figure]:
        """Return all figures: for one point its breakdown and timeline, for a grid the winner of each point."""
        return [] if self._answer is None else [Figure(name, svg) for name, svg in self._answer.figures()]

    def fig(self, name: str = "") -> Figure:
        """Return the figure with this name, or the first one; notebooks display it."""
        figures = self.figs()
        names = [figure.name for figure in figures]
        if not figures:
            raise _engine.ConfigError(
                f"{self.command}: nothing to draw; run one point of a layer, or several strategies along an axis")
        if name and name not in names:
            raise _engine.ConfigError(f"unknown figure '{name}'; use {' or '.join(names)}")
        return figures[names.index(name) if name else 0]

    def __str__(self) -> str:
        return self.text

    def _is_large(self) -> bool:
        max_rows_shown = 200
        rows = self._rows() if self._answer is not None and self._answer.has_rows else []
        return len(rows) > max_rows_shown

    def __repr__(self) -> str:
        if self._is_large():
            return f"<commfuse.Result of {self.command}: {len(self)} rows, {len(self.columns)} columns>"
        return self.text.rstrip("\n")

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(repr(self))}</pre>"
