// The person's conversation as it goes on. Without this script the page loads itself again.
import { restore } from "/static/forms.js";

const play = document.getElementById("play");
const typing = document.getElementById("typing");
let typed = 0;

async function look() {
  try {
    const answer = await fetch(`/play/state?seen=${play.dataset.version}`, { cache: "no-store" });
    if (answer.ok) {
      const state = await answer.json();
      if (state.html !== undefined) {
        play.innerHTML = state.html;
        play.dataset.version = state.version;
        restore();
        play.querySelector("textarea, input[type=radio]")?.focus();
      }
      typing.textContent = state.typing ? "Somebody is writing …" : "";
    } else {
      typing.textContent = answer.status === 403 ? "Open your link again to continue."
        : "The conversation cannot be read now; the page tries again. Everything that you sent is stored.";
    }
  } catch {
    typing.textContent = "No connection; the page tries again.";
  }
  setTimeout(look, 400);
}

play.addEventListener("input", () => {
  if (Date.now() - typed < 1500) return;
  typed = Date.now();
  fetch("/play/typing", { method: "POST", headers: { "X-Token": play.dataset.token } }).catch(() => {});
});

play.addEventListener("keydown", (event) => {
  // Enter sends a text, Shift+Enter begins a new line.
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing && event.target.tagName === "TEXTAREA") {
    event.preventDefault();
    event.target.form.requestSubmit();
  }
});

look();
