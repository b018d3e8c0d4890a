"""One training loop of a GPT-2 of the given size in PyTorch, for comparison: prints the seconds of each step.

torch_gpt2.py LAYERS EMBED HEADS VOCAB BATCH SEQ STEPS f32|bf16
"""
import sys
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

layers, embed, heads, vocab, batch, seq, steps = map(int, sys.argv[1:8])
dtype = torch.bfloat16 if sys.argv[8] == "bf16" else torch.float32


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(embed), nn.LayerNorm(embed)
        self.qkv, self.out = nn.Linear(embed, 3 * embed), nn.Linear(embed, embed)
        self.up, self.down = nn.Linear(embed, 4 * embed), nn.Linear(4 * embed, embed)
        self.register_buffer("mask", torch.tril(torch.ones(seq, seq, dtype=torch.bool)))

    def attention(self, x):
        q, k, v = (t.view(batch, seq, heads, -1).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        score = (q @ k.transpose(-2, -1)) * (embed // heads) ** -0.5
        weights = score.masked_fill(~self.mask, float("-inf")).softmax(-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, seq, embed))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT2(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocab, embed), nn.Embedding(1024, embed)
        self.blocks, self.norm = nn.Sequential(*(Block() for _ in range(layers))), nn.LayerNorm(embed)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(seq))
        return self.norm(self.blocks(x)) @ self.tokens.weight.t()


torch.manual_seed(1)
model = GPT2().to(dtype)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for _ in range(steps):
    ids = torch.randint(0, min(vocab, 256), (batch, seq + 1))
    start = time.perf_counter()
    loss = F.cross_entropy(model(ids[:, :-1]).view(-1, vocab).float(), ids[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(time.perf_counter() - start, flush=True)
