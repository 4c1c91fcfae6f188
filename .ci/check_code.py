"""The shape of the library: floors, light imports, short lines, and a word on every public parameter.

Numbers of notebooks are dependency order (81a comes before 81b): a module imports only from lower notebooks. What comes from
notebooks below 30 (the operators, their mathematics and their fast forms) imports none of the heavy libraries, and
`import wbattn` not even torch.
"""
import ast, io, re, subprocess, sys, tokenize
from pathlib import Path

root = Path(__file__).resolve().parent.parent
lib = root/'wbattn'
heavy, light_below = {'fastai', 'timm', 'matplotlib', 'torchvision', 'sklearn', 'pandas'}, '30'
longest, share_of_long = 120, 0.005
problems, source, number = [], {}, {}

for py in sorted(lib.rglob('*.py')):
    text = py.read_text(encoding='utf-8')
    parts = py.relative_to(root).with_suffix('').parts
    mod = '.'.join(parts[:-1] if parts[-1] == '__init__' else parts)
    made_by = re.search(r'File to edit: \S*?(\d+[a-z]?)_[^/\s]*\.ipynb', text[:2000])
    if made_by: number[mod], source[mod] = made_by[1], text
    elif py.name not in ('__init__.py', '_modidx.py') or (py.name == '__init__.py' and len(text.splitlines()) > 1):
        problems.append(f'{py.relative_to(root)} comes from no notebook')

def imports(tree, package):
    "Names of modules that are imported, and of what is imported from them"
    for node in ast.walk(tree):
        if isinstance(node, ast.Import): yield from (a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split('.')[:len(package.split('.')) - node.level + 1] if node.level else []
            base = '.'.join(parts + ([node.module] if node.module else []))  # nbdev exports absolute imports as relative
            yield base
            yield from (f'{base}.{a.name}' for a in node.names)

def check_floors(mod, tree):
    package = mod if (root/mod.replace('.', '/')).is_dir() else mod.rpartition('.')[0]
    for name in imports(tree, package):
        if name in number and name != 'wbattn' and number[name] >= number[mod] and name != mod:
            problems.append(f'{mod} ({number[mod]}) imports {name} ({number[name]}): upward')
    stars = [n.module for n in ast.walk(tree) if isinstance(n, ast.ImportFrom) and n.names[0].name == '*']
    if stars: problems.append(f'{mod} has star imports: {", ".join(stars)}')

def check_lines():
    lines = [(mod, i, len(l)) for mod, text in source.items() for i, l in enumerate(text.splitlines(), 1)]
    long = [(mod, i, n) for mod, i, n in lines if n > longest and not source[mod].splitlines()[i - 1].startswith('"""')]
    if len(long) <= share_of_long*len(lines): return
    problems.append(f'{len(long)} of {len(lines)} lines are longer than {longest} characters, at most {share_of_long:.1%} may be:')
    problems.extend(f'    {mod}:{i} ({n})' for mod, i, n in long[:20])

def parameters(f):
    a = f.args
    return [p for p in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if p and p.arg not in ('self', 'cls')]

def check_docments(mod, tree):
    "Every parameter of a public function or method has a comment on its line"
    tokens = tokenize.generate_tokens(io.StringIO(source[mod]).readline)
    commented = {t.start[0] for t in tokens if t.type == tokenize.COMMENT}
    public = [n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.ClassDef)) and not n.name.startswith('_')]
    for n in public:
        inside = n.body if isinstance(n, ast.ClassDef) else [n]
        for f in (f for f in inside if isinstance(f, ast.FunctionDef) and (f is n or f.name == '__init__' or f.name[0] != '_')):
            for p in parameters(f):
                if p.end_lineno not in commented or f.body[0].lineno <= p.end_lineno:
                    problems.append(f'{mod}:{p.lineno}: {n.name}{"" if f is n else "." + f.name} says nothing of {p.arg}')

trees = {mod: ast.parse(text) for mod, text in source.items()}
for mod, tree in trees.items():
    check_floors(mod, tree)
    check_docments(mod, tree)
check_lines()

def loads(code, forbidden):
    "Which of the `forbidden` modules a fresh process has loaded after `code`"
    code = f'import sys\n{code}\nprint(*sorted({forbidden!r} & sys.modules.keys()))'
    r = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, cwd=root)
    if r.returncode: problems.append(f'importing failed:\n{r.stderr[-2000:]}')
    elif r.stdout.strip(): problems.append(f'{code.splitlines()[1]} pulls in: {r.stdout.strip()}')

light = sorted(m for m, n in number.items() if n < light_below)
loads('import wbattn', heavy | {'torch'})
loads('import ' + ', '.join(light), heavy)
print(f'{len(number)} modules; light: {", ".join(light)}')
if problems: print(*problems, sep='\n'); sys.exit(1)
