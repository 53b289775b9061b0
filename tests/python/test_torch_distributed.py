"""Two processes (gloo): DDP around a compiled model, a compiled DDP in buckets, FSDP2 block by block, tensor
parallel. Parameters after many steps are those of keep-all to the bit, graphs are planned, both processes run the
same plans, and each plan was made by one of them; a process that dies while it plans ends the other. Both tests ask
the same two processes, which load torch once.
"""

import gc
import os
import signal
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
        self.layers = nn.ModuleList(
            nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Dropout(0.1), nn.Linear(width, width))
            for _ in range(depth)
        )

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
    return (
        model,
        torch.nn.parallel.DistributedDataParallel(torch.compile(model, backend=backend, **more), bucket_cap_mb=1),
        384,
    )


def compiled_ddp(backend, more):
    model = Net(384)
    return (
        model,
        torch.compile(torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=1), backend=backend, **more),
        384,
    )


def fsdp_blocks(backend, more):
    from torch.distributed.fsdp import fully_shard

    model = nn.Sequential(*(Block(64) for _ in range(3)))
    for block in model:
        block.compile(backend=backend, **more)
        fully_shard(block)
    fully_shard(model)
    return model, model, 64


def tensor_parallel(backend, more):
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    model = Net(64)
    for layer in model.layers:
        layer[2].p = 0.0  # what is dropped would have to be the same in both processes
        parallelize_module(layer, init_device_mesh("cpu", (2,)), {"0": ColwiseParallel(), "3": RowwiseParallel()})
    return model, torch.compile(model, backend=backend, **more), 64


def trained(make, backend, more, rank):
    torch._dynamo.reset()
    torch.manual_seed(0)
    model, run, width = make(backend, more)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    torch.manual_seed(0 if make is tensor_parallel else rank)
    for _ in range(20 if make is compiled_ddp else 5):
        run(torch.randn(256, width)).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    return [(p.full_tensor() if hasattr(p, "full_tensor") else p).detach().clone() for p in model.parameters()]


MAKES = (ddp_of_compiled, compiled_ddp, fsdp_blocks, tensor_parallel)


def work(rank, port, queue):
    import remat.torch

    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.distributed.init_process_group("gloo", rank=rank, world_size=2)
    torch.set_num_threads(1)
    gc.collect()
    gc.freeze()  # as conftest's `frozen`, in this process
    for make in MAKES:
        before = len(remat.torch.reports())
        kept, found = trained(make, KEEP_ALL, {}, rank), trained(make, "remat", OPTIONS, rank)
        reports = remat.torch.reports()[before:]
        plans = [(r["planned"], r["digest"], r["step_peak_bytes"], r["rank"]) for r in reports]
        queue.put(
            (make.__name__, rank, all(map(torch.equal, kept, found)), plans, max(r["recomputed_ops"] for r in reports))
        )
    die_while_planning(rank, queue)


@pytest.fixture(scope="module")
def ended():
    """The exit codes of two processes that did all of `work`, and what they put into the queue."""
    import torch.multiprocessing as processes

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = processes.get_context("spawn")
    queue = context.SimpleQueue()
    started = [context.Process(target=work, args=(rank, port, queue)) for rank in range(2)]
    for process in started:
        process.start()
    for process in started:
        process.join()
    found = []
    while not queue.empty():
        found.append(queue.get())
    return [process.exitcode for process in started], found


def test_two_processes_train_as_with_everything_kept(ended):
    found = {}
    for name, rank, same, plans, recomputed in (said for said in ended[1] if isinstance(said, tuple)):
        assert same and plans and all(plan[0] for plan in plans), (name, rank, plans)
        assert recomputed > 0, name
        found.setdefault(name, []).append(plans)
    assert set(found) == {make.__name__ for make in MAKES}
    for name, (first, second) in found.items():
        assert first == second, name  # ranks too: each plan was made once
        assert {plan[3] for plan in first} <= {0, 1}


def die_while_planning(rank, queue):
    """Process 1 is killed while it plans; process 0, which has the store, says what comes of that."""
    import remat
    from remat.torch import distributed

    distributed.SILENCE = 3.0
    torch._dynamo.reset()
    store = torch.distributed.distributed_c10d._get_default_store()

    def planned(_graph, *_budget, **_options):
        store.set("planning", str(rank))
        os.kill(os.getpid(), signal.SIGKILL)

    remat.Graph.plan = planned
    if rank == 0:
        store.wait(["planning"])
    try:
        torch.compile(Net(32), backend="remat", **OPTIONS)(torch.randn(64, 32))
    except Exception as error:
        queue.put(str(getattr(error, "inner_exception", error)))
    os._exit(0)


def test_a_process_that_dies_while_it_plans_ends_the_others(ended):
    codes, said = ended
    assert codes == [0, -signal.SIGKILL]
    assert [line for line in said if isinstance(line, str)] == [
        "process 1 has said nothing for 3 s while it plans for all: it may have died"
    ]
