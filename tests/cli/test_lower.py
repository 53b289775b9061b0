"""remat lower --format graph and c: a plan as a graph, and as a C function that is compiled and run."""

import json
import os
import subprocess

import pytest

from conftest import GRAPHS

USAGE, INPUT = 1, 2

# Runs a lowered step on hashes instead of tensors: a storage holds the hash of how it was made. Freed storages are
# poisoned, the bytes in use are counted, and transfers copy. Prints the peak beyond resident bytes, what is left at the
# end beside the outputs, and a hash of the outputs.
HARNESS = r"""
#include "step.c"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef struct block { size_t bytes; uint64_t hash; } block;
static size_t in_use, peak, live, fail_at, allocations;
static uint64_t host[100000];
static void count(size_t more) { if (in_use + more > peak) peak = in_use + more; }
static void *allocate(void *user, size_t bytes)
{
    block *b = malloc(sizeof *b);
    (void)user;
    if (fail_at && ++allocations == fail_at) return free(b), NULL;
    *b = (block){bytes, UINT64_C(0xdead)};
    in_use += bytes, live++;
    return b;
}
static void release(void *user, void *p)
{
    block *b = p;
    (void)user;
    if (b->hash == 1) abort();
    in_use -= b->bytes, live--, b->hash = 1; /* kept, so that a read of it shows */
}
static uint64_t mix(uint64_t h, uint64_t x) { return (h ^ x) * UINT64_C(0x9e3779b97f4a7c15) + (h >> 29); }
static unsigned n_in[] = {N_IN}, n_out[] = {N_OUT};
static int compute(void *user, unsigned op, const char *name, void *const *in, void *const *out, size_t workspace)
{
    uint64_t h = mix(7, op);
    (void)user, (void)name;
    for (unsigned i = 0; i < n_in[op]; i++) {
        if (((block *)in[i])->hash == 1 || ((block *)in[i])->hash == 0xdead) return 5; /* freed, or not made yet */
        h = mix(h, ((block *)in[i])->hash);
    }
    count(workspace);
    for (unsigned k = 0; k < n_out[op]; k++) {
        int view = 0;
        for (unsigned i = 0; i < n_in[op]; i++) view |= in[i] == out[k];
        for (unsigned i = 0; i < k; i++) view |= out[i] == out[k];
        if (!view) ((block *)out[k])->hash = mix(h, k);
    }
    return 0;
}
static int offload(void *user, unsigned value, void *p, size_t bytes) { (void)user; if (((block *)p)->bytes != bytes) return 6; count(0); host[value] = ((block *)p)->hash; return 0; }
static int fetch(void *user, unsigned value, void *p, size_t bytes) { (void)user; if (((block *)p)->bytes != bytes) return 6; count(0); ((block *)p)->hash = host[value]; return 0; }
int main(int argc, char **argv)
{
    static block resident_blocks[N_RESIDENT + 1];
    void *resident[N_RESIDENT + 1], *outputs[N_OUTPUTS + 1];
    const remat_runtime rt = {NULL, allocate, release, compute, offload, fetch};
    for (unsigned i = 0; i < N_RESIDENT; i++) resident_blocks[i].hash = mix(11, i), resident[i] = &resident_blocks[i];
    if (argc > 1) fail_at = strtoul(argv[1], NULL, 10);
    const int status = remat_step(&rt, resident, outputs);
    if (status) return printf("status %d live %zu\n", status, live), 0;
    uint64_t h = 0;
    for (unsigned i = 0; i < N_OUTPUTS; i++) h = mix(h, ((block *)outputs[i])->hash);
    printf("%zu %zu %llx\n", peak, in_use, (unsigned long long)h);
    return 0;
}
"""


