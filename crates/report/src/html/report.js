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
  show();
});
