"""Points that the keyboard reaches: links, or marks that tell what they are."""

from orrery.drawing.words import safe, safe_href


def reached(name: str, caption: str, shape: str, href: str = "", known_as: str = "") -> str:
    """A shape with its name, what is told when it is pointed at, and where it leads."""
    link = safe_href(href)
    tag, about = ("a", f' href="{link}"') if link else ("g", ' tabindex="0" role="img"')
    data = f' data-id="{safe(known_as)}"' if known_as else ""
    return f'<{tag}{about}{data} aria-label="{safe(name)}"><title>{safe(caption)}</title>{shape}</{tag}>'
