import torch
from torch import nn

from fedstage.models.build import build
from fedstage.models.initialisation import initialise
from fedstage.randomness import torch_generator
from fedstage.settings.models import CnnSmall
from fedstage.training.inference import BATCH, class_accuracies, compute_logits

INFO = {"mean": [0.4], "std": [0.3]}


def model():
    network = build(CnnSmall(name="cnn_small", width=2, hidden=4, norm="batch"), (1, 8, 8), 3)
    initialise(network, torch_generator(0, "weights"))
    for name, buffer in network.named_buffers():
        if name.endswith("running_mean"):
            buffer.fill_(0.25)
        if name.endswith("running_var"):
            buffer.fill_(2.0)
    return network


def images(n):
    generator = torch_generator(0, "images")
    return torch.randint(0, 256, (n, 1, 8, 8), generator=generator, dtype=torch.uint8)


def test_logits_are_those_of_each_image_alone():
    network, pictures = model(), images(7)
    together = compute_logits(network, pictures, INFO)
    network.eval()
    pixels = (pictures.double() / 255 - 0.4) / 0.3
    with torch.no_grad():
        alone = torch.cat([network.double()(pixels[i : i + 1]) for i in range(7)])
    assert (together.shape, together.dtype, together.device.type) == ((7, 3), torch.float32, "cpu")
    assert torch.allclose(together.double(), alone, atol=1e-5)


def test_more_images_than_a_batch_keep_their_order():
    class Mean(nn.Module):
        def forward(self, pixels):
            assert len(pixels) <= BATCH["cpu"]
            return pixels.mean((1, 2, 3))[:, None]

    n = 2 * BATCH["cpu"] + 3
    pictures = torch.zeros(n, 1, 2, 2, dtype=torch.uint8)
    pictures[:] = (torch.arange(n) % 251).to(torch.uint8)[:, None, None, None]
    logits = compute_logits(Mean(), pictures, {"mean": [0.0], "std": [1 / 255]})
    assert logits.shape == (n, 1)
    assert torch.allclose(logits[:, 0], (torch.arange(n) % 251).float(), atol=1e-3)


def test_right_answers_by_class_by_hand():
    logits = torch.tensor([[2.0, 1, 0, 0], [0, 2, 1, 0], [5, 2, 3, 0], [1, 2, 3, 0], [0, 0, 1, 0]])
    right, samples = class_accuracies(logits, torch.tensor([0, 1, 2, 2, 0]))
    assert right.tolist() == [1, 1, 1, 0]
    assert samples.tolist() == [2, 1, 2, 0]
    assert {right.dtype, samples.dtype} == {torch.float64}
