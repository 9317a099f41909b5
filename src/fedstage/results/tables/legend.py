"""Heads of the result table's measured columns, and their explanations in its legend."""

from fedstage.results.tables.labels import METRICS, NOTHING, PRIVACY_LEGEND, head_of

PUBLISHED_HEAD, DIFFERENCE = "Published (%)", "Difference (points)"
RELEASED = "as_released: highest round, no result (%)"
OWN_TEST, OWN_MIX = "Clients' own test samples (%)", "Clients' own class mix (%)"
EPSILON = "ε"

#: Explanations of the columns.
LEGEND = {
    **dict.fromkeys(
        map(head_of, METRICS), "mean ± standard deviation (n−1) over seeds; no ± for a single seed."
    ),
    PUBLISHED_HEAD: (
        f"mean ± deviation that {{source}} reports; {NOTHING} where it reports nothing."
    ),
    DIFFERENCE: (
        "measured minus published, in percentage points, with the 95 % confidence interval of "
        "Welch's t-test where both have a deviation over several seeds."
    ),
    RELEASED: (
        "the highest of all evaluated rounds, chosen by the very samples that it is measured on. "
        "Some released code reports that; it is here to compare with such numbers only."
    ),
    EPSILON: PRIVACY_LEGEND,
    "Seeds": "number of seeds that the values are means of.",
    "Client std (points)": (
        "standard deviation over the clients' models on the common evaluation set, in percentage "
        f"points; {NOTHING} where all clients share one model."
    ),
    OWN_TEST: (
        "accuracy for a client on its own test samples: mean ± standard deviation over the clients "
        "that have any."
    ),
    OWN_MIX: (
        "accuracy on the common samples, each class weighted by a client's training samples of it, "
        "which estimates what the client would see: mean ± standard deviation over clients."
    ),
    "Upload": "bytes that one participant sends in the last evaluated round (1 kB = 1000 B).",
    "Download": "bytes that one participant receives in that round.",
    "Round": "the last evaluated round of the runs, which the values are of.",
}
