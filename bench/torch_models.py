"""The models that the PyTorch front end is tried on, built from configurations without downloads, small enough for a CPU.
`MODELS[name]()` gives (model in training mode, inputs, keywords); the model returns a scalar loss, or something whose first tensor is one."""

import torch
import torch.nn.functional as F
from torch import nn


class WithLoss(nn.Module):
    """A model and a loss of its result, as one module."""

    def __init__(self, model, loss):
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, *args, **kwargs):
        return self.loss(self.model(*args, **kwargs))


def _first(result):
    """The loss of a result of transformers."""
    return (
        result[0] if isinstance(result, (tuple, list)) else result.loss if hasattr(result, "loss") else result["loss"]
    )


class HuggingFace(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, **kwargs):
        return _first(self.model(**kwargs))


def _tokens(batch, length, vocabulary):
    return torch.randint(0, vocabulary, (batch, length))


def _language(config_class, model_class, batch=4, length=64, vocabulary=128, one_graph=True, **config):
    import transformers

    made = getattr(transformers, config_class)(vocab_size=vocabulary, **config)
    made.use_cache = False
    made = getattr(transformers, model_class)(made)
    if one_graph and made.loss_type is None:
        made.loss_type = "ForCausalLM"  # or transformers warns in the middle of the step, which ends a graph
    model = HuggingFace(made).train()
    tokens = _tokens(batch, length, vocabulary)
    return model, (), {"input_ids": tokens, "labels": tokens}


def gpt2():
    return _language(
        "GPT2Config", "GPT2LMHeadModel", n_layer=4, n_head=4, n_embd=64, n_positions=64, bos_token_id=0, eos_token_id=0
    )


def gpt2_in_two_graphs():
    """The loss is a graph of its own."""
    return _language(
        "GPT2Config",
        "GPT2LMHeadModel",
        one_graph=False,
        n_layer=4,
        n_head=4,
        n_embd=64,
        n_positions=64,
        bos_token_id=0,
        eos_token_id=0,
    )


def bert():
    return _language(
        "BertConfig",
        "BertForMaskedLM",
        hidden_size=64,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=256,
        max_position_embeddings=64,
    )


def t5():
    return _language(
        "T5Config",
        "T5ForConditionalGeneration",
        d_model=64,
        d_kv=16,
        d_ff=128,
        num_layers=2,
        num_heads=4,
        decoder_start_token_id=0,
    )


def llama():
    return _language(
        "LlamaConfig",
        "LlamaForCausalLM",
        hidden_size=64,
        intermediate_size=172,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=64,
    )


def _vision(config_class, model_class, size=32, batch=4, **config):
    import transformers

    made = getattr(transformers, config_class)(num_labels=10, **config)
    model = HuggingFace(getattr(transformers, model_class)(made)).train()
    return model, (), {"pixel_values": torch.randn(batch, 3, size, size), "labels": torch.randint(0, 10, (batch,))}


def vit():
    return _vision(
        "ViTConfig",
        "ViTForImageClassification",
        hidden_size=64,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=128,
        image_size=32,
        patch_size=4,
        hidden_dropout_prob=0.1,
    )


def swin():
    return _vision(
        "SwinConfig",
        "SwinForImageClassification",
        image_size=32,
        patch_size=2,
        embed_dim=24,
        depths=[2, 2],
        num_heads=[2, 4],
        window_size=4,
        hidden_dropout_prob=0.1,
    )


def convnext():
    return _vision(
        "ConvNextConfig",
        "ConvNextForImageClassification",
        hidden_sizes=[16, 32, 64, 64],
        depths=[2, 2, 2, 2],
        image_size=64,
        patch_size=2,
        drop_path_rate=0.1,
        size=64,
    )


def resnet():
    return _vision(
        "ResNetConfig",
        "ResNetForImageClassification",
        embedding_size=16,
        hidden_sizes=[32, 64, 64, 128],
        depths=[2, 2, 2, 2],
        layer_type="bottleneck",
        size=64,
    )


class UNet(nn.Module):
    def __init__(self, width=16, levels=3):
        super().__init__()

        def block(a, b):
            return nn.Sequential(
                nn.Conv2d(a, b, 3, padding=1),
                nn.BatchNorm2d(b),
                nn.ReLU(inplace=True),
                nn.Conv2d(b, b, 3, padding=1),
                nn.BatchNorm2d(b),
                nn.ReLU(inplace=True),
            )

        widths = [width << i for i in range(levels)]
        self.down = nn.ModuleList(block(a, b) for a, b in zip([3] + widths, widths))
        self.middle = block(widths[-1], 2 * widths[-1])
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, 2) for w in reversed(widths))
        self.join = nn.ModuleList(block(2 * w, w) for w in reversed(widths))
        self.head = nn.Conv2d(width, 4, 1)

    def forward(self, x):
        kept = []
        for block in self.down:
            x = block(x)
            kept.append(x)
            x = F.max_pool2d(x, 2)
        x = self.middle(x)
        for up, join in zip(self.up, self.join):
            x = join(torch.cat([up(x), kept.pop()], 1))
        return self.head(x)


def unet():
    target = torch.randint(0, 4, (2, 64, 64))
    return WithLoss(UNet(width=8), lambda y: F.cross_entropy(y, target)).train(), (torch.randn(2, 3, 64, 64),), {}


