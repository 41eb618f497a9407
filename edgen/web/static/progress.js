// Figures of people's answers as they change. Without this script, loading the page again shows them.
const EVERY = 5000; // milliseconds

async function refresh() {
  if (document.hidden) return;
  try {
    const answer = await fetch(location.pathname, { credentials: "same-origin" });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("figures");
    const shown = document.getElementById("figures");
    if (!fresh || !shown) return;
    const open = [...shown.querySelectorAll("details")].map((one) => one.open);
    if (open.length) [...fresh.querySelectorAll("details")].forEach((one, place) => { one.open = open[place] ?? one.open; });
    if (fresh.innerHTML !== shown.innerHTML) shown.replaceChildren(...fresh.childNodes);
  } catch {
    // The server is away for a moment; the next look finds it again.
  }
}
setInterval(refresh, EVERY);
