"""Philox-4x32-10 (Salmon et al. 2011), and the draws that the program names by purpose, place, step and sample."""
import numpy as np
import torch

M0, M1, W0, W1 = 0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85

# Purposes, by their numbers.
LATENT, POSTERIOR, SAMPLING, PERTURBATION, HIDDEN, PROJECTION = 2, 3, 6, 10, 11, 12
CHAIN, NEGATIVE, CONTRAST, REFINE, LANGEVIN, DROPOUT = 13, 14, 15, 17, 18, 19


def blocks(seed, purpose, place, step, sample, words):
    """At least so many 32-bit words, as uint64."""
    i = np.arange((words + 3) // 4, dtype=np.uint64)
    c = [i, np.full_like(i, sample), np.full_like(i, step), np.full_like(i, purpose << 16 | place)]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    mask, half = np.uint64(0xFFFFFFFF), np.uint64(32)
    for r in range(10):
        if r:
            k0, k1 = (k0 + W0) & 0xFFFFFFFF, (k1 + W1) & 0xFFFFFFFF
        p0, p1 = np.uint64(M0) * c[0], np.uint64(M1) * c[2]
        c = [((p1 >> half) ^ c[1] ^ np.uint64(k0)) & mask, p1 & mask, ((p0 >> half) ^ c[3] ^ np.uint64(k1)) & mask, p0 & mask]
    return np.stack(c, 1).reshape(-1)


def uniform(w):
    """In (0, 1), of 24 bits."""
    return ((w >> np.uint64(8)).astype(np.float64) + 0.5) / 2**24


def normal(w):
    """Box and Muller's, of pairs of words."""
    w = w.reshape(-1, 2)
    r, a = np.sqrt(-2 * np.log(uniform(w[:, 0]))), 2 * np.pi * uniform(w[:, 1])
    return np.stack([r * np.cos(a), r * np.sin(a)], 1).reshape(-1)


def sign(w):
    return 2.0 * (w & np.uint64(1)).astype(np.float64) - 1


def integer(seed, purpose, place, step, sample, i, below):
    """The i-th whole number of a stream, by the high half of a product of 64 bits."""
    hi, lo = (int(x) for x in blocks(seed, purpose, place, step, sample, 4 * (i + 1))[4 * i:4 * i + 2])
    return (hi * below + (lo * below >> 32)) >> 32


class Draws:
    """The draws of a step: each sample of a batch has a stream of its own."""

    def __init__(self, seed, step, first=0):
        self.seed, self.step, self.first = seed, step, first

    def _of(self, law, purpose, place, shape):
        n = int(np.prod(shape[1:]))
        rows = [law(blocks(self.seed, purpose, place, self.step, self.first + r, n))[:n] for r in range(shape[0])]
        return torch.tensor(np.array(rows).reshape(shape).astype(np.float32).astype(np.float64))

    def normal(self, purpose, place, shape):
        return self._of(normal, purpose, place, shape)

    def uniform(self, purpose, place, shape):
        return self._of(uniform, purpose, place, shape)

    def sign(self, purpose, place, shape):
        return self._of(sign, purpose, place, shape)
