"""What the benchmarks share: the program's answers, the graphs they are of, and the commit that gave them.

A second of work is a limit that means the same on every machine, about a second of one quiet core. Tables of costs made with it
can be made again to the last digit, beside other jobs, too."""

import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[1]
GRAPHS = sorted((ROOT / "tests/data/graphs").glob("*.json.gz"))  # traced from torch
SECOND = 4_000_000  # of `--work`
MOCCASIN = {
    "RL1": "random_layered_n100*",
    "RL3": "random_layered_n500*",
    "CM1": "fcn_8*",
    "VGG16": "VGG16*",
    "MobileNet": "MobileNet*",
}


def answer(program, *args, not_for=()):
    """The program's JSON. A budget that nothing meets is an answer, too; None for the other exit codes named; else the benchmark ends."""
    done = subprocess.run([program, *map(str, args), "--json"], capture_output=True, text=True)
    if done.returncode in not_for:
        return None
    if done.returncode not in (0, 10, 11):
        raise SystemExit(f"{' '.join(map(str, args))}: {done.stderr}{done.stdout}")
    return json.loads(done.stdout)


def work(seconds):
    return "--work", round(float(seconds) * SECOND)


def named(name):
    """A traced graph, or one of Moccasin's."""
    return (
        next((ROOT / "tests/data/graphs/moccasin").glob(MOCCASIN[name]))
        if name in MOCCASIN
        else ROOT / f"tests/data/graphs/{name}.json.gz"
    )


def name_of(path):
    return path.name.split(".")[0]


def commit():
    """Which one this tree is at, so that a table says of what it is."""
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--exclude", "*"]
    return subprocess.run(command, capture_output=True, text=True).stdout.strip() or "unknown"
