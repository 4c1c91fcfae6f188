#!/usr/bin/env python3
"""What a machine can see in the code, the notebooks and the rendered pages.

    python .ci/check.py code           imports run downward, `import wbattn` is light, every public parameter has a word
    python .ci/check.py pages [FILE…]  titles, links, stored outputs and figures of the notebooks
    python .ci/check.py site FOLDER    what Quarto rendered: links, anchors, references, width of outputs, words for pictures,
                                       reach by keyboard, contrast, weight (.ci/audit.js sees what needs a browser)
    python -I .ci/check.py installed   what pip put into this environment: wbattn and nothing beside it

Prints each problem with its place; exits 1 if there is one.
"""
import ast, configparser, json, re, subprocess, sys, tokenize
from collections import Counter
from functools import cache
from pathlib import Path
from urllib.parse import unquote

root = Path(__file__).resolve().parent.parent
problems = []
def bad(where, what): problems.append(f'{where}: {what}')
def text(s): return s if isinstance(s, str) else ''.join(s or '')

# ---- code

heavy = {'fastai', 'timm', 'matplotlib', 'torchvision', 'sklearn', 'pandas'}

def imported(tree, package):
    "Modules that are imported, and names from them, with what is relative made absolute"
    for node in ast.walk(tree):
        if isinstance(node, ast.Import): yield from (a.name for a in node.names)
        if isinstance(node, ast.ImportFrom):
            up = package.split('.')[:len(package.split('.')) + 1 - node.level] if node.level else []
            base = '.'.join(up + [node.module] if node.module else up)
            yield from [base, *(f'{base}.{a.name}' for a in node.names)]

def public_functions(tree):
    "Public functions, and public methods and constructors of public classes, with their names"
    for n in tree.body:
        if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and n.name[0] != '_':
            if isinstance(n, ast.FunctionDef): yield n.name, n
            else: yield from ((f'{n.name}.{f.name}', f) for f in n.body if isinstance(f, ast.FunctionDef)
                              and (f.name == '__init__' or f.name[0] != '_'))

def check_docments(path, tree):
    with open(path, 'rb') as f: said = {t.start[0] for t in tokenize.tokenize(f.readline) if t.type == tokenize.COMMENT}
    for name, f in public_functions(tree):
        a = f.args
        for p in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg):
            if p is None or p.arg in ('self', 'cls'): continue
            if p.end_lineno not in said or f.body[0].lineno <= p.end_lineno: bad(path.relative_to(root), f'{name} says nothing of {p.arg}')

def loads(code, forbidden):
    "Does a fresh process load any of the `forbidden` modules with this code?"
    code = f'import sys\n{code}\nprint(*sorted({forbidden!r} & sys.modules.keys()))'
    r = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, cwd=root)
    if r.returncode or r.stdout.strip(): bad(code.split('\n')[1], f'loads {r.stdout.strip()} {r.stderr[-1000:]}')

def check_code():
    number, trees = {}, {}
    for path in sorted((root/'wbattn').rglob('*.py')):
        module = '.'.join(path.relative_to(root).with_suffix('').parts).removesuffix('.__init__')
        source = path.read_text(encoding='utf-8')
        made_by = re.search(r'File to edit: \S*?(\d+[a-z]?)_[^/\s]*\.ipynb', source[:2000])
        if made_by: number[module], trees[module] = made_by[1], (path, ast.parse(source))
        elif source.strip() and path.name != '_modidx.py' and path.parent.name != '_site': bad(path.relative_to(root), 'comes from no notebook')
    for module, (path, tree) in trees.items():
        package = module if path.name == '__init__.py' else module.rpartition('.')[0]
        for name in imported(tree, package):
            if name in number and name not in ('wbattn', module) and number[name] >= number[module]:
                bad(module, f'imports {name}, whose notebook has a higher number')
        check_docments(path, tree)
    if subprocess.run([sys.executable, '-m', 'ruff', 'check', '-q', '--select', 'F401', '--per-file-ignores', '__init__.py:F401', 'wbattn', '.ci'], cwd=root).returncode:
        bad('ruff', 'finds what is imported and not used')
    loads('import wbattn', heavy | {'torch'})
    loads('import ' + ', '.join(sorted(m for m, n in number.items() if n < '30')), heavy)
    print(f'{len(number)} modules')

