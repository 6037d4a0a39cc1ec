# SPDX-License-Identifier: Apache-2.0
"""Predicts how fast tensor-parallel layers of language models run when communication overlaps computation.

The functions are the commands of commfuse-sim: run, sweep, tune, plan, score, calibrate, expect. Keyword arguments are
the flags' names with '_' for '-', values are those of the flags (also as numbers and lists), and errors have the
program's messages. Experimental in 0.2: names may still change.

    import commfuse
    result = commfuse.run(model="llama-3.1-70b", hardware="h100-sxm", axis={"seq": "4K..64K"})
    result["makespan_us"]   # a NumPy array
"""

from ._call import calibrate, expect, plan, run, score, sweep, tune
from ._engine import ConfigError, Error, model_version
from ._engine import version as __version__
from ._result import CommfuseWarning, Figure, Result

for _shown in (ConfigError, Error, CommfuseWarning, Figure, Result):
    _shown.__module__ = __name__  # where people find them

__all__ = [
    "CommfuseWarning", "ConfigError", "Error", "Figure", "Result", "calibrate", "expect", "model_version", "plan",
    "run", "score", "sweep", "tune"
]
