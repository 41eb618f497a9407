// A form is sent once, and only while the server can be reached; until then what somebody wrote stays on the page,
// and in this tab's memory, also when the page is loaded again. Without this script a form is sent as browsers do;
// the server takes each page of a task once.
const AWAY = "The server cannot be reached, so nothing was sent. What you wrote is still here: send it again in a moment.";
const DRAFT = "edgen.draft ";
const OF_PAGE = ["token", "form", "since", "key", "paper", "unit"];

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

// The second click of a double click may come when the next page is shown already, and would answer that.
document.addEventListener("click", (event) => {
  if (event.detail > 1 && event.target.closest("form[method=post] button")) event.preventDefault();
});

// The name of a form's draft: what it answers. Forms of other kinds have none.
function draftOf(form) {
  const answers = ["key", "paper", "unit"].map((name) => form.elements[name]?.value).filter(Boolean);
  return answers.length ? `${DRAFT}${answers}` : null;
}

function keep(form) {
  const name = form && draftOf(form);
  if (!name) return;
  const written = [...new FormData(form)].filter(([field]) => !OF_PAGE.includes(field));
  sessionStorage.setItem(name, JSON.stringify(written));
}
document.addEventListener("input", ({ target }) => keep(target.form));
// What was typed before this script came.
for (const text of document.querySelectorAll("textarea")) if (text.value !== text.defaultValue) keep(text.form);

// Fill in the drafts of the forms that are shown, and forget those of others: they were answered.
export function restore() {
  const forms = new Map([...document.forms].map((form) => [draftOf(form), form]));
  for (const name of Object.keys(sessionStorage).filter((one) => one.startsWith(DRAFT))) {
    const form = forms.get(name);
    if (!form) {
      sessionStorage.removeItem(name);
      continue;
    }
    for (const [field, value] of JSON.parse(sessionStorage.getItem(name))) {
      for (const place of form.querySelectorAll(`[name="${CSS.escape(field)}"]`)) {
        if (place.type === "radio" || place.type === "checkbox") place.checked ||= place.value === value;
        else place.value ||= value;
      }
    }
  }
}
restore();

// A page from the browser's memory may be sent again.
window.addEventListener("pageshow", () => {
  for (const form of document.forms) delete form.dataset.sent;
});
