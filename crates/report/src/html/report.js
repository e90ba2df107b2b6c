document.documentElement.className = "js";
document.addEventListener("DOMContentLoaded", () => {
  const selects = [...document.querySelectorAll("select[data-key]")];
  // One choice holds for all sections that have it.
  const choose = (key, value) => {
    for (const select of selects) {
      if (select.dataset.key === key && [...select.options].some((option) => option.value === value)) select.value = value;
    }
  };
  const show = () => {
    for (const section of document.querySelectorAll("section")) {
      const own = [...section.querySelectorAll("select[data-key]")];
      for (const figure of section.querySelectorAll("figure")) {
        figure.classList.toggle("on", own.every((select) => (figure.dataset[select.dataset.key] ?? select.value) === select.value));
      }
      section.querySelector(".none")?.classList.toggle("on", !section.querySelector("figure.on"));
    }
  };
  for (const select of selects) {
    select.addEventListener("change", () => { choose(select.dataset.key, select.value); show(); });
  }
  for (const select of selects) if (select.dataset.key === "time") slider(select, selects);
  show();
  for (const table of document.querySelectorAll("table.sortable")) sortable(table);
  const summary = document.querySelector("#summary .scroll");
  const fit = () => {
    summary.classList.remove("tight");
    summary.classList.toggle("tight", summary.scrollWidth > summary.clientWidth);
  };
  if (summary) { fit(); addEventListener("resize", fit); }
  for (const text of document.querySelectorAll(".copy")) copyable(text);
  // What is folded on a screen is not on paper.
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details:not([open])")];
    for (const details of folded) details.open = true;
  });
  addEventListener("afterprint", () => { for (const details of folded) details.open = false; });
});

// A slider beside a choice of times: with it the pictures are a film.
function slider(select, selects) {
  const range = document.createElement("input");
  range.type = "range";
  range.className = "slide";
  range.min = 0;
  range.max = select.options.length - 1;
  range.setAttribute("aria-label", "time");
  const follow = () => {
    range.value = select.selectedIndex;
    range.setAttribute("aria-valuetext", select.value);
  };
  range.addEventListener("input", () => {
    select.selectedIndex = range.value;
    select.dispatchEvent(new Event("change"));
  });
  for (const other of selects) other.addEventListener("change", follow);
  follow();
  select.closest(".choose").classList.add("times");
  select.parentElement.after(range);
}

// A heading becomes a button: up, down, and as it was.
function sortable(table) {
  const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
  if (rows.length < 2) return;
  const words = new Intl.Collator(undefined, { numeric: true });
  const read = (row, column) => {
    const cell = row.cells[column], text = cell.firstChild?.textContent.trim() ?? "";
    if (!heads[column].classList.contains("number")) return { text };
    // What stands behind the first number is its interval; "<0.001" is as good as that.
    const number = parseFloat(text.replace(/[,<>+]/g, ""));
    return { text, number };
  };
  const compare = (a, b, column, way) => {
    const [one, two] = [read(a, column), read(b, column)];
    if (one.number === undefined) return way * words.compare(one.text, two.text);
    // Where there is nothing, it stands last either way.
    if (isNaN(one.number) || isNaN(two.number)) return isNaN(one.number) - isNaN(two.number);
    return way * (one.number - two.number);
  };
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const next = { none: "ascending", ascending: "descending", descending: "none" }[head.getAttribute("aria-sort") ?? "none"];
      for (const other of heads) other.removeAttribute("aria-sort");
      if (next !== "none") head.setAttribute("aria-sort", next);
      table.classList.toggle("sorted", next !== "none");
      const way = next === "descending" ? -1 : 1;
      body.append(...(next === "none" ? rows : [...rows].sort((a, b) => compare(a, b, column, way))));
    });
  });
}

// A button beside a text that takes it to the clipboard, or at least selects it.
function copyable(text) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copies";
  button.textContent = "Copy";
  button.setAttribute("aria-label", `Copy: ${text.getAttribute("aria-label")}`);
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text.textContent);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(text);
      button.textContent = document.execCommand("copy") ? "Copied" : "Selected";
    }
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  text.before(button);
}
