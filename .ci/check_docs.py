"""What can be known about the website without Quarto: run it after nbdev_proc_nbs, from anywhere in the project.

Every page has a title and a plain description; every link, image, cross-reference and citation resolves; the sidebar
and the notebooks name each other; the outputs hold no traceback, no path of somebody's machine and no line beyond the column,
pictures have words, "Next" is what the pager says; directives stand where nbdev looks for them. Prints each problem with its file and cell, and exits 1 if there is one.
"""
import ast, re, sys
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import yaml
from execnb.nbio import read_nb
from nbdev.config import get_config
from nbdev.doclinks import _nbpath2html, nbglob
from nbdev.frontmatter import FrontmatterProc
from nbdev.process import NBProcessor

sys.path.insert(0, str(Path(__file__).resolve().parent))
from readme import bibliography

cfg = get_config()
nbs, root = cfg.nbs_path.resolve(), cfg.config_path.resolve()
problems, notes, counts = [], [], Counter()
def bad(where, what): problems.append(f'{where}: {what}')

crossref = 'fig|tbl|eq|sec|lst|thm|lem|cor|prp|cnj|def|exm|exr|sol|rem|alg|nte|tip|wrn|imp|cau'
nbdev_flags = {'default_exp', 'export', 'exporti', 'exports', 'exec_doc', 'hide', 'hide_line', 'filter_stream'} | set(cfg.tst_flags.split())
quarto_options = set('''eval echo output include warning error label code-fold code-summary code-overflow code-line-numbers
    fig-cap fig-subcap fig-alt fig-link fig-align fig-width fig-height fig-env fig-pos fig-scap layout layout-ncol layout-nrow
    tbl-cap tbl-subcap tbl-colwidths lst-cap lst-label classes panel column cap-location fig-cap-location tbl-cap-location
    fig-column tbl-column tags id'''.split())
machine = re.compile(r'/(?:root|home|work|opt|tmp|Users|private|mnt)/|[A-Z]:\\\\?Users|site-packages|ipykernel_\d')
max_png = 100_000
column = 108   # characters that fit beside sidebar and contents

def text(s): return s if isinstance(s, str) else ''.join(s or '')

def prose(s):
    "Markdown without code fences, inline code, comments; equations apart."
    s = re.sub(r'(?ms)^(```+|~~~+).*?^\1[ \t]*$', '', s)
    s = re.sub(r'(?s)<!--.*?-->', '', s)
    s = re.sub(r'(`+)(?!`).+?(?<!`)\1(?!`)', '', s)
    return s

def no_math(s): return re.sub(r'(?<![\\$])\$(?=\S)[^$\n]*?(?<=\S)\$(?!\d)', '', re.sub(r'(?s)\$\$.*?\$\$', '', s))

def slug(heading):
    "Pandoc's automatic identifier of a heading."
    s = re.sub(r'!?\[([^\]]*)\]\([^)]*\)', r'\1', heading)
    s = re.sub(r'[`*$\\{}]', '', s)
    s = re.sub(r'[^\w\s.-]', '', s).strip().lower()
    return re.sub(r'^[^a-z]+', '', re.sub(r'\s+', '-', s)) or 'section'

class Page:
    def __init__(self, path):
        self.path, self.name = path, path.relative_to(nbs).as_posix()
        if path.suffix == '.ipynb':
            nb = read_nb(path)
            self.cells = [(f'{self.name}, cell {i}', c.cell_type, text(c.get('source')), c) for i, c in enumerate(nb.cells)]
            self.meta = getattr(NBProcessor(path, procs=FrontmatterProc, process=True).nb, 'frontmatter_', {})
        else:
            src = path.read_text(encoding='utf-8')
            m = re.match(r'(?s)---\s*\n(.*?)\n---\s*\n', src)
            self.meta = yaml.safe_load(m[1]) if m else {}
            self.cells = [(self.name, 'markdown', src[m.end():] if m else src, {})]
        self.html = _nbpath2html(Path(self.name)).as_posix()
        self.documents = any(k == 'code' and re.search(r'(?m)^#\|\s*(exports?|exec_doc)\b|^show_doc\(', s) for _, k, s, _ in self.cells)
        self.labels, self.anchors, used = Counter(), set(), Counter()
        for where, kind, src, cell in self.cells:
            if kind == 'markdown':
                p = prose(src)
                ids = re.findall(r'\{[^{}\n]*?#([\w:.-]+)[^{}\n]*\}', p) + re.findall(r'\bid="([^"]+)"', p)
                self.labels.update(i for i in ids if re.match(rf'(?:{crossref})-', i))
                self.anchors.update(ids)
                fenced = re.sub(r'(?ms)^(```+|~~~+).*?^\1[ \t]*$', '', src)
                for h in re.findall(r'(?m)^#{1,6}\s+(.*?)\s*#*\s*$', fenced):
                    if re.search(r'\{[^{}]*#[\w:.-]+[^{}]*\}\s*$', h): continue
                    s = slug(re.sub(r'\s*\{[^{}]*\}\s*$', '', h)); n = used[s]; used[s] += 1
                    self.anchors.add(f'{s}-{n}' if n else s)
            elif kind == 'code':
                for k, v in leading(src).items():
                    if k == 'label': self.labels[v] += 1; self.anchors.add(v)
                if re.search(r'(?m)^#\|\s*exports?\b', src) or 'show_doc(' in src:  # nbdev gives each documented name an anchor
                    owner = None
                    for m in re.finditer(r'(?m)^(\s*)(?:class|def)\s+(\w+)', src):
                        if not m[1]: owner = m[2]; self.anchors.add(owner.lower())
                        elif owner: self.anchors.add(f'{owner}.{m[2]}'.lower())
                    self.anchors.update(n.lower() for n in re.findall(r'show_doc\(\s*([\w.]+)', src))

