"What nbdev's steps leave to be mended on the way from a notebook to its page (`procs` and `renderer` in settings.ini)."

import inspect, re, shutil, yaml
from dataclasses import is_dataclass
from functools import lru_cache
from html import escape
from pathlib import Path
from fastcore.docments import DocmentText, docments
from nbdev.config import get_config
from nbdev.doclinks import NbdevLookup, nbglob
from nbdev.frontmatter import _dict2fm
from nbdev.process import NBProcessor, Processor
from nbdev.processors import add_show_docs, populate_language
from nbdev.showdoc import BasicMarkdownRenderer

# a page is a notebook that runs alone: beside it stand a link that opens it in Colab, and one to download it

class offer_notebook(Processor):
    def begin(self):
        config, path = get_config(), Path(self.nb.path_)
        copies = config.config_path/'_proc'/'_notebooks'   # Quarto renders nothing in a folder that begins with _
        copies.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copies/path.name)
        colab = 'https://colab.research.google.com/github'
        in_repo = f'{config.user}/{config.repo}/blob/{config.branch}/{config.nbs_path.name}/{path.name}'
        links = [dict(text='Open in Colab', icon='play-btn', href=f'{colab}/{in_repo}'),
                 dict(text='Download notebook', icon='download', href=f'_notebooks/{path.name}')]
        self.nb.frontmatter_['code-links'] = links
        self.nb.cells[0].source = _dict2fm(self.nb.frontmatter_)

# where a page ends with its API, nbdev shows no entry a second time beside the source

class api_once(Processor):
    def begin(self):
        if any(c.source.strip() == '## API' for c in self.nb.cells if c.cell_type == 'markdown'):
            self.nb.cells[:] = [c for c in self.nb.cells if not getattr(c, 'has_sd', False)]

# nbdev's add_links leads to anchors that no page has, and links again inside of links and code

def _entries(path):
    "Names that get an entry on the page of a notebook."
    nb = NBProcessor(path, procs=[populate_language, add_show_docs, api_once], process=True).nb
    cells = [c for c in nb.cells if c.cell_type == 'code' and not {'hide', 'eval:'} & set(getattr(c, 'directives_', {}))]
    return [name for c in cells for name in re.findall(r'(?m)^show_doc\(\s*([\w.]+)', c.source or '')]

@lru_cache
def _documented():
    "Pairs of page and anchor, such as ('rates.html', 'coding_rate')."
    pages = {p: re.sub(r'^\d+[a-z]?_', '', p.stem) + '.html' for p in nbglob(as_path=True)}
    return {(page, name.lower()) for p, page in pages.items() for name in _entries(p)}

def _link_name(m):
    if m[0] == '`train`': return m[0]   # a folder, or a part of data; the function is `train()`
    url = NbdevLookup().doc(m[1])
    if not isinstance(url, str): return m[0]
    page, _, anchor = url.rpartition('/')[2].partition('#')
    ours = url.startswith(get_config().doc_host)
    if ours and (page, anchor) not in _documented(): return m[0]
    return f'[{m[0]}]({page + "#" + anchor if ours else url})'

def _link_text(text):
    "Link names in backticks, but not in fences (odd parts) and links (odd pieces)."
    parts = re.split(r'(?ms)(^```.*?^```[ \t]*$)', text)
    for i in range(0, len(parts), 2):
        pieces = re.split(r'(\[[^\]\[]*\]\([^)\s]*\)|\[[^\]\[]*\]\{[^}]*\}|\$[^$\n]+\$)', parts[i])
        pieces[::2] = [re.sub(r'`([^`\s]+?)(?:\(\))?`', _link_name, p) for p in pieces[::2]]
        parts[i] = ''.join(pieces)
    return ''.join(parts)

def link_names(cell):
    if cell.cell_type == 'markdown': cell.source = _link_text(cell.source)
    for o in cell.get('outputs', []):
        data = o.get('data', {})
        if 'text/markdown' in data: data['text/markdown'] = _link_text(''.join(data['text/markdown']))