def compiled(remat, graph, plan, *flags):
    """The program's path, for a plan or None."""
    folder = remat.folder / f"c{len(list(remat.folder.iterdir()))}"
    folder.mkdir()
    remat.ok("lower", graph, *([plan] if plan else []), *flags, "--format", "c", "-o", str(folder / "step.c"))
    nodes = json.loads(remat.ok("import", graph))
    made = {v for node in nodes["nodes"] for v in node["out"]}
    resident = [v for i, v in enumerate(nodes["values"]) if i not in made and "alias" not in v]
    lists = [",".join(str(len(node[key])) for node in nodes["nodes"]) for key in ("in", "out")]
    (folder / "main.c").write_text(
        HARNESS.replace("N_IN}", lists[0] + "}")
        .replace("N_OUT}", lists[1] + "}")
        .replace("N_RESIDENT", str(len(resident)))
        .replace("N_OUTPUTS", str(len(nodes["outputs"])))
    )
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run(
        [
            *compiler,
            "-std=c99",
            "-pedantic",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-o",
            str(folder / "main"),
            str(folder / "main.c"),
        ],
        check=True,
        cwd=folder,
        timeout=120,
    )
    return str(folder / "main")


WHOLE = {}  # what keep-all prints, by graph


def execute(program, *args):
    return subprocess.run([program, *args], check=True, capture_output=True, text=True, timeout=60).stdout.split()


@pytest.mark.parametrize(
    "graph,flags",
    [
        ("zoo:chain?n=20&size=64", ()),
        ("zoo:mlp?batch=8&layers=6&width=16", ()),
        ("zoo:resnet18?batch=2&res=32", ()),
        ("distilbert", ("--replay-random",)),
    ],
)
@pytest.mark.parametrize(
    "strategy,more",
    [("chen-sqrt", ()), ("fastsa", ("--work", "20000")), ("fastsa", ("--work", "20000", "--offload", "50GB"))],
)
def test_c_function_computes_the_same_within_the_peak(remat, graph, flags, strategy, more):
    graph = graph if ":" in graph else str(GRAPHS / f"{graph}.json.gz")
    plan = str(remat.folder / "plan.json")
    result = remat.run("plan", graph, *flags, "--budget", "70%", "--strategy", strategy, *more, "-o", plan, "--json")
    assert result.returncode in (0, 10, 11)
    made = json.loads(result.stdout)
    if graph not in WHOLE:
        WHOLE[graph] = execute(compiled(remat, graph, None, *flags))
    whole, planned = WHOLE[graph], execute(compiled(remat, graph, plan))
    assert whole[2] == planned[2]  # the outputs
    assert whole[1] == planned[1]  # nothing else is left
    assert int(planned[0]) == made["peak_bytes"] - made["resident_bytes"]
    assert int(whole[0]) == made["keep_all_peak_bytes"] - made["resident_bytes"]


def test_c_function_gives_back_what_it_has_when_memory_runs_out(remat):
    program = compiled(remat, "zoo:chain?n=5", None)
    for at in range(1, 13):
        assert execute(program, str(at)) == ["status", "-1", "live", "0"]
    assert execute(program, "14")[0] != "status"


@pytest.mark.parametrize("strategy", ["chen-sqrt", "rotor", "fastsa-group"])
def test_static_graph_is_the_plan(remat, strategy):
    graph, plan, static = (
        str(GRAPHS / "resnet18.json.gz"),
        str(remat.folder / "p.json"),
        str(remat.folder / "static.json.gz"),
    )
    made = json.loads(remat.run("plan", graph, "--budget", "60%", "--strategy", strategy, "-o", plan, "--json").stdout)
    remat.ok("lower", graph, plan, "--format", "graph", "-o", static)
    info = json.loads(remat.ok("info", static, "--json"))
    assert info["ops"] == made["steps"] > made["ops"]
    assert info["keep_all_peak_bytes"] == made["peak_bytes"] and info["keep_all_cost"] == made["cost"]


