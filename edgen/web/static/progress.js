// Figures of people's answers as they change. Without this script, loading the page again shows them.
import { AWAY, RESTARTED, sayConnection } from "/static/connection.js";

const EVERY = 5000; // milliseconds

async function refresh() {
  if (document.hidden) return;
  try {
    const answer = await fetch(location.pathname, { credentials: "same-origin" });
    sayConnection(answer.status === 403 ? RESTARTED : "");
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("figures");
    const shown = document.getElementById("figures");
    if (!fresh || !shown) return;
    const open = [...shown.querySelectorAll("details")].map((one) => one.open);
    if (open.length) [...fresh.querySelectorAll("details")].forEach((one, place) => { one.open = open[place] ?? one.open; });
    if (fresh.innerHTML !== shown.innerHTML) shown.replaceChildren(...fresh.childNodes);
  } catch {
    sayConnection(AWAY);
  }
}
setInterval(refresh, EVERY);
