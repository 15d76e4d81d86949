"""Mutations of valid files, the same for the same seed; checksums are put right, so that what lies behind them is reached."""

import hashlib
import io
import random
import warnings
import zipfile
from collections.abc import Sequence

from fald_hpc import checkpoint

INTERESTING = [b"\0", b"\xff", b"\x7f", b"\x80", b"\0\0\0\0", b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0" * 8, b"\xff" * 8]


def mutated(content: bytes, words: Sequence[bytes], chance: random.Random) -> bytes:
    """Return a few random changes of a file; of an npz archive and of a checkpoint also with right checksums."""
    kind = chance.random()
    if content.startswith(b"PK") and kind < 0.7:
        return _archive(content, words, chance)
    if content.startswith(checkpoint.MAGIC) and kind < 0.8:
        body = checkpoint.MAGIC + _bytes(content[len(checkpoint.MAGIC) : -32], words, chance)
        return body + hashlib.sha256(body).digest()
    return _bytes(content, words, chance)


def _bytes(content: bytes, words: Sequence[bytes], chance: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(chance.choice([1, 1, 2, 4, 16])):
        place = chance.randrange(len(data) + 1)
        length = chance.choice([0, 1, 1, 4, 8, 64])
        what = chance.randrange(7)
        if what == 0 and data:
            data[place % len(data)] ^= 1 << chance.randrange(8)
        elif what == 1:
            data[place : place + length] = chance.choice(INTERESTING)
        elif what == 2 and words:
            data[place : place + length] = chance.choice(list(words))
        elif what == 3:
            del data[place : place + length]
        elif what == 4:
            data[place:place] = data[chance.randrange(len(data) + 1) :][:64]
        elif what == 5:
            data[place : place + length] = chance.randbytes(length)
        elif what == 6 and chance.random() < 0.2:
            del data[place:]
    return bytes(data)


def _archive(content: bytes, words: Sequence[bytes], chance: random.Random) -> bytes:
    """Return the archive with changed members."""
    buffer = io.BytesIO()
    try:
        with warnings.catch_warnings(), zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(buffer, "w") as new:
            warnings.simplefilter("ignore")  # one name twice is meant
            names = old.namelist()
            for name in names:
                data = old.read(name)
                if chance.random() < 1.5 / len(names):
                    data = _bytes(data, words, chance)
                    if chance.random() < 0.1:
                        name = chance.choice([name.removesuffix(".npy"), "y.npy", "covariance.npy", name + "\0", "é.npy"])
                method = chance.choice([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
                new.writestr(zipfile.ZipInfo(name), data, compress_type=method)
    except Exception:  # an archive that was damaged before: zipfile raises about ten kinds
        return _bytes(content, words, chance)
    return buffer.getvalue()
