"""What the command line tests share: the program as a subprocess, and small inputs."""

import gzip
import json
import os
import pathlib
import subprocess

import jsonschema
import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("REMAT", str(ROOT / "build" / "plain" / "remat"))
SANITIZED = os.environ.get("REMAT_SANITIZED") == "1"
# What compares numbers of long runs: with sanitizers it would take minutes, on code that shorter tests run there, too.
plain_build = pytest.mark.skipif(SANITIZED, reason="long; the plain build runs it")

PLAN_FIELDS = """strategy graph budget_bytes peak_bytes within_budget keep_all_peak_bytes resident_bytes need_bytes need_op cost cost_unit
keep_all_cost overhead bound_cost bound_scope gap outcome stopped steps ops recomputed_ops offloaded_bytes saved_bytes traffic_bytes seed
work seconds plan""".split()
VERIFY_FIELDS = "valid peak_bytes peak_step peak_op cost first_bad_step reason".split()
INFO_FIELDS = """ops values storages views multi_output pinned dead resident_bytes keep_all_peak_bytes keep_all_peak_step keep_all_cost
need_bytes cut_values digest""".split()
GRAPHS = ROOT / "tests" / "data" / "graphs"


def schema(name):
    path = ROOT / "docs" / "schema" / name
    document = json.loads(path.read_text())
    jsonschema.Draft202012Validator.check_schema(document)
    return jsonschema.Draft202012Validator(document)


def small_graph():
    """Six values, five ops: a view, a workspace, a forward and a backward half."""

    def op(**more):
        return dict({"cost": 2, "phase": "forward", "class": "compute"}, **more)

    return {
        "format": "remat-graph",
        "version": 1,
        "name": "small",
        "values": [
            {"name": "x", "size": 4, "kind": "input"},
            {"name": "a", "size": 8, "storage": 16},
            {"name": "a.t", "size": 8, "alias": 1},
            {"name": "b", "size": 4},
            {"name": "db", "size": 4},
            {"name": "da", "size": 4},
        ],
        "nodes": [
            op(name="f", **{"in": [0], "out": [1]}),
            op(name="t", **{"in": [1], "out": [2], "cost": 0, "class": "view"}),
            op(name="g", **{"in": [2], "out": [3], "workspace": 3}),
            op(name="g'", **{"in": [3], "out": [4], "phase": "backward"}),
            op(name="f'", **{"in": [4, 2], "out": [5], "phase": "backward"}),
        ],
        "outputs": [5],
    }


class Remat:
    """Runs the program; `folder` is the test's own."""

    def __init__(self, folder):
        self.folder = folder

    def file(self, name, content):
        """Writes content (bytes, text or an object for JSON); returns the path."""
        path = self.folder / name
        if not isinstance(content, (bytes, str)):
            content = json.dumps(content)
        data = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") and data[:2] != b"\x1f\x8b" else data)
        return str(path)

    def run(self, *args, columns="80", **more):
        env = dict(os.environ, LC_ALL="C.UTF-8", NO_COLOR="1", COLUMNS=columns)
        return subprocess.run([PROGRAM, *map(str, args)], capture_output=True, timeout=120, env=env, **more)

    def ok(self, *args, **more):
        """Runs and expects success; returns standard output as text."""
        done = self.run(*args, **more)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def json(self, *args, code=0, **more):
        done = self.run(*args, "--json", **more)
        assert done.returncode in (code if isinstance(code, tuple) else (code,)), (
            done.stderr.decode() + done.stdout.decode()
        )
        return json.loads(done.stdout)

    def fails(self, code, *args, says=(), **more):
        """Runs and expects this exit code, nothing on standard output, and one line on standard error with all of
        `says`.
        """
        done = self.run(*args, **more)
        line = done.stderr.decode()
        assert done.returncode == code, f"exit code {done.returncode}, not {code}: {line}{done.stdout.decode()[:500]}"
        assert done.stdout == b""
        assert line.endswith("\n") and line.count("\n") == 1 and line.strip(), f"not one line: {line!r}"
        assert all(ord(c) >= 32 for c in line[:-1]), f"control characters: {line!r}"
        for word in says:
            assert word in line, f"{word!r} is not in {line!r}"
        return line


@pytest.fixture
def remat(tmp_path):
    return Remat(tmp_path)


@pytest.fixture
def small():
    return small_graph()
