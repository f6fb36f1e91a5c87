"""A small decoder transformer over bytes, whole or as one rank's shard of it (tensor parallel), and the text that it learns.

Shapes: B sequences, T bytes each, D the width of the model, H heads of D/H each, F = 4 D the width of a block's middle."""

import hashlib
import os
import pathlib

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # a rank is a process; and a sum by several threads need not be the same each time

import torch
from torch import nn
from torch.nn import functional

torch.set_num_threads(1)

TEXTS = pathlib.Path("/usr/share/common-licenses")  # Debian's package base-files: on every Debian and Ubuntu
BYTES = 256


class Size:
    """How large a model is. "small": 3.3 million parameters; "tiny": for tests, 0.1 million."""

    def __init__(self, name: str):
        self.width, self.layers, self.heads, self.context = {"small": (256, 4, 8, 128), "tiny": (64, 2, 8, 32)}[name]


def text() -> torch.Tensor:
    """All licences of the machine, one after the other: [n] bytes. SystemExit if there are none."""
    files = sorted(path for path in TEXTS.glob("*") if path.is_file() and not path.is_symlink())
    if not files:
        raise SystemExit(f"{TEXTS} has no texts to learn from: this example wants a Debian or Ubuntu")
    return torch.tensor(list(b"".join(path.read_bytes() for path in files)), dtype=torch.uint8)


def sample(of: torch.Tensor, seed: int, n: int, context: int) -> tuple[torch.Tensor, torch.Tensor]:
    """`n` random pieces, and the same ones a byte later: what is to be foretold. Shapes: [n, context]."""
    chosen = torch.Generator().manual_seed(seed)
    starts = torch.randint(len(of) - context - 1, (n,), generator=chosen)
    pieces = torch.stack([of[start:start + context + 1] for start in starts.tolist()]).long()
    return pieces[:, :-1], pieces[:, 1:]


def share(n: int, rank: int, size: int) -> range:
    """Of n things, those of one rank: the first ranks have one more where it does not come out even."""
    each, more = divmod(n, size)
    begin = rank * each + min(rank, more)
    return range(begin, begin + each + (rank < more))


class Block(nn.Module):
    """One layer, or the part of it that a rank has: some of the heads, and some of the middle's columns. What the parts give
    has to be added up over all ranks (Megatron's scheme), which `total` does: twice a layer, [B, T, D] each."""

    def __init__(self, size: Size, heads: int, middle: int, total):
        super().__init__()
        self.heads, self.each, self.total = heads, size.width // size.heads, total
        self.norms = nn.ModuleList(nn.LayerNorm(size.width) for _ in range(2))
        self.taken = nn.Linear(size.width, 3 * heads * self.each, bias=False)  # query, key, value
        self.given = nn.Linear(heads * self.each, size.width, bias=False)
        self.wide = nn.Linear(size.width, middle, bias=False)
        self.narrow = nn.Linear(middle, size.width, bias=False)

    def forward(self, x: torch.Tensor, past: list) -> torch.Tensor:
        """past: [] or [keys, values] of the bytes before, to which this adds its own; None: nothing is kept."""
        n, length, width = x.shape
        query, key, value = (self.taken(self.norms[0](x)).view(n, length, 3, self.heads, self.each).permute(2, 0, 3, 1, 4))
        if past is not None:
            if past:
                key, value = torch.cat((past[0], key), 2), torch.cat((past[1], value), 2)
            past[:] = key, value
        scores = query @ key.transpose(-1, -2) / self.each**0.5
        later = torch.ones(length, key.shape[2], dtype=torch.bool).triu(key.shape[2] - length + 1)
        mixed = scores.masked_fill(later, float("-inf")).softmax(-1) @ value
        x = x + self.total(self.given(mixed.transpose(1, 2).reshape(n, length, self.heads * self.each)))
        return x + self.total(self.narrow(functional.gelu(self.wide(self.norms[1](x)))))


class Model(nn.Module):
    """rank, size: whose shard this is; without them it is whole. total: adds a tensor up over all ranks, in place."""

    def __init__(self, size: Size, rank: int = 0, ranks: int = 1, total=lambda x: x):
        super().__init__()
        self.size, self.rank, self.ranks = size, rank, ranks
        self.bytes = nn.Embedding(BYTES, size.width)
        self.places = nn.Embedding(size.context, size.width)
        heads, middle = len(share(size.heads, rank, ranks)), len(share(4 * size.width, rank, ranks))
        self.blocks = nn.ModuleList(Block(size, heads, middle, total) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.width)
        self.scores = nn.Linear(size.width, BYTES, bias=False)

    def forward(self, bytes_in: torch.Tensor, past: list = None) -> torch.Tensor:
        """[B, T] bytes to [B, T, 256] logits. past: a list for each layer, as Block has it; T counts on from there."""
        begin = past[0][0].shape[2] if past and past[0] else 0
        x = self.bytes(bytes_in) + self.places(torch.arange(begin, begin + bytes_in.shape[1]))
        for index, block in enumerate(self.blocks):
            x = block(x, past[index] if past is not None else None)
        return self.scores(self.norm(x))

    def load_shard(self, whole: dict) -> None:
        """Its own part of a whole model's parameters."""
        each, width = self.size.width // self.size.heads, self.size.width
        heads, middle = share(self.size.heads, self.rank, self.ranks), share(4 * width, self.rank, self.ranks)
        rows = slice(heads.start * each, heads.stop * each)
        cut = {"taken": lambda w: w.view(3, width, width)[:, rows].reshape(-1, width), "given": lambda w: w[:, rows],
               "wide": lambda w: w[middle.start:middle.stop], "narrow": lambda w: w[:, middle.start:middle.stop]}
        self.load_state_dict({name: cut.get(name.split(".")[-2], lambda w: w)(w) for name, w in whole.items()})


def digest(model: nn.Module) -> str:
    """Of all parameters' bits."""
    sum_of = hashlib.sha256()
    for name, parameter in sorted(model.state_dict().items()):
        sum_of.update(name.encode() + parameter.contiguous().numpy().tobytes())
    return sum_of.hexdigest()[:16]
