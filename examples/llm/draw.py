"""Pictures of results: lines or bars, as SVG."""

import html

WIDTH, HEIGHT, LEFT, BOTTOM, TOP = 640, 300, 56, 40, 30
COLOURS = ["#1f6fb2", "#d1495b", "#5a8f29", "#8a5fbf"]


def _page(title: str, body: list[str]) -> str:
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">',
                      f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
                      f'<text x="{LEFT}" y="18" font-weight="bold">{html.escape(title)}</text>', *body, "</svg>\n"])


def _axis(most: float, unit: str) -> list[str]:
    """Five lines across, with their values."""
    body = []
    for fifth in range(6):
        y = HEIGHT - BOTTOM - fifth / 5 * (HEIGHT - BOTTOM - TOP)
        body += [f'<line x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - 10}" y2="{y:.1f}" stroke="#ddd"/>',
                 f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{most * fifth / 5:.3g}</text>']
    return [*body, f'<text x="6" y="{TOP - 2}">{html.escape(unit)}</text>']


def lines(title: str, unit: str, along: str, curves: dict[str, list[float]]) -> str:
    """Each curve a point a step, all over the same steps. The first is the widest: those that are alike lie upon it."""
    most = max(max(values) for values in curves.values())
    body = _axis(most, unit)
    for index, (name, values) in enumerate(curves.items()):
        step = (WIDTH - LEFT - 10) / max(1, len(values) - 1)
        points = " ".join(f"{LEFT + at * step:.1f},{HEIGHT - BOTTOM - value / most * (HEIGHT - BOTTOM - TOP):.1f}"
                          for at, value in enumerate(values))
        width = 1 + 2.5 * (len(curves) - 1 - index)
        body += [f'<polyline points="{points}" fill="none" stroke="{COLOURS[index % 4]}" stroke-width="{width}"/>',
                 f'<text x="{WIDTH - 200}" y="{TOP + 20 + 16 * index}" fill="{COLOURS[index % 4]}">{html.escape(name)}</text>']
    return _page(title, [*body, f'<text x="{WIDTH / 2}" y="{HEIGHT - 10}">{html.escape(along)}</text>'])


def bars(title: str, unit: str, rows: dict[str, dict[str, float]]) -> str:
    """rows: {group: {name: value}}; the same names in each group."""
    most = max(max(row.values()) for row in rows.values())
    body = _axis(most, unit)
    room = (WIDTH - LEFT - 10) / len(rows)
    for place, (group, row) in enumerate(rows.items()):
        wide = room * 0.7 / len(row)
        for index, (name, value) in enumerate(row.items()):
            tall = value / most * (HEIGHT - BOTTOM - TOP)
            x, y = LEFT + place * room + room * 0.15 + index * wide, HEIGHT - BOTTOM - tall
            body += [f'<rect x="{x:.1f}" y="{y:.1f}" width="{wide * 0.9:.1f}" height="{tall:.1f}" fill="{COLOURS[index]}"/>',
                     f'<text x="{x + wide * 0.45:.1f}" y="{y - 3:.1f}" text-anchor="middle">{value:.0f}</text>']
            if place == 0:
                body.append(f'<text x="{WIDTH - 200}" y="{TOP + 16 * index}" fill="{COLOURS[index]}">{html.escape(name)}</text>')
        body.append(f'<text x="{LEFT + (place + 0.5) * room:.1f}" y="{HEIGHT - 20}" text-anchor="middle">{html.escape(group)}</text>')
    return _page(title, body)
