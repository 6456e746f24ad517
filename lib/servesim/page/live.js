// Wakes the figures of a page: each `.live` holds its opening frame and all others in a pack.
(() => {
  const SVG = "http://www.w3.org/2000/svg";

  const inflate = async (text) => {
    const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return JSON.parse(await new Response(stream).text());
  };

  // Puts frame k into the picture, rewriting only the places whose piece changed.
  const painter = (figure, pack) => {
    const svg = figure.querySelector("svg");
    const note = figure.querySelector(".live-note");
    svg.replaceChildren(document.createElementNS(SVG, "defs"), ...pack.slots.map(() => document.createElementNS(SVG, "g")));
    svg.firstChild.innerHTML = pack.defs;
    const places = [...svg.children].slice(1);
    const shown = [];
    note.textContent = pack.notes.reduce((a, b) => (b.length > a.length ? b : a));
    note.style.minHeight = `${note.offsetHeight}px`; // the page below holds still
    return (k) => {
      pack.slots.forEach((slot, j) => {
        const piece = typeof slot === "number" ? slot : slot[k];
        if (piece === shown[j]) return;
        places[j].innerHTML = piece < 0 ? "" : pack.pieces[piece];
        shown[j] = piece;
      });
      if (note.textContent !== pack.notes[k]) note.textContent = pack.notes[k];
      figure.offsetHeight; // lays the page out now, while the screen is not yet due
    };
  };

  // One control: how many values it has, which is chosen, and how to hear of a change.
  const control = (row) => {
    const range = row.querySelector("input[type=range]");
    const select = row.querySelector("select");
    if (select) return { count: select.options.length, get: () => select.selectedIndex, parts: [select] };
    if (!range) {
      const radios = [...row.querySelectorAll("input[type=radio]")];
      return { count: radios.length, get: () => radios.findIndex((r) => r.checked), parts: [row, ...radios] };
    }
    const options = range.dataset.options.split("|");
    const get = () => {
      const text = options[range.value];
      row.querySelector("output").textContent = text;
      range.setAttribute("aria-valuetext", text);
      return +range.value;
    };
    return { count: options.length, get, parts: [range] };
  };

  const wake = async (figure) => {
    const pack = figure.querySelector(".live-pack");
    if (!pack || figure.dataset.ready) return;
    figure.dataset.ready = "soon";
    const controls = [...figure.querySelectorAll(".live-row")].map(control);
    const paint = painter(figure, await inflate(pack.textContent));
    const show = () => paint(controls.reduce((k, c) => k * c.count + c.get(), 0));
    for (const c of controls) for (const part of c.parts) part.disabled = false;
    figure.addEventListener("input", show);
    show();
    figure.dataset.ready = "yes";
  };

  const all = () => document.querySelectorAll(".live").forEach(wake);
  if (document.readyState === "loading") document.addEventListener("readystatechange", all, { once: true });
  else all();
  window.addEventListener("pageshow", all); // browsers restore sliders when a reader comes back
})();
