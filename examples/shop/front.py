"""The one page of the shops in `examples/fastapi` and `examples/flask`: orders on the left, the work on them on the right."""

from __future__ import annotations

from html import escape
from typing import Final

PEOPLE: Final = ("ann", "bob")

_STYLE: Final = """
:root { color-scheme: light dark; --ground: #f4f6f8; --surface: #fff; --line: #d3d9e0; --text: #1a1f26; --soft: #545e6b;
  --accent: #0b57c4; --on-accent: #fff; }
@media (prefers-color-scheme: dark) { :root { --ground: #12161b; --surface: #1b2027; --line: #343c46; --text: #e5e9ee; --soft: #a6b0bc;
  --accent: #8fb8f8; --on-accent: #0c1a30; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--text); font: 1rem/1.5 system-ui, sans-serif; }
header { display: flex; flex-wrap: wrap; gap: .5rem 1rem; align-items: center; justify-content: space-between;
  padding: .75rem max(1rem, calc(50vw - 29rem)); background: var(--surface); border-bottom: 1px solid var(--line); }
header form { display: flex; gap: .75rem; align-items: center; }
h1 { font-size: 1.25rem; margin: 0; }
h2 { font-size: 1rem; margin: 0 0 .75rem; }
main { max-width: 60rem; margin: 0 auto; padding: 1rem; display: grid; gap: 1rem;
  grid-template-columns: repeat(auto-fit, minmax(min(100%, 20rem), 1fr)); }
section { background: var(--surface); border: 1px solid var(--line); border-radius: 10px; padding: 1rem; min-width: 0; }
label { display: block; font-weight: 600; margin-bottom: .25rem; }
input { width: 100%; font: inherit; padding: .5rem .75rem; color: inherit; background: var(--ground);
  border: 1px solid var(--soft); border-radius: 8px; }
button { font: inherit; font-weight: 600; padding: .5rem 1rem; border: 1px solid var(--accent); border-radius: 8px;
  background: var(--accent); color: var(--on-accent); cursor: pointer; }
button.quiet { background: transparent; color: var(--accent); }
section form button { margin-top: .75rem; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
ul { list-style: none; margin: 1rem 0 0; padding: 0; }
li { display: flex; justify-content: space-between; gap: 1rem; padding: .5rem 0;
  border-top: 1px solid var(--line); overflow-wrap: anywhere; }
li span:last-child { flex: none; }
li span:last-child, p { color: var(--soft); }
p { margin: .75rem 0 0; }
.row { display: flex; gap: .75rem; }
a { color: var(--accent); }
"""

_SCRIPT: Final = """
const list = document.querySelector("#orders"), said = document.querySelector("#said");
let asked = 0;
async function show() {
  const mine = ++asked;
  const orders = await (await fetch("/orders")).json();
  if (mine === asked) list.replaceChildren(...orders.map((order) => {
    const row = document.createElement("li");
    for (const text of [order.item, order.state]) row.append(Object.assign(document.createElement("span"), { textContent: text }));
    return row;
  }));
}
document.querySelector("#order").addEventListener("submit", async (event) => {
  event.preventDefault();
  const body = JSON.stringify({ item: new FormData(event.target).get("item") });
  const answer = await fetch("/orders", { method: "POST", headers: { "Content-Type": "application/json" }, body });
  said.textContent = answer.status === 202 ? "Accepted. You may close this page: the work goes on." : "That was not accepted.";
  if (answer.ok) event.target.reset();
  await show();
});
addEventListener("outlast-final", show);
await show();
"""


def page(user: str | None) -> str:
    """The page as `user` sees it; the buttons to sign in, for nobody."""
    body = _signed_in(user) if user else _nobody()
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Shop</title>
<link rel="icon" href="data:,">
<style>{_STYLE}</style>
</head>
<body>
{body}
</body>
</html>
"""


def _nobody() -> str:
    buttons = "".join(f'<form method="post" action="/sign-in?name={name}"><button>{name.title()}</button></form>' for name in PEOPLE)
    return f"""<header><h1>Shop</h1></header>
<main><section><h2>Who are you?</h2><div class="row">{buttons}</div></section></main>"""


def _signed_in(user: str) -> str:
    return f"""<header><h1>Shop</h1>
<form method="post" action="/sign-out"><span>{escape(user.title())}</span><button class="quiet">Sign out</button></form></header>
<main>
<section><h2>Orders</h2>
<form id="order"><label for="item">What would you like?</label><input id="item" name="item" required maxlength="80" autocomplete="off">
<button>Order</button></form>
<p id="said" role="status"></p>
<ul id="orders"></ul></section>
<section><h2>What is being done</h2>
<outlast-jobs href="/jobs/v1/jobs" page-href="/jobs/jobs/{{id}}"><span slot="empty">Nothing yet.</span></outlast-jobs>
<p><a href="/jobs/">All of your work</a></p></section>
</main>
<script type="module" src="/jobs/component.js"></script>
<script type="module">{_SCRIPT}</script>"""
