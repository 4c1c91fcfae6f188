#!/usr/bin/env python3
"""Copy the checkout as it is now, without what git ignores, into a repository of its own with one commit.

    python .ci/snapshot.py FOLDER
"""
import shutil, subprocess, sys
from pathlib import Path

root = Path(__file__).resolve().parent.parent

def git(folder, *args):
    "What git says in a folder, whoever owns it."
    command = ['git', '-c', 'safe.directory=*', '-c', 'user.name=ci', '-c', 'user.email=ci@localhost', *args]
    return subprocess.run(command, cwd=folder, check=True, stdout=subprocess.PIPE, text=True).stdout

def copy_files(folder):
    "Tracked and new files; one that was deleted is left out. Returns how many there are."
    names = git(root, 'ls-files', '-z', '--cached', '--others', '--exclude-standard').split('\0')
    files = [root/name for name in sorted(set(names)) if name and ((root/name).exists() or (root/name).is_symlink())]
    for file in files:
        target = folder/file.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(file, target, follow_symlinks=False)
    return len(files)

if __name__ == '__main__':
    folder = Path(sys.argv[1])
    print('files:', copy_files(folder))
    git(folder, 'init', '-q', '.')
    git(folder, 'add', '-A', '-f', '.')
    git(folder, 'commit', '-q', '-m', 'snapshot')
