"""What can be known about the rendered website: run it after `quarto render`, with the folder of pages as argument.

    python .ci/check_html.py _proc/_docs            exit 1 if there is a problem
    python .ci/check_html.py _proc/_docs --heights  also the estimated height of every page

No raw Markdown, no broken reference or anchor, no link to a private name, no stderr, no output wider than its column, a
text for every image, no empty section, no inherited boilerplate, no script from elsewhere but MathJax where there is
mathematics, "Next" as the pager says it, and no page that never ends. Heights and widths are estimates: lines of text and
pixels of pictures in a column of COLUMN characters; `shot` or a browser tells the truth.
"""
import base64, html, json, re, struct, sys
from collections import Counter
from pathlib import Path
from urllib.parse import unquote, urlsplit

import yaml
from bs4 import BeautifulSoup, Comment, NavigableString

root = Path(__file__).resolve().parent.parent
COLUMN = 108            # characters of code that fit beside sidebar and contents at 1400 px
TABLE = 112             # characters of a table's text there, its cells not broken
TALLEST = 20_000        # pixels
settings = re.search(r'(?m)^user = (\S+)', (root/'settings.ini').read_text())[1]
home = f'https://{settings}.github.io/wbattn/'
boilerplate = ('Define the computation performed at every call', 'Call self as a function', 'Initialize self.  See help',
               'Initialize internal Module state', 'Base class for all neural network modules',
               'Return the canonical string representation')
problems, heights = [], {}

def bad(page, cell, what): problems.append((page, cell, what))

def cell_of(tag):
    "The id of the notebook's cell that a tag comes from, or of its section"
    for p in [tag, *tag.parents]:
        if p.name == 'div' and 'cell' in (p.get('class') or []): return p.get('id') or '?'
    section = tag.find_parent('section')
    return '#' + section['id'] if section and section.get('id') else '?'

def cut(s, n=70): return (s[:n] + ' …') if len(s) > n else s

def spoken(main):
    "The texts a reader sees as prose: no code, no mathematics"
    for s in main.find_all(string=True):
        if isinstance(s, Comment) or not s.strip(): continue
        if not any(p.name in ('script', 'style') or 'math' in (p.get('class') or []) for p in s.parents): yield s

def check_text(page, main):
    for s in spoken(main):
        code = s.find_parent(['pre', 'code'])
        if m := re.search(r'\]\(https?:.{0,30}', s): bad(page, cell_of(s.parent), f'raw Markdown: …{cut(s[max(0, m.start()-40):m.end()])}')
        if not code and (m := re.search(r'\?@[\w-]+', s)): bad(page, cell_of(s.parent), f'unresolved reference {m[0]}')
        for b in boilerplate:
            if not code and b in s: bad(page, cell_of(s.parent), f'inherited docstring: {b}')
    for pre in main.find_all('pre'):
        if m := re.search(r'\w+:NoneType=None', pre.get_text()): bad(page, cell_of(pre), f'signature with {m[0]}')
    for strong in main.select('.quarto-unresolved-ref'): bad(page, cell_of(strong), f'unresolved reference {strong.get_text()}')

def check_links(page, soup, ids):
    for a in soup.find_all('a', href=True):
        href = a['href']
        if href.startswith(home): href = href[len(home):] or 'index.html'
        if re.match(r'(?i)[a-z][a-z0-9+.-]*:|//', href): continue
        url = urlsplit(href)
        target = unquote(url.path).removeprefix('./').removeprefix('/') or page
        anchor = unquote(url.fragment)
        if re.search(r'(^|\.)_[a-z]', anchor): bad(page, cell_of(a), f'link to a private name: {target}#{anchor}')
        elif target.endswith('.html') and target not in ids: bad(page, cell_of(a), f'link to {target}: no such page')
        elif anchor and target in ids and anchor not in ids[target]: bad(page, cell_of(a), f'link to {target}#{anchor}: no such anchor')

def widest(table):
    "Characters of a table's widest possible line: the longest unbroken text of every column"
    columns = Counter()
    for row in table.find_all('tr'):
        for i, c in enumerate(row.find_all(['td', 'th'])):
            t = ' '.join(c.get_text().split())
            whole = 'dataframe' in (table.get('class') or [])
            columns[i] = max(columns[i], len(t) if whole else max(map(len, t.split()), default=0))
    return sum(columns.values()) + 2*len(columns)

def check_outputs(page, main):
    for o in main.select('.cell-output-stderr'): bad(page, cell_of(o), f'stderr: {cut(" ".join(o.get_text().split()))}')
    for o in main.select('.cell-output-error'): bad(page, cell_of(o), f'error: {cut(" ".join(o.get_text().split()))}')
    for pre in main.select('.cell-output pre'):
        if pre.find_parent(class_='cell-output-stderr'): continue
        line = max(pre.get_text().split('\n'), key=len)
        if len(line) > COLUMN: bad(page, cell_of(pre), f'output of {len(line)} characters: {cut(line, 50)}')
    for t in main.select('.cell-output table'):
        if (n := widest(t)) > TABLE: bad(page, cell_of(t), f'table about {n} characters wide')
    for img in main.find_all('img'):
        if not (img.get('alt') or '').strip(): bad(page, cell_of(img), 'image without alt text')
    for svg in main.select('figure svg, .cell-output svg'):
        if not svg.get('aria-label') and not svg.find('title'): bad(page, cell_of(svg), 'svg without a title')

