"""The residual networks of SNGAN (Miyato et al. 2018) for pictures of 32×32, which BiDVL has, too."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import spectral_norm

from convnets import conv


class Down(nn.Module):
    """A block of the discriminator; the first has no activation before it."""

    def __init__(self, a, b, down, first=False):
        super().__init__()
        self.down, self.first = down, first
        self.conv1 = conv(a, b if first else a, 3, 1, 1, normed=True)
        self.conv2 = conv(b if first else a, b, 3, 1, 1, normed=True)
        if down or a != b:
            self.shortcut = conv(a, b, 1, 1, 0, normed=True)

    def forward(self, x):
        if self.first:
            return F.avg_pool2d(self.conv2(F.relu(self.conv1(x))), 2) + self.shortcut(F.avg_pool2d(x, 2))
        x = F.relu(x)
        y = self.conv2(F.relu(self.conv1(x)))
        if hasattr(self, "shortcut"):
            x = self.shortcut(x)
        return F.avg_pool2d(y, 2) + F.avg_pool2d(x, 2) if self.down else x + y


class Trunk(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.block1, self.block2 = Down(3, 2 * w, True, first=True), Down(2 * w, 2 * w, True)
        self.block3, self.block4 = Down(2 * w, 2 * w, False), Down(2 * w, 2 * w, False)

    def features(self, x):
        return F.relu(self.block4(self.block3(self.block2(self.block1(x))))).sum((2, 3))


class Energy(Trunk):
    def __init__(self, w):
        super().__init__(w)
        self.out = spectral_norm(nn.Linear(2 * w, 1))

    def forward(self, x, _=None):
        return self.out(self.features(x)).reshape(-1)


class Inference(Trunk):
    def __init__(self, w, latent):
        super().__init__(w)
        self.mean, self.logvar = spectral_norm(nn.Linear(2 * w, latent)), spectral_norm(nn.Linear(2 * w, latent))

    def forward(self, x):
        f = self.features(x)
        return self.mean(f), -F.softplus(self.logvar(f))


class Up(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.bn1, self.conv1 = nn.BatchNorm2d(w), conv(w, w, 3, 1, 1)
        self.bn2, self.conv2 = nn.BatchNorm2d(w), conv(w, w, 3, 1, 1)
        self.shortcut = conv(w, w, 1, 1, 0)

    def forward(self, x):
        def up(x):
            return F.interpolate(x, scale_factor=2, mode="bilinear", align_corners=False)
        y = self.conv2(F.relu(self.bn2(self.conv1(up(F.relu(self.bn1(x)))))))
        return y + self.shortcut(up(x))


class Generator(nn.Module):
    def __init__(self, w, latent):
        super().__init__()
        self.add_module("in", nn.Linear(latent, 4 * w * 16))
        self.block1, self.block2, self.block3 = Up(4 * w), Up(4 * w), Up(4 * w)
        self.bn, self.out = nn.BatchNorm2d(4 * w), conv(4 * w, 3, 3, 1, 1)

    def forward(self, h):
        x = getattr(self, "in")(h).reshape(h.shape[0], -1, 4, 4)
        return torch.tanh(self.out(F.relu(self.bn(self.block3(self.block2(self.block1(x)))))))
