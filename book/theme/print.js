// Paper is white, and cannot be unfolded: the light theme, and answers lie open.
(() => {
  const root = document.documentElement;
  let theme;
  let folded = [];
  addEventListener("beforeprint", () => {
    theme = root.dataset.theme;
    root.dataset.theme = "light";
    folded = [...document.querySelectorAll(".ask details:not([open]), .sd-dropdown:not([open])")];
    for (const details of folded) details.open = true;
  });
  addEventListener("afterprint", () => {
    root.dataset.theme = theme;
    for (const details of folded) details.open = false;
  });
})();
