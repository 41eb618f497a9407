// A form is sent once, and only while the server can be reached: what somebody wrote stays on the page until
// then. Without this script a form is sent as browsers do; the server takes each page of a task once.
const AWAY = "The server cannot be reached, so nothing was sent. What you wrote is still here: send it again in a moment.";

async function isReachable() {
  try {
    return (await fetch("/static/forms.js", { method: "HEAD", cache: "no-store" })).ok;
  } catch {
    return false;
  }
}

function say(form, words) {
  const note = form.querySelector(".away") ?? document.createElement("p");
  note.className = "note away";
  note.setAttribute("role", "alert");
  note.textContent = words;
  form.prepend(note);
}

document.addEventListener("submit", async (event) => {
  const form = event.target;
  if (form.method !== "post" || form.dataset.sent === "now") return;
  event.preventDefault();
  if (form.dataset.sent) return;
  form.dataset.sent = "soon";
  if (await isReachable()) {
    form.dataset.sent = "now";
    form.requestSubmit(event.submitter);
    form.dataset.sent = "yes";
  } else {
    delete form.dataset.sent;
    say(form, AWAY);
  }
});

// A page from the browser's memory may be sent again.
window.addEventListener("pageshow", () => {
  for (const form of document.forms) delete form.dataset.sent;
});
