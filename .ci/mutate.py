#!/usr/bin/env python
"""Does a notebook notice when its code is wrong? Change one thing at a time in its export cells, and run its tests.

    python .ci/mutate.py nbs/12_tssa.ipynb nbs/15_eca.ipynb --n 100   # a sample of 100 changes
    python .ci/mutate.py nbs/02_rates.ipynb --all                     # every change there is
    python .ci/mutate.py nbs/02_rates.ipynb --list                    # only say which they are
    python .ci/mutate.py nbs/14_basis.ipynb --n 50 --then nbs/15_eca.ipynb   # survivors must pass further notebooks too

A change flips a sign, swaps + and −, * and /, < and >=, sum and mean, drops a factor, a clamp, a guard, a check or an
optional argument, doubles a constant, moves an axis, inverts a condition. The tests are those of `nbdev_test` with its
default flags, and so is their order. A notebook runs once; before each cell that is to be changed the process forks,
and the copy goes on with the changed cell until the first failure (or until it takes too long, which counts as one).

Survivors are listed with their cell, line and change, unless `.ci/mutants.csv` names them with the reason why no test
can see them. Exit status 1 if fewer than `--aim` percent of the rest are caught.
"""
import argparse, ast, csv, json, os, random, re, shutil, signal, subprocess, sys, tempfile, time
from collections import defaultdict, namedtuple
from pathlib import Path

os.environ.update({k: '1' for k in ('OMP_NUM_THREADS', 'MKL_NUM_THREADS', 'OPENBLAS_NUM_THREADS')})
root = Path(__file__).resolve().parent.parent
accepted_file = root/'.ci/mutants.csv'
Mutant = namedtuple('Mutant', 'notebook cell line kind old new code')   # code: the whole changed cell

# --- The changes -----------------------------------------------------------------------------------------------------
operators = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult}
comparisons = {ast.Lt: (ast.LtE, ast.Gt), ast.LtE: (ast.Lt, ast.GtE), ast.Gt: (ast.GtE, ast.Lt), ast.GtE: (ast.Gt, ast.LtE),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,)}
twins = dict(sum='mean', mean='sum', min='max', max='min', amin='amax', amax='amin', add='sub', sub='add', add_='sub_', sub_='add_',
    mul='div', div='mul', mul_='div_', div_='mul_', softmax='sigmoid', zeros_like='ones_like', ones_like='zeros_like', cos='sin', sin='cos',
    new_zeros='new_ones', any='all', all='any', square='abs')
droppable = set('clamp clamp_ clamp_min clamp_min_ clamp_max relu relu_ sqrt square detach abs log log1p exp float double flip square_'.split())
wrappers = set('relu sqrt abs log log1p exp softplus widen'.split())

