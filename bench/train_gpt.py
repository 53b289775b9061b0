#!/usr/bin/env python3
"""examples/train_gpt.c against the same model in eager torch: time of a step, and the largest resident set, at several budgets.
Both have the same number of threads, the same text and the same optimizer. Times depend on the machine.
Usage: bench/train_gpt.py BUILD_DIR [THREADS] > bench/results/train-gpt.md"""

import os
import pathlib
import re
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "python"))
STEPS, WARM = 13, 3
ARGUMENTS = dict(layers=6, width=256, heads=8, length=256, batch=8)


def train_c(threads, budget):
    """Milliseconds of a step, resident and arena bytes, and the largest resident set."""
    arguments = [word for name, value in ARGUMENTS.items() for word in (f"--{name}", str(value))]
    with subprocess.Popen(
        [
            f"{sys.argv[1]}/examples/train_gpt",
            *arguments,
            "--text",
            str(ROOT / "README.md"),
            "--steps",
            str(STEPS),
            "--budget",
            budget,
        ],
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ, OMP_NUM_THREADS=str(threads)),
    ) as process:
        text = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        sys.exit(process.returncode)
    times = [float(x) for x in re.findall(r"([\d.]+) ms", text)][WARM:]
    resident, arena, more = (
        re.search(pattern, text).group(1) for pattern in (r"which (\d+) are", r"arena (\d+)", r"([\d.]+)% more")
    )
    return statistics.median(times), int(resident), int(arena), usage.ru_maxrss * 1024, more


def train_torch(threads):
    import gpt_twin
    import torch

    torch.set_num_threads(threads)
    text = torch.frombuffer(bytearray((ROOT / "README.md").read_bytes()), dtype=torch.uint8).long()
    times, begin = [], time.perf_counter()
    for _ in gpt_twin.train(gpt_twin.Shape(**ARGUMENTS), text, STEPS):
        times.append(1e3 * (time.perf_counter() - begin))
        begin = time.perf_counter()
    return statistics.median(times[WARM:])


def main():
    threads = int(sys.argv[2]) if len(sys.argv) > 2 else os.cpu_count()
    shape = ", ".join(f"{name} {value}" for name, value in ARGUMENTS.items())
    # Before torch is loaded: a process inherits the largest resident set of the one that starts it.
    ours = {budget: train_c(threads, budget) for budget in ("100%", "75%", "50%", "min")}
    theirs = train_torch(threads)
    print(
        f"# A GPT trained in C\n\n`examples/train_gpt` ({shape}; {threads} threads) and the same model in eager torch, which takes {theirs:.0f} ms a step. Sizes in MB; *RSS* is the\n"
        f"largest resident set of the process, which has resident values and the arena. Medians of {STEPS - WARM} steps. `bench/train_gpt.py build/plain`\n"
    )
    print(
        "| budget | more flops | ms / step | of torch | resident | arena | RSS | beyond both |\n|---|---|---|---|---|---|---|---|"
    )
    for budget, (ms, resident, arena, largest, more) in ours.items():
        print(
            f"| {budget} | {more} % | {ms:.0f} | {ms / theirs:.2f} | {resident / 1e6:.1f} | {arena / 1e6:.1f} | {largest / 1e6:.1f} | {(largest - resident - arena) / 1e6:.1f} |"
        )


if __name__ == "__main__":
    main()