def check_sections(page, main):
    for s in main.find_all('section', id=True):
        rest = [c for c in s.children if not (getattr(c, 'name', None) or '').startswith('h') or c.name == 'hr']
        said = ''.join(c.get_text() for c in rest if not isinstance(c, (Comment, NavigableString))).strip()
        if not said and not s.find(['img', 'svg', 'video']): bad(page, '#' + s['id'], f'empty section {s["id"]!r}')

def check_scripts(page, soup):
    has_math = bool(soup.select('.math, mjx-container'))
    for s in soup.find_all('script', src=True) + soup.find_all('link', rel='stylesheet', href=True):
        src = s.get('src') or s.get('href')
        if not re.match(r'(https?:)?//', src): continue
        if re.search(r'mathjax|polyfill', src) and has_math: continue
        bad(page, '?', f'loads {src}')
    for s in soup.find_all('script'):
        if (m := re.search(r'https?://[^"\']*(?:cdn|unpkg|jsdelivr)[^"\']*', s.string or '')) and not (has_math and 'mathjax' in m[0].lower()):
            bad(page, cell_of(s), f'loads {cut(m[0])}')

def check_next(page, soup, main):
    pager = soup.select_one('.nav-page-next a[href]')
    said = re.findall(r'(?s)Next:\s*(?:<em>)?<a[^>]*href="([^"]+)"', str(main))
    if not said: return
    tidy = lambda h: h.removeprefix('./').split('#')[0]
    if pager is None or tidy(said[-1]) != tidy(pager['href']):
        bad(page, '#next', f'"Next" is {tidy(said[-1])}, the pager says {tidy(pager["href"]) if pager else "nothing"}')

def picture(img, docs, page):
    "Height in px at a width of at most 800"
    src = img.get('src', '')
    f = docs/unquote(src)
    if not src.endswith('.png') or not f.is_file(): return 300
    w, h = struct.unpack('>II', f.read_bytes()[16:24])
    shown = float(m[0]) if (m := re.match(r'\d+', str(img.get('width') or ''))) else w/2
    return h*min(shown, 800)/w

def height(main, docs, page):
    "An estimate of the page's height at 1400 px, folded cells closed"
    total = 350
    for d in main.find_all('details'):
        if d.decomposed: continue               # inside another one
        if not d.has_attr('open'): total += 30; d.decompose()
    for pre in main.find_all('pre'):
        total += 34 + 22.4*sum(max(1, -(-len(l) // 95)) for l in pre.get_text().rstrip('\n').split('\n'))
    for t in main.find_all('table'): total += 40*len(t.find_all('tr')) + 20
    for img in main.find_all('img'): total += picture(img, docs, page) + 40
    for h in main.find_all(re.compile('h[1-6]$')): total += 60
    for p in main.find_all(['p', 'li', 'figcaption']):
        if not p.find_parent(['table', 'pre']) and not p.find(['p', 'img']): total += 27*(-(-len(p.get_text()) // 98)) + 16
    total += 75*len(main.select('span.math.display'))
    return round(total)

def read(docs):
    pages = {}
    for f in sorted(docs.rglob('*.html')):
        soup = BeautifulSoup(f.read_text(encoding='utf-8'), 'html.parser')
        if soup.select_one('main'): pages[f.relative_to(docs).as_posix()] = soup
    return pages

def main():
    docs = Path(sys.argv[1])
    pages = read(docs)
    if not pages: print(f'no pages in {docs}'); sys.exit(1)
    ids = {p: {t['id'] for t in s.find_all(id=True)} | {t['name'] for t in s.find_all('a', attrs={'name': True})} for p, s in pages.items()}
    for page, soup in pages.items():
        body = soup.select_one('main')
        check_text(page, body); check_links(page, soup, ids); check_outputs(page, body); check_sections(page, body)
        check_scripts(page, soup); check_next(page, soup, body)
        heights[page] = height(body, docs, page)
        if heights[page] > TALLEST: bad(page, '?', f'about {heights[page]:,} px tall')
    tall = sorted(heights.values())
    print(f'{len(pages)} pages rendered; about {tall[len(tall)//2]:,} px in the middle, {tall[-1]:,} px the tallest')
    if '--heights' in sys.argv: print(*(f'{h:8,} px  {p}' for p, h in sorted(heights.items(), key=lambda o: -o[1])), sep='\n')
    said = list(dict.fromkeys(f'{p} | {c} | {w}' for p, c, w in problems))
    if said: print(*said, f'{len(said)} problem(s) on {len({p for p, *_ in problems})} rendered pages', sep='\n')
    sys.exit(bool(said))

if __name__ == '__main__': main()
