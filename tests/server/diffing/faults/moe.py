"""A mixture of experts with a short convolution: the authors loop over experts, the port keeps them in two tensors."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812


@dataclass(frozen=True)
class MoeConfig:
    vocab: int = 72
    hidden: int = 40
    inner: int = 24
    experts: int = 6
    chosen: int = 2
    layers: int = 2
    kernel: int = 3
    eps: float = 1e-5
    renormalises: bool = True
    gates: str = "softmax"


class RootNorm(nn.Module):
    def __init__(self, size: int, eps: float):
        super().__init__()
        self.g = nn.Parameter(torch.ones(size))
        self.eps = eps

    def forward(self, x):
        return (self.g * (x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + self.eps))).type_as(x)


class AuthorsExpert(nn.Module):
    def __init__(self, config: MoeConfig):
        super().__init__()
        self.w1 = nn.Linear(config.hidden, config.inner, bias=False)
        self.w2 = nn.Linear(config.inner, config.hidden, bias=False)
        self.w3 = nn.Linear(config.hidden, config.inner, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class AuthorsMoe(nn.Module):
    def __init__(self, config: MoeConfig):
        super().__init__()
        self.config = config
        self.gate = nn.Linear(config.hidden, config.experts, bias=False)
        self.experts = nn.ModuleList(AuthorsExpert(config) for _ in range(config.experts))

    def forward(self, x):
        config, shape = self.config, x.shape
        x = x.reshape(-1, shape[-1])
        logits = self.gate(x)
        scores = torch.sigmoid(logits) if config.gates == "sigmoid" else F.softmax(logits, dim=1, dtype=torch.float32)
        weights, chosen = torch.topk(scores, config.chosen)
        if config.renormalises:
            weights = weights / weights.sum(-1, keepdim=True)
        weights = weights.type_as(x)
        result = torch.zeros_like(x)
        for index, expert in enumerate(self.experts):
            rows, places = torch.where(chosen == index)
            if len(rows):
                result[rows] += weights[rows, places, None] * expert(x[rows])
        return result.view(shape)


class AuthorsConv(nn.Module):
    """A causal depthwise convolution over time, gated; padding is zeroed before it."""

    def __init__(self, config: MoeConfig):
        super().__init__()
        self.inside = nn.Linear(config.hidden, 2 * config.hidden, bias=False)
        self.conv = nn.Conv1d(
            config.hidden, config.hidden, config.kernel, groups=config.hidden, padding=config.kernel - 1
        )
        self.outside = nn.Linear(config.hidden, config.hidden, bias=False)

    def forward(self, x, keep):
        gate, value = self.inside(x).chunk(2, -1)
        value = value * keep[..., None]
        mixed = self.conv(value.transpose(1, 2))[..., : x.shape[1]].transpose(1, 2)
        return self.outside(F.silu(gate) * mixed)


class AuthorsLayer(nn.Module):
    def __init__(self, config: MoeConfig):
        super().__init__()
        self.n1, self.n2 = RootNorm(config.hidden, config.eps), RootNorm(config.hidden, config.eps)
        self.mixer = AuthorsConv(config)
        self.moe = AuthorsMoe(config)

    def forward(self, x, keep):
        x = x + self.mixer(self.n1(x), keep)
        return x + self.moe(self.n2(x))


class AuthorsMoeModel(nn.Module):
    def __init__(self, config: MoeConfig):
        super().__init__()
        self.config = config
        self.emb = nn.Embedding(config.vocab, config.hidden)
        self.stack = nn.ModuleList(AuthorsLayer(config) for _ in range(config.layers))
        self.last = RootNorm(config.hidden, config.eps)

    def forward(self, ids, keep):
        x = self.emb(ids)
        for layer in self.stack:
            x = layer(x, keep.to(x.dtype))
        return self.last(x)


@dataclass(frozen=True)
class MoeKnobs:
    routing: str = "softmax, topk, renormalise"
    factor: float = 1.0
    zeroes_padding: bool = True
    swaps: bool = False
    eps: float | None = None
    router_dtype: torch.dtype = torch.float32
    norm: str = ""
    skips: str = ""
    gates_convolution: bool = True


class PortNorm(nn.Module):
    def __init__(self, size: int, eps: float, formula: str = ""):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))
        self.variance_epsilon = eps
        self.formula = formula

    def forward(self, hidden_states):
        wide = hidden_states.float()
        squares = wide.pow(2).sum(-1, keepdim=True) / (1 if self.formula == "sum" else wide.shape[-1])
        wide = wide * torch.rsqrt(squares + self.variance_epsilon)
        return (wide if self.formula == "no weight" else self.weight * wide).to(hidden_states.dtype)


class PortRouter(nn.Module):
    def __init__(self, config: MoeConfig, knobs: MoeKnobs):
        super().__init__()
        self.knobs = knobs
        self.top_k = config.chosen
        self.weight = nn.Parameter(torch.zeros(config.experts, config.hidden))

    def forward(self, hidden_states):
        logits = F.linear(hidden_states, self.weight)
        routing = self.knobs.routing
        wide = logits.to(self.knobs.router_dtype)
        if routing == "topk, softmax":
            weights, chosen = torch.topk(wide, self.top_k, dim=-1)
            return logits, weights.softmax(-1), chosen
        scores = wide.sigmoid() if routing.startswith("sigmoid") else wide.softmax(-1)
        weights, chosen = torch.topk(scores, self.top_k, dim=-1)
        if routing.endswith("renormalise"):
            weights = weights / weights.sum(-1, keepdim=True)
        return logits, weights * self.knobs.factor, chosen


class PortExperts(nn.Module):
    def __init__(self, config: MoeConfig, knobs: MoeKnobs):
        super().__init__()
        self.swaps = knobs.swaps
        self.gate_up_proj = nn.Parameter(torch.zeros(config.experts, 2 * config.inner, config.hidden))
        self.down_proj = nn.Parameter(torch.zeros(config.experts, config.hidden, config.inner))

    def forward(self, hidden_states, chosen, weights):
        result = torch.zeros_like(hidden_states)
        for index in range(len(self.gate_up_proj)):
            rows, places = torch.where(chosen == index)
            gate, up = F.linear(hidden_states[rows], self.gate_up_proj[index]).chunk(2, -1)
            if self.swaps:
                gate, up = up, gate
            made = F.linear(F.silu(gate) * up, self.down_proj[index])
            result.index_add_(0, rows, (made * weights[rows, places, None]).to(result.dtype))
        return result


class PortSparseMoeBlock(nn.Module):
    def __init__(self, config: MoeConfig, knobs: MoeKnobs):
        super().__init__()
        self.router = PortRouter(config, knobs)
        self.experts = PortExperts(config, knobs)

    def forward(self, hidden_states):
        flat = hidden_states.view(-1, hidden_states.shape[-1])
        _logits, weights, chosen = self.router(flat)
        return self.experts(flat, chosen, weights.to(flat.dtype)).view(hidden_states.shape)


class PortShortConv(nn.Module):
    def __init__(self, config: MoeConfig, knobs: MoeKnobs):
        super().__init__()
        self.zeroes_padding = knobs.zeroes_padding
        self.gates = knobs.gates_convolution
        self.in_proj = nn.Linear(config.hidden, 2 * config.hidden, bias=False)
        self.conv1d = nn.Conv1d(
            config.hidden, config.hidden, config.kernel, groups=config.hidden, padding=config.kernel - 1
        )
        self.out_proj = nn.Linear(config.hidden, config.hidden, bias=False)

    def forward(self, hidden_states, attention_mask):
        gate, value = self.in_proj(hidden_states).chunk(2, -1)
        if self.zeroes_padding:
            value = value * attention_mask.to(value.dtype)[..., None]
        mixed = self.conv1d(value.transpose(1, 2))[..., : hidden_states.shape[1]].transpose(1, 2)
        return self.out_proj((F.silu(gate) if self.gates else gate) * mixed)


class PortMoeLayer(nn.Module):
    def __init__(self, config: MoeConfig, knobs: MoeKnobs):
        super().__init__()
        eps = knobs.eps or config.eps
        self.operator_norm = PortNorm(config.hidden, eps, knobs.norm)
        self.ffn_norm = PortNorm(config.hidden, eps, knobs.norm)
        self.short_conv = PortShortConv(config, knobs)
        self.block_sparse_moe = PortSparseMoeBlock(config, knobs)

    def forward(self, hidden_states, attention_mask):
        hidden_states = hidden_states + self.short_conv(self.operator_norm(hidden_states), attention_mask)
        return hidden_states + self.block_sparse_moe(self.ffn_norm(hidden_states))


class PortMoeModel(nn.Module):
    def __init__(self, config: MoeConfig, knobs: MoeKnobs):
        super().__init__()
        self.embed_tokens = nn.Embedding(config.vocab, config.hidden)
        self.layers = nn.ModuleList(PortMoeLayer(config, knobs) for _ in range(config.layers))
        self.norm = PortNorm(config.hidden, knobs.eps or config.eps, knobs.norm)
        self.skips = knobs.skips

    def forward(self, input_ids, attention_mask):
        hidden_states = self.embed_tokens(input_ids)
        for layer in self.layers[:-1] if self.skips == "last layer" else self.layers:
            hidden_states = layer(hidden_states, attention_mask)
        return hidden_states if self.skips == "final norm" else self.norm(hidden_states)


def original(config: MoeConfig) -> AuthorsMoeModel:
    torch.manual_seed(41)
    model = AuthorsMoeModel(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                parameter.normal_(0, (3.0 if "gate" in name else 1.2) / parameter[0].numel() ** 0.5)
            elif name.endswith("bias"):
                parameter.normal_(0, 0.3)
            else:
                parameter.normal_(1, 0.2)
    return model


def converted(model: AuthorsMoeModel) -> dict[str, torch.Tensor]:
    config, theirs = model.config, model.state_dict()
    ours = {"embed_tokens.weight": theirs["emb.weight"], "norm.weight": theirs["last.g"]}
    for index in range(config.layers):
        old, new = f"stack.{index}.", f"layers.{index}."
        ours |= {
            f"{new}operator_norm.weight": theirs[f"{old}n1.g"],
            f"{new}ffn_norm.weight": theirs[f"{old}n2.g"],
            f"{new}short_conv.in_proj.weight": theirs[f"{old}mixer.inside.weight"],
            f"{new}short_conv.conv1d.weight": theirs[f"{old}mixer.conv.weight"],
            f"{new}short_conv.conv1d.bias": theirs[f"{old}mixer.conv.bias"],
            f"{new}short_conv.out_proj.weight": theirs[f"{old}mixer.outside.weight"],
            f"{new}block_sparse_moe.router.weight": theirs[f"{old}moe.gate.weight"],
        }
        experts = [f"{old}moe.experts.{expert}." for expert in range(config.experts)]
        ours[f"{new}block_sparse_moe.experts.gate_up_proj"] = torch.stack(
            [torch.cat((theirs[f"{name}w1.weight"], theirs[f"{name}w3.weight"])) for name in experts]
        )
        ours[f"{new}block_sparse_moe.experts.down_proj"] = torch.stack([theirs[f"{name}w2.weight"] for name in experts])
    return {name: tensor.clone() for name, tensor in ours.items()}