def variants(node, parents):
    "Pairs (kind, expression or statement that takes the place of `node`)"
    parent = parents.get(node)
    match node:
        case ast.BinOp(left=a, op=op, right=b):
            if type(op) in operators: yield 'operator', ast.BinOp(a, operators[type(op)](), b)
            if isinstance(op, (ast.Mult, ast.Div)): yield 'dropped factor', a
            if isinstance(op, ast.Mult): yield 'dropped factor', b
            if isinstance(op, (ast.Add, ast.Sub)): yield 'dropped term', a
            if isinstance(op, ast.Add): yield 'dropped term', b
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int(v))) if v in (1, 2, 3):
            yield 'sign', ast.Constant(v)
            yield 'axis', ast.Constant({1: -2, 2: -1, 3: -2}[v])
        case ast.UnaryOp(op=ast.USub() | ast.Not() | ast.Invert(), operand=v): yield 'sign', v
        case ast.Constant(value=bool(v)): yield 'constant', ast.Constant(not v)
        case ast.Constant(value=int(v)) if not isinstance(parent, ast.UnaryOp): yield 'constant', ast.Constant(1 - v if v in (0, 1) else v + 1)
        case ast.Constant(value=float(v)):
            yield 'constant', ast.Constant(v*1e10 if 0 < abs(v) < 1e-5 else 2*v if v else 1.)
        case ast.Constant(value=str(v)) if isinstance(parent, ast.Call) and '->' in v and (m := re.search(r'\((\w+) (\w+)\)', v)):
            yield 'swapped axes', ast.Constant(v.replace(m[0], f'({m[2]} {m[1]})', 1))
        case ast.Compare(ops=[op]):
            for other in comparisons[type(op)]: yield 'comparison', ast.Compare(node.left, [other()], node.comparators)
        case ast.BoolOp(op=op, values=vs):
            yield 'condition', ast.BoolOp(ast.Or() if isinstance(op, ast.And) else ast.And(), vs)
            for i in range(len(vs)): yield 'dropped condition', ast.BoolOp(op, vs[:i] + vs[i+1:]) if len(vs) > 2 else vs[1-i]
        case ast.IfExp(test=t, body=a, orelse=b): yield 'condition', ast.IfExp(t, b, a)
        case ast.Call(func=f, args=args, keywords=kws):
            name = f.attr if isinstance(f, ast.Attribute) else getattr(f, 'id', '')
            if name in twins and isinstance(f, ast.Attribute):
                yield 'function', ast.Call(ast.Attribute(f.value, twins[name]), args, kws)
            module = isinstance(f, ast.Attribute) and isinstance(f.value, ast.Name) and f.value.id in ('torch', 'F')
            if name in droppable and isinstance(f, ast.Attribute) and not module: yield f'dropped {name}', f.value
            elif name in wrappers and args: yield f'dropped {name}', args[0]
            if name == 'where' and len(args) == 3: yield 'swapped arguments', ast.Call(f, [args[0], args[2], args[1]], kws)
            for i, a in enumerate(args):
                if isinstance(a, ast.Name) and a.id in optional_names(node, parents):
                    yield 'forgotten argument', ast.Call(f, args[:i] + [ast.Constant(None)] + args[i+1:], kws)
            for i, k in enumerate(kws):
                if k.arg and not isinstance(k.value, ast.Constant): yield 'forgotten argument', ast.Call(f, args, kws[:i] + kws[i+1:])
        case ast.Attribute(value=v, attr='mT', ctx=ast.Load()): yield 'dropped mT', v
        case ast.Tuple(elts=es, ctx=ast.Load()) if isinstance(parent, ast.Assign) and getattr(parent.targets[0], 'id', '') == 'key':
            for i in range(len(es)): yield 'forgotten in the key', ast.Tuple(es[:i] + es[i+1:], ast.Load())
        case ast.Return(value=ast.Call() | ast.BinOp() as v) if returns_number(node, parents): yield 'sign', ast.Return(ast.UnaryOp(ast.USub(), v))
        case ast.AugAssign(target=t, op=op, value=v):
            if type(op) in operators: yield 'operator', ast.AugAssign(t, operators[type(op)](), v)
            yield 'dropped statement', ast.Pass()
        case ast.Expr(value=ast.Call()): yield 'dropped statement', ast.Pass()
        case ast.Raise() if isinstance(parent, ast.If): yield 'dropped check', ast.Pass()
        case ast.With(items=[ast.withitem(context_expr=c, optional_vars=None)], body=body):
            yield 'dropped guard', ast.If(ast.Constant(True), body, [])

def function_of(node, parents):
    "The function that `node` stands in, or None"
    while node is not None and not isinstance(node, ast.FunctionDef): node = parents.get(node)
    return node

def optional_names(node, parents):
    "Parameters of the function around `node` whose default is None"
    f = function_of(node, parents)
    if f is None: return set()
    with_default = zip(reversed(f.args.args), reversed(f.args.defaults))
    return {a.arg for a, d in with_default if isinstance(d, ast.Constant) and d.value is None} | {a.arg for a in f.args.args if a.arg == 'sizes'}

def returns_number(node, parents):
    "Does the function around `node` say that it returns a tensor or a number?"
    f = function_of(node, parents)
    return f is not None and f.returns is not None and ast.unparse(f.returns) in ('Tensor', 'float', 'int')