# hidden cells leave headings over nothing, and sentences that lead to nothing

_goes_on = re.compile(r'\s*(\$\$|[-*+] |[|>]|```|\d+\. |\\begin|!\[|:::)')

def _without_lead_in(source):
    "Markdown without its last sentence if that ends in a colon."
    *rest, last = source.rstrip().split('\n\n')
    if not last.endswith(':') or _goes_on.match(last): return source
    kept = re.split(r'(?:(?<=[.?!])|(?<=[.?!][”)*"]))\s+(?=[A-Z`$*“@])', last)[:-1]
    if kept: rest.append(' '.join(kept))
    return '\n\n'.join(rest)

class drop_orphans(Processor):
    "Headings with nothing below them go, and lead-ins of what isn't there."
    def begin(self):
        kept = []       # cells, from the end
        following = ''  # text of the cell that follows; None: it is no text
        below = 1       # level of the heading that follows; 0: something else does
        for cell in reversed(self.nb.cells):
            if cell.cell_type != 'markdown':
                following = None
                below = 0
                kept.append(cell)
                continue
            leads_nowhere = following is not None and not _goes_on.match(following)
            if leads_nowhere: cell.source = _without_lead_in(cell.source)
            heading = re.match(r'(#{2,6})\s+\S', cell.source)
            level = len(heading[1]) if heading else 0
            text = cell.source.strip()
            is_bare_heading = level > 0 and '\n' not in text
            if not text or is_bare_heading and level >= below > 0: continue
            following = cell.source
            below = level
            kept.append(cell)
        self.nb.cells[:] = kept[::-1]

# nbdev leaves out the code that a notebook exports, unless it says `exports`; the next maintainer needs all of it

def _developers_pages():
    "Names of the notebooks in the last section of the sidebar."
    sections = yaml.safe_load((get_config().nbs_path/'sidebar.yml').read_text(encoding='utf-8'))['website']['sidebar']['contents']
    groups = next(o['contents'] for o in sections if o['section'] == "Developers' notes")
    return {name for group in groups for name in group['contents']}

def _in_one_line(words):
    text = ', '.join(words)
    return text if len(text) <= 75 else text[:75].rpartition(',')[0] + ' …'

def _title(source):
    "What an exported cell defines, public names first, or, where it defines nothing, which function it calls."
    defined = re.findall(r'(?m)^(?:def|class) (\w+)', source)
    assigned = re.findall(r'(?m)^(\w+)(?:: [^=\n]+)? = ', source)
    names = [name for name in defined + assigned if name in defined or name[0] != '_']
    called = re.findall(r"(?m)^ *(\w+)\((?:'([\w:/]+))?", source)   # functions, and a word that is the first argument
    if not names and called:
        words = dict.fromkeys(word for name, word in called if word)
        return f'Calls of {called[0][0]}: {_in_one_line(words)}'.removesuffix(': ')
    listed = _in_one_line(sorted(names or assigned, key=lambda name: name[0] == '_'))
    listed = re.sub(r'(?<!\w)_\w*_(?!\w)', r'`\g<0>`', listed)   # not bold, nor italic
    return f'Source of {listed}'.removesuffix(' of ')

def _closed(source):
    "Code that is folded until asked for, under a title."
    if '#| code-summary:' in source: return source if '#| code-fold:' in source else f'#| code-fold: true\n{source}'
    return f'#| code-fold: true\n#| code-summary: "{_title(source)}"\n{source}'

