"""One thread for all: sums are reproducible, and tests do not fight for the cores."""

import torch

torch.set_num_threads(1)
