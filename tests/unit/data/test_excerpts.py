from fedstage.data.excerpts import excerpt, quoted


def test_a_name_of_50_characters_is_shown_whole():
    assert excerpt("é" * 50) == "é" * 50
    assert excerpt("é" * 51) == "é" * 49 + "\u2026"
    assert quoted("b" * 51) == "'" + "b" * 49 + "\u2026'"
