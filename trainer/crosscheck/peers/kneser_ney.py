"""Interpolated n-grams by modified Kneser and Ney (Chen and Goodman 1999), from the definition."""
from collections import Counter, defaultdict
import math

BEGIN = 1
GUESSED = [0.5, 1, 1.5]  # discounts where there are too few counts of counts


def counts(train, order):
    """Of each n-gram: how often it is there for the longest and those that begin a sentence, else after how many words."""
    seen = Counter(tuple(s[i:i + n]) for s in train for n in range(1, order + 1) for i in range(len(s) - n + 1))
    before = defaultdict(set)
    for g in seen:
        before[g[1:]].add(g[0])
    out = [None]
    for n in range(1, order + 1):
        grams = [g for g in seen if len(g) == n and g != (BEGIN,)]
        out.append({g: seen[g] if n == order or g[0] == BEGIN else len(before[g]) for g in grams})
    return out


def discounts(count):
    t = [sum(1 for x in count.values() if x == k) for k in (1, 2, 3, 4)]
    if not all(t):
        return GUESSED
    y = t[0] / (t[0] + 2 * t[1])
    d = [k - (k + 1) * y * t[k] / t[k - 1] for k in (1, 2, 3)]
    return d if all(0 < a <= k for k, a in enumerate(d, 1)) else GUESSED


class Model:
    def __init__(self, order, words, train):
        self.order, self.words, by_order = order, words, counts(train, order)
        self.discounts = [None] + [discounts(c) for c in by_order[1:]]
        self.after = [defaultdict(dict) for _ in by_order]
        for n, c in enumerate(by_order[1:], 1):
            for g, x in c.items():
                self.after[n][g[:-1]][g[-1]] = x

    def taken(self, n, count):
        return self.discounts[n][min(count, 3) - 1] if count else 0

    def p(self, context, word):
        n = len(context) + 1
        lower = 1 / (self.words - 2) if n == 1 else self.p(context[1:], word)
        found = self.after[n].get(context)
        if not found:
            return lower
        total, count = sum(found.values()), found.get(word, 0)
        left = sum(self.taken(n, x) for x in found.values())
        return (count - self.taken(n, count) + left * lower) / total

    def nll(self, sentences):
        """And of how many words."""
        terms = [-math.log(self.p(tuple(s[max(0, i - self.order + 1):i]), s[i])) for s in sentences for i in range(1, len(s))]
        return sum(terms), len(terms)
