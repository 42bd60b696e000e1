"""The LSTM language model."""
import torch

import lstm
from state import gradients, norm


def step(s):
    p, cfg = s.part("lm"), s.cfg
    each = lstm.nll(p, "lm", s.tokens, s.lengths, None, lstm.dropout(s, cfg))
    g, words = gradients(each.mean(), list(p.values())), (s.lengths - 1).double()
    s.adam("lm", p, lstm.clipped(g, cfg["Clip"]), cfg["Adam"], s.index)
    s.report.update(nll=each.mean(), words=words.mean(), perplexity=torch.exp(each.sum() / words.sum()), grad_lm=norm(g))


def look(s):
    best = lstm.logits(s.vars, "lm", s.tokens[:, :-1], None).argmax(2)
    told = (best == s.tokens[:, 1:]) & lstm.counted(s.tokens, s.lengths)
    return {"nll.loss": lstm.nll(s.vars, "lm", s.tokens, s.lengths, None), "nll.told": told.double().sum(1),
            "sample": lstm.write(s, s.vars, "lm", None, s.cfg, 0)}
