"""Keys: X25519 (RFC 7748) between two clients, and HKDF with SHA-256 (RFC 5869) of the result.

A private key is 32 secret bytes. Both clients of a pair derive the same key from their own private
and the other's public key.
"""

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

#: Bytes of a key, whether private, public or derived.
KEY_BYTES = 32


def public_key(private: bytes) -> bytes:
    """Return the public key of a private one."""
    return X25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw()


def agree(private: bytes, public: bytes, purpose: str) -> bytes:
    """Return the key for a purpose that the owners of two key pairs share."""
    other = X25519PublicKey.from_public_bytes(public)
    common = X25519PrivateKey.from_private_bytes(private).exchange(other)
    return HKDF(SHA256(), KEY_BYTES, salt=None, info=purpose.encode()).derive(common)