def test_strange_names_stay_inside_comments_and_strings(remat):
    def graph(name):
        return {
            "format": "remat-graph",
            "version": 1,
            "name": name,
            "values": [{"name": name, "size": 4}, {"name": name, "size": 8}],
            "nodes": [{"name": name, "in": [0], "out": [1]}],
            "outputs": [1],
        }

    for name in ('*/ int x = "', "\\", "??/", "a\nb", "é*/", '"); abort(); /*', "x" * 500, ""):
        assert execute(compiled(remat, remat.file("g.json", graph(name)), None))[0] == "8"


IN_PLACE = {
    "format": "remat-graph",
    "version": 1,
    "values": [{"name": name, "size": 64} for name in ("v", "w", "u")],
    "nodes": [
        {"name": "A", "in": [], "out": [0], "cost": 3},
        {"name": "B", "in": [0], "out": [1], "cost": 1, "inplace": [[0, 0]]},
        {"name": "C", "in": [1, 0], "out": [2], "cost": 1, "inplace": [[0, 0]]},
    ],
    "outputs": [2],
}


def test_what_is_made_in_place_shares_a_register_and_an_offset(remat):
    graph = remat.file("g.json", IN_PLACE)
    assert json.loads(remat.ok("import", graph))["nodes"][2]["inplace"] == [[0, 0]]
    statements = remat.json("lower", graph, "--json")  # B cannot take v, which C reads as well
    assert [(x["statement"], x.get("reg")) for x in statements] == [
        ("allocate", 0),
        ("compute", None),
        ("allocate", 1),
        ("compute", None),
        ("reuse", 1),
        ("compute", None),
        ("deallocate", 0),
    ]
    assert (
        max(x["memory_bytes"] for x in statements) == 128
        and statements[5]["in"] == [1, 0]
        and statements[5]["out"] == statements[5]["regs"] == [1]
    )
    assert "%r1 = reuse u 64" in remat.ok("lower", graph)
    assert "in r[1], in place" in remat.ok("lower", graph, "--format", "c")
    placed = json.loads(remat.ok("lower", graph, "--format", "remat-plan"))
    offsets = {entry["value"]: entry["offset"] for entry in placed["placement"]["storages"]}
    assert offsets[1] == offsets[2] != offsets[0] and placed["placement"]["arena_bytes"] == 128
    assert remat.ok("verify", graph, remat.file("placed.json", placed))
    next(entry for entry in placed["placement"]["storages"] if entry["value"] == 2)["offset"] = offsets[0]
    refused = remat.run("verify", graph, remat.file("apart.json", placed))
    assert refused.returncode == 5 and b"step 2: its output in place of an input is elsewhere" in refused.stderr


def test_inplace_is_recorded_in_the_plan(remat):
    plain, path = remat.json("info", "zoo:resnet18"), str(remat.folder / "p.json")
    assert "inplace" not in json.loads(remat.ok("plan", "zoo:resnet18", "--strategy", "keep-all", "-o", "-"))["options"]
    plan = remat.json("plan", "zoo:resnet18", "--inplace", "--strategy", "keep-all", "-o", path)
    assert plan["peak_bytes"] < plain["keep_all_peak_bytes"]
    assert remat.json("verify", "zoo:resnet18", path)["peak_bytes"] == plan["peak_bytes"]
    # told to prepare it otherwise
    assert b"peak_bytes" in remat.run("verify", "zoo:resnet18", path, "--replay-random").stderr
    assert "--inplace" in remat.ok("info", path)
    assert any(x["statement"] == "reuse" for x in remat.json("lower", "zoo:resnet18", path))


def test_mistakes(remat):
    remat.fails(USAGE, "lower", "zoo:mlp", "--format", "python", says=("--format", "plan, graph, c, csv, remat-plan"))
    remat.fails(USAGE, "lower", "zoo:mlp", "--format", "c", "-o", "x.c.gz", says=("-o",))
    assert remat.json("lower", "zoo:mlp", "--format", "c", code=USAGE)["error"]["place"] == "--json"
    remat.fails(INPUT, "lower", "chain:figure4", "--format", "c", says=("chain",))
