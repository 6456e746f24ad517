// Marks the questions of a page: each `.ask-variant` form carries its answer.
(() => {
  // The readings of a typed number: 1,500 is fifteen hundred; 1,5 and 0,528 have a decimal comma;
  // 2,303 may be either.
  const readings = (text) => {
    const plain = text.replace(/[\s_'’]/g, "").replace(/[−–]/g, "-");
    const found = plain.match(/[-+]?(\d[\d.,]*|[.,]\d+)(e[-+]?\d+)?/i);
    if (!found) return { numbers: [], rest: plain };
    const numbers = [found[0].replace(/,/g, ""), found[0].replace(",", ".")].map(Number);
    return { numbers: numbers.filter((n) => !Number.isNaN(n)), rest: plain.replace(found[0], "") };
  };

  // "Right.", "Not quite …", or what to do first.
  const verdict = (form) => {
    const { answer, tolerance, unit } = form.dataset;
    let right;
    if (tolerance === undefined) {
      const chosen = form.querySelector("input:checked");
      if (!chosen) return "Choose one first.";
      right = chosen.value === answer;
    } else {
      const text = form.querySelector("input").value;
      const { numbers, rest } = readings(text);
      const bare = (words) => words.replace(/[^a-zµ%/$]/gi, "").toLowerCase();
      if (!numbers.length) return "Type a number first.";
      if (/[a-zµ%$]/i.test(rest) && !["", "about", bare(unit)].includes(bare(rest))) {
        return `Type the number alone${unit ? ", in " + unit : ""}.`;
      }
      const reach = Math.max(tolerance * Math.abs(answer), 1e-12);
      right = numbers.some((n) => Math.abs(n - answer) <= reach);
    }
    return right ? "Right." : "Not quite: see the working.";
  };

  const mark = (form) => {
    const said = verdict(form);
    const line = form.querySelector(".ask-mark");
    const kind = { "Right.": "right", "Not quite: see the working.": "wrong" }[said];
    line.className = "ask-mark " + (kind || "");
    line.textContent = said;
    if (kind) form.querySelector("details").open = true;
  };

  const wake = (ask) => {
    const forms = [...ask.querySelectorAll(".ask-variant")];
    forms.forEach((form, i) => {
      form.querySelector(".ask-check").disabled = false;
      form.addEventListener("input", () => {
        form.querySelector(".ask-mark").textContent = "";
      });
      const check = (event) => {
        event.preventDefault();
        event.stopPropagation();
        mark(form);
      };
      form.addEventListener("submit", check);
      form.addEventListener("keydown", (event) => {
        // JupyterLab keeps Enter from forms
        if (event.key === "Enter" && event.target.matches("input")) check(event);
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
  // A page is first read to its end: a question may be there in part. A notebook is long complete.
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", all);
  else all();
})();
