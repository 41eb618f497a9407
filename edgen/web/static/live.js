// Figures of the runs as they change. Without this script the page shows how they stood when it was opened.
import { AWAY, RESTARTED, sayConnection } from "/static/connection.js";

const number = new Intl.NumberFormat("en");

function shown(name, value) {
  if (value === null || value === undefined) return name === "cost_usd" ? "unknown" : "–";
  if (name === "cost_usd") return `$${value.toFixed(4)}`;
  return typeof value === "number" ? number.format(value) : value;
}

function chart(card, run) {
  const figure = card.querySelector(".hour");
  if (!figure || !run.minutes.length) return;
  figure.querySelector("polyline").setAttribute("points", run.points);
  figure.querySelector("polygon").setAttribute("points", `0,100 ${run.points} 59,100`);
}

function update(card, facts) {
  for (const place of card.querySelectorAll("[data-of]")) {
    const name = place.dataset.of;
    if (name === "progress") {
      place.max = facts.planned;
      place.value = facts.planned - facts.pending;
    } else if (name === "peak") {
      if (facts.minutes.length) place.textContent = number.format(Math.max(...facts.minutes));
    } else {
      place.textContent = shown(name, facts[name]);
      if (name === "state") place.className = `state ${facts.state}`;
    }
  }
}

// What a page has to be loaded again for: other runs, other states, other questions. Nothing is lost by that
// unless something is being written in a form.
const shape = (facts) => JSON.stringify([facts.runs.map((run) => [run.slug, run.state, run.problem, run.asks_people]).sort(), facts.started]);
// A button that was reached by the keyboard keeps its focus; one that was clicked is left behind.
const isBusy = () => document.activeElement?.matches("input, select, textarea, button:focus-visible");
let before = null;

const events = new EventSource("/events");
events.onopen = () => sayConnection("");
events.onerror = () => sayConnection(events.readyState === EventSource.CLOSED ? RESTARTED : AWAY);
events.onmessage = (event) => {
  const facts = JSON.parse(event.data);
  const cards = new Map([...document.querySelectorAll("[data-run]")].map((card) => [card.dataset.run, card]));
  before ??= shape(facts);
  const isNew = facts.runs.some((run) => !cards.has(run.slug)) || facts.runs.length !== cards.size ||
    facts.runs.some((run) => cards.get(run.slug)?.dataset.state !== run.state);
  if ((isNew || shape(facts) !== before) && !isBusy()) {
    location.reload();
    return;
  }
  for (const run of facts.runs) {
    const card = cards.get(run.slug);
    if (!card || run.problem) continue;
    update(card, run);
    chart(card, run);
  }
  const totals = document.querySelector("#totals");
  if (totals) update(totals, facts.totals);
};
