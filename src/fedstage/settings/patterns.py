"""Patterns of texts in settings, and how messages describe them in words."""

NAME = r"^[A-Za-z0-9_-]+$"
WEIGHTS_FILE = r"^results/[A-Za-z0-9_./=-]+\.safetensors$"
DEVICE = r"^(auto|cpu|cuda(:\d+)?)$"
SHA256 = r"^[0-9a-f]{8,64}$"

#: What each pattern allows.
IN_WORDS = {
    NAME: "must consist of letters, digits, _ and -",
    WEIGHTS_FILE: "must be results/FILE.safetensors, of letters, digits, _, -, ., = and /",
    DEVICE: "must be auto, cpu, cuda or cuda:NUMBER",
    SHA256: "must be 8 to 64 hexadecimal digits, in lower case",
}