# ---- notebooks

machine = re.compile(r'/(?:root|home|work|opt|tmp|Users|private|mnt)/|site-packages|ipykernel_\d')

def options(source):
    "The `#|` lines at the head of a cell: name → value"
    head = re.match(r'(?:#\|.*\n?)*', source)[0]
    return {k: v.strip().strip('"') for k, v in re.findall(r'(?m)^#\|\s*([\w-]+):?[ \t]*(.*)$', head)}

def listed(node):
    "Every page named in a sidebar"
    if isinstance(node, str): return [node]
    if isinstance(node, list): return [h for o in node for h in listed(o)]
    return listed(node.get('contents') or [])

def check_markdown(where, source):
    source = re.sub(r'(?ms)^```.*?^```|`[^`\n]*`', '', source)
    for target in re.findall(r'\]\(([^)\s]+)\)', source):
        if not re.match(r'\w+:|#', target) and not (root/'nbs'/unquote(target.split('#')[0])).is_file(): bad(where, f'link to {target}: no such file')

def check_outputs(where, source, outputs):
    told = options(source)
    for o in outputs:
        data = o.get('data', {})
        said = text(o.get('text')) + text(data.get('text/plain')) + text(data.get('text/html'))
        check_markdown(where, text(data.get('text/markdown')))
        if o['output_type'] == 'error' or 'Traceback (most recent call' in said: bad(where, 'a stored error')
        if o.get('name') == 'stderr': bad(where, f'stored stderr: {said[:80]!r}')
        if m := machine.search(said): bad(where, f'a path of a machine: {said[max(0, m.start() - 20):m.end() + 30]!r}')
        if (m := re.match(r'\s*usage: (wbattn_\w+)', said)) and said.split() != help_of(m[1]).split(): bad(where, f'{m[1]} --help says something else today')
    if told.get('label', '').startswith('fig-') and not {'fig-cap', 'fig-alt'} <= told.keys(): bad(where, 'a figure without fig-cap and fig-alt')
    pictured = any('image/' in k or '<svg' in text(v) for o in outputs for k, v in o.get('data', {}).items())     # or a slider's frames
    if told.get('label', '').startswith('fig-') and not pictured: bad(where, 'no stored figure: run the notebook')

@cache
def help_of(command):
    return subprocess.run([Path(sys.executable).parent/command, '--help'], cwd=root, capture_output=True, text=True).stdout

install = """#| hide
try:
    import wbattn
except ImportError:       # on Colab, say
    %pip install -q git+https://github.com/wbattn/wbattn"""

def check_travels(name, sources):
    "Does a notebook run alone: does it install wbattn, and fetch the files beside it that it reads?"
    if sources[0] != install: bad(name, f'the first cell must install wbattn where it is missing:\n{install}')
    fetched = ' '.join(s for s in sources if 'fetch_files(' in s)
    for file in set(re.findall(r"""['"]((?:records|site)/[\w./-]+\.(?:csv|json|js|safetensors))['"]""", ' '.join(sources))):
        if file not in fetched: bad(name, f'fetch_files does not name {file}')

def check_pages(*given):
    import yaml
    notebooks = sorted((root/'nbs').glob('*.ipynb'))
    stems = Counter(re.sub(r'^\d+[a-z]?_', '', p.stem) for p in notebooks)
    for stem, n in stems.items():
        if n > 1: bad(stem, f'{n} notebooks would be the page {stem}.html')
    for path in map(Path, given) if given else notebooks:
        cells = json.loads(path.read_text(encoding='utf-8'))['cells']
        title = next(text(c['source']) for c in cells if c['cell_type'] == 'markdown')
        if not re.fullmatch(r'# \S.*\s+> \S.*\s*', title): bad(path.name, 'the first Markdown cell must be `# Title` and one line `> description`, nothing else')
        check_travels(path.name, [text(c['source']) for c in cells if c['cell_type'] == 'code'])
        for c in cells:
            where, source = f'{path.name} {c["id"]}', text(c['source'])
            if re.search(r'^(<{7}|>{7}) ', source, re.M): bad(where, 'holds two sides of a merge')
            if c['cell_type'] == 'markdown': check_markdown(where, source)
            else: check_outputs(where, source, c.get('outputs', []))
    names = {p.name for p in notebooks}
    side = listed(yaml.safe_load((root/'nbs/sidebar.yml').read_text())['website']['sidebar'])
    for h in set(side) - names: bad('sidebar.yml', f'{h} does not exist')
    for h in names - set(side): bad('sidebar.yml', f'{h} is missing')
    print(f'{len(notebooks)} notebooks, {help_of.cache_info().currsize} commands asked for their help')

