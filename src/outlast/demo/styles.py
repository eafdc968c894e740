"""How the editions look. No font or image is loaded; the reader's own fonts and colours are respected."""

from __future__ import annotations

_TEXT = """\
body { overflow-wrap: break-word; }
.number { display: block; font-size: .5em; font-weight: 600; letter-spacing: .14em; text-transform: uppercase;
  opacity: .7; font-family: var(--sans, sans-serif); }
h1, h2, h3, h4, h5, h6 { line-height: 1.25; margin: 2em 0 .6em; break-after: avoid; page-break-after: avoid; }
h2.chapter-title, h1.chapter-title { margin-top: 0; }
p, ul, ol, dl, pre, blockquote, aside { margin: .8em 0; }
ul, ol { padding-left: 1.5em; }
li > p { margin: .35em 0; }
li > ul, li > ol { margin: .25em 0 .5em; }
dd > p:first-child { margin-top: .3em; }
dt { margin-top: 1em; font-weight: 600; }
dt + dt { margin-top: .1em; }
dt code { overflow-wrap: anywhere; }
dd { margin: .2em 0 0 1.5em; }
code, pre { font-family: ui-monospace, "SFMono-Regular", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: .9em; }
pre code { font-size: 1em; }
blockquote { margin-left: 1.5em; }
p.version { font-size: .92em; opacity: .85; }
aside { padding: .1em 1em; border-left: .25em solid; }
aside p.kind { font-weight: 600; margin-bottom: .2em; }
aside p.kind + * { margin-top: .2em; }
aside.notes { font-size: .92em; border-left: 0; border-top: 1px solid; padding: .2em 0 0; margin-top: 2em; }
aside.notes li > p { display: inline; }
table { border-collapse: collapse; width: 100%; font-size: .95em; }
th, td { text-align: left; vertical-align: top; padding: .35em .7em .35em 0; border-bottom: 1px solid; }
sup { line-height: 0; }
"""

WEB = """\
:root { color-scheme: light dark; --paper: #fdfcf9; --ink: #22252a; --quiet: #5c6470; --line: #d9d6cd; --block: #f3f1ea;
  --link: #1d5b99; --note: #306998; --warn: #b3261e;
  --sans: system-ui, -apple-system, "Segoe UI", "Helvetica Neue", Arial, sans-serif; }
@media (prefers-color-scheme: dark) {
  :root { --paper: #16181c; --ink: #dcdfe4; --quiet: #9aa3af; --line: #343940; --block: #1f2329;
    --link: #8ab8ea; --note: #ffd43b; --warn: #ff8a80; }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 1rem; -webkit-text-size-adjust: 100%; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 1.0625rem/1.62 Charter, "Bitstream Charter", "Iowan Old Style", Georgia, "DejaVu Serif", serif; }
h1, h2, h3, h4, h5, h6 { font-family: var(--sans); }
a { color: var(--link); text-underline-offset: .15em; }
header.title { padding: 16vh 1.5rem 12vh; text-align: center; border-bottom: 1px solid var(--line); }
header.title h1 { font-size: clamp(2.2rem, 6vw, 3.6rem); margin: 0 0 .4rem; letter-spacing: -.02em; }
header.title p { margin: .3rem 0; color: var(--quiet); }
main { max-width: 44rem; margin: 0 auto; padding: 0 1.25rem 6rem; min-width: 0; }
nav { font: .94rem/1.45 var(--sans); max-width: 44rem; margin: 0 auto; padding: 2rem 1.25rem; }
nav h2 { font-size: 1rem; margin: 0 0 .8rem; }
nav ol { list-style: none; margin: 0; padding: 0; }
nav > ol > li { margin: 0 0 .9rem; }
nav > ol > li > a { font-weight: 600; }
nav li li { margin: .15rem 0 .15rem 1.9rem; }
nav a { color: inherit; text-decoration: none; }
nav a:hover, nav a:focus { color: var(--link); text-decoration: underline; }
nav li li a { color: var(--quiet); }
nav .number { display: inline-block; min-width: 1.9rem; font-size: 1em; letter-spacing: 0; text-transform: none; }
@media (min-width: 75rem) {
  .columns { display: grid; grid-template-columns: 21rem minmax(0, 1fr); }
  nav { position: sticky; top: 0; height: 100vh; overflow: auto; margin: 0; border-right: 1px solid var(--line);
    padding: 2rem 1.5rem; }
  main { width: 100%; }
}
section.chapter, section.index { padding-top: 5rem; }
h2.chapter-title, section.index > h2 { font-size: 2.1rem; letter-spacing: -.015em; padding-bottom: .6rem;
  border-bottom: 3px solid var(--note); }
.chapter-title .number { font-size: .85rem; color: var(--quiet); opacity: 1; margin-bottom: .3rem; }
h3 { font-size: 1.5rem; margin-top: 3rem; }
h4 { font-size: 1.2rem; } h5 { font-size: 1.02rem; } h6 { font-size: .95rem; }
pre { background: var(--block); padding: .8rem 1rem; border-radius: .4rem; overflow-x: auto; line-height: 1.45; }
:not(pre) > code { background: var(--block); padding: .1em .3em; border-radius: .25em; overflow-wrap: anywhere; }
aside { border-color: var(--note); background: var(--block); border-radius: 0 .4rem .4rem 0; }
aside :not(pre) > code { background: none; padding: 0; }
aside.warning, aside.caution { border-color: var(--warn); }
aside.notes { background: none; border-color: var(--line); border-radius: 0; }
aside .kind { font-family: var(--sans); font-size: .85rem; }
.table { overflow-x: auto; }
td > code { overflow-wrap: normal; }
th, td { border-color: var(--line); }
th { font-family: var(--sans); font-size: .9em; }
footer { border-top: 1px solid var(--line); padding: 1.5rem; text-align: center; color: var(--quiet);
  font: .85rem var(--sans); }
@media print {
  nav { position: static; height: auto; }
  .columns { display: block; }
  pre { white-space: pre-wrap; }
}
"""

INDEX = """\
.entries { columns: 15rem; column-gap: 2rem; font-size: .94em; }
.entries h3 { font-size: 1em; margin: 1em 0 .2em; break-after: avoid; }
.entries h3:first-child { margin-top: 0; }
.entries ul { list-style: none; margin: 0; padding: 0; }
.entries li { padding-left: 1em; text-indent: -1em; break-inside: avoid; overflow-wrap: anywhere; }
.entries li span { opacity: .7; }
"""

WEB_BOOK = _TEXT + WEB + INDEX
"""The HTML edition."""

EPUB_BOOK = (
    _TEXT
    + """\
body { margin: 0 5%; line-height: 1.5; }
h1, h2, h3, h4, h5, h6 { font-family: sans-serif; }
h1.chapter-title { font-size: 1.9em; padding-bottom: .4em; border-bottom: 2px solid; }
h2 { font-size: 1.45em; } h3 { font-size: 1.2em; } h4 { font-size: 1.05em; } h5, h6 { font-size: 1em; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; padding-left: 1em; border-left: .2em solid;
  font-size: .85em; line-height: 1.4; }
aside { padding: .1em .8em; }
.title-page { text-align: center; margin-top: 20%; }
.title-page h1 { font-size: 2.2em; }
.cover { margin: 0; padding: 0; text-align: center; }
.cover img { max-width: 100%; max-height: 100%; }
nav ol { list-style: none; padding-left: 1em; }
"""
    + INDEX
)
"""The chapters of the EPUB. Long lines of code break, since a reading device cannot scroll sideways."""
