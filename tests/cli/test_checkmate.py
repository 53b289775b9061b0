"""checkmate in the program: which solver, programs and solutions as files, no solver, limits, Ctrl-C. REMAT_HIGHS
names the solver.
"""

import json
import os
import pathlib
import signal
import subprocess
import time

from conftest import GRAPHS, PROGRAM

USAGE, INPUT, APPLIES, INFEASIBLE, NOT_FOUND = 1, 2, 6, 10, 11
VGG16 = next((GRAPHS / "moccasin").glob("VGG16*"))
MOBILENET = next((GRAPHS / "moccasin").glob("MobileNet*"))
HIGHS = pathlib.Path(os.environ["REMAT_HIGHS"])


def without_solver():
    return dict(os.environ, REMAT_HIGHS="/nowhere/libhighs.so", LC_ALL="C.UTF-8", NO_COLOR="1")


def test_version_names_the_solver(remat):
    assert f", {HIGHS}" in remat.ok("--version").splitlines()[1]
    done = subprocess.run([PROGRAM, "--version"], capture_output=True, text=True, env=without_solver(), check=True)
    assert done.stdout.splitlines()[1].startswith("no MILP solver: REMAT_HIGHS=/nowhere/libhighs.so")


def test_plan(remat):
    path = remat.folder / "plan.json"
    made = remat.json("plan", VGG16, "--strategy", "checkmate", "--budget", "90%", "-o", path)
    assert (made["cost"], made["bound_cost"], made["bound_scope"], made["outcome"]) == (
        15805,
        15805,
        "checkmate",
        "optimal",
    )
    assert json.loads(path.read_text())["bound"] == {"cost": 15805, "scope": "checkmate", "method": "milp"}
    assert remat.json("verify", VGG16, path)["valid"] is True
    rounded = remat.json("plan", VGG16, "--strategy", "checkmate-lp", "--budget", "90%")
    assert rounded["within_budget"] and rounded["cost"] >= 15805
    near = remat.json("plan", VGG16, "--strategy", "checkmate", "--budget", "90%", "--mip-gap", "0.5")
    assert near["within_budget"] and near["bound_cost"] <= near["cost"]
    assert (
        remat.json("plan", VGG16, "--strategy", "checkmate", "--budget", "83%", code=INFEASIBLE)["outcome"]
        == "infeasible"
    )
    assert remat.json("plan", VGG16, "--strategy", "checkmate", "--budget", "min")["within_budget"]
    wide = remat.json(
        "plan",
        "zoo:random-layered?n=12",
        "--strategy",
        "checkmate",
        "--budget",
        "90%",
        "--checkmate-splits",
        "2",
        code=(0, INFEASIBLE, NOT_FOUND),
    )
    free = remat.json(
        "plan",
        "zoo:random-layered?n=12",
        "--strategy",
        "checkmate",
        "--budget",
        "90%",
        "--checkmate-order",
        "1",
        code=(0, INFEASIBLE, NOT_FOUND),
    )
    assert free["cost"] <= wide["cost"] or not wide["within_budget"]


def test_no_time(remat):
    """Seeds come in any case; the solver does not."""
    assert remat.json("plan", VGG16, "--strategy", "checkmate", "--budget", "90%", "--time", "0")["within_budget"]
    assert remat.json("plan", VGG16, "--strategy", "auto", "--budget", "90%", "--time", "0")["within_budget"]


