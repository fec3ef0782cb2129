"""A vision model: a strided convolution with SAME padding, a batch norm, patches, a class token, two blocks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


@dataclass(frozen=True)
class VisionConfig:
    image: int = 32
    stem: int = 12
    patch: int = 4
    hidden: int = 48
    inner: int = 96
    heads: int = 4
    layers: int = 2
    classes: int = 10
    eps: float = 1e-6


MEAN, STD = (0.48, 0.46, 0.41), (0.27, 0.26, 0.28)


def preprocess(image, mean=MEAN, std=STD, scale=255.0, is_bgr=False):
    """(batch, 3, height, width) of 0 … 255 to normalised values."""
    values = (image / scale).flip(1) if is_bgr else image / scale
    return (values - torch.tensor(mean)[:, None, None]) / torch.tensor(std)[:, None, None]


class SameConv(nn.Conv2d):
    """As TensorFlow pads: the odd pixel behind."""

    def forward(self, x):
        missing = max(self.kernel_size[0] - self.stride[0], 0)
        before = missing // 2
        return F.conv2d(F.pad(x, (before, missing - before) * 2), self.weight, self.bias, self.stride)


class AuthorsBlock(nn.Module):
    def __init__(self, config: VisionConfig):
        super().__init__()
        self.heads = config.heads
        self.norm1 = nn.LayerNorm(config.hidden, eps=config.eps)
        self.qkv = nn.Linear(config.hidden, 3 * config.hidden)
        self.proj = nn.Linear(config.hidden, config.hidden)
        self.norm2 = nn.LayerNorm(config.hidden, eps=config.eps)
        self.fc1 = nn.Linear(config.hidden, config.inner)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(config.inner, config.hidden)
        self.gamma = nn.Parameter(torch.ones(config.hidden))

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        context = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(batch, length, width)
        x = x + self.gamma * self.proj(context)
        return x + self.fc2(self.act(self.fc1(self.norm2(x))))


class AuthorsVision(nn.Module):
    def __init__(self, config: VisionConfig):
        super().__init__()
        self.config = config
        self.stem = SameConv(3, config.stem, 3, stride=2)
        self.bn = nn.BatchNorm2d(config.stem)
        self.patches = nn.Conv2d(config.stem, config.hidden, config.patch, config.patch)
        self.cls = nn.Parameter(torch.zeros(1, 1, config.hidden))
        length = (config.image // 2 // config.patch) ** 2
        self.pos = nn.Parameter(torch.zeros(1, 1 + length, config.hidden))
        self.blocks = nn.ModuleList(AuthorsBlock(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.hidden, eps=config.eps)
        self.head = nn.Linear(config.hidden, config.classes)

    def forward(self, image):
        x = F.relu(self.bn(self.stem(image)))
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls.expand(len(x), -1, -1), x), 1) + self.pos
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x)[:, 0])


@dataclass(frozen=True)
class VisionKnobs:
    padding: str = "behind"
    bn_eps: float = 1e-5
    eps: float | None = None
    activation: str = "gelu"
    fused: str = "blocks"
    scale: float | None = None
    adds_positions: bool = True
    gamma: bool = True
    class_token: str = "first"
    patches: str = "by row"
    is_eager: bool = False
    transposes_back: bool = True
    has_activation: bool = True
    skips: str = ""


class PortStem(nn.Module):
    def __init__(self, config: VisionConfig, knobs: VisionKnobs):
        super().__init__()
        self.padding = {"behind": (0, 1, 0, 1), "before": (1, 0, 1, 0), "both": (1, 1, 1, 1)}[knobs.padding]
        self.convolution = nn.Conv2d(3, config.stem, 3, stride=2)
        self.normalization = nn.BatchNorm2d(config.stem, eps=knobs.bn_eps)
        self.activation = nn.ReLU()

    def forward(self, pixel_values):
        padded = F.pad(pixel_values, self.padding)
        return self.activation(self.normalization(self.convolution(padded)))


class PortVisionEmbeddings(nn.Module):
    def __init__(self, config: VisionConfig, knobs: VisionKnobs):
        super().__init__()
        self.knobs = knobs
        self.stem = PortStem(config, knobs)
        self.projection = nn.Conv2d(config.stem, config.hidden, config.patch, config.patch)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, config.hidden))
        length = (config.image // 2 // config.patch) ** 2
        self.position_embeddings = nn.Parameter(torch.zeros(1, 1 + length, config.hidden))

    def forward(self, pixel_values):
        grid = self.projection(self.stem(pixel_values))
        patches = (grid.mT if self.knobs.patches == "by column" else grid).flatten(2).transpose(1, 2)
        parts = [self.cls_token.expand(len(patches), -1, -1), patches]
        embedded = torch.cat(parts if self.knobs.class_token == "first" else parts[::-1], 1)
        return embedded + self.position_embeddings if self.knobs.adds_positions else embedded


class PortVisionAttention(nn.Module):
    def __init__(self, config: VisionConfig, knobs: VisionKnobs):
        super().__init__()
        self.knobs = knobs
        self.num_heads = config.heads
        self.qkv = nn.Linear(config.hidden, 3 * config.hidden)
        self.projection = nn.Linear(config.hidden, config.hidden)

    def forward(self, hidden_states):
        batch, length, width = hidden_states.shape
        fused = self.qkv(hidden_states)
        if self.knobs.fused == "blocks":
            q, k, v = fused.view(batch, length, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        else:
            q, k, v = fused.view(batch, length, self.num_heads, 3, -1).permute(3, 0, 2, 1, 4)
        scale = self.knobs.scale or q.shape[-1] ** -0.5
        if self.knobs.is_eager:
            context = torch.softmax(q @ k.mT * scale, -1) @ v
        else:
            context = F.scaled_dot_product_attention(q, k, v, scale=scale)
        context = context.transpose(1, 2) if self.knobs.transposes_back else context
        return self.projection(context.reshape(batch, length, width))


class PortVisionLayer(nn.Module):
    def __init__(self, config: VisionConfig, knobs: VisionKnobs):
        super().__init__()
        self.layernorm_before = nn.LayerNorm(config.hidden, eps=knobs.eps or config.eps)
        self.attention = PortVisionAttention(config, knobs)
        self.layernorm_after = nn.LayerNorm(config.hidden, eps=knobs.eps or config.eps)
        self.fc1 = nn.Linear(config.hidden, config.inner)
        self.fc2 = nn.Linear(config.inner, config.hidden)
        self.activation_fn = {"gelu": nn.GELU(), "tanh": nn.GELU("tanh"), "silu": nn.SiLU()}[knobs.activation]
        self.layer_scale = nn.Parameter(torch.ones(config.hidden))
        self.scales = knobs.gamma
        self.has_activation = knobs.has_activation

    def forward(self, hidden_states):
        attended = self.attention(self.layernorm_before(hidden_states))
        hidden_states = hidden_states + (self.layer_scale * attended if self.scales else attended)
        widened = self.fc1(self.layernorm_after(hidden_states))
        return hidden_states + self.fc2(self.activation_fn(widened) if self.has_activation else widened)


class PortVisionModel(nn.Module):
    def __init__(self, config: VisionConfig, knobs: VisionKnobs):
        super().__init__()
        self.embeddings = PortVisionEmbeddings(config, knobs)
        self.layers = nn.ModuleList(PortVisionLayer(config, knobs) for _ in range(config.layers))
        self.layernorm = nn.LayerNorm(config.hidden, eps=knobs.eps or config.eps)
        self.classifier = nn.Linear(config.hidden, config.classes)
        self.skips = knobs.skips

    def forward(self, pixel_values):
        hidden_states = self.embeddings(pixel_values)
        for layer in self.layers[1:] if self.skips == "first layer" else self.layers:
            hidden_states = layer(hidden_states)
        normed = hidden_states if self.skips == "final norm" else self.layernorm(hidden_states)
        return (self.classifier(normed[:, 0]),)


def original(config: VisionConfig) -> AuthorsVision:
    torch.manual_seed(31)
    model = AuthorsVision(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1 and name not in ("cls", "pos"):
                parameter.normal_(0, 1.1 / parameter[0].numel() ** 0.5)
            elif name.endswith("bias") or name in ("cls", "pos"):
                parameter.normal_(0, 0.3)
            else:
                parameter.normal_(1, 0.2)
        model.bn.running_mean.normal_(0, 0.3)
        model.bn.running_var.uniform_(0.05, 1.5)
    return model


def converted(model: AuthorsVision) -> dict[str, torch.Tensor]:
    renames = (
        ("stem.", "embeddings.stem.convolution."),
        ("bn.", "embeddings.stem.normalization."),
        ("patches.", "embeddings.projection."),
        ("head.", "classifier."),
        ("norm.", "layernorm."),
    )
    inner = (
        ("norm1.", "layernorm_before."),
        ("norm2.", "layernorm_after."),
        ("qkv.", "attention.qkv."),
        ("proj.", "attention.projection."),
        ("gamma", "layer_scale"),
    )
    ours: dict[str, torch.Tensor] = {}
    for name, tensor in model.state_dict().items():
        new = {"cls": "embeddings.cls_token", "pos": "embeddings.position_embeddings"}.get(name, name)
        if name.startswith("blocks."):
            _blocks, index, rest = name.split(".", 2)
            rest = next((theirs + rest.removeprefix(own) for own, theirs in inner if rest.startswith(own)), rest)
            new = f"layers.{index}.{rest}"
        else:
            new = next((theirs + new.removeprefix(own) for own, theirs in renames if new.startswith(own)), new)
        ours[new] = tensor.clone()
    return ours
