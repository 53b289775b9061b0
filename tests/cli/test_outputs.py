"""Where results go: nothing is overwritten that was not meant to be, what cannot be written is said before the work,
and files change at once or not at all.
"""

import os
import subprocess

import pytest

from conftest import GRAPHS, PROGRAM

USAGE, IO, APPLIES, INFEASIBLE = 1, 3, 6, 10
RANDOM = "zoo:random-layered?n=30"


@pytest.fixture
def graph(remat, small):
    """The same file under three names."""
    path = remat.file("small.json", small)
    os.link(path, remat.folder / "hard.json")
    os.symlink("small.json", remat.folder / "soft.json")
    (remat.folder / "folder").mkdir()
    return path


@pytest.mark.parametrize("name", ["small.json", "hard.json", "soft.json", "folder/../small.json"])
def test_an_input_is_not_overwritten(remat, graph, name):
    before, path = open(graph).read(), remat.folder / name
    for words in (
        ["plan", graph, "-o", path],
        ["plan", graph, "--svg", path],
        ["plan", graph, "--budget", "90%", "--mps", path],
        ["report", graph, "-o", path],
        ["curve", graph, "--svg", path],
        ["lower", graph, "-o", path],
        ["fuse", graph, "-o", path],
        ["import", graph, "-o", path],
    ):
        remat.fails(USAGE, *words, says=["is an input", name])
    with open(graph) as stream:
        remat.fails(USAGE, "import", "-", "-o", path, stdin=stream, says=["is an input"])
    assert open(graph).read() == before
    remat.ok("plan", graph, "-o", remat.folder / "plan.json")
    remat.fails(
        USAGE, "report", graph, remat.folder / "plan.json", "-o", remat.folder / "plan.json", says=["is an input"]
    )


def test_two_results_in_one_file(remat, graph):
    new = remat.folder / "new"
    remat.fails(
        USAGE,
        "plan",
        graph,
        "-o",
        new,
        "--svg",
        remat.folder / "folder" / ".." / "new",
        says=["--svg", "-o", "both name"],
    )
    remat.fails(USAGE, "lower", graph, "-o", "new", "--svg", "./new", cwd=remat.folder, says=["both name"])
    assert not new.exists()
    new.write_text("old")
    os.link(new, remat.folder / "other")
    remat.fails(USAGE, "plan", graph, "-o", new, "--svg", remat.folder / "other", says=["both name"])
    remat.ok("plan", graph, "-o", "/dev/null", "--svg", "/dev/null")
    remat.ok("gen", "f1", "-o", "f1", cwd=remat.folder)
    remat.ok("gen", "f1", "-o", "f1", cwd=remat.folder)  # a model, and no file


def test_unwritable_targets_are_noticed_first(remat):
    """Before the graph is read: it is no graph, and nobody notices."""
    broken = remat.file("broken.json", "{")
    (remat.folder / "folder").mkdir()
    for words in (
        ["plan", broken, "--svg"],
        ["report", broken, "-o"],
        ["gen", "f1", "-o"],
        ["compare", broken, "--budget", "90%", "--svg"],
    ):
        for target, reason in (
            ("no/x", "No such file"),
            ("folder", "directory"),
            ("broken.json/x", "Not a directory"),
            ("x/", "No such file"),
            ("x" * 300, "too long"),
        ):
            remat.fails(IO, *words, f"{remat.folder}/{target}", says=[reason])


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_permission_is_asked_for_first(remat):
    broken, folder, mine = remat.file("broken.json", "{"), remat.folder / "folder", remat.folder / "mine"
    folder.mkdir(0o500)
    mine.touch(0o400)
    for target in (folder / "x", mine):
        remat.fails(IO, "plan", broken, "-o", target, says=["Permission denied"])


def test_a_link_stays_and_its_file_changes_at_once(remat, graph):
    old = remat.folder / "old.json"
    old.write_text("old")
    old.chmod(0o640)
    os.symlink("old.json", remat.folder / "link.json")
    inode = old.stat().st_ino
    remat.ok("plan", graph, "-o", remat.folder / "link.json")
    assert (remat.folder / "link.json").is_symlink() and old.read_text().startswith("{")
    assert old.stat().st_ino != inode and old.stat().st_mode & 0o777 == 0o640  # a new file took its name
    os.symlink("later.json", remat.folder / "dangling.json")
    remat.ok("plan", graph, "-o", remat.folder / "dangling.json")
    assert (remat.folder / "dangling.json").is_symlink() and (remat.folder / "later.json").exists()
    assert not [name for name in os.listdir(remat.folder) if ".json." in name]  # nothing is left over


