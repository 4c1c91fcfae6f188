#!/usr/bin/env python3
"""The website, as a reader gets it. Needs Quarto 1.7 or newer (https://quarto.org/docs/get-started/).

    python .ci/website.py            render all pages into _proc/_docs and look at them (check.py site): on two
                                     cores, where each page's sidebar names only the pages of its half
    python .ci/website.py whole      the same on one core, with whole sidebars: what is published
    python .ci/website.py made       in halves again, of the pages that nbdev_proc_nbs has just made in _proc
    python .ci/website.py preview    show them in the browser while you write

nbdev's own nbdev_docs and nbdev_preview do the same where Quarto is installed; where it isn't, they install it as root
and this package with pip, so this file asks first.
"""
import os, re, shutil, subprocess, sys
from pathlib import Path

root = Path(__file__).resolve().parent.parent
bin_dir = Path(sys.executable).parent

def prepare():
    "Notebooks as pages: _proc is written anew."
    shutil.rmtree(root/'_proc', ignore_errors=True)
    subprocess.run([bin_dir/'nbdev_proc_nbs'], cwd=root, check=True, stdout=subprocess.DEVNULL)

def start_half(folder, pages):
    "Render some pages of a folder in a process of its own."
    names = ''.join(f'    - {page}\n' for page in pages)
    (folder/'_quarto-half.yml').write_text(f'project:\n  render:\n{names}')
    command = ['quarto', 'render', '--no-execute', '--profile', 'half']
    with open(folder/'half.log', 'w') as log: return subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)

def render():
    "All pages. Quarto uses one core, so in two halves at once, each with every second page by size."
    first, second = root/'_proc', root/'_half'
    shutil.rmtree(second, ignore_errors=True)
    shutil.copytree(first, second, symlinks=True)
    pages = sorted(first.glob('*.ipynb'), key=lambda page: page.stat().st_size, reverse=True)
    names = [page.name for page in pages if page.name != 'index.ipynb']
    halves = {first: start_half(first, ['index.ipynb', *names[::2]]), second: start_half(second, names[1::2])}
    failed = [folder for folder, process in halves.items() if process.wait()]
    for folder in failed: print((folder/'half.log').read_text()[-6000:])
    if failed: sys.exit('Quarto failed')
    for file in (second/'_docs').rglob('*'):
        target = first/'_docs'/file.relative_to(second/'_docs')
        if target.exists() or file.is_dir(): continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, target)
    shutil.rmtree(second)

def render_whole():
    "All pages in one go."
    subprocess.run(['quarto', 'render', '--no-execute'], cwd=root/'_proc', check=True)

def link_halves():
    "Links to pages of the other half still name their notebooks."
    for page in (root/'_proc'/'_docs').glob('*.html'):
        html = page.read_text(encoding='utf-8')
        linked = re.sub(r'href="(\./)?(?:\d+[a-z]?_)?([a-z0-9_]+)\.ipynb', r'href="\1\2.html', html)
        page.write_text(linked, encoding='utf-8')

def main():
    if shutil.which('quarto') is None: sys.exit('Quarto is not on the PATH: https://quarto.org/docs/get-started/')
    os.environ['PATH'] = f"{bin_dir}:{os.environ['PATH']}"
    if sys.argv[1:] == ['preview']: sys.exit(subprocess.run([bin_dir/'nbdev_preview'], cwd=root).returncode)
    if sys.argv[1:] not in ([], ['whole'], ['made']): sys.exit(__doc__)
    if sys.argv[1:] != ['made']: prepare()
    if sys.argv[1:] == ['whole']: render_whole()
    else:
        render()
        link_halves()
    subprocess.run([sys.executable, root/'.ci/slim.py', root/'_proc'/'_docs'], check=True)
    sys.exit(subprocess.run([sys.executable, '.ci/check.py', 'site', '_proc/_docs'], cwd=root).returncode)

if __name__ == '__main__': main()