def leading(src):
    "The `#|` lines at the head of a code cell as a dict."
    res = {}
    for line in src.split('\n'):
        m = re.match(r'\s*#\s*\|\s*([\w-]+)\s*:?\s*(.*?)\s*$', line)
        if m: res[m[1]] = m[2].strip('"\'')
        elif line.strip() and not line.lstrip().startswith('%%'): break
    return res

def check_title(p):
    title, desc = str(p.meta.get('title') or '').strip(), str(p.meta.get('description') or '').strip()
    if not title: bad(p.name, 'has no title (a markdown cell with `# Title`)')
    if not desc: bad(p.name, 'has no description (one line `> …` in the cell of the title)')
    if re.search(r'[$\\]', desc): bad(p.name, f'the description is not plain text (it becomes metadata and a docstring): {desc}')
    if p.path.suffix != '.ipynb': return
    for where, kind, src, cell in p.cells:
        if kind != 'markdown' or not re.search(r'(?m)^#\s+\S', src): continue
        # nbdev turns this whole cell into metadata: any other line of it would vanish from the page
        rest = [l for l in src.split('\n') if l.strip() and not re.match(r'#\s|>\s|-\s+\S.*:.*\S', l)]
        if rest or len(re.findall(r'(?m)^>\s', src)) > 1: bad(where, f'beside title and one-line description the title cell holds text that nbdev drops: {(rest or [src])[0][:60]!r}')
        break

def check_target(p, where, target, pages):
    target = unquote(target.strip().strip('<>'))
    if re.match(r'(?i)(https?|mailto|ftp|data):', target):
        if re.match(r'(?i)https?://(localhost|127\.|0\.0\.0\.0)', target): bad(where, f'link to a local server: {target}')
        counts['external links (not fetched)'] += 1
        return
    counts['links'] += 1
    if target.startswith('attachment:'):
        return target[11:] in (dict(p.cells)[where].get('attachments') or {}) or bad(where, f'no such attachment: {target}')
    file, _, anchor = target.partition('#')
    if not file: dest = p
    else:
        path = (nbs/file.lstrip('/') if file.startswith('/') else p.path.parent/file)
        path = path.parent.resolve()/path.name
        if nbs not in path.parents and path != nbs: return bad(where, f'{target} leaves nbs/, so it is not on the website: give its repository URL')
        rel = path.relative_to(nbs).as_posix()
        dest = next((q for q in pages if rel in (q.name, q.html)), None)
        if dest is None and not path.is_file(): return bad(where, f'link to {target}: no such page or file')
        if dest is None: return
    if anchor and anchor not in dest.anchors: bad(where, f'link to {target}: {dest.name} has no #{anchor}')

