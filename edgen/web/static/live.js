// Figures of the runs as they change. Without this script the page shows how they stood when it was opened.
const number = new Intl.NumberFormat("en");

function shown(name, value) {
  if (value === null || value === undefined) return name === "cost_usd" ? "unknown" : "–";
  if (name === "cost_usd") return `$${value.toFixed(4)}`;
  return typeof value === "number" ? number.format(value) : value;
}

function update(card, run) {
  for (const place of card.querySelectorAll("[data-of]")) {
    const name = place.dataset.of;
    if (name === "progress") {
      place.max = run.planned;
      place.value = run.planned - run.pending;
    } else {
      place.textContent = shown(name, run[name]);
      if (name === "state") place.className = `state ${run.state}`;
    }
  }
}

const events = new EventSource("/events");
events.onmessage = (event) => {
  const runs = JSON.parse(event.data);
  const cards = new Map([...document.querySelectorAll("[data-run]")].map((card) => [card.dataset.run, card]));
  if (runs.some((run) => !cards.has(run.slug))) {
    location.reload(); // a run that the page does not show yet
    return;
  }
  for (const run of runs) if (!run.problem) update(cards.get(run.slug), run);
};