class show_source(Processor):
    "Stands for nbdev's rm_export, add_fold and mv_exports: exported code below the entries of its names, folded."
    def begin(self):
        all_of_it = Path(self.nb.path_).name in _developers_pages()
        kept, waiting = [], []   # cells of the page; code whose entries come first
        for cell in self.nb.cells:
            marks = getattr(cell, 'directives_', {}).keys()
            exported = marks & {'export', 'exporti', 'exports'} and 'hide' not in marks
            shown = 'exports' in marks or all_of_it and re.search(r'(?m)^(def|class|@|for|if|\w+\(|\w+(: .+)? = )', cell.source)
            is_entry = getattr(cell, 'has_sd', False) or 'show_doc(' in cell.source[:40]
            if waiting and not is_entry:
                kept += waiting
                waiting = []
            if exported and shown:
                cell.source = _closed(cell.source)
                waiting.append(cell)
            elif not marks & {'export', 'exporti', 'hide', 'default_exp'}: kept.append(cell)
        self.nb.cells[:] = kept + waiting

def quiet_html(cell):
    "Quarto loads two libraries from elsewhere for an output in HTML: tables are shown as Markdown, styles go."
    for o in list(cell.get('outputs', [])):
        if 'text/html' not in o.get('data', {}): continue
        text = ''.join(o['data']['text/html'])
        if '<script' in text or '<svg' in text: continue
        text = re.sub(r'(?s)<style.*?</style>\s*', '', text).strip()
        if text: o['data'] = {'text/markdown': '```{=html}\n' + text + '\n```\n'}
        else: cell.outputs.remove(o)

# a figure is part of its page, sharp at every size, its black that of the page's letters

def _on_page(svg, words):
    "matplotlib's SVG as an element of a page, with the words that a reader hears instead of it."
    svg = svg[svg.index('<svg'):]
    svg = re.sub(r'(?s)<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->', '', svg)
    svg = re.sub(r'<g id="[\w-]*axes_\d+"', '<g class="axes"', svg)           # site/panels.js moves them
    svg = re.sub(r'<g id="[^"]*"', '<g', svg)                                 # every figure has the same names
    svg = re.sub(r"font-family: 'DejaVu Sans'[^;\"]*", "font-family: 'DejaVu Sans', Verdana, sans-serif", svg)
    svg = re.sub(r'#([0-5][0-9a-f])\1\1\b', 'currentColor', svg)             # black, and grey as dark as to mean it
    svg = re.sub(r'(?<![\w.])([1-9]\d*\.\d\d)\d+(?![\w.])', r'\1', svg)        # a hundredth of a point is enough
    svg = svg.replace('#666666', '#888888')                                  # the palette's GREY is faint on a dark page
    svg = re.sub(r'(<(?:path|use|rect)\b[^>]*fill: )#ffffff', r'\1var(--bs-body-bg, #fff)', svg)     # what is white means the page
    return svg.replace('<svg', f'<svg class="plot" role="img" aria-label="{escape(words)}"', 1)

def inline_svg(cell):
    for o in cell.get('outputs', []):
        data = o.get('data', {})
        said = re.search(r'(?m)^#\| fig-alt: *"?(.*?)"?$', cell.source)
        words = said[1] if said else ''
        html = ''.join(data.get('text/html', ''))
        if 'image/svg+xml' in data: html = _on_page(''.join(data['image/svg+xml']), words)
        elif '<svg' in html: html = re.sub(r'(?s)<svg.*?</svg>', lambda m: _on_page(m[0], words), html)   # frames of a slider
        else: continue
        o['data'] = {'text/markdown': f'```{{=html}}\n{html}\n```\n'}

# a number stays on the line of its unit

def _with_hard_spaces(text):
    parts = re.split(r'(?ms)(^```.*?^```[ \t]*$|`[^`\n]*`|\$[^$\n]+\$)', text)
    parts[::2] = [re.sub(r'(?<=\d) (?=%|(?:ms|s|kB|MB|GB|nats|bits)\b)', '\u00a0', p) for p in parts[::2]]
    return ''.join(parts)

def keep_units(cell):
    if cell.cell_type == 'markdown': cell.source = _with_hard_spaces(cell.source)
    for o in cell.get('outputs', []):
        data = o.get('data', {})
        if 'text/markdown' in data: data['text/markdown'] = _with_hard_spaces(''.join(data['text/markdown']))

