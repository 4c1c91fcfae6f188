"""Print the notes of the version in settings.ini from CHANGELOG.md: `python .ci/release_notes.py [TAG]`.

With a tag, such as v0.2.0, it must name that version, and the notes must carry a date in place of "unreleased"."""
import re, sys
from configparser import ConfigParser
from pathlib import Path

def notes_of(version, changelog):
    "Heading and text of a version, or two empty strings."
    found = re.search(rf'^## {re.escape(version)}\b(.*)\n((?:(?!^## ).*\n?)*)', changelog, re.M)
    return found.groups() if found else ('', '')

def main(tag=''):
    root = Path(__file__).parents[1]
    settings = ConfigParser(delimiters=['='])
    settings.read(root/'settings.ini', encoding='utf-8')
    version = settings['DEFAULT']['version']
    heading, text = notes_of(version, (root/'CHANGELOG.md').read_text(encoding='utf-8'))
    if not text.strip(): sys.exit(f'CHANGELOG.md has no notes for {version}')
    if tag and tag != f'v{version}': sys.exit(f'the tag is {tag}, settings.ini says {version}')
    if tag and not re.search(r'\d{4}-\d{2}-\d{2}', heading): sys.exit(f'CHANGELOG.md gives {version} no date:{heading}')
    print(text.strip())

if __name__ == '__main__': main(*sys.argv[1:])
