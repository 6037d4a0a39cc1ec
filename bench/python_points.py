# SPDX-License-Identifier: Apache-2.0
"""How many layer points a second does one core answer from Python? The bar of the project is 100,000.

usage: PYTHONPATH=build/python/python /usr/bin/python3 bench/python_points.py

A point is one strategy of one layer, from a call of commfuse.run with a grid to a NumPy column of its times. Counted is what
the processor worked, parsing and all, after one call that reads files.
"""

import time

import commfuse

BAR = 100_000
GRID = {"model": "llama-3.1-70b", "hardware": "h100-sxm", "ranks": 8, "uncertainty": "off", "threads": 1}


def points_a_second(strategy, lengths):
    keywords = {**GRID, "strategy": strategy, "axis": {"link_bandwidth": [f"x{1 + i / 100}" for i in range(20)],
                                                       "seq": f"4K..{4 * lengths}K+4K"}}
    begun = time.process_time()
    result = commfuse.run(**keywords)
    times = result["makespan_us"]
    worked = time.process_time() - begun
    assert len(times) == 20 * lengths and times.min() > 0
    return len(times) / worked


def main():
    commfuse.run(seq="4K", strategy="serial")
    for strategy in ("serial", "sliced", "commfuse"):
        for lengths in (250, 2500):
            rate = points_a_second(strategy, lengths)
            print(f"{strategy:<10} {20 * lengths:>7} points  {rate:>9,.0f} points/s/core  "
                  f"{'met' if rate >= BAR else 'missed'}: {BAR:,}")


if __name__ == "__main__":
    main()