def test_usage(remat):
    base = ("plan", VGG16, "--strategy", "checkmate", "--budget", "90%")
    for value in ("2", "-1", "x", "nan", ""):
        remat.fails(USAGE, *base, "--mip-gap", value, says=("--mip-gap",))
    remat.fails(USAGE, *base[:3], "auto", "--budget", "90%", "--mps", "x.mps", says=("--mps", "checkmate"))
    remat.fails(USAGE, "plan", VGG16, "--budget", "90%", "--mps", "x.mps", "-o", "plan.json", says=("-o", "--mps"))
    remat.fails(USAGE, "plan", VGG16, "--budget", "90%", "--mps", "x.mps.gz", says=("--mps", ".gz"))
    remat.fails(USAGE, "plan", VGG16, "--mps", "-", says=("budget",))
    remat.fails(USAGE, "import", VGG16, "--budget", "90%", says=("--mps-solution",))
    remat.fails(APPLIES, *base, "--checkmate-entries", "1000", says=("checkmate", "1000 entries"))


def test_no_solver(remat):
    for strategy in ("checkmate", "checkmate-lp"):
        done = subprocess.run(
            [PROGRAM, "plan", VGG16, "--strategy", strategy, "--budget", "90%"],
            capture_output=True,
            text=True,
            env=without_solver(),
        )
        assert done.returncode == APPLIES and done.stdout == "" and done.stderr.count("\n") == 1
        assert strategy in done.stderr and "MILP solver" in done.stderr
    done = subprocess.run(
        [PROGRAM, "plan", VGG16, "--strategy", "checkmate", "--budget", "70%", "--json"],
        capture_output=True,
        text=True,
        env=without_solver(),
    )
    assert done.returncode == INFEASIBLE  # a proof goes before an excuse


def test_programs_and_solutions(remat):
    """A program in one section after the other; a solution by hand, and one of HiGHS' own program where it comes
    with the library.
    """
    program, solution, plan = remat.folder / "vgg.mps", remat.folder / "vgg.sol", remat.folder / "plan.json"
    remat.ok("plan", VGG16, "--budget", "90%", "--mps", program)
    lines = program.read_text().splitlines()
    assert [line.split()[0] for line in lines if not line.startswith(" ")] == [
        "NAME",
        "ROWS",
        "COLUMNS",
        "RHS",
        "RANGES",
        "BOUNDS",
        "ENDATA",
    ]
    solution.write_text("".join(f"R_{t}_{t} 1\n" for t in range(45)))
    kept = remat.json("import", VGG16, "--mps-solution", solution, "-o", plan)
    assert kept["cost"] == kept["keep_all_cost"] and kept["strategy"] == "checkmate"
    assert remat.json("verify", VGG16, plan)["valid"] is True
    assert not remat.json("import", VGG16, "--mps-solution", solution, "--budget", "90%", code=NOT_FOUND)[
        "within_budget"
    ]
    solution.write_text("".join(f"R_{t}_{t} 0\n" for t in range(45)))
    remat.fails(INPUT, "import", VGG16, "--mps-solution", solution, says=("vgg.sol", "never runs"))
    highs = HIGHS.parents[1] / "bin" / "highs"
    assert highs.exists(), "the Python package highsbox has it"
    for flags in ((), ("--checkmate-plain",)):
        remat.ok("plan", VGG16, "--budget", "95%", "--mps", program, *flags)
        env = dict(os.environ, LD_LIBRARY_PATH=str(HIGHS.parent))
        subprocess.run(
            [highs, program, "--solution_file", solution, "--presolve", "on"],
            check=True,
            capture_output=True,
            env=env,
            timeout=110,
            cwd=remat.folder,
        )  # it writes Highs.log
        made = remat.json("import", VGG16, "--mps-solution", solution, "--budget", "95%", *flags)
        assert made["within_budget"] and made["cost"] == 15620


def test_interrupt(remat):
    """Ctrl-C in the solver, in its presolve or in its first linear program, returns what there is."""
    for wait in (0.3, 2):
        command = [PROGRAM, "plan", MOBILENET, "--strategy", "checkmate", "--budget", "50%", "--json", "--time", "100"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            time.sleep(wait)
            process.send_signal(signal.SIGINT)
            made = json.loads(process.communicate(timeout=100)[0])
        assert made["stopped"] == "signal" and process.returncode in (130, NOT_FOUND)
