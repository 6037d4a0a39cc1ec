# SPDX-License-Identifier: Apache-2.0
"""Tests the Python module: the bytes and messages of commfuse-sim, views without copies, signals, stubs.

ctest runs this file if COMMFUSE_PYTHON is on, with PYTHONPATH at the built module and SIMULATOR at commfuse-sim.
"""

import ast
import contextlib
import inspect
import io
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings
from unittest import mock

import commfuse
import numpy as np
from commfuse import _call

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = pathlib.Path(os.environ["SIMULATOR"])


def command_line(*words, folder=None):
    """Returns the bytes on stdout, the exit code and the text on stderr."""
    done = subprocess.run([PROGRAM, *words], capture_output=True, cwd=folder, check=False)
    return done.stdout, done.returncode, done.stderr.decode("utf-8", "surrogateescape").rstrip("\n")


def quietly(function, *arguments, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", commfuse.CommfuseWarning)
        return function(*arguments, **keywords)


class InOwnFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="commfuse-python-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)


# Each entry has a name, a function with its arguments and keywords, the words of the same command, and the outputs to
# compare.
GRID = {"model": "llama-3.1-8b", "axis": {"seq": [4096, 8192], "ranks": "2,4"}}
GRID_WORDS = ["run", "--model", "llama-3.1-8b", "--axis", "seq=4096,8192", "--axis", "ranks=2,4"]
CALLS = [
    ("one point", commfuse.run, [], {"seq": "8K", "strategy": ["serial", "commfuse"]},
     ["run", "--seq", "8K", "--strategy", "serial,commfuse"], ["table", "json", "jsonl", "csv", "verdict"]),
    ("a grid", commfuse.run, [], GRID, GRID_WORDS, ["table", "json", "csv", "map"]),
    ("an implementation", commfuse.run, [], {"scope": "down", "seq": 32768, "as_": "flux"},
     ["run", "--scope", "down", "--seq", "32768", "--as", "flux"], ["table", "json", "csv"]),
    ("under jitter", commfuse.run, [], {"jitter": "default", "samples": 200, "ranks": 2},
     ["run", "--jitter", "default", "--samples", "200", "--ranks", "2"], ["table", "json", "csv"]),
    ("a step", commfuse.run, [], {"scope": "step", "model": "llama-3.1-8b", "batch": 8, "tp": 8},
     ["run", "--scope", "step", "--model", "llama-3.1-8b", "--batch", "8", "--tp", "8"], ["table", "json", "csv"]),
    ("a lab workload", commfuse.run, [ROOT / "configs/lab/fa.yaml"], {"set": {"ranks": 64}, "jitter": "none"},
     ["run", ROOT / "configs/lab/fa.yaml", "--set", "ranks=64", "--jitter", "none"], ["table", "json"]),
    ("a plot", commfuse.run, [], {"seq": "8K", "plot": True}, ["run", "--seq", "8K", "--plot"], ["table"]),
    ("tuning", commfuse.tune, [],
     {"model": "llama-3.1-8b", "hardware": "h100-sxm", "seq": "8K", "batch": 64, "keep": 2},
     ["tune", "--model", "llama-3.1-8b", "--hardware", "h100-sxm", "--seq", "8K", "--batch", "64", "--keep", "2"],
     ["table", "json"]),
    ("a plan", commfuse.plan, ["train-70b"], {}, ["plan", "train-70b"],
     ["table", "json", "csv", "markdown", "verdict"]),
    ("expectations", commfuse.expect, [], {"hardware": "h100-sxm", "collective": "all_reduce", "sizes": "1M..64M"},
     ["expect", "--hardware", "h100-sxm", "--collective", "all_reduce", "--sizes", "1M..64M"],
     ["table", "json", "csv", "yaml"]),
    ("expected GEMMs", commfuse.expect, [], {"gemm": "8Kx8Kx8K"}, ["expect", "--gemm", "8Kx8Kx8K"], ["json", "csv"]),
    ("thresholds", commfuse.expect, [], {"thresholds": "nccl-tests"}, ["expect", "--thresholds", "nccl-tests"], [""]),
    ("scores", commfuse.score, [], {"data": ROOT / "configs/published/gemm_best.csv"},
     ["score", "--data", ROOT / "configs/published/gemm_best.csv"], ["table", "json", "markdown"]),
]


class SameBytes(InOwnFolder):
    def test_text_equals_the_output_of_the_command(self):
        for name, function, arguments, keywords, words, outputs in CALLS:
            result = quietly(function, *arguments, **keywords)
            for output in outputs:
                with self.subTest(name, output=output):
                    printed, code, _ = command_line(*words, *(["-o", output] if output else []))
                    self.assertEqual(code, result.code)
                    self.assertEqual(printed, result.to_text(output).encode("utf-8", "surrogateescape"))

    def test_output_keyword_chooses_the_text(self):
        printed, _, _ = command_line("run", "--seq", "8K", "-o", "csv")
        self.assertEqual(printed.decode(), str(commfuse.run(seq="8K", output="csv")))

    def test_sweep_writes_the_same_files(self):
        axis = ["seq=4K,8K", "ranks=2,4"]
        printed, code, _ = command_line("sweep", "llama-mlp", "--out", "a", "--axis", axis[0], "--axis", axis[1], "-o",
                                        "csv", folder=self.folder)
        result = quietly(commfuse.sweep, "llama-mlp", out=self.folder / "b", axis=axis, output="csv")
        self.assertEqual(code, result.code)
        self.assertEqual(printed.decode(), result.text)
        self.assertEqual([str(self.folder / "b")], result.files)
        for file in sorted((self.folder / "a").iterdir()):
            if file.suffix in (".csv", ".json", ".yaml"):
                with self.subTest(file.name):
                    self.assertEqual(file.read_bytes(), (self.folder / "b" / file.name).read_bytes())
        self.assertEqual(len(printed.decode().splitlines()) - 1, len(result))

    def test_calibrate_writes_the_same_machine(self):
        table = self.folder / "gemm.csv"
        rows = [f"h100,bf16,{m},4096,4096,{2 * m * 4096 * 4096 / 6e14 * 1e6 + 3:.3f}" for m in range(256, 8193, 256)]
        table.write_text("hw,dtype,m,n,k,time_us\n" + "\n".join(rows) + "\n")
        printed, code, message = command_line("calibrate", "--base", "h100-sxm", "--name", "mine", "gemm.csv",
                                           folder=self.folder)
        self.assertEqual(0, code, message)
        written = (self.folder / "mine.yaml").read_bytes()
        (self.folder / "mine.yaml").unlink()
        before = os.getcwd()
        self.addCleanup(os.chdir, before)
        os.chdir(self.folder)
        result = commfuse.calibrate("gemm.csv", base="h100-sxm", name="mine")
        self.assertEqual(printed.decode(), result.text)
        self.assertEqual(written, (self.folder / "mine.yaml").read_bytes())
        self.assertEqual(["mine.yaml"], result.files)
        for rows in (lambda: result.data, lambda: len(result), lambda: result.columns):
            with self.assertRaisesRegex(commfuse.ConfigError, "calibrate has no rows or JSON; read result.text"):
                rows()


class SameMessages(InOwnFolder):
    def same_mistake(self, function, keywords, *words, arguments=()):
        _, code, message = command_line(*words)
        self.assertEqual(2, code, message)
        with self.assertRaises(commfuse.ConfigError) as raised:
            function(*arguments, **keywords)
        self.assertEqual(message, str(raised.exception))
        self.assertIsInstance(raised.exception, ValueError)

    def test_mistakes_read_as_on_the_command_line(self):
        for keywords, words in [
            ({"modle": "llama-3.1-8b"}, ["--modle", "llama-3.1-8b"]),
            ({"model": "llama-3.1-9b"}, ["--model", "llama-3.1-9b"]),
            ({"dtype": "fp64"}, ["--dtype", "fp64"]),
            ({"tp": 3}, ["--tp", "3"]),
            ({"seq": 0}, ["--seq", "0"]),
            ({"output": "xml"}, ["-o", "xml"]),
            ({"set": {"strategy.slises": 4}}, ["--set", "strategy.slises=4"]),
            ({"axis": {"seq": []}}, ["--axis", "seq="]),
            ({"plot": True, "output": "json"}, ["--plot", "-o", "json"]),
        ]:
            with self.subTest(words=words):
                self.same_mistake(commfuse.run, keywords, "run", *words)

    def test_other_commands_report_the_same_mistakes(self):
        self.same_mistake(commfuse.sweep, {}, "sweep")
        self.same_mistake(commfuse.plan, {}, "plan", "no-such-plan", arguments=["no-such-plan"])
        self.same_mistake(commfuse.tune, {}, "tune", "word", arguments=["word"])
        self.same_mistake(commfuse.tune, {"keep": 0}, "tune", "--keep", "0")
        self.same_mistake(commfuse.expect, {"collective": "all_rduce"}, "expect", "--collective", "all_rduce")
        self.same_mistake(commfuse.calibrate, {"name": "x"}, "calibrate", "--name", "x")
        self.same_mistake(commfuse.score, {"kind": "gem"}, "score", "--kind", "gem")

    def test_a_damaged_store_raises_an_error(self):
        store = self.folder / "out" / "results.sqlite"
        quietly(commfuse.sweep, "llama-mlp", out=store.parent, axis="seq=4K")
        store.chmod(0o600)
        damaged = bytearray(store.read_bytes())
        damaged[4096:8192] = os.urandom(4096)
        store.write_bytes(damaged)
        _, code, message = command_line("sweep", "llama-mlp", "--out", store.parent, "--axis", "seq=4K")
        raises = commfuse.ConfigError if code == 2 else commfuse.Error
        with self.assertRaises(raises) as raised:
            commfuse.sweep("llama-mlp", out=store.parent, axis="seq=4K")
        self.assertEqual(message, str(raised.exception))
        self.assertTrue(issubclass(commfuse.Error, RuntimeError))

    def test_an_unknown_column_gets_a_suggestion(self):
        with self.assertRaisesRegex(commfuse.ConfigError, "^unknown column 'makespan_ms'; did you mean 'makespan_us'"):
            commfuse.run(seq="8K")["makespan_ms"]

    def test_remarks_are_warnings(self):
        with self.assertWarnsRegex(commfuse.CommfuseWarning, "^note: 8 GPUs: 8 tensor ranks"):
            result = commfuse.run(gpus=8, seq="8K")
        self.assertTrue(result.notes.endswith("\n"))


class Rows(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.layers = commfuse.run(**GRID)
        cls.models = quietly(commfuse.run, scope="step", model="llama-3.1-8b", batch=8, ranks=8)

    def test_columns_equal_the_columns_of_csv(self):
        for result in (self.layers, self.models):
            self.assertEqual(result.to_csv().splitlines()[0].split(","), result.columns)

    def test_records_are_the_rows_of_json(self):
        for result in (self.layers, self.models):
            for record, row in zip(result, result.data, strict=True):
                for name in result.columns:
                    self.assertEqual(row.get(name), record[name], name)

    def test_columns_equal_the_records(self):
        for result in (self.layers, self.models):
            for name in result.columns:
                for row, value in enumerate(result[name].tolist()):
                    recorded = result[row][name]
                    self.assertTrue(value == recorded or (recorded is None and value != value),
                                    (name, row, value, recorded))

    def test_numbers_are_views_of_the_simulators_memory(self):
        for name, kind in [("makespan_us", np.float64), ("ranks", np.int64)]:
            column = self.layers[name]
            self.assertEqual(kind, column.dtype)
            self.assertTrue(np.shares_memory(column, self.layers[name]))
            self.assertFalse(column.flags.owndata)
            self.assertFalse(column.flags.writeable)
        codes, words = self.layers.codes("strategy")
        self.assertTrue(np.shares_memory(codes, self.layers.codes("strategy")[0]))
        self.assertEqual(self.layers["strategy"].tolist(), [words[code] for code in codes])

    def test_a_view_outlives_its_result(self):
        result = commfuse.run(seq="8K", strategy="serial")
        column = result["makespan_us"]
        value = result[0]["makespan_us"]
        del result
        self.assertEqual([value], column.tolist())

    def test_frames_have_all_columns_without_copies(self):
        frame = self.layers.frame()
        self.assertEqual(self.layers.columns, list(frame.columns))
        self.assertTrue(np.shares_memory(frame["makespan_us"].to_numpy(), self.layers["makespan_us"]))
        self.assertEqual("category", frame["strategy"].dtype.name)
        self.assertEqual(len(self.models), len(self.models.frame()))

    def test_other_commands_have_rows(self):
        expected = commfuse.expect(hardware="h100-sxm", collective="all_reduce", sizes="1M..8M")
        self.assertEqual([1 << 20, 1 << 21, 1 << 22, 1 << 23], expected["bytes"].tolist())
        self.assertEqual(4, len(expected.frame()))
        self.assertEqual(expected.data[0], expected[0])

    def test_slices_and_negative_rows(self):
        self.assertEqual(self.layers[len(self.layers) - 1], self.layers[-1])
        self.assertEqual([self.layers[1], self.layers[2]], self.layers[1:3])
        with self.assertRaises(IndexError):
            self.layers[len(self.layers)]

    def test_figures_are_svg(self):
        self.assertEqual("winners-map", self.layers.fig()._repr_svg_() and self.layers.fig().name)
        point = commfuse.run(seq="8K", strategy="serial,commfuse")
        for figure in point.figs():
            self.assertTrue(figure._repr_svg_().startswith("<svg"), figure)
        self.assertEqual("gantt", point.fig("gantt").name)
        with self.assertRaisesRegex(commfuse.ConfigError, "unknown figure 'gant'; use breakdown or gantt"):
            point.fig("gant")
        with self.assertRaisesRegex(commfuse.ConfigError, "nothing to draw"):
            commfuse.expect(sizes="1M").fig()


class Interpreter(InOwnFolder):
    def test_other_threads_run_during_a_call(self):
        counted = 0
        finished = threading.Event()

        def count():
            nonlocal counted
            while not finished.is_set():
                counted += 1

        thread = threading.Thread(target=count)
        before = after = 0
        thread.start()
        try:
            with mock.patch.object(_call, "write_progress"):
                before = counted
                commfuse.run(axis={"seq": "1K..64K+1K"}, jitter="default", samples=500)
                after = counted
        finally:
            finished.set()
            thread.join()
        self.assertGreater(after - before, 10_000)

    def test_calls_of_several_threads_are_independent(self):
        lengths = ["4K", "8K", "16K", "32K"]
        answers = {}

        def run_one(seq):
            answers[seq] = commfuse.run(seq=seq, jitter="default", samples=100).to_csv()

        threads = [threading.Thread(target=run_one, args=(seq,)) for seq in lengths]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for seq in lengths:
            self.assertEqual(commfuse.run(seq=seq, jitter="default", samples=100).to_csv(), answers[seq])

    def test_ctrl_c_stops_a_sweep_that_can_be_resumed(self):
        keywords = {"axis": "seq=4K..8000K+4K", "uncertainty": "off", "threads": 1}
        folder = self.folder / "out"
        script = f"""
import signal, sys, threading, warnings, commfuse, pathlib, time
def press():
    while not pathlib.Path({str(folder / "results.sqlite")!r}).exists():
        time.sleep(0.001)
    signal.raise_signal(signal.SIGINT)
threading.Thread(target=press, daemon=True).start()
try:
    commfuse.sweep("llama-mlp", out={str(folder)!r}, progress="json", **{keywords!r})
except KeyboardInterrupt:
    sys.exit(77)
"""
        stopped = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        self.assertEqual(77, stopped.returncode, stopped.stderr)
        done = int(re.findall(r'"done":(\d+)', stopped.stderr)[-1])
        stderr = io.StringIO()
        with mock.patch.object(sys, "stderr", stderr):
            resumed = quietly(commfuse.sweep, "llama-mlp", out=folder, progress="json", **keywords)
        remaining = int(re.findall(r'"total":(\d+)', stderr.getvalue())[-1])
        total = int(re.findall(r'"total":(\d+)', stopped.stderr)[-1])
        self.assertLess(done, total)
        self.assertEqual(total, done + remaining)
        whole = quietly(commfuse.sweep, "llama-mlp", out=self.folder / "whole", progress="none", **keywords)
        self.assertEqual(whole.to_csv(), resumed.to_csv())

    def test_progress_goes_to_pythons_stderr(self):
        stderr = io.StringIO()
        with mock.patch.object(sys, "stderr", stderr):
            quietly(commfuse.sweep, "llama-mlp", out=self.folder / "out", axis="seq=4K", progress="plain")
        self.assertRegex(stderr.getvalue(), r"\d+ of \d+ points \(100%\)")

    def test_an_exception_of_another_signal_propagates(self):
        class Alarm(Exception):
            pass

        def ring(*_):
            raise Alarm

        before = signal.signal(signal.SIGALRM, ring)
        self.addCleanup(signal.signal, signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with self.assertRaises(Alarm):
            commfuse.run(axis={"seq": "4K..8000K+4K", "ranks": [2, 4, 8]}, threads=1)


class Documentation(unittest.TestCase):
    def test_stub_is_up_to_date(self):
        printed = subprocess.run([sys.executable, ROOT / "python/stubs.py"], capture_output=True, text=True, check=True)
        self.assertEqual((ROOT / "python/commfuse/__init__.pyi").read_text(), printed.stdout,
                         "renew it as python/stubs.py describes")

    def test_stub_has_the_keywords_of_signatures(self):
        tree = ast.parse((ROOT / "python/commfuse/__init__.pyi").read_text())
        stubs = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        self.assertEqual({"run", "sweep", "tune", "plan", "score", "calibrate", "expect"}, set(stubs))
        for name, stub in stubs.items():
            parameters = inspect.signature(getattr(commfuse, name)).parameters.values()
            keywords = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
            self.assertEqual(keywords, [argument.arg for argument in stub.args.kwonlyargs])

    def test_keywords_are_the_flags_of_help(self):
        for name in _call._engine.command_names():
            shown = command_line(name, "--help-all")[0].decode()
            flags = set(re.findall(r"^ {2,}(?:-\w, ?)?(--[\w-]+)", shown, re.MULTILINE)) - {"--help", "--help-all"}
            keywords = {keyword.flags[0] for keyword in _call._engine.command(name).keywords if not keyword.by_place}
            self.assertEqual(flags, keywords, name)

    def test_documentation_states_units(self):
        text = inspect.getdoc(commfuse.run)
        self.assertIn("seq (COUNT=", text)
        self.assertIn("tokens", text.lower())
        for name in _call._engine.command_names():
            self.assertIn(f"As `commfuse-sim {name}`", getattr(commfuse, name).__doc__)

    def test_python_lines_of_pages_run(self):
        for page in ("README.md", "docs/python.md", "python/README.md"):
            blocks = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
            self.assertTrue(blocks, page)
            names = {}
            for block in blocks:
                with self.subTest(page, block=block), tempfile.TemporaryDirectory() as folder:
                    before = os.getcwd()
                    os.chdir(folder)
                    try:
                        with contextlib.redirect_stdout(io.StringIO()):
                            quietly(exec, compile(block, page, "exec"), names)
                    finally:
                        os.chdir(before)


if __name__ == "__main__":
    unittest.main()