def check_prose(p, where, src, pages, keys):
    s = prose(src)
    if len(re.findall(r'(?<!\\)\$\$', s)) % 2: bad(where, 'odd number of $$')
    for env in set(re.findall(r'\\begin\{(\w+\*?)\}', s)):
        if s.count(rf'\begin{{{env}}}') != s.count(rf'\end{{{env}}}'): bad(where, rf'\begin{{{env}}} and \end{{{env}}} do not match')
    s = no_math(re.sub(r'\$\$\s*\{#', '$$ {#', s))
    targets = re.findall(r'\]\(\s*(<[^>]*>|[^\s)]+)[^)]*\)', s) + re.findall(r'(?m)^\s{0,3}\[[^\]^]+\]:\s*(\S+)', s)
    for t in targets + re.findall(r'(?:src|href)="([^"]+)"', s): check_target(p, where, t, pages)
    refs = re.findall(r'\[[^\[\]]+\]\[([^\[\]]+)\]', s)
    defs = {d.lower() for _, k, o, _ in p.cells if k == 'markdown' for d in re.findall(r'(?m)^\s{0,3}\[([^\]^]+)\]:', o)}
    for r in refs:
        if r.lower() not in defs: bad(where, f'[…][{r}] is not defined')
    for key in re.findall(r'(?<![\w/@.\\])@([A-Za-z][\w:.-]*\w)', re.sub(r'\]\([^)]*\)', ']', s)):
        if re.match(rf'(?i)(?:{crossref})-', key):
            counts['cross-references'] += 1
            if key[0].lower() + key[1:] not in p.labels: bad(where, f'@{key}: no such label on this page')
        elif key in keys: counts['citations'] += 1
        else: bad(where, f'@{key} is neither a label nor an entry of references.bib (code belongs in backticks)')

def check_seen(where, opts, outputs):
    "What a reader sees of a cell: no line beyond the column, and words for every picture"
    if opts.get('output') == 'false' or 'hide_output' in opts: return
    for o in outputs:
        data = o.get('data', {})
        if any(k.startswith('image/') for k in data):
            if not opts.get('fig-alt') and not opts.get('fig-cap'): bad(where, 'a picture without fig-alt or fig-cap')
            continue
        if 'text/html' in data or 'text/markdown' in data: continue
        longest = max((text(o.get('text')) + text(data.get('text/plain'))).split('\n'), key=len)
        if len(longest) > column: bad(where, f'a line of {len(longest)} characters, at most {column} fit: {longest[:50]!r} …')

def check_next(pages):
    "Where a page ends with `Next: [...](page)`, the sidebar's next page is meant, as in the pager"
    side = yaml.safe_load((nbs/'sidebar.yml').read_text(encoding='utf-8')) or {}
    order = [h for h in hrefs(side.get('website', {}).get('sidebar', {})) if not re.match(r'\w+:', h)]
    follows = dict(zip(order, order[1:]))
    for p in pages:
        said = [(w, m) for w, k, src, _ in p.cells if k == 'markdown' for m in re.findall(r'Next: \[[^\]]*\]\(([^)#]+)', src)]
        for where, target in said[-1:]:
            if target != follows.get(p.name): bad(where, f'"Next" is {target}, in the sidebar it is {follows.get(p.name, "nothing")}')