def test_one_thing_on_standard_output(remat, graph):
    for words in (
        ["plan", graph, "--json"],
        ["curve", graph, "--csv"],
        ["compare", graph, "--budget", "90%", "--csv"],
        ["lower", graph, "--json"],
        ["plan", graph, "-o", "-"],
    ):
        done = remat.run(*words, "--svg", "-")
        assert done.returncode == USAGE and "standard output" in (done.stdout + done.stderr).decode()
    assert "<svg" in remat.ok("lower", graph, "--json", "-o", remat.folder / "x.json", "--svg", "-")
    assert b"exclude each other" in remat.run("report", graph, "-o", "-", "--json").stdout


def test_standard_output_in_the_same_file(remat, graph):
    with open(remat.folder / "both", "wb") as both:
        for name in ("both", "folder/../both"):
            done = subprocess.run(
                [PROGRAM, "plan", graph, "-o", remat.folder / name], stdout=both, stderr=subprocess.PIPE
            )
            assert done.returncode == USAGE and b"standard output" in done.stderr and done.stderr.count(b"\n") == 1
    assert (remat.folder / "both").stat().st_size == 0


def test_no_picture_of_nothing(remat):
    path = remat.folder / "x.svg"
    done = remat.run("compare", RANDOM, "--budget", "90%", "--strategy", "rotor,revolve", "--svg", path)
    # nor a table without rows
    assert done.returncode == APPLIES and not path.exists() and b"seconds" not in done.stdout
    remat.ok("compare", RANDOM, "--budget", "100%", "--strategy", "rotor,keep-all", "--svg", path)
    assert path.exists()


def test_a_strategy_is_named_once(remat, graph):
    for command in ("compare", "curve", "report", "maxbatch"):
        more = ["-o", remat.folder / "r.html"] if command == "report" else []
        budget = [] if command == "curve" else ["--budget", "1GiB"]
        remat.fails(
            USAGE,
            command,
            graph,
            *budget,
            *more,
            "--strategy",
            "auto,rotor,auto",
            says=["--strategy", "'auto' is there twice"],
        )


def test_lists_of_strategies(remat, graph):
    remat.fails(USAGE, "plan", graph, "--budget", "90%", "--strategy", "rotor,auto", says=["one strategy", "compare"])
    for text in (",", "auto,", ",auto", "auto,,rotor"):
        remat.fails(USAGE, "compare", graph, "--budget", "90%", "--strategy", text, says=[f"'{text}'", "comma"])


def test_exit_code_of_a_report_with_a_curve(remat):
    """As that of curve: the largest budget decides."""
    words = [GRAPHS / "vgg16.json.gz", "--points", "2", "--from", "10%", "--to", "20%", "--strategy", "periodic"]
    page = remat.folder / "r.html"
    done = remat.run("report", *words, "--curve", "-o", page)
    assert done.returncode == remat.run("curve", *words).returncode == INFEASIBLE
    assert done.stderr.count(b"\n") == 1 and b"no plan fits" in done.stderr and page.exists()


def test_sizes_too_large_to_place(remat):
    """All instances together pass 2^62: there are no addresses, and the page is there."""
    n, values, nodes = 24, [{"name": "x", "size": 4, "kind": "input"}], []
    for i in range(n):
        values.append({"name": f"v{i}", "size": 2**57})
        nodes.append({"name": f"n{i}", "in": [i], "out": [i + 1], "cost": 1})
    for i in reversed(range(n)):
        values.append({"name": f"g{i}", "size": 4})
        nodes.append({"name": f"b{i}", "in": [len(values) - 2, i + 1], "out": [len(values) - 1], "cost": 1})
    graph = remat.file(
        "huge.json", {"format": "remat-graph", "version": 1, "values": values, "nodes": nodes, "outputs": [2 * n]}
    )
    done = remat.run("report", graph, "--budget", "10%", "--work", "100000", "--place", "-o", remat.folder / "r.html")
    assert done.returncode == 0 and b"no addresses of auto" in done.stderr and (remat.folder / "r.html").exists()
