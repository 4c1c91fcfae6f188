"""The shape of the library: no import runs upward, and the operators stay light.

Numbers of notebooks are dependency order: a module imports only modules of lower-numbered notebooks, and what comes
from notebooks below 20 (the operators and their mathematics) imports none of the heavy libraries.
"""
import ast, re, subprocess, sys
from pathlib import Path

root = Path(__file__).resolve().parent.parent
lib = root/'wbattn'
heavy, light_below = {'fastai', 'timm', 'matplotlib', 'torchvision', 'sklearn'}, 20
beside = {'wbattn.kernels': 0}  # serves the operators and imports none of ours, though its notebook, which tests them, comes late
problems, number = [], {}
for py in sorted(lib.rglob('*.py')):
    m = re.search(r'File to edit: \S*?(\d+)\w*_[^/\s]*\.ipynb', py.read_text(encoding='utf-8')[:2000])
    mod = '.'.join(py.relative_to(root).with_suffix('').parts)
    if m: number[mod] = beside.get(mod, int(m[1]))
    elif py.name not in ('__init__.py', '_modidx.py'): problems.append(f'{py.relative_to(root)} comes from no notebook')

def imports(tree, package):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import): yield from (a.name for a in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split('.')[:len(package.split('.')) - node.level + 1] if node.level else []
            base = '.'.join(parts + ([node.module] if node.module else []))   # nbdev exports absolute imports as relative ones
            yield base; yield from (f'{base}.{a.name}' for a in node.names)

for mod, n in number.items():
    tree = ast.parse((root/mod.replace('.', '/')).with_suffix('.py').read_text(encoding='utf-8'))
    for name in imports(tree, mod.rpartition('.')[0]):
        if name in number and number[name] >= n: problems.append(f'{mod} ({n:02d}) imports {name} ({number[name]:02d}): upward')
    stars = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.names[0].name == '*']
    if stars: problems.append(f'{mod} has star imports: {", ".join(stars)}')

light = ['wbattn', *(m for m, n in number.items() if n < light_below)]
code = f'import sys, importlib\nfor m in {light!r}: importlib.import_module(m)\nprint(*sorted({heavy!r} & sys.modules.keys()))'
r = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True, cwd=root)
if r.returncode: problems.append('importing the light modules failed:\n' + r.stderr[-2000:])
elif r.stdout.strip(): problems.append(f'{", ".join(light)} pull in: {r.stdout.strip()}')
print(f'{len(number)} modules; light: {", ".join(light)}')
if problems: print(*problems, sep='\n'); sys.exit(1)