def check_code(p, where, src, cell):
    opts = leading(src)
    for line in src.split('\n')[len(opts):]:
        m = re.match(r'#\s*\|\s*([\w-]+)', line)   # below code nbdev does not see it
        if m and m[1] not in opts and m[1] != 'hide_line': bad(where, f'directive below the first line of code is ignored: {line.strip()}')
    for k in opts:
        if k not in nbdev_flags | quarto_options: bad(where, f'unknown directive #| {k} (neither nbdev, Quarto nor a flag in tst_flags)')
    try: nodes = list(ast.walk(ast.parse(src)))
    except SyntaxError: nodes = []                 # magics
    has = lambda *types: any(isinstance(n, types) for n in nodes)
    if (p.documents and has(ast.Import, ast.ImportFrom) and has(ast.Expr, ast.Assign) and opts.get('eval') != 'false'
            and not opts.keys() & {'export', 'exports', 'exporti', 'exec_doc'}):
        notes.append(f'note: {where}: imports and other code in one cell, so nbdev runs all of it to build the docs')
    outputs = cell.get('outputs', [])
    label = opts.get('label', '')
    shown = opts.get('include') != 'false' and 'hide' not in opts
    if shown: check_seen(where, opts, outputs)
    if label.startswith('fig-') and shown:
        counts['figures'] += 1
        if not opts.get('fig-cap'): bad(where, f'{label} has no fig-cap')
        if not any(k.startswith('image/') for o in outputs for k in o.get('data', {})): bad(where, f'{label} has no committed image: run the notebook')
    for o in outputs:
        data = o.get('data', {})
        out = '\n'.join([text(o.get('text')), *(text(v) for k, v in data.items() if k.startswith('text/'))])
        if o['output_type'] == 'error' or 'Traceback (most recent call last)' in out: bad(where, 'holds a committed traceback')
        elif m := machine.search(out): bad(where, f'output holds a path of a machine: …{out[max(0, m.start() - 20):m.end() + 40]!r}…')
        if (size := len(text(data.get('image/png')))*3//4) > max_png: bad(where, f'PNG of {size//1000} KB (at most {max_png//1000})')

def hrefs(node):
    "Every page named in a sidebar or navbar."
    if isinstance(node, str): yield node
    elif isinstance(node, list):
        for o in node: yield from hrefs(o)
    elif isinstance(node, dict):
        if 'href' in node or 'file' in node: yield node.get('href') or node.get('file')
        for k in ('contents', 'left', 'right', 'menu', 'tools'): yield from hrefs(node.get(k, []))

def check_site(pages):
    load = lambda f: yaml.safe_load((nbs/f).read_text(encoding='utf-8')) or {}
    quarto, side = load('_quarto.yml'), load('sidebar.yml')
    if not (nbs/'_quarto.yml').is_symlink() or (nbs/'_quarto.yml').resolve() != root/'_quarto.yml': bad('nbs/_quarto.yml', 'is not the symlink to ../_quarto.yml')
    if (quarto.get('project') or {}).get('type') != 'website' or quarto.get('metadata-files') != ['nbdev.yml', 'sidebar.yml']:
        bad('_quarto.yml', 'needs project: type: website and metadata-files: [nbdev.yml, sidebar.yml]')
    if load('nbdev.yml').get('website', {}).get('title') != cfg.title: bad('nbs/nbdev.yml', 'is not what settings.ini gives: run nbdev_proc_nbs')
    sidebar = [h for h in hrefs(side.get('website', {}).get('sidebar', {})) if not re.match(r'\w+:', h)]
    names = {p.name for p in pages}
    for h, n in Counter(sidebar).items():
        if h not in names: bad('nbs/sidebar.yml', f'{h} does not exist')
        if n > 1: bad('nbs/sidebar.yml', f'{h} is listed {n} times')
    for n in sorted(names - set(sidebar)): bad('nbs/sidebar.yml', f'{n} is missing')
    for h in hrefs(quarto.get('website', {}).get('navbar', {})):
        if not re.match(r'\w+:', h) and h not in names: bad('_quarto.yml', f'navbar: {h} does not exist')
    html = quarto.get('format', {}).get('html', {})
    files = [quarto.get('bibliography'), quarto.get('csl'), quarto.get('website', {}).get('favicon'), html.get('css')]
    theme = html.get('theme')
    for t in theme.values() if isinstance(theme, dict) else [theme]: files += [f for f in ([t] if isinstance(t, str) else t or []) if '.' in f]
    for f in files:
        for g in [f] if isinstance(f, str) else f or []:
            if not (nbs/g).is_file(): bad('_quarto.yml', f'{g} does not exist in nbs/')

def main():
    files = sorted({Path(f).resolve() for f in nbglob(file_glob='', file_re=r'\.(ipynb|qmd|md)$')})
    pages = [Page(f) for f in files]
    keys = bibliography()
    for name, n in Counter(p.html for p in pages).items():
        if n > 1: bad(name, f'{n} pages would be written to it: stems must differ in more than their number')
    modules = Counter(m for p in pages for _, k, src, _ in p.cells if k == 'code' for m in re.findall(r'(?m)^#\|\s*default_exp\s+(\S+)', src))
    for m, n in modules.items():
        if n > 1: bad(f'{m}.py', f'is exported by {n} notebooks')
    for p in pages:
        check_title(p)
        for label, n in p.labels.items():
            if n > 1: bad(p.name, f'label {label} is defined {n} times')
        for where, kind, src, cell in p.cells:
            if kind == 'markdown': check_prose(p, where, src, pages, keys)
            elif kind == 'code': check_code(p, where, src, cell)
        if p.path.suffix == '.ipynb' and not (root/'_proc'/p.name).is_file(): bad(p.name, 'was not processed by nbdev_proc_nbs')
    check_site(pages)
    check_next(pages)
    print(f'{len(pages)} pages, ' + ', '.join(f'{n} {k}' for k, n in sorted(counts.items())))
    if notes and '--notes' in sys.argv: print(*notes, sep='\n')
    elif notes: print(f'{len(notes)} notes (--notes prints them)')
    if problems: print(*problems, f'{len(problems)} problem(s) in the docs', sep='\n')
    sys.exit(bool(problems))

main()
