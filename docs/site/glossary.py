"""The page of the glossary, written from the terms of the product."""

from tracediff.present.terms import sections

INTRODUCTION = """\
# Glossary

The same terms are used on the command line, in JSON, in Python and in the documentation. Terms of PyTorch, CUDA and
Perfetto (kernel, stream, launch, operator, annotation) have their usual meaning.
"""


def glossary() -> str:
    """The whole page."""
    pages = [INTRODUCTION]
    for title, terms in sections().items():
        rows = "".join(f"| {names} | {text} |\n" for names, text in terms.items())
        pages.append(f"\n## {title}\n\n| term | means |\n|---|---|\n{rows}")
    return "".join(pages)