# ---- the rendered site

column = 108   # characters of an output that fit beside sidebar and contents

def check_links(page, soup, ids, host):
    for a in soup.find_all('a', href=True):
        target, _, anchor = a['href'].removeprefix(host).removeprefix('./').partition('#')
        if re.match(r'\w+:|//', target): continue
        target, anchor = unquote(target) or page, unquote(anchor)
        if target.endswith('.html') and target not in ids: bad(page, f'link to {target}: no such page')
        elif anchor and anchor not in ids.get(target, [anchor]): bad(page, f'link to {target}#{anchor}: no such anchor')

def check_page(page, main):
    for s in main.find_all(string=re.compile(r'\]\(https?:|\?@\w')):
        if not s.find_parent(['script', 'code', 'pre']): bad(page, f'raw Markdown: {s.strip()[:80]!r}')
    for o in main.select('.cell-output-stderr, .cell-output-error'): bad(page, f'stderr: {o.get_text().strip()[:80]!r}')
    for pre in main.select('.cell-output pre:not(.sourceCode)'):
        line = max(pre.get_text().split('\n'), key=len)
        if len(line) > column: bad(page, f'an output of {len(line)} characters: {line[:50]!r} …')
    for img in main.find_all('img'):
        if not img.get('alt'): bad(page, f'a picture without words: {img.get("src", "")[:60]}')
    for svg in main.select('svg.plot'):
        if not svg.get('aria-label'): bad(page, f'a figure without words: {svg.get_text()[:60]!r}')

def check_reach(page, soup):
    "By keyboard and by ear: a link skips to the text, and whatever can be pressed has a name."
    skip = soup.select_one('a.skip-link[href]')
    if skip is None or not soup.find(id=skip['href'].lstrip('#')): bad(page, 'no link skips to the text')
    for e in soup.select('main a[href], main button'):
        named = e.get_text(strip=True) or e.get('aria-label') or e.get('title') or e.find('img', alt=True) or 'anchorjs-link' in e.get('class', [])
        if not named and e.get('aria-hidden') != 'true': bad(page, f'nothing to read out: {str(e)[:80]}')
    for e in soup.select('[tabindex]'):
        if int(e['tabindex']) > 0: bad(page, f'tabindex {e["tabindex"]} changes the order of stops')

def fetched(page, soup, folder):
    "The files of its own site that a page fetches: style sheets, scripts and what they import or fetch, pictures, the font of icons."
    urls = [e.get('src') or e.get('href') for e in soup.select('script[src], link[rel=stylesheet][href], link[rel=icon][href], main img[src]')]
    for script in soup.select('script[type=module]'): urls += re.findall(r'["\'](?:\./)?((?:site|records)/[\w./-]+)["\']', script.get_text())
    files = {(folder/u.split('?')[0]).resolve() for u in urls if not re.match(r'\w+:|//', u)}
    if any(f.name in ('draw.js', 'figures.js') for f in files): files |= {(folder/'site'/name).resolve() for name in ('base.js', 'palette.js')}
    files |= {f for sheet in files if sheet.name == 'bootstrap-icons.css' for f in sheet.parent.glob('*.woff')}
    for f in files:
        if not f.is_file(): bad(page, f'fetches {f.name}, which is not there')
    return {f for f in files if f.is_file()}

lightest = {'index.html': 1000}     # kB a page may weigh, uncompressed and beside MathJax; any other:
heaviest = 2500