def skipped(node, parents):
    "Is `node` in a message, an annotation, a decorator, a slice of text, or in what only prints?"
    while (parent := parents.get(node)) is not None:
        if isinstance(parent, (ast.Raise, ast.JoinedStr, ast.Import, ast.ImportFrom)): return True
        if isinstance(parent, ast.arg) or node in getattr(parent, 'decorator_list', ()): return True
        if node is getattr(parent, 'annotation', None) or node is getattr(parent, 'returns', None): return True
        if isinstance(parent, ast.FunctionDef) and parent.name in ('extra_repr', '__repr__'): return True
        node = parent
    return False

def mutants_of(notebook, cell, source):
    "Every single change of one cell"
    try: tree = ast.parse(source)
    except SyntaxError: return []       # magics
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    lines, res, seen = source.encode().splitlines(keepends=True), [], set()
    starts = [0]
    for l in lines: starts.append(starts[-1] + len(l))
    raw = source.encode()
    for node in ast.walk(tree):
        if not hasattr(node, 'lineno') or skipped(node, parents): continue
        a, z = starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset
        for kind, new in variants(node, parents):
            text = ast.unparse(ast.fix_missing_locations(new))
            if isinstance(new, (ast.BinOp, ast.UnaryOp, ast.IfExp, ast.BoolOp, ast.Compare)): text = f'({text})'
            if isinstance(new, ast.stmt): text = text.replace('\n', '\n' + ' '*node.col_offset)
            code = (raw[:a] + text.encode() + raw[z:]).decode()
            try: ast.parse(code)
            except SyntaxError: continue
            if ast.dump(ast.parse(code)) == ast.dump(tree) or code in seen: continue
            seen.add(code)
            old = ast.unparse(node) if not isinstance(node, ast.With) else f'with {ast.unparse(node.items[0])}'
            short = text if not isinstance(node, ast.With) else 'no guard'
            res.append(Mutant(notebook, cell, node.lineno, kind, ' '.join(old.split()), ' '.join(short.split()), code))
    return res

# --- Notebooks -------------------------------------------------------------------------------------------------------
def code_cells(path, flags):
    "(id, source, exported?) of the cells that nbdev_test runs"
    from nbdev.config import get_config
    from nbdev.frontmatter import FrontmatterProc
    from nbdev.process import NBProcessor
    skip, res = set(get_config().tst_flags.split()) - set(flags), []
    for c in NBProcessor(path, procs=FrontmatterProc, process=True).nb.cells:
        told = getattr(c, 'directives_', None) or {}
        if c.cell_type != 'code' or 'nbdev_export(' in c.source or skip & told.keys(): continue
        if told.get('eval:', [''])[0].lower() == 'false' or not c.source.strip(): continue
        res.append((c.id, c.source, bool({'export', 'exports', 'exporti'} & told.keys())))
    return res

def run_cells(shell, cells):
    "The id of the first cell that fails and its error; (None, '') if none does"
    for i, source in cells:
        shell.run(source)
        if shell.exc: return i, f'{type(shell.exc).__name__}: {shell.exc}'.split('\n')[0][:160]
    return None, ''

def in_copy(work, limit):
    "Run `work()` in a fork of this process: (pid, pipe to read its JSON from, deadline)"
    r, w = os.pipe()
    pid = os.fork()
    if pid: os.close(w); return pid, r, time.time() + limit
    os.setpgid(0, 0)
    try:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2): os.dup2(null, fd)
        os.write(w, json.dumps(work()).encode())
    finally: os._exit(0)

def collect(pid, pipe, deadline):
    "What the copy said, or None while it works"
    done, status = os.waitpid(pid, os.WNOHANG)
    if not done and time.time() < deadline: return None
    if not done:
        for kill in (lambda: os.killpg(pid, signal.SIGKILL), lambda: os.kill(pid, signal.SIGKILL)):
            try: kill()
            except ProcessLookupError: pass
        os.waitpid(pid, 0)
    said = b''
    if done:
        while part := os.read(pipe, 65536): said += part
    os.close(pipe)
    if said: return json.loads(said)
    return ['?', 'took too long' if not done else f'ended with status {status}']

class Pool:
    "At most `jobs` copies of this process at work"
    def __init__(self, jobs): self.jobs, self.busy, self.results = jobs, [], []
    def wait(self, most):
        while len(self.busy) > most:
            for job in list(self.busy):
                said = collect(*job[1])
                if said is not None: self.busy.remove(job); self.results.append((job[0], *said))
            if len(self.busy) > most: time.sleep(0.02)
    def start(self, what, work, limit):
        self.wait(self.jobs - 1)
        self.busy.append((what, in_copy(work, limit)))

