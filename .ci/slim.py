#!/usr/bin/env python3
"""Leave out of a rendered site what none of its pages uses: rules of the theme's style sheets, icons of its font, and
indents.

    python .ci/slim.py FOLDER

A rule stays if every class and id that it names occurs somewhere in a page or a script, a custom property of Quarto's
export of its Sass variables never does. Run it once, on the whole site.
"""
import re, sys
from pathlib import Path

from fontTools import subset
from fontTools.ttLib import TTFont

def blocks(css):
    "Pairs of a selector (or at-rule) and its body, at the outermost level of a style sheet; statements have the body None"
    start = depth = 0
    head = ''
    for m in re.finditer(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])*\'|[{};]', css):
        if m[0] == '{':
            if depth == 0: head, start = css[start:m.start()], m.end()
            depth += 1
        elif m[0] == '}':
            depth -= 1
            if depth == 0:
                yield head.strip(), css[start:m.start()]
                start = m.end()
        elif m[0] == ';' and depth == 0:
            yield css[start:m.start()].strip(), None
            start = m.end()

def slimmed(css, words):
    "A style sheet without the selectors that name a class or an id which no page has"
    def used(selector):
        without_not = re.sub(r':not\([^()]*\)', '', selector)
        return all(name in words for name in re.findall(r'[.#](-?[A-Za-z_][\w-]*)', re.sub(r'\[[^\]]*\]', '', without_not)))
    kept = []
    for head, body in blocks(css):
        if body is None: kept.append(head + ';')
        elif head.startswith(('@media', '@supports')):
            inner = slimmed(body, words)
            if inner: kept.append(f'{head}{{{inner}}}')
        elif head.startswith('@'): kept.append(f'{head}{{{body}}}')
        else:
            selectors = [s for s in re.split(r',(?![^()]*\))', head) if used(s)]
            if selectors: kept.append(f'{",".join(selectors)}{{{body}}}')
    return ''.join(kept)

def without_indents(html):
    "A page without the space that lines begin with, but where it counts: in code, scripts and text fields"
    html = re.sub(r'(?s)<script>.*?</script>', lambda m: re.sub(r'(?m)^ *(//.*)?\n?', '', m[0]), html)   # those of page_end.html
    parts = re.split(r'(?s)(<(pre|script|style|textarea)\b.*?</\2>)', html)
    outside = parts[::3]
    inside = parts[1::3] + ['']
    return ''.join(re.sub(r'\s*\n\s*', '\n', text) + kept for text, kept in zip(outside, inside))

def main(folder):
    for path in folder.glob('*.html'):
        path.write_text(without_indents(path.read_text(encoding='utf-8')), encoding='utf-8')
    texts = [p.read_text(encoding='utf-8') for p in [*folder.glob('*.html'), *folder.rglob('*.js')]]
    words = {word for text in texts for word in re.findall(r'[A-Za-z_][\w-]*', text)}
    before = after = 0
    for path in folder.glob('site_libs/**/*.css'):
        css = re.sub(r'(?s)/\*.*?\*/|--quarto-scss-export-[^;}]*;?', '', path.read_text(encoding='utf-8'))
        before += path.stat().st_size
        path.write_text(slimmed(css, words), encoding='utf-8')
        after += path.stat().st_size
    icons = folder/'site_libs/bootstrap/bootstrap-icons.css'
    for path in folder.glob('site_libs/bootstrap/*.woff'):
        sheets = [p.read_text(encoding='utf-8') for p in folder.glob('site_libs/**/*.css')]
        codes = {int(code, 16) for sheet in sheets for code in re.findall(r'content:\s*"\\([0-9a-f]{4})"', sheet)}
        before += path.stat().st_size
        font = TTFont(path)
        subsetter = subset.Subsetter()
        subsetter.populate(unicodes=codes)
        subsetter.subset(font)
        font.save(path)
        after += path.stat().st_size
    print(f'style sheets and icons: {before/1000:.0f} kB, {after/1000:.0f} used')

if __name__ == '__main__': main(Path(sys.argv[1]))
