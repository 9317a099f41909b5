"""Secure aggregation (Bonawitz et al. 2017): one server learns a sum, but none of its terms.

    step 0, advertise   u -> server   two public keys, for encryption and for masks
    step 1, share       u -> server   shares of b_u and of its mask key, encrypted for each v
    step 2, mask        u -> server   y_u = x_u + PRG(b_u) +- sum over v of PRG(s_uv)  mod 2^32
    step 3, unmask      u -> server   a share of b_v of each v that sent y_v, of the mask key of
                                      each v that did not: never both
    server              sum x_u = sum y_u - sum PRG(b_u) - the remaining pairwise masks

Server and clients follow the protocol, but may look at everything that they receive (honest but
curious). Clients are numbered by their places in a group. Secrets are 32 bytes that callers pass
in: this package draws nothing at random.
"""