def test_notebook(path, chosen, args):
    "Run the notebook once and each of the `chosen` mutants from its cell on: [(mutant, cell that failed or None, error)]"
    from execnb.shell import CaptureShell
    cells, todo = code_cells(path, args.flags), defaultdict(list)
    for m in chosen: todo[m.cell].append(m)
    os.environ['IN_TEST'] = '1'
    shell, where = CaptureShell(path), Path.cwd()
    os.chdir(path.parent)
    timing = Pool(1)
    def whole():     # each cell's seconds, and whether the notebook passes as it is
        times = []
        for i, source, _ in cells:
            t = time.time(); failed, error = run_cells(shell, [(i, source)]); times.append(time.time() - t)
            if failed: return [failed, error]
        return [None, times]
    timing.start(None, whole, 3600); timing.wait(0)
    _, failed, times = timing.results[0]
    if failed: sys.exit(f'{path.name} fails as it is, in cell {failed}: {times}')
    pool = Pool(args.jobs)
    for k, (i, source, _) in enumerate(cells):
        rest = [(j, s) for j, s, _ in cells[k+1:]]
        for m in todo.pop(i, ()):
            pool.start(m, lambda: run_cells(shell, [(i, m.code)] + rest), args.patience*sum(times[k:]) + 60)
        if not todo: break
        if (failed := run_cells(shell, [(i, source)]))[0]: sys.exit(f'{path.name} fails as it is, in cell {failed}')
    pool.wait(0)
    os.chdir(where)
    return pool.results

# --- Further notebooks, with the change in an exported copy of the package ---------------------------------------------
def exported_with(m, source, folder):
    "A copy of the library in `folder`, with the mutant in the module that its notebook exports"
    for name in ('wbattn', 'nbs', 'settings.ini'):
        (shutil.copytree if (root/name).is_dir() else shutil.copy)(root/name, folder/name, **({'symlinks': True} if (root/name).is_dir() else {}))
    for py in (folder/'wbattn').rglob('*.py'):
        text = py.read_text(encoding='utf-8')
        if f'#{m.cell}\n' in text and source.strip() in text:
            py.write_text(text.replace(source.strip(), m.code.strip(), 1), encoding='utf-8'); return True

def survives_further(m, source, notebooks):
    "The first of further notebooks that fails with the mutant, or None"
    for nb in notebooks:
        with tempfile.TemporaryDirectory() as tmp:
            if not exported_with(m, source, Path(tmp)): return None
            code = f"import sys; from nbdev.test import test_nb; from pathlib import Path; sys.exit(not test_nb(Path('nbs/{nb.name}').resolve(), skip_flags='slow cuda data'.split(), showerr=False)[0])"
            r = subprocess.run([sys.executable, '-c', code], cwd=tmp, env=os.environ | {'PYTHONPATH': tmp}, capture_output=True)
            if r.returncode: return nb.name

# --- The command -----------------------------------------------------------------------------------------------------
def accepted():
    "{(notebook, cell, code, old, new): reason} of the changes that no test can see"
    if not accepted_file.exists(): return {}
    with open(accepted_file, encoding='utf-8', newline='') as f:
        return {(r['notebook'], r['cell'], r['code'], r['old'], r['new']): r['reason'] for r in csv.DictReader(f)}

def line_of(m, sources): return sources[m.cell].splitlines()[m.line - 1].strip()
def key(m, sources): return m.notebook, m.cell, line_of(m, sources), m.old, m.new

def save(path, rows):
    with open(path, 'w', encoding='utf-8', newline='') as f: csv.writer(f).writerows([[*Mutant._fields[:4], 'code', *Mutant._fields[4:6], 'failed', 'error', 'reason'], *rows])