# a signature without NoneType and without a row of options that nobody explains; no inherited docstring

def _exported(name):
    "The source of a class, from the library: one of a running notebook has no file."
    found = (re.search(rf'(?ms)^class {name}\b.*?(?=^\S|\Z)', p.read_text(encoding='utf-8')) for p in get_config().lib_path.rglob('*.py'))
    return next((m[0] for m in found if m), '')

def _has_constructor(cls):
    "Does a class, or one of ours that it is made from, say how it is built?"
    ours = [c for c in cls.__mro__ if c.__module__.partition('.')[0] in (get_config().lib_name, '__main__')]
    return any({'__init__', '__new__'} & vars(c).keys() for c in ours)

def _said_of_fields(cls):
    "The comments beside the fields of a named tuple or dataclass, by field."
    return dict(re.findall(r'(?m)^ +(\w+):[^#\n]*# (.*)$', _exported(cls.__name__)))

def _written_name(function):
    "The name that its source gives it; a log may show another, as of a metric."
    *_, name = getattr(function, '__qualname__', function.__name__).split('.')
    return name

class Signature(DocmentText):
    def __init__(self, obj, **kwargs):
        super().__init__(obj, **kwargs)
        if callable(obj):   # the comment at **kwargs is not that of the line below it, what is returned
            self.dm = docments(obj, full=True, args_kwargs=True)
            self.dm.pop('self', None)
        if hasattr(obj, '_field_defaults'):   # a named tuple takes its fields, not *args and **kwargs
            said = _said_of_fields(obj)
            self.dm = {name: dict(anno=anno, default=obj._field_defaults.get(name, inspect.Parameter.empty), docment=said.get(name))
                       for name, anno in obj.__annotations__.items()}
        if isinstance(obj, type) and is_dataclass(obj):
            for name, comment in _said_of_fields(obj).items():
                if name in self.dm: self.dm[name]['docment'] = comment

    def __str__(self):
        said = super().__str__()
        if not isinstance(self.obj, type):
            name = _written_name(self.obj)
            return said.replace(f'def {self.obj.__name__}(', f'def {name}(', 1)
        if _has_constructor(self.obj) and self.params: return said.replace('def ', 'class ', 1)
        bases = ', '.join(base.__name__ for base in self.obj.__bases__ if base is not object)
        return f'class {self.obj.__name__}({bases}):' if bases else f'class {self.obj.__name__}:'   # its base says how

    @property
    def _ret_str(self): return super()._ret_str if '->' in super()._ret_str else '):'

    def _fmt_param(self, name, p): return super()._fmt_param(name, p).replace(':NoneType=', '=')

    @property
    def params(self):
        found = super().params
        passed = [o for o in found if '=' in o[0] and not o[1]]
        if len(passed) < 6 or is_dataclass(self.obj): return found
        rest = [o for o in found if o not in passed and not o[0].startswith('**')]   # `delegates` may keep them
        return rest + [('**kwargs', f'{len(passed)} more options, passed on')]

_inherited = ('Define the computation performed at every call', 'Call self as a function', 'Initialize self',
              'Initialize internal Module state', 'Base class for all neural network modules')

class Entry(BasicMarkdownRenderer):
    def __init__(self, sym, name=None, title_level=3):
        super().__init__(sym, name=name, title_level=title_level)
        self.dm = Signature(self.sym, maxline=96, docstring=False)
        own = vars(self.sym).get('__doc__') if isinstance(self.sym, type) else getattr(self.sym, '__doc__', None)
        if not own or own.strip().startswith(_inherited): self.docs = ''
        if self.nm.startswith('_'): self.nm = self.nm.replace('_', r'\_')   # not a bold heading
        module = getattr(self.sym, '__module__', None)
        self.fn = self.fn.removeprefix(f'{module}.')      # by the whole name nbdev finds the file, but no line
