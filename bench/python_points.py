# SPDX-License-Identifier: Apache-2.0
"""Measures how many layer points per second one core predicts from Python. The bar of the project is 100,000.

usage: PYTHONPATH=build/release/python /usr/bin/python3 bench/python_points.py

A point is one schedule of the MLP of one layer, from a call of commfuse.run with a grid to a NumPy column of its times.
Time is processor time, parsing included, after a first call that reads files. Without options `run` tries several
schedules at a point and keeps the best (`variants="best"`), so a row then takes several times as long.
"""

import time

import commfuse

BAR = 100_000
GRID = {"model": "llama-3.1-70b", "hardware": "h100-sxm", "ranks": 8, "uncertainty": "off", "threads": 1}


SCHEDULES = {
    "serial": {"strategy": "serial"},
    "sliced, k=8": {"strategy": "sliced", "slices": 8},
    "commfuse, direct": {"strategy": "commfuse", "form": "direct", "group": 3, "sum": "arrival", "add_lane": "aux",
                         "lanes": 1},
    "commfuse, all": {"strategy": "commfuse", "variants": "all"},
}


def points_per_second(schedule, lengths):
    axis = {"link_bandwidth": [f"x{1 + i / 100}" for i in range(20)], "seq": f"4K..{4 * lengths}K+4K"}
    begun = time.process_time()
    result = commfuse.run(**GRID, **schedule, axis=axis)
    times = result["makespan_us"]
    processor_seconds = time.process_time() - begun
    assert len(times) >= 20 * lengths and times.min() > 0
    return len(times), len(times) / processor_seconds


def main():
    commfuse.run(seq="4K", strategy="serial")
    for name, schedule in SCHEDULES.items():
        points, rate = points_per_second(schedule, 2500)
        verdict = "met" if rate >= BAR else "missed"
        print(f"{name:<17} {points:>7,} points  {rate:>9,.0f} points/s/core  {verdict}: {BAR:,}")


if __name__ == "__main__":
    main()
