"""What a page holds for its script, for tests that read it without a browser."""

import gzip
import json
from base64 import b64decode


def page_data(text: str) -> dict:
    """The data of a page, as its script unpacks them."""
    return json.loads(gzip.decompress(b64decode(text.partition('id="data">')[2].partition("</script>")[0])))