class DenseNet(nn.Module):
    def __init__(self, growth=12, blocks=(4, 4, 4)):
        super().__init__()
        width, layers = 24, [nn.Conv2d(3, 24, 3, padding=1)]
        self.stem, self.blocks, self.transitions = layers[0], nn.ModuleList(), nn.ModuleList()
        for n in blocks:
            block = nn.ModuleList()
            for _ in range(n):
                block.append(
                    nn.Sequential(
                        nn.BatchNorm2d(width),
                        nn.ReLU(),
                        nn.Conv2d(width, 4 * growth, 1),
                        nn.BatchNorm2d(4 * growth),
                        nn.ReLU(),
                        nn.Conv2d(4 * growth, growth, 3, padding=1),
                        nn.Dropout(0.1),
                    )
                )
                width += growth
            self.blocks.append(block)
            self.transitions.append(
                nn.Sequential(nn.BatchNorm2d(width), nn.ReLU(), nn.Conv2d(width, width // 2, 1), nn.AvgPool2d(2))
            )
            width //= 2
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = self.stem(x)
        for block, transition in zip(self.blocks, self.transitions):
            for layer in block:
                x = torch.cat([x, layer(x)], 1)
            x = transition(x)
        return self.head(x.mean((2, 3)))


def densenet(blocks=(4, 4, 4)):
    target = torch.randint(0, 10, (4,))
    return (
        WithLoss(DenseNet(blocks=blocks), lambda y: F.cross_entropy(y, target)).train(),
        (torch.randn(4, 3, 16, 16),),
        {},
    )


class MixerBlock(nn.Module):
    def __init__(self, tokens, width):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.tokens = nn.Sequential(
            nn.Linear(tokens, 2 * tokens), nn.GELU(), nn.Dropout(0.1), nn.Linear(2 * tokens, tokens)
        )
        self.channels = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Dropout(0.1), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


def mixer():
    model = nn.Sequential(
        nn.Conv2d(3, 48, 4, 4), nn.Flatten(2), _Transpose(), *(MixerBlock(64, 48) for _ in range(4)), nn.LayerNorm(48)
    )
    target = torch.randint(0, 48, (4,))
    return WithLoss(model, lambda y: F.cross_entropy(y.mean(1), target)).train(), (torch.randn(4, 3, 32, 32),), {}


class _Transpose(nn.Module):
    def forward(self, x):
        return x.transpose(1, 2)


class LSTM(nn.Module):
    """Written out step by step, so that the steps are in the graph."""

    def __init__(self, vocabulary=50, width=48, layers=2):
        super().__init__()
        self.embed, self.drop, self.head = (
            nn.Embedding(vocabulary, width),
            nn.Dropout(0.2),
            nn.Linear(width, vocabulary),
        )
        self.cells = nn.ModuleList(nn.LSTMCell(width, width) for _ in range(layers))
        self.width = width

    def forward(self, tokens):
        x = self.drop(self.embed(tokens))
        state = [(x.new_zeros(len(x), self.width), x.new_zeros(len(x), self.width)) for _ in self.cells]
        out = []
        for t in range(tokens.shape[1]):
            h = x[:, t]
            for i, cell in enumerate(self.cells):
                state[i] = cell(h, state[i])
                h = self.drop(state[i][0])
            out.append(self.head(h))
        return F.cross_entropy(torch.stack(out, 1).flatten(0, 1), tokens.flatten())


def lstm(length=8):
    return LSTM(width=32).train(), (_tokens(64, length, 50),), {}


class Experts(nn.Module):
    """A mixture of experts with dense routing: every expert sees every token, weighed by its gate; the two best count."""

    def __init__(self, width=48, n=4):
        super().__init__()
        self.gate = nn.Linear(width, n)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 4 * width), nn.SiLU(), nn.Dropout(0.1), nn.Linear(4 * width, width))
            for _ in range(n)
        )
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        y = self.norm(x)
        score = F.softmax(self.gate(y), -1)
        best = score.topk(2, -1).indices
        weight = score * torch.zeros_like(score).scatter(-1, best, 1.0)
        return x + sum(weight[..., i : i + 1] * expert(y) for i, expert in enumerate(self.experts))


def experts():
    model = nn.Sequential(nn.Linear(16, 48), *(Experts() for _ in range(3)), nn.Linear(48, 10))
    target = torch.randint(0, 10, (16, 32))
    return (
        WithLoss(model, lambda y: F.cross_entropy(y.flatten(0, 1), target.flatten())).train(),
        (torch.randn(16, 32, 16),),
        {},
    )


def _dropouts(n, depth=8, width=128):
    layers = []
    for i in range(depth):
        layers += [nn.Linear(width, width), nn.GELU()] + ([nn.Dropout(0.3)] if i < n else [])
    target = torch.randint(0, width, (1024,))
    return (
        WithLoss(nn.Sequential(*layers), lambda y: F.cross_entropy(y, target)).train(),
        (torch.randn(1024, width),),
        {},
    )


MODELS = {
    "gpt2": gpt2,
    "bert": bert,
    "t5": t5,
    "llama": llama,
    "vit": vit,
    "swin": swin,
    "convnext": convnext,
    "resnet": resnet,
    "unet": unet,
    "densenet": densenet,
    "mixer": mixer,
    "lstm": lstm,
    "experts": experts,
    "dropout1": lambda: _dropouts(1),
    "dropout3": lambda: _dropouts(3),
    "dropout8": lambda: _dropouts(8),
}
# without transformers
OWN = [name for name in MODELS if name not in ("gpt2", "bert", "t5", "llama", "vit", "swin", "convnext", "resnet")]
