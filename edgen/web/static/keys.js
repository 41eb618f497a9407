// Keys that press the buttons of a task's page. Without this script the buttons work alone.
const STORED = "edgen.keys";
const choice = document.getElementById("use-keys");
document.getElementById("keys").hidden = false;
choice.checked = localStorage.getItem(STORED) !== "off";
choice.addEventListener("change", () => localStorage.setItem(STORED, choice.checked ? "on" : "off"));
document.documentElement.classList.add("has-keys");

document.addEventListener("keydown", (event) => {
  if (!choice.checked || event.ctrlKey || event.altKey || event.metaKey || event.repeat) return;
  if (event.target.matches("input:not([type=checkbox]):not([type=radio]), textarea, select")) return;
  const place = [...document.querySelectorAll("[data-key]")].find((one) => one.dataset.key === event.key.toLowerCase());
  if (!place) return;
  event.preventDefault();
  place.click();
  place.parentElement.querySelector("#reason")?.focus();
});
