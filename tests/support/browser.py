"""Ears for a page in a browser."""


def listen(tab) -> list[str]:
    """What a page complains about, and what it asks of the network, from now on."""
    noise = []
    tab.on("console", lambda message: noise.append(message.text))
    tab.on("pageerror", lambda error: noise.append(str(error)))
    tab.on(
        "request",
        lambda r: noise.append(r.url) if not r.url.startswith(("file:", "data:", "blob:")) else None,
    )
    return noise
