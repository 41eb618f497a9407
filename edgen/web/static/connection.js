// A line at the top of a page with live figures, for as long as these cannot be read.
const line = document.createElement("p");
line.setAttribute("role", "status");
document.getElementById("content").prepend(line);

export const AWAY = "The server does not answer, so these figures do not change. The page tries again.";
export const RESTARTED = "The server was started again. Open the link that it printed to see the present figures.";

export function sayConnection(words) {
  line.className = words ? "note" : "";
  if (line.textContent !== words) line.textContent = words;
}
