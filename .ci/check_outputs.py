"""Stored outputs are there, clean and true: run it from anywhere in the project, with its environment.

    python .ci/check_outputs.py [NOTEBOOK...]

- A cell whose output the page shows, and that displays something, has a stored output. What displays is read from the
  code: a last expression that has a value, a `print` that runs in any case, a figure that is not closed. A last call
  counts if its name is known to return something: because it does so in a cell that has its output, or by `returns`.
- No output holds stderr, a warning or a traceback.
- A stored `usage: …` of one of our commands is what the command prints today (but for line breaks).
"""
import ast, configparser, re, subprocess, sys
from pathlib import Path

from execnb.nbio import read_nb

root = Path(__file__).resolve().parent.parent
settings = configparser.ConfigParser(interpolation=None)
settings.read(root/'settings.ini', encoding='utf-8')
settings = settings['DEFAULT']
scripts = {s.split('=')[0] for s in settings['console_scripts'].split()}
tables = {'DataFrame', 'Series', 'Markdown', 'HTML', 'Image', 'Video', 'show_doc', 'head', 'tail', 'describe', 'round', 'to_markdown', 'format'}
catches = re.compile(r'expect_fail|raises|redirect_std|capture|suppress|working_directory')   # contexts that end early or swallow prints

def text(x): return x if isinstance(x, str) else ''.join(x or ())
def name_of(call): return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, 'id', '')

def told(source):
    "Directives at the head of a cell: {name: value}"
    res = {}
    for line in source.split('\n'):
        m = re.match(r'#\s*\|\s*([\w-]+)\s*:?\s*(.*)', line)
        if not m: break
        res[m[1]] = m[2].strip().lower()
    return res

def is_shown(directives):
    "Does the page show the cell's output? What needs a GPU or a data set may wait for its first run"
    if {'hide', 'hide_output', 'cuda', 'data'} & directives.keys(): return False
    return not any(directives.get(k) == 'false' for k in ('include', 'output', 'eval'))

def parse(source):
    "The cell's syntax tree; shell commands and magics become calls of `_shell`"
    source = re.sub(r'(?m)^(\s*)!.*$', r'\1_shell()', source)
    source = re.sub(r'(?m)^(\s*)%.*$', r'\1pass', source)
    try: return ast.parse(source)
    except SyntaxError: return None

def statements(body):
    "The statements that run in any case, inside loops and plain contexts too; no functions, branches or tests of errors"
    for node in body:
        yield node
        if isinstance(node, (ast.For, ast.While)): yield from statements(node.body)
        elif isinstance(node, ast.With) and not any(catches.search(ast.unparse(i.context_expr)) for i in node.items): yield from statements(node.body)

def last_call(tree):
    "The call whose value the cell ends with, or None"
    if not tree or not tree.body or not isinstance(tree.body[-1], ast.Expr): return None
    return tree.body[-1].value if isinstance(tree.body[-1].value, ast.Call) else None

def calls(tree): return [s.value for s in statements(tree.body) if isinstance(s, ast.Expr) and isinstance(s.value, ast.Call)]

def displays(source, returns):
    "What the cell displays, in words; None if nothing that can be known"
    tree = parse(source)
    if tree is None or not tree.body: return None
    for c in calls(tree):
        if name_of(c) == 'print' and not any(k.arg == 'file' for k in c.keywords) and c.args: return 'print'
        if name_of(c) in ('display', '_shell'): return name_of(c).strip('_')
    plotted = [ast.unparse(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)]
    if any(f in ('plt.subplots', 'plt.figure', 'plt.plot', 'plt.show') for f in plotted) and not any(f.endswith('.close') for f in plotted):
        if not any(isinstance(n, ast.FunctionDef) for n in ast.walk(tree)): return 'a figure'
    last = tree.body[-1]
    if not isinstance(last, ast.Expr) or source.rstrip().endswith(';'): return None
    v = last.value
    if isinstance(v, ast.Call): return f'the value of {name_of(v)}(…)' if name_of(v) in returns else None
    if isinstance(v, (ast.Name, ast.BinOp, ast.Compare, ast.Subscript, ast.JoinedStr, ast.List, ast.Dict)): return 'a last expression'
    if isinstance(v, ast.Tuple): return None if all(isinstance(e, ast.Call) for e in v.elts) else 'a last expression'
    return None

def check_clean(where, outputs, problems):
    "No stderr, no warning, no traceback"
    for o in outputs:
        t = text(o.get('text')) + text((o.get('data') or {}).get('text/plain'))
        first = next((l for l in t.split('\n') if l.strip()), '')[:100]
        if o['output_type'] == 'error' or 'Traceback (most recent call last)' in t: problems.append(f'{where}: a stored error: {first}')
        elif o.get('name') == 'stderr': problems.append(f'{where}: stored stderr: {first}')
        elif m := re.search(r'.*\b[A-Z]\w*Warning: .*', t): problems.append(f'{where}: a stored warning: {m[0][:100]}')

printed = {}

def help_of(command):
    "What `command --help` prints"
    if command not in printed:
        script = Path(sys.executable).parent/command
        r = subprocess.run([script, '--help'], cwd=root, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
        printed[command] = r.stdout
    return printed[command]

def check_help(where, outputs, problems):
    "A stored usage is today's"
    for o in outputs:
        t = text(o.get('text'))
        m = re.match(r'\s*usage: (\w+)', t)
        if not m or m[1] not in scripts: continue
        stored, today = t.split(), help_of(m[1]).split()
        if stored == today: continue
        missing = [w for w in dict.fromkeys(today) if w.startswith('--') and w not in stored]
        at = next((i for i, (a, b) in enumerate(zip(stored, today)) if a != b), min(len(stored), len(today)))
        problems.append(f"{where}: the stored help of {m[1]} is not today's: … {' '.join(stored[at:at+6])!r} where it prints"
                        f" {' '.join(today[at:at+6])!r}" + (f'; options missing: {" ".join(missing)}' if missing else ''))

def notebooks():
    "The notebooks named, or all"
    from nbdev.doclinks import nbglob
    return sorted(Path(p) for p in (sys.argv[1:] or nbglob(as_path=True)))

def main():
    cells = [(f'{p.name} cell {c.id}', c.source, [dict(o) for o in c.get('outputs', [])]) for p in notebooks()
             for c in read_nb(p).cells if c.cell_type == 'code' and c.source.strip()]
    seen = {name_of(c) for _, source, outputs in cells if any(o['output_type'] == 'execute_result' for o in outputs)
            if (c := last_call(parse(source))) is not None}
    problems, shown = [], 0
    for where, source, outputs in cells:
        check_clean(where, outputs, problems)
        check_help(where, outputs, problems)
        what = is_shown(told(source)) and displays(source, seen | tables)
        shown += bool(what)
        if what and not outputs: problems.append(f'{where} displays something ({what}) and has no stored output: run the notebook')
    print(f'{len(cells)} code cells, {shown} that are shown and display something, {len(printed)} commands asked for their help')
    if problems: print(*problems, f'{len(problems)} problem(s) in stored outputs', sep='\n')
    sys.exit(bool(problems))

if __name__ == '__main__': main()
