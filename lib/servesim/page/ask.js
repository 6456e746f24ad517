// Marks the questions of a page: each `.ask-variant` form carries its answer.
(() => {
  const number = (text) => {
    const plain = text
      .replace(/[\s_']/g, "")
      .replace(/,(?=\d{3}(\D|$))/g, "") // 1,500 is fifteen hundred …
      .replace(",", ".") // … and 1,5 one and a half
      .replace(/[−–]/g, "-");
    const found = plain.match(/^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?/i);
    return found ? Number(found[0]) : NaN;
  };

  const verdict = (form) => {
    const { answer, tolerance } = form.dataset;
    if (tolerance === undefined) {
      const chosen = form.querySelector("input:checked");
      return chosen ? chosen.value === answer : null;
    }
    const typed = number(form.querySelector("input").value);
    if (Number.isNaN(typed)) return null;
    return Math.abs(typed - answer) <= Math.max(tolerance * Math.abs(answer), 1e-12);
  };

  const mark = (form) => {
    const right = verdict(form);
    const line = form.querySelector(".ask-mark");
    line.className = "ask-mark" + (right === null ? "" : right ? " right" : " wrong");
    line.textContent = right === null ? "Give an answer first." : right ? "Right." : "Not quite: see the working.";
    if (right !== null) form.querySelector("details").open = true;
  };

  const wake = (ask) => {
    const forms = [...ask.querySelectorAll(".ask-variant")];
    forms.forEach((form, i) => {
      form.querySelector(".ask-check").disabled = false;
      form.addEventListener("submit", (event) => {
        event.preventDefault();
        mark(form);
      });
      form.querySelector(".ask-next")?.addEventListener("click", () => {
        form.hidden = true;
        const next = forms[(i + 1) % forms.length];
        next.hidden = false;
        next.querySelector("input").focus();
      });
    });
    ask.dataset.ready = "yes";
  };

  const all = () => document.querySelectorAll(".ask:not([data-ready])").forEach(wake);
  all(); // in a notebook the script follows its question …
  document.addEventListener("DOMContentLoaded", all); // … in a page it may be ahead of some
})();
