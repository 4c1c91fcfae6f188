#!/usr/bin/env python3
"""After editing notebooks: run them, store true outputs, export, clean, README, and look at what a machine can see.

    python .ci/refresh.py nbs/17_eca.ipynb …            # cells marked slow, cuda or data keep their recorded outputs
    python .ci/refresh.py nbs/81_digits.ipynb --slow    # runs them, too, with RECORD = True

A notebook with an error is not written. At the end it names the other notebooks that import what changed, directly or
through other modules.
"""
import argparse, ast, json, os, re, subprocess, sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

root = Path(__file__).resolve().parent.parent
# Figures are stored as SVG: letters stay letters, the ground is the page's, and the same figure is the same file.
figure_format = ['--InlineBackend.figure_formats=svg',
                 *(f'--InlineBackend.rc={name}={value}' for name, value in (
                     ('svg.fonttype', 'none'), ('svg.hashsalt', 'wbattn'), ('figure.facecolor', 'none'),
                     ('axes.facecolor', 'none'), ('savefig.facecolor', 'none')))]
recorded = r'(?m)^#\|\s*(slow|cuda|data)\s*$|^#\|\s*eval:\s*false'

def execute(path, slow):
    "Run a notebook in its folder and write its outputs back; raises at the first error."
    nb = nbformat.read(path, 4)
    client = NotebookClient(nb, timeout=3600, kernel_name='python3', resources={'metadata': {'path': str(path.parent)}}, coalesce_streams=True,
                            extra_arguments=['--log-level=40', *figure_format]) # errors only: ipykernel warns of its own port
    with client.setup_kernel():
        for i, cell in enumerate(nb.cells):
            if cell.cell_type != 'code' or not cell.source.strip(): continue
            if re.search(recorded, cell.source) and not slow: continue
            source = cell.source
            if slow: cell.source = re.sub(r'(?m)^RECORD = False', 'RECORD = True', source)
            client.execute_cell(cell, i)
            cell.source = source
    nbformat.write(nb, path)

def run(*command): return subprocess.run(command, cwd=root).returncode == 0

def module_name(path):
    "wbattn/run/cli.py → wbattn.run.cli"
    return '.'.join(path.relative_to(root).with_suffix('').parts).removesuffix('.__init__')

def imports(source, package=''):
    "Modules of ours that code imports, by all the names they may have been meant by."
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import): names.update(alias.name for alias in node.names)
        if not isinstance(node, ast.ImportFrom): continue
        parents = package.split('.')
        base = parents[:len(parents) + 1 - node.level] if node.level else []
        if node.module: base = [*base, node.module]
        names.add('.'.join(base))
        names.update('.'.join([*base, alias.name]) for alias in node.names)
    return {name for name in names if name.split('.')[0] == 'wbattn'}

def affected_modules(changed):
    "The changed modules, and all that import one of these, directly or not."
    imported_by = {}
    for path in (root/'wbattn').rglob('*.py'):
        module = module_name(path)
        package = module if path.name == '__init__.py' else module.rpartition('.')[0]
        if module != 'wbattn': imported_by[module] = imports(path.read_text(encoding='utf-8'), package) # its names load late
    affected = set(changed)
    while True:
        more = {module for module, names in imported_by.items() if names & affected} - affected
        if not more: return affected
        affected |= more

def modules_of_public_names():
    "wbattn.TSSA → wbattn.ops.tssa, for every name that can be imported from wbattn itself."
    sys.path.insert(0, str(root))
    from wbattn import _public_names
    found = {}
    for module, names in _public_names.items(): found |= {f'wbattn.{name}': f'wbattn.{module}' for name in names}
    return found

def notebook_imports(path):
    "What the code cells of a notebook import; a cell that is no Python (magics) is left out."
    names = set()
    for cell in json.loads(path.read_text(encoding='utf-8'))['cells']:
        if cell['cell_type'] != 'code': continue
        try: names |= imports(re.sub(r'(?m)^[ \t]*[%!].*', '', ''.join(cell['source'])))
        except SyntaxError: continue
    return names

def importers(given):
    "Notebooks besides the given ones that depend on a module which differs from the last commit."
    changed = subprocess.run(['git', 'diff', '--name-only', 'HEAD', '--', 'wbattn'], cwd=root, capture_output=True, text=True).stdout
    modules = [module_name(root/name) for name in changed.split() if name.endswith('.py')]
    affected = affected_modules(module for module in modules if module not in ('wbattn', 'wbattn._modidx'))
    affected |= {name for name, module in modules_of_public_names().items() if module in affected}
    notebooks = sorted(set((root/'nbs').glob('*.ipynb')) - set(given))
    return [path.stem for path in notebooks if notebook_imports(path) & affected]

def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('notebooks', nargs='+', type=lambda s: Path(s).resolve(), help='notebooks that were changed')
    p.add_argument('--slow', action='store_true', help='run recorded cells, too')
    args = p.parse_args()
    os.environ |= {'PATH': f"{Path(sys.executable).parent}:{os.environ['PATH']}", 'PYTHONPATH': str(root), 'NO_COLOR': '1',
                   'OMP_NUM_THREADS': os.environ.get('OMP_NUM_THREADS', '1'), 'SOURCE_DATE_EPOCH': '0'}  # no date in an SVG
    if not run('nbdev_export'): sys.exit('nbdev_export failed')
    for path in args.notebooks:
        try: execute(path, args.slow)
        except CellExecutionError as e: sys.exit(f'{path.name} is not written:\n' + re.sub(r'\x1b\[[0-9;]*m', '', str(e)))
        run('nbdev_clean', '--fname', str(path))
    others = importers(args.notebooks)
    if others: print(f"these depend on what changed: nbdev_test --file_re '^({'|'.join(others)})[.]'")
    checks = [['readme.py'], ['check.py', 'code'], ['check.py', 'pages', *map(str, args.notebooks)]]
    sys.exit(not all([run(sys.executable, f'.ci/{c}', *rest) for c, *rest in checks]))

if __name__ == '__main__': main()
