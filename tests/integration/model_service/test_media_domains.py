"""An engine fetches nothing that a request names, unless its operator lists the host."""

from __future__ import annotations

import base64
import io
from typing import Any

import pytest
from PIL import Image

from model_service.settings import EngineSettings

OWN = "http://127.0.0.1:1/image.png"  # nobody listens there: asked for it, the answer would be a refused connection


def connector(**engine_args: Any) -> Any:
    """What reads images in an engine of these arguments."""
    from vllm.multimodal.media import MediaConnector

    from model_service.engine.arguments import parse_arguments

    arguments = parse_arguments(EngineSettings("folder", "model", engine_args=engine_args))
    return MediaConnector(
        allowed_local_media_path=arguments.allowed_local_media_path, allowed_media_domains=arguments.allowed_media_domains
    )


@pytest.mark.parametrize("url", [OWN, "http://169.254.169.254/latest/meta-data", "https://example.com/x.png", "http://none.example/x"])
def test_no_host_is_asked_for_an_image(url: str) -> None:
    with pytest.raises(ValueError, match="allowed domains"):
        connector().fetch_image(url)


def test_files_are_not_read() -> None:
    with pytest.raises(RuntimeError, match="local"):
        connector().fetch_image("file:///etc/hostname")


def test_an_image_in_the_request_is_read() -> None:
    written = io.BytesIO()
    Image.new("RGB", (3, 2)).save(written, "PNG")
    image = connector().fetch_image(f"data:image/png;base64,{base64.b64encode(written.getvalue()).decode()}")
    assert image.size == (3, 2)


def test_the_operator_may_list_hosts() -> None:
    with pytest.raises(Exception, match=r"(?i)connect|refused"):
        connector(allowed_media_domains=["127.0.0.1"]).fetch_image(OWN)
