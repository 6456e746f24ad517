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

// Excerpts of a search come from the text, not from the buttons above and beside it.
if (typeof Search !== "undefined") {
  const plain = Search.htmlToText;
  Search.htmlToText = (html, anchor) => {
    const page = new DOMParser().parseFromString(html, "text/html");
    const around = ".bd-header-article, .bd-sidebar-secondary, .onlyprint";
    for (const part of page.querySelectorAll(around)) part.remove();
    return plain(page.documentElement.outerHTML, anchor);
  };
}
