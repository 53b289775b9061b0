"""Training tools that people use, with a budget: Hugging Face's Trainer, accelerate and Lightning. Run by `make
check-tools`, in a Python environment of its own: the model is compiled in place (`nn.Module.compile`), so the tools
see the module that they know. Parameters behind the training are those of keep-all to the bit, and the step was
planned.
"""

import copy
import warnings

import pytest

torch = pytest.importorskip("torch")

import remat.torch  # noqa: E402

OPTIONS = {"backend": "remat", "options": {"budget": "min", "cache": False, "work": 50000}}
KEEP_ALL = {"backend": "aot_eager_default_partitioner"}


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    warnings.simplefilter("ignore")
    yield
    torch._dynamo.reset()


def gpt2():
    import transformers

    torch.manual_seed(0)
    config = transformers.GPT2Config(
        n_layer=2, n_embd=32, n_head=2, vocab_size=64, n_positions=16, bos_token_id=0, eos_token_id=0
    )
    config.use_cache = False
    return transformers.GPT2LMHeadModel(config)


def tokens(n=8):
    generator = torch.Generator().manual_seed(1)
    return [{"input_ids": row, "labels": row} for row in torch.randint(0, 64, (n, 16), generator=generator)]


def both(train, model):
    """Parameters behind a training with everything kept and within the budget; the reports of the latter."""
    found = []
    for options in (KEEP_ALL, OPTIONS):
        torch._dynamo.reset()
        before, trained = len(remat.torch.reports()), copy.deepcopy(model)
        trained.compile(**options)
        train(trained)
        found.append([p.detach().clone() for p in trained.parameters()])
    return found[0], found[1], remat.torch.reports()[before:]


def check(train, model):
    kept, found, reports = both(train, model)
    assert reports and all(report["planned"] for report in reports)
    assert max(report["recomputed_ops"] for report in reports) > 0
    assert all(map(torch.equal, kept, found))
    assert not all(map(torch.equal, found, model.parameters()))


def test_the_trainer_of_transformers(tmp_path):
    transformers = pytest.importorskip("transformers")

    def train(model):
        arguments = transformers.TrainingArguments(
            str(tmp_path),
            per_device_train_batch_size=4,
            max_steps=3,
            gradient_accumulation_steps=2,
            report_to=[],
            save_strategy="no",
            use_cpu=True,
            seed=3,
        )
        transformers.Trainer(model=model, args=arguments, train_dataset=tokens()).train()

    check(train, gpt2())


def test_accelerate():
    accelerate = pytest.importorskip("accelerate")

    def train(model):
        torch.manual_seed(2)
        accelerator = accelerate.Accelerator(cpu=True)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-2)
        model, optimizer, loader = accelerator.prepare(
            model, optimizer, torch.utils.data.DataLoader(tokens(), batch_size=4)
        )
        for batch in loader:
            accelerator.backward(model(**batch).loss)
            optimizer.step()
            optimizer.zero_grad()

    check(train, gpt2())


def test_lightning(tmp_path):
    lightning = pytest.importorskip("lightning")

    class Module(lightning.LightningModule):
        def __init__(self, model):
            super().__init__()
            self.model = model

        def training_step(self, batch, _index):
            return self.model(**batch).loss

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), 1e-2)

    def train(model):
        torch.manual_seed(2)
        trainer = lightning.Trainer(
            max_steps=3,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            default_root_dir=tmp_path,
        )
        trainer.fit(Module(model), torch.utils.data.DataLoader(tokens(), batch_size=4))

    check(train, gpt2())
