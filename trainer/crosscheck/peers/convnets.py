"""BiDVL's convolutional networks for pictures of 32×32, as modules of PyTorch."""
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils import spectral_norm


def conv(a, b, kernel, stride, pad, normed=False, bias=True):
    c = nn.Conv2d(a, b, kernel, stride, pad, bias=bias)
    return spectral_norm(c) if normed else c


def widths(w):
    return [w, w, 2 * w, 2 * w, 4 * w, 4 * w, 8 * w, 8 * w]


# Kernel, stride and padding of the pictures' layers.
LAYERS = [(3, 1, 1), (4, 2, 1)] * 3 + [(3, 1, 1), (4, 1, 0)]


def leaky(x):
    return F.leaky_relu(x, 0.1)


class Energy(nn.Module):
    """Decoupled: of pictures alone."""

    def __init__(self, w):
        super().__init__()
        before = 3
        for i, (out, layer) in enumerate(zip(widths(w), LAYERS)):
            setattr(self, f"conv{i + 1}", conv(before, out, *layer, normed=True))
            before = out
        self.conv9 = conv(before, before, 1, 1, 0, normed=True)
        self.conv10 = conv(before, 1, 1, 1, 0, normed=True)

    def forward(self, x, _=None):
        for i in range(1, 8):
            x = leaky(getattr(self, f"conv{i}")(x))
        x = leaky(self.conv9(self.conv8(x)))  # nothing between 8 and 9
        return F.softplus(self.conv10(x)).reshape(-1)


class JointEnergy(nn.Module):
    """Of pictures and latents."""

    def __init__(self, w, latent):
        super().__init__()
        a, b = 3, latent
        for i, (out, layer) in enumerate(zip(widths(w), LAYERS)):
            setattr(self, f"conv{i + 1}", conv(a, out, *layer, normed=True))
            setattr(self, f"latent{i + 1}", conv(b, out, 1, 1, 0, normed=True))
            a = b = out
        self.joint1 = conv(2 * a, 2 * a, 1, 1, 0, normed=True)
        self.joint2 = conv(2 * a, 1, 1, 1, 0, normed=True)

    def forward(self, x, h):
        h = h[:, :, None, None]
        for i in range(1, 9):
            x, h = getattr(self, f"conv{i}")(x), getattr(self, f"latent{i}")(h)
            if i < 8:
                x, h = leaky(x), leaky(h)
        return F.softplus(self.joint2(leaky(self.joint1(torch.cat([x, h], 1))))).reshape(-1)


class Inference(nn.Module):
    def __init__(self, w, latent):
        super().__init__()
        b = w * 3 // 4
        channels = [3, b, 2 * b, 4 * b, 8 * b]
        for i in range(4):
            layer = (3, 1, 1) if i == 0 else (4, 2, 1)
            setattr(self, f"conv{i + 1}", conv(channels[i], channels[i + 1], *layer, bias=False))
            setattr(self, f"bn{i + 1}", nn.BatchNorm2d(channels[i + 1]))
        self.mean, self.logvar = conv(8 * b, latent, 4, 1, 0), conv(8 * b, latent, 4, 1, 0)

    def forward(self, x):
        for i in range(1, 5):
            x = F.leaky_relu(getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(x)), 0.2)
        return self.mean(x)[:, :, 0, 0], self.logvar(x)[:, :, 0, 0]


class Generator(nn.Module):
    def __init__(self, w, latent):
        super().__init__()
        b = w * 3 // 4
        channels = [latent, 8 * b, 8 * b, 4 * b, 2 * b]
        for i in range(4):
            layer = (4, 1, 0) if i == 0 else (4, 2, 1)
            setattr(self, f"conv{i + 1}", nn.ConvTranspose2d(channels[i], channels[i + 1], *layer, bias=False))
            setattr(self, f"bn{i + 1}", nn.BatchNorm2d(channels[i + 1]))
        self.conv5 = nn.ConvTranspose2d(2 * b, 3, 3, 1, 1)

    def forward(self, h):
        x = h[:, :, None, None]
        for i in range(1, 5):
            x = F.relu(getattr(self, f"bn{i}")(getattr(self, f"conv{i}")(x)))
        return torch.tanh(self.conv5(x))
