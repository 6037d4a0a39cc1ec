# SPDX-License-Identifier: Apache-2.0
"""Turns keyword arguments into the words of a command line, and the command's answer into a Result."""

import functools
import inspect
import keyword
import os
import sys
import textwrap
import warnings
from collections.abc import Iterable, Mapping

from . import _engine
from ._result import CommfuseWarning, Result


@functools.cache
def keywords_of(name):
    """Returns the keywords of a command by flag, such as "--seq"."""
    return {flag: entry for entry in _engine.command(name).keywords for flag in entry.flags}


def argument_name(flag):
    """Returns the name of a flag in Python: "link_bandwidth"; "as_" for a keyword of the language."""
    name = flag.lstrip("-").replace("-", "_")
    return name + "_" if keyword.iskeyword(name) else name


def text_of(value):
    """Returns a value as the command line writes it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, Mapping):
        raise TypeError(f"a value cannot be a {type(value).__name__}; write a string, a number or a list of these")
    if isinstance(value, Iterable):
        return ",".join(text_of(part) for part in value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def words_of(flag, value, described):
    """Returns the words that give a flag its value; none for None, and none for False if the flag takes no value.

    `described` is None for an unknown flag; the command line reports the error.
    """
    if value is None:
        return []
    if isinstance(value, bool) and (described is None or not described.value):
        return [flag] if value else []
    if described is not None and described.repeats:
        if isinstance(value, Mapping):
            return [f"{flag}={key}={text_of(part)}" for key, part in value.items()]
        if not isinstance(value, (str, os.PathLike)) and isinstance(value, Iterable):
            return [f"{flag}={text_of(part)}" for part in value]
    return [f"{flag}={text_of(value)}"]


def command_line(name, arguments, keywords):
    """Returns the words of the equivalent command line."""
    known = keywords_of(name)
    words = [os.fspath(argument) for argument in arguments]
    for argument, value in keywords.items():
        flag = "--" + argument.rstrip("_").replace("_", "-")
        words += words_of(flag, value, known.get(flag))
    return words


def draws_bars():
    """Returns whether a line of stderr can be redrawn, as on a terminal or in a notebook."""
    is_terminal = getattr(sys.stderr, "isatty", lambda: False)
    return is_terminal() or "ipykernel" in sys.modules


def write_progress(text):
    stream = sys.stderr
    if stream is not None:
        stream.write(text)
        stream.flush()


def call(name, arguments, keywords):
    words = command_line(name, arguments, keywords)
    called = _engine.call(name, words, write_progress, draws_bars())
    if called.sentence:
        user_mistake = 2  # an exit code
        raise (_engine.ConfigError if called.code == user_mistake else _engine.Error)(called.sentence)
    if called.notes:
        warnings.warn(called.notes.rstrip("\n"), CommfuseWarning, stacklevel=3)
    return Result(name, words, called)


def wrapped(text, indent):
    return textwrap.fill(text, 100, initial_indent=indent, subsequent_indent=indent)


def documentation(name):
    """Returns the text of help(): every keyword with its unit, its values and its default."""
    command = _engine.command(name)
    lines = [command.doc + ".", "", f"As `commfuse-sim {name}`; returns a Result.", ""]
    group = None
    for entry in sorted(command.keywords, key=lambda entry: not entry.by_place):
        heading = "Positional" if entry.by_place else "Keywords" if entry.group == "Options" else entry.group
        if heading != group:
            group = heading
            lines += [heading + ":"]
        names = ", ".join(argument_name(flag) for flag in entry.flags)
        preset = "=" + entry.preset if entry.preset else ""
        lines += [f"  {names} ({entry.value}{preset})" if entry.value else f"  {names}", wrapped(entry.doc, "      ")]
    return "\n".join(lines + ["", command.footer])


def signature_of(name):
    kinds = inspect.Parameter
    known = _engine.command(name).keywords
    parameters = [kinds("arguments", kinds.VAR_POSITIONAL)] if any(entry.by_place for entry in known) else []
    for entry in known:
        if not entry.by_place:
            parameters += [kinds(argument_name(flag), kinds.KEYWORD_ONLY, default=None) for flag in entry.flags]
    return inspect.Signature(parameters, return_annotation=Result)


def verb(name):
    """Returns a command as a function."""

    def function(*arguments, **keywords):
        return call(name, arguments, keywords)

    function.__name__ = function.__qualname__ = name
    function.__module__ = "commfuse"
    function.__doc__ = documentation(name)
    function.__signature__ = signature_of(name)
    return function


run, sweep, tune, plan, score, calibrate, expect = map(verb, _engine.command_names())
