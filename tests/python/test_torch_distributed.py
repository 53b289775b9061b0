"""Two processes (gloo): DDP around a compiled model, a compiled DDP in buckets, FSDP2 block by block. Parameters after four steps are those of keep-all to the bit, graphs are
planned, and both processes run the same plans."""
import gc
import os
import socket

import pytest
from conftest import ROOT  # noqa: F401  (puts the package on the path)

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

KEEP_ALL = "aot_eager_default_partitioner"
OPTIONS = {"options": {"budget": "75%", "cache": False, "work": 50000}}


class Net(nn.Module):
    def __init__(self, width, depth=4):
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Dropout(0.1), nn.Linear(width, width)) for _ in range(depth))

    def forward(self, x):
        for layer in self.layers:
            x = torch.tanh(layer(x))
        return x


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = Net(width, 1)

    def forward(self, x):
        return self.net(x)


def ddp_of_compiled(backend, more):
    model = Net(384)  # its parameters fill several buckets, and each is a graph
    return model, torch.nn.parallel.DistributedDataParallel(torch.compile(model, backend=backend, **more), bucket_cap_mb=1), 384


def compiled_ddp(backend, more):
    model = Net(384)
    return model, torch.compile(torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=1), backend=backend, **more), 384


def fsdp_blocks(backend, more):
    from torch.distributed.fsdp import fully_shard
    model = nn.Sequential(*(Block(64) for _ in range(3)))
    for block in model:
        block.compile(backend=backend, **more)
        fully_shard(block)
    fully_shard(model)
    return model, model, 64


def trained(make, backend, more, rank):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model, run, width = make(backend, more)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    torch.manual_seed(rank)
    for _ in range(4):
        run(torch.randn(512, width)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return [(p.full_tensor() if hasattr(p, "full_tensor") else p).detach().clone() for p in model.parameters()]


def work(rank, port, queue):
    import torch.distributed as dist

    import remat.torch
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()  # as conftest's `frozen`, in this process
    for make in (ddp_of_compiled, compiled_ddp, fsdp_blocks):
        before = len(remat.torch.reports())
        kept, found = trained(make, KEEP_ALL, {}, rank), trained(make, "remat", OPTIONS, rank)
        reports = remat.torch.reports()[before:]
        queue.put((make.__name__, rank, all(map(torch.equal, kept, found)), [(r["planned"], r["digest"], r["step_peak_bytes"]) for r in reports], max(r["recomputed_ops"] for r in reports)))
    dist.destroy_process_group()


def test_two_processes_train_as_with_everything_kept():
    import torch.multiprocessing as processes
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    queue = processes.get_context("spawn").SimpleQueue()
    context = processes.spawn(work, args=(port, queue), nprocs=2, join=False)
    while not context.join(timeout=300):
        pass
    found = {}
    while not queue.empty():
        name, rank, same, plans, recomputed = queue.get()
        assert same and plans and all(planned for planned, _, _ in plans), (name, rank, plans)
        assert recomputed > 0, name
        found.setdefault(name, []).append(plans)
    assert set(found) == {"ddp_of_compiled", "compiled_ddp", "fsdp_blocks"}
    for name, (first, second) in found.items():
        assert first == second, name
