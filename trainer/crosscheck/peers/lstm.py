"""The one-layer LSTM of the language model and of the text decoder."""
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from philox import CHAIN, DROPOUT
import eblvm

BEGIN, END = 1, 2


def hidden(p, name, tokens, z, masks=(1, 1)):
    """Its states after each token; z is beside each word and makes the first state."""
    x, width = p[name + ".embedding.weight"][tokens] * masks[0], p[name + ".lstm.weight_hh"].shape[1]
    first = torch.zeros(1, len(tokens), width)
    if z is not None:
        x = torch.cat([x, z[:, None].expand(-1, x.shape[1], -1)], 2)
        first = eblvm.linear(p, name + ".first", z)[None]
    w = [p[f"{name}.lstm.{n}"] for n in ("weight_ih", "weight_hh", "bias")]
    out, _, _ = torch._VF.lstm(x, (first, torch.zeros_like(first)), [*w, torch.zeros_like(w[2])], True, 1, 0.0, False, False, True)
    return out * masks[1]


def logits(p, name, tokens, z, masks=(1, 1)):
    return eblvm.linear(p, name + ".out", hidden(p, name, tokens, z, masks))


def counted(tokens, lengths):
    """Which of the words that are foretold count."""
    return torch.arange(tokens.shape[1] - 1)[None] < (lengths - 1)[:, None]


def nll(p, name, tokens, lengths, z, masks=(1, 1)):
    """−log p of each sentence."""
    scores = logits(p, name, tokens[:, :-1], z, masks)
    each = F.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none")
    return (each.reshape(len(tokens), -1) * counted(tokens, lengths)).sum(1)


def dropout(s, cfg):
    """Masks of the words' vectors and of the states."""
    def mask(place, width):
        words = s.tokens.shape[1] - 1
        kept = s.draw.uniform(DROPOUT, place, (s.batch, words * width)) > cfg["Dropout"]
        return kept.double().reshape(s.batch, words, width) / (1 - cfg["Dropout"])
    return mask(0, cfg["Embed"]), mask(1, cfg["Hidden"])


def clipped(grads, most):
    ps = [nn.Parameter(torch.zeros_like(g)) for g in grads]
    for p, g in zip(ps, grads):
        p.grad = g.clone()
    nn.utils.clip_grad_norm_(ps, most)
    return [p.grad for p in ps]


def write(s, p, name, z, cfg, first):
    """Sentences, word by word by Gumbel's maximum; first is the chain's step of the first word. The last word that
    fits is the end."""
    longest, words = cfg["Lengths"][-1], p[name + ".out.weight"].shape[0]
    tokens, ended = [[BEGIN] for _ in range(s.batch)], [False] * s.batch
    for i in range(longest - 1):
        u = s.chain(first + i).uniform(CHAIN, 0, (s.batch, words)).clamp(max=1 - 2**-24)
        scores = logits(p, name, torch.tensor(tokens), z)[:, -1] - torch.log(-torch.log(u))
        scores[:, :END] = -np.inf
        for b in range(s.batch):
            word = 0 if ended[b] else END if i == longest - 2 else int(scores[b].argmax())
            ended[b] = ended[b] or word == END
            tokens[b].append(word)
    return torch.tensor(tokens).double()
