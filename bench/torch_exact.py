"""Every model x budget: are gradients, buffers, results and generators bit-identical to keep-all, and is the peak of the storages really there the
plan's to the byte? For the dropout models, the same question to torch's own activation_memory_budget (Inductor against Inductor).
Usage: python bench/torch_exact.py RESULT.md [MODEL ...]"""

import sys
import time
import warnings

import torch
import torch_models

import remat
import remat.torch
from remat.torch import checking, lower

BUDGETS = ("80%", "60%", "40%", "min")


def reference(name):
    torch.manual_seed(0)
    model, args, keywords = torch_models.MODELS[name]()
    torch._dynamo.reset()
    torch.manual_seed(1)
    found = checking.run_step(
        model, args, keywords, None, lambda m: torch.compile(m, backend="aot_eager_default_partitioner", dynamic=False)
    )
    return model, args, keywords, found


def case(model, args, keywords, kept, budget):
    """A row: status, identical, exact, peak and overhead."""
    torch._dynamo.reset()
    torch.manual_seed(1)
    meter = lower.Meter()
    lower.meter[:] = [meter]
    try:
        found = checking.run_step(
            model,
            args,
            keywords,
            None,
            lambda m: torch.compile(m, backend="remat", options={"budget": budget, "cache": False}, dynamic=False),
        )
    except torch._dynamo.exc.BackendCompilerFailed as error:
        inner = error.inner_exception
        if not isinstance(inner, remat.BudgetError):
            raise
        least = str(inner).split("(")[-1].split("%")[0].split(",")[-1].strip()
        return {"status": "proved" if isinstance(inner, remat.Infeasible) else "not found", "least": least}
    finally:
        lower.meter.clear()
    report = remat.torch.last_report()
    different = [key for key in {**kept, **found} if not checking.same_bits(kept.get(key), found.get(key))]
    return {
        "status": "planned" if report["planned"] else report["reason"],
        "identical": not different,
        "exact": meter.peak_bytes == report.get("peak_bytes"),
        "peak": report.get("peak_bytes"),
        "measured": meter.peak_bytes,
        "report": report,
        "different": different,
    }


def torch_budget(name, budget):
    """Is Inductor with activation_memory_budget the same as Inductor without? Largest difference of a gradient, relative to the largest gradient."""
    import torch._functorch.config

    torch.manual_seed(0)
    model, args, keywords = torch_models.MODELS[name]()
    found = []
    for value in (1.0, budget):
        torch._dynamo.reset()
        torch.manual_seed(1)
        with (
            torch._functorch.config.patch(activation_memory_budget=value),
            torch._inductor.config.patch(force_disable_caches=True),
        ):
            found.append(checking.run_step(model, args, keywords, None, lambda m: torch.compile(m, dynamic=False)))
    worst = max(
        (
            float((a - b).abs().max() / a.abs().max().clamp_min(1e-30))
            for key in found[0]
            if key.startswith("gradient")
            for a, b in [(found[0][key], found[1][key])]
        ),
        default=0.0,
    )
    return worst


def main():
    path, names = sys.argv[1], sys.argv[2:] or list(torch_models.MODELS)
    warnings.simplefilter("ignore")
    torch.set_num_threads(2)
    lines = [
        "# Exactness on the CPU: models x budgets",
        "",
        f"torch {torch.__version__}, remat {remat.__version__}, eager kernels, one step, `make bench-torch`. A cell: peak in % of keep-all, extra modelled time; "
        "`=`: results, gradients, buffers and generator states bit-identical to torch's keep-all backend (aot_eager_default_partitioner) and the peak of the",
        "storages counted while it ran equal to the plan's to the byte. `proved`: no plan fits; `least`: nothing that fits was found, the least that was, in %.",
        "",
        "| model | ops | keep-all MB | " + " | ".join(BUDGETS) + " |",
        "|---|---|---|" + "---|" * len(BUDGETS),
    ]
    exact_at_60 = {}
    counts = {"cases": 0, "hold": 0, "refused": 0, "wrong": 0}
    for name in names:
        start = time.time()
        model, args, keywords, kept = reference(name)
        cells, shown = [], None
        for budget in BUDGETS:
            row = case(model, args, keywords, kept, budget)
            counts["cases"] += 1
            if budget == "60%":
                exact_at_60[name] = (
                    "0" if row.get("identical") else row["status"] if "identical" not in row else "differs"
                )
            if row["status"] in ("proved", "not found"):
                counts["refused"] += 1
                cells.append(("proved" if row["status"] == "proved" else "least") + f" {row['least']}")
            elif row["status"] != "planned":
                counts["wrong"] += 1
                cells.append("fell back: " + row["status"])
            else:
                shown = row["report"]
                good = row["identical"] and row["exact"]
                counts["hold" if good else "wrong"] += 1
                mark = (
                    "="
                    if good
                    else "DIFFERENT " + str(row["different"][:2])
                    if not row["identical"]
                    else f"peak {row['measured']} != {row['peak']}"
                )
                cells.append(
                    f"{mark} {100 * row['peak'] / shown['keep_all_peak_bytes']:.1f} % +{100 * shown['overhead']:.1f} %"
                )
        lines.append(
            f"| {name} | {shown['ops'] if shown else '?'} | {shown['keep_all_peak_bytes'] / 1e6 if shown else 0:.2f} | "
            + " | ".join(cells)
            + " |"
        )
        print(lines[-1], f"{time.time() - start:.0f} s", flush=True)
    lines += [
        "",
        f"{counts['cases']} cases: {counts['hold']} hold, {counts['refused']} refused with the least that would do, {counts['wrong']} wrong or not planned.",
    ]
    dropouts = [name for name in names if name.startswith("dropout")]
    if dropouts:
        lines += [
            "",
            "torch's own budget on the dropout models: Inductor with `activation_memory_budget` against Inductor without, same seeds; the largest difference of a",
            "gradient relative to the largest gradient (rounding of another fusion is about 1e-6; masks that are drawn again are far more).",
            "",
            "| model | 0.5 | 0.1 | remat at 60 % |",
            "|---|---|---|---|",
        ]
        for name in dropouts:
            try:
                lines.append(
                    f"| {name} | "
                    + " | ".join(f"{torch_budget(name, b):.1e}" for b in (0.5, 0.1))
                    + f" | {exact_at_60[name]} |"
                )
            except Exception as error:  # Inductor needs a C++ compiler that it likes
                lines.append(f"| {name} | did not run: {type(error).__name__} | | {exact_at_60[name]} |")
            print(lines[-1], flush=True)
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")
    return 1 if counts["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
