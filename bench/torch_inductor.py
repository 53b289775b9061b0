"""Every model x budget with Inductor's kernels (CPU): are gradients, buffers, results and masks those of torch.compile within its own tolerance, and how far is the
peak in the generated code from the plan's? Tolerance: `torch.testing.assert_close`. Masks: dropout multiplies what is behind it by 0 or not, so another mask shows in the
gradients at once.
Usage: python bench/torch_inductor.py RESULT.md [MODEL ...]"""

import sys
import time
import warnings

import torch
import torch_models

import remat
import remat.torch
from remat.torch import checking, reporting

BUDGETS = ("100%", "60%", "40%", "min")
MIB = 1 << 20


def step(model, args, keywords, compile):
    torch._dynamo.reset()
    torch.manual_seed(1)
    return checking.run_step(model, args, keywords, None, compile)


def difference(a, b, scale):
    """The largest difference of two tensors, in units of the model's largest gradient (some gradients are zero but for rounding)."""
    if a is None or b is None:
        return 0.0 if a is b else float("inf")
    if not a.is_floating_point():
        return 0.0 if torch.equal(a, b) else float("inf")
    return float((a - b).abs().max()) / scale if a.numel() else 0.0


def case(model, args, keywords, expected, budget):
    options = {"kernels": "inductor", "budget": budget, "cache": False}
    try:
        found = step(model, args, keywords, lambda m: torch.compile(m, backend="remat", options=options, dynamic=False))
    except torch._dynamo.exc.BackendCompilerFailed as error:
        if not isinstance(error.inner_exception, remat.BudgetError):
            raise
        return {"status": "no plan", "why": str(error.inner_exception).split(";")[-1].strip()}
    report = remat.torch.last_report()
    names = [name for name in expected if not name.startswith("generator")]
    scale = max(
        float(tensor.abs().max())
        for name, tensor in expected.items()
        if name.startswith("gradient") and tensor is not None and tensor.numel()
    )
    return {
        "status": "planned" if report["planned"] else report["reason"],
        "worst": max(difference(expected[name], found[name], scale) for name in names),
        "unlike": [name for name in names if not checking._close(expected[name], found[name])],
        "report": report,
    }


def row(name, budget, found, seconds):
    if "report" not in found:
        return f"| {name} | {budget} | {found['status']}: {found['why']} | | | | | | {seconds:.0f} |"
    r = found["report"]
    if not r["planned"]:
        return f"| {name} | {budget} | not planned: {found['status']} | {found['worst']:.1e} | {len(found['unlike'])} | | | | {seconds:.0f} |"
    made = "" if r["generated_peak_bytes"] is None else f"{r['generated_peak_bytes'] / MIB:.2f}"
    return f"| {name} | {budget} | planned | {found['worst']:.1e} | {len(found['unlike'])} | {r['recomputed_ops']} of {r['ops']} | {r['peak_bytes'] / MIB:.2f} | {made} | {seconds:.0f} |"


def main():
    out, names = sys.argv[1], sys.argv[2:] or list(torch_models.MODELS)
    lines = [
        "# Inductor's kernels within a budget: gradients",
        "",
        f"torch {torch.__version__}, CPU; `bench/torch_inductor.py` (an hour on one core). Against torch.compile from the same random numbers.",
        "",
        "| model | budget | | largest difference / largest gradient | tensors beyond tolerance | run again | planned peak MiB | in the code MiB | s |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name in names:
        torch.manual_seed(0)
        model, args, keywords = torch_models.MODELS[name]()
        expected = step(model, args, keywords, lambda m: torch.compile(m, dynamic=False))
        for budget in BUDGETS:
            began = time.monotonic()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = case(model, args, keywords, expected, budget)
            lines.append(row(name, budget, found, time.monotonic() - began))
            print(lines[-1], flush=True)
            reporting._reports.clear()
            with open(out, "w") as file:
                file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