def arguments():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('notebooks', nargs='+', type=Path, metavar='NOTEBOOK')
    p.add_argument('--n', type=int, default=100, help='changes to draw from all there are (100)')
    p.add_argument('--all', action='store_true', help='every change instead')
    p.add_argument('--list', action='store_true', help='say which changes would be made, and make none')
    p.add_argument('--seed', type=int, default=0, help='of the draw (0)')
    p.add_argument('--jobs', type=int, default=os.cpu_count(), help='processes, of one thread each (one a core)')
    p.add_argument('--flags', nargs='*', default=[], help='test flags to run too: slow, data')
    p.add_argument('--cells', nargs='*', default=[], help='only these cells')
    p.add_argument('--match', default='', help='only changes whose line, old or new text holds this')
    p.add_argument('--then', nargs='*', type=Path, default=[], help='further notebooks for the survivors, with the exported change')
    p.add_argument('--patience', type=float, default=4, help='a mutant may take this many times as long as the notebook, and a minute (4)')
    p.add_argument('--aim', type=float, default=95, help='percent to be caught (95)')
    p.add_argument('--out', type=Path, help='write all results there, as CSV')
    return p.parse_args()

def main():
    args = arguments()
    os.chdir(root); sys.path.insert(0, str(root)); os.environ['PYTHONPATH'] = str(root)
    here, mutants, sources = [p if p.exists() else root/'nbs'/p.name for p in args.notebooks], [], {}
    for path in here:
        for i, source, exported in code_cells(path, args.flags):
            sources[i] = source
            if exported and (not args.cells or i in args.cells): mutants += mutants_of(path.name, i, source)
    mutants = [m for m in mutants if args.match in f'{line_of(m, sources)} {m.old} {m.new}']
    if not args.all and args.n < len(mutants): mutants = random.Random(args.seed).sample(mutants, args.n)
    if args.list:
        for m in mutants: print(f'{m.notebook} {m.cell}:{m.line} {m.kind}: {m.old}  ->  {m.new}')
        return print(len(mutants), 'changes')
    excused, rows, broken = accepted(), [], []
    for path in here:
        chosen, start = [m for m in mutants if m.notebook == path.name], time.time()
        if not chosen: continue
        results = test_apart(path.resolve(), chosen, args)
        if results is None: broken.append(path.name); continue
        caught = alive = known = 0
        for m, failed, error in sorted(results, key=lambda r: (list(sources).index(r[0].cell), r[0].line)):
            if failed is None and args.then: failed, error = survives_further(m, sources[m.cell], args.then), ''
            reason = excused.get(key(m, sources), '')
            caught += failed is not None; known += failed is None and bool(reason); alive += failed is None and not reason
            rows.append([*m[:4], line_of(m, sources), *m[4:6], failed or '', error, reason])
            if failed is None:
                print(f'  {"accepted" if reason else "SURVIVED"} {m.cell}:{m.line} {m.kind}: {m.old[:90]}  ->  {m.new[:90]}')
                print(f'           {line_of(m, sources)}' + (f'   ({reason})' if reason else ''))
        if args.out: save(args.out, rows)
        print(f'{path.name}: {caught} of {caught + alive} caught, {known} accepted, {time.time() - start:.0f} s', flush=True)
    caught, alive = sum(bool(r[7]) for r in rows), sum(not r[7] and not r[9] for r in rows)
    share = 100*caught/max(1, caught + alive)
    print(f'all: {caught} of {caught + alive} changes caught ({share:.1f} %), {len(rows) - caught - alive} survivors accepted')
    if broken: print('not measured, their tests fail without any change:', *broken)
    sys.exit(bool(broken) or share < args.aim)

def test_apart(path, chosen, args):
    "`test_notebook` in a process of its own: notebooks don't see each other's state"
    pool = Pool(1)
    with tempfile.TemporaryDirectory() as tmp:
        found = Path(tmp)/'results'
        def work():
            try: found.write_text(json.dumps(test_notebook(path, chosen, args)), encoding='utf-8')
            except BaseException as e: found.write_text(json.dumps(str(e)), encoding='utf-8')
            return []
        pool.start(None, work, 10**6); pool.wait(0)
        results = json.loads(found.read_text(encoding='utf-8')) if found.exists() else 'no result'
    if isinstance(results, str): print(results, file=sys.stderr); return None
    return [(Mutant(*m), failed, error) for m, failed, error in results]

if __name__ == '__main__': main()