def check_weight(page, soup, folder):
    weight = ((folder/page).stat().st_size + sum(f.stat().st_size for f in fetched(page, soup, folder)))/1000
    if weight > lightest.get(page, heaviest): bad(page, f'weighs {weight:.0f} kB, more than {lightest.get(page, heaviest)}')
    return weight

def contrast(a, b):
    "WCAG's ratio of two colours such as #0a6a55: 1 to 21; letters need 4.5"
    def luminance(colour):
        parts = [int(colour[i:i + 2], 16)/255 for i in (1, 3, 5)]
        return sum(w*(c/12.92 if c <= .04045 else ((c + .055)/1.055)**2.4) for w, c in zip((.2126, .7152, .0722), parts))
    low, high = sorted((luminance(a), luminance(b)))
    return (high + .05)/(low + .05)

def check_contrast():
    "Letters of both themes on their grounds (page, code, bar), and the verdicts' badges"
    for theme, page in dict(light='#ffffff', dark='#222222').items():
        said = dict(re.findall(r'\$([\w-]+): (#[0-9a-f]{6});', (root/f'nbs/site/theme_{theme}.scss').read_text(encoding='utf-8')))
        pairs = [(said['link-color'], page), (said['link-color'], said['code-bg']), (said['code-color'], said['code-bg']), (said['navbar-hl'], said['navbar-bg'])]
        for letters, ground in pairs:
            if contrast(letters, ground) < 4.5: bad(f'theme_{theme}.scss', f'{letters} on {ground} has a contrast of {contrast(letters, ground):.1f}, less than 4.5')
    for name, ground in re.findall(r'\.verdict(\S*) \{[^}]*background: (#[0-9a-f]{6})', (root/'nbs/site/styles.css').read_text(encoding='utf-8')):
        if contrast('#ffffff', ground) < 4.5: bad('styles.css', f'white on {ground} (.verdict{name}) has a contrast below 4.5')

def check_next(page, soup, main):
    pager, said = soup.select_one('.nav-page-next a[href]'), re.findall(r'Next:\s*<a[^>]*href="([^"#]+)', str(main))
    if said and (pager is None or said[-1].removeprefix('./') != pager['href'].removeprefix('./')): bad(page, f'"Next" is {said[-1]}, in the pager it is not')

def check_site(folder):
    from bs4 import BeautifulSoup
    settings = configparser.ConfigParser()
    settings.read(root/'settings.ini', encoding='utf-8')
    host = settings['DEFAULT']['doc_host'] + settings['DEFAULT']['doc_baseurl'] + '/'
    pages = {p.name: BeautifulSoup(p.read_text(encoding='utf-8'), 'html.parser') for p in sorted(Path(folder).glob('*.html'))}
    pages = {name: soup for name, soup in pages.items() if soup.select_one('main')}
    if not pages: bad(folder, 'holds no page')
    ids = {name: {t['id'] for t in soup.find_all(id=True)} for name, soup in pages.items()}
    for name, soup in pages.items():
        main = soup.select_one('main')
        check_links(name, soup, ids, host)
        check_page(name, main)
        check_next(name, soup, main)
        check_reach(name, soup)
    check_contrast()
    weights = {name: check_weight(name, soup, Path(folder)) for name, soup in pages.items()}
    largest = max(weights, key=weights.get)
    print(f'{len(pages)} pages; Home weighs {weights.get("index.html", 0):.0f} kB, the heaviest, {largest}, {weights[largest]:.0f}')

# ---- the installed package

def check_installed():
    from importlib.metadata import distribution
    wbattn = distribution('wbattn')
    for file in wbattn.files:
        if file.parts[0] not in ('wbattn', '..') and not file.parts[0].endswith('.dist-info'): bad(file, 'is installed beside the package')
    description = wbattn.metadata.get_payload() or wbattn.metadata['Description'] or ''
    print(f"{wbattn.metadata['Name']} {wbattn.version}, {len(wbattn.files)} files, README of {len(description)} characters")

if __name__ == '__main__':
    {'code': check_code, 'pages': check_pages, 'site': check_site, 'installed': check_installed}[sys.argv[1]](*sys.argv[2:])
    if problems: sys.exit('\n'.join([*dict.fromkeys(problems), f'{len(problems)} problems']))
